"""What the page begins with: the size of a graph, questions to try, and the values
that hits can be filtered by.
"""

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
    """Return the counts of a graph, ``questions`` made from names and links that it
    has, and the ``properties`` that a filter may ask for.

    A property has its ``kind`` (``text``, ``number``, ``truth`` or ``list``) and its
    commonest ``values``, found in a sample of nodes.
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
    """Return three questions about nodes of a sample: each of another node and, as far
    as there are some, another relation.
    """
    named = [node for node in sample if _can_be_asked(node.name)]
    chosen = named[:: max(1, len(named) // _ASKED)]
    asked: list[str] = []
    told: set[str] = set()
    for about, question in (*_of_edges(store, chosen), *_of_nodes(chosen)):
        if told.isdisjoint(about) and len(asked) < _QUESTIONS:
            asked.append(question)
            told.update(about)
    return asked


def _can_be_asked(name: str) -> bool:
    return 2 < len(name) <= _LONGEST_NAME and name[0].isalpha() and name.isprintable()


def _of_edges(
    store: GraphStore, nodes: Sequence[Node]
) -> Iterator[tuple[list[str], str]]:
    """Go through questions about edges of nodes, with the names that each says: the
    heaviest edge of every kind, then the next of each.
    """
    edges = store.neighbors([node.id for node in nodes], limit=_EDGES)
    ends = list(dict.fromkeys(end for e in edges for end in (e.source, e.target)))
    known = {node.id: node for node in store.get(ends) if node is not None}
    found: list[tuple[int, list[str], str]] = []
    times: Counter[str] = Counter()
    for edge in sorted(edges, key=lambda edge: -edge.weight):
        source, target = known.get(edge.source), known.get(edge.target)
        if source is None or target is None or edge.relation in _UNASKED:
            continue
        names = [source.name, target.name]
        if all(map(_can_be_asked, names)) and not _one_says_the_other(*names):
            kind = "shared" if edge.relation in _SHARED else edge.relation
            found.append((times[kind], names, _question(edge, source, target)))
            times[kind] += 1
    for _, names, question in sorted(found, key=lambda one: one[0]):
        yield names, question


def _one_says_the_other(first: str, second: str) -> bool:
    one, other = first.casefold(), second.casefold()
    return one in other or other in one


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
    """The kinds and the values that were seen of a property, of how many nodes, and how
    many more have a value that nobody would pick.
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
        """Whether most values can be picked, and all are of one kind."""
        return len(self.kinds) == 1 and bool(self.values) and self.unfit < self.nodes


def _kind(value: Any) -> str:
    """Return what a value is to a filter, an empty string where nobody would pick it:
    a long text, a mapping, nothing.
    """
    if isinstance(value, bool):
        return "truth"
    if isinstance(value, (int, float)):
        return "number"
    is_short = isinstance(value, str) and 0 < len(value) <= _LONGEST_VALUE
    return "text" if is_short else ""


def filters(sample: Sequence[Node]) -> list[dict[str, Any]]:
    """Return the properties of nodes that a filter may ask for, those of most nodes
    first: name, field of a condition, kind, and the commonest values.

    Those of long texts, mappings or values of several kinds, and what graphret notes
    for itself, are left out.
    """
    seen: dict[str, _Property] = {}
    for node in sample:
        for name, value in node.properties.items():
            if value is not None and "." not in name and not is_reserved(name):
                seen.setdefault(name, _Property()).observe(value)
    fit = [(name, one) for name, one in seen.items() if one.is_fit]
    fit.sort(key=lambda named: (-named[1].nodes, named[0]))
    return [
        {
            "name": name,
            "field": PROPERTIES + name if name in _OWN_FIELDS else name,
            "kind": next(iter(one.kinds)),
            "values": _commonest(one.values),
        }
        for name, one in fit[:_PROPERTIES]
    ]


def _commonest(values: Mapping[Any, int]) -> list[Any]:
    return sorted(values, key=lambda value: (-values[value], str(value)))[:_VALUES]
