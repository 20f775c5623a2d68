"""The start of the web page: a graph's size, sample questions, and filters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from graphret.corpus.items import is_reserved
from graphret.expansion.frontier import MENTIONS, SAME_SOURCE, SHARES_NAME
from graphret.sage.joins import JOINS
from graphret.sage.similarity import IS_SIMILAR, SHARES_ENTITY
from graphret.sage.structure import NEXT
from graphret.stores.base import GraphStore
from graphret.types import Edge, Node
from graphret.where import PROPERTIES

_READ, _ASKED, _EDGES = 2_000, 200, 3
_QUESTIONS, _PROPERTIES, _VALUES = 3, 40, 30
_LONGEST_VALUE, _LONGEST_NAME = 60, 50
_OWN_FIELDS = ("id", "name", "text", "label")
#: Relations that say how a document was cut, or only that texts are alike.
_UNASKED = (NEXT, SAME_SOURCE, IS_SIMILAR)
_SHARED = (SHARES_NAME, SHARES_ENTITY, JOINS)


def introduction(store: GraphStore) -> dict[str, Any]:
    """Return a graph's counts, sample ``questions``, and ``properties`` to filter by.

    The questions are made from names and links of the graph. A property has its
    ``kind`` (``text``, ``number``, ``truth`` or ``list``) and its most common
    ``values``, from a sample of nodes.
    """
    schema, (nodes, edges) = store.schema(), store.count()
    block = next(iter(store.nodes()), [])
    sample = block[:: max(1, len(block) // _READ)]
    relations: Counter[str] = Counter()
    for (_, relation, _), n in schema.relations.items():
        relations[relation] += n
    labels = {label: n for label, n in schema.labels.items() if n}
    by_label = {"name": "label", "field": "label", "kind": "text", "values": [*labels]}
    return {
        "nodes": nodes,
        "edges": edges,
        "labels": labels,
        "relations": dict(relations),
        "questions": example_questions(store, sample),
        "properties": [by_label, *filters(sample)],
    }


# -- questions


def example_questions(store: GraphStore, sample: Sequence[Node]) -> list[str]:
    """Return three questions, about different nodes and, if possible, relations."""
    candidates = [node for node in sample if _can_be_asked(node.name)]
    chosen = candidates[:: max(1, len(candidates) // _ASKED)]
    questions: list[str] = []
    used_names: set[str] = set()
    for names, question in (*_of_edges(store, chosen), *_of_nodes(chosen)):
        if used_names.isdisjoint(names) and len(questions) < _QUESTIONS:
            questions.append(question)
            used_names.update(names)
    return questions


def _can_be_asked(name: str) -> bool:
    return 2 < len(name) <= _LONGEST_NAME and name[0].isalpha() and name.isprintable()


def _of_edges(
    store: GraphStore, nodes: Sequence[Node]
) -> Iterator[tuple[list[str], str]]:
    """Yield questions about edges, with the names in each.

    The heaviest edge of every kind comes first, then the next of each kind.
    """
    edges = store.neighbors([node.id for node in nodes], limit=_EDGES)
    ids = dict.fromkeys(
        node_id for edge in edges for node_id in (edge.source, edge.target)
    )
    by_id = {node.id: node for node in store.get(list(ids)) if node is not None}
    ranked: list[tuple[int, list[str], str]] = []
    times: Counter[str] = Counter()
    for edge in sorted(edges, key=lambda edge: -edge.weight):
        source, target = by_id.get(edge.source), by_id.get(edge.target)
        if source is None or target is None or edge.relation in _UNASKED:
            continue
        names = [source.name, target.name]
        if all(map(_can_be_asked, names)) and not _overlap(*names):
            kind = "shared" if edge.relation in _SHARED else edge.relation
            ranked.append((times[kind], names, _question(edge, source, target)))
            times[kind] += 1
    for _, names, question in sorted(ranked, key=lambda entry: entry[0]):
        yield names, question


def _overlap(first: str, second: str) -> bool:
    """Whether one of two names contains the other, ignoring case."""
    first, second = first.casefold(), second.casefold()
    return first in second or second in first


def _question(edge: Edge, source: Node, target: Node) -> str:
    if edge.relation == MENTIONS:
        name = edge.properties.get("name", target.name)
        return f"What does {source.name} say about {name}?"
    if edge.relation in _SHARED:
        return f"What do {source.name} and {target.name} have in common?"
    relation = edge.relation.replace("_", " ").lower()
    return f"Which {target.label or 'node'} is {source.name} linked to by “{relation}”?"


def _of_nodes(nodes: Sequence[Node]) -> Iterator[tuple[list[str], str]]:
    for node in nodes:
        yield [node.name], f"What is known about {node.name}?"


# -- filters


@dataclass(slots=True)
class _Property:
    """The kinds and values of a property in a sample of nodes.

    `nodes` counts the nodes with a suitable value, `unfit` those with another.
    """

    nodes: int = 0
    unfit: int = 0
    kinds: set[str] = field(default_factory=set)
    values: Counter[Any] = field(default_factory=Counter)

    def observe(self, value: Any) -> None:
        items = value if isinstance(value, list) else [value]
        kinds = {_kind(item) for item in items}
        if "" in kinds:
            self.unfit += 1
            return
        self.nodes += 1
        self.kinds |= {"list"} if items is value else kinds
        self.values.update(items)

    @property
    def is_fit(self) -> bool:
        """Whether most values are suitable, and all are of one kind."""
        return len(self.kinds) == 1 and bool(self.values) and self.unfit < self.nodes


def _kind(value: Any) -> str:
    """Return a value's kind for filters; empty for a long text, a mapping or `None`."""
    if isinstance(value, bool):
        return "truth"
    if isinstance(value, (int, float)):
        return "number"
    is_short = isinstance(value, str) and 0 < len(value) <= _LONGEST_VALUE
    return "text" if is_short else ""


def filters(sample: Sequence[Node]) -> list[dict[str, Any]]:
    """Return the properties to filter by, those of most nodes first.

    Each has its name, field in a condition, kind, and most common values. Long texts,
    mappings, properties of several kinds and graphret's own are left out.
    """
    by_name: dict[str, _Property] = {}
    for node in sample:
        for name, value in node.properties.items():
            if value is not None and "." not in name and not is_reserved(name):
                by_name.setdefault(name, _Property()).observe(value)
    fit = [(name, observed) for name, observed in by_name.items() if observed.is_fit]
    fit.sort(key=lambda entry: (-entry[1].nodes, entry[0]))
    return [
        {
            "name": name,
            "field": PROPERTIES + name if name in _OWN_FIELDS else name,
            "kind": next(iter(observed.kinds)),
            "values": _commonest(observed.values),
        }
        for name, observed in fit[:_PROPERTIES]
    ]


def _commonest(values: Mapping[Any, int]) -> list[Any]:
    return sorted(values, key=lambda value: (-values[value], str(value)))[:_VALUES]
