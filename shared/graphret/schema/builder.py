"""`SchemaBuilder`: the schema of nodes and edges that come in blocks."""

from __future__ import annotations

import datetime
import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple, TypeVar

from graphret.schema.model import GraphSchema, PropertySchema
from graphret.types import Edge, Node

EXAMPLES = 3
#: Of so many nodes of each set of labels, and edges of each relation, the properties are read.
SAMPLE = 2000
T = TypeVar("T")
_VALUES_COUNTED = 1000
_VALUE_LENGTH = 100
_LIST_LENGTH = 5


class SchemaBuilder:
    """Counts labels, relations and properties of blocks of nodes and edges.

    Parameters
    ----------
    examples
        How many values are kept as examples of a property.
    """

    def __init__(self, examples: int = EXAMPLES) -> None:
        self.examples = examples
        #: The empty label stands for nodes that have none: it has properties and triples, and is no label.
        self._bearers: Counter[str] = Counter()
        self._triples: Counter[tuple[str, str, str]] = Counter()
        self._relations: Counter[str] = Counter()
        self._of_label: dict[str, dict[str, _Property]] = {}
        self._of_relation: dict[str, dict[str, _Property]] = {}

    def observe_nodes(self, nodes: Iterable[Node], times: int = 1) -> None:
        """Read a block of nodes, each of which stands for so many of the graph."""
        for node in nodes:
            seen = _seen(node.properties)
            for label in dict.fromkeys(node.labels) or ("",):
                self._bearers[label] += times
                _observe(self._of_label.setdefault(label, {}), seen, times)

    def observe_edges(
        self, edges: Iterable[Edge], labels: Mapping[str, Sequence[str]] | None = None, times: int = 1
    ) -> None:
        """Read a block of edges, each of which stands for so many of the graph.

        Parameters
        ----------
        labels
            The labels of nodes by id. An edge counts as a triple of each pair of labels if both of its ends are there.
        """
        for edge in edges:
            self._relations[edge.relation] += times
            _observe(self._of_relation.setdefault(edge.relation, {}), _seen(edge.properties), times)
            if labels is not None and edge.source in labels and edge.target in labels:
                pairs = product(*(dict.fromkeys(labels[end]) or ("",) for end in (edge.source, edge.target)))
                self._triples.update({(source, edge.relation, target): times for source, target in pairs})

    def build(
        self,
        labels: Mapping[str, int] | None = None,
        relations: Mapping[tuple[str, str, str], int] | None = None,
        *,
        sampled: bool = False,
        sampled_names: bool = False,
        sampled_relations: Collection[str] = (),
        sampled_properties: Collection[str] = (),
        sampled_relation_properties: Collection[str] = (),
        cypher_labels: Mapping[str, str | None] | None = None,
        cypher_relations: Mapping[str, str] | None = None,
        columns: Mapping[str, Collection[str]] | None = None,
        relation_columns: Mapping[str, Collection[str]] | None = None,
    ) -> GraphSchema:
        """Return the schema; counts that are known otherwise take the place of what was counted.

        What may be missing, and what queries call otherwise, is said as `GraphSchema` has it.
        """
        return GraphSchema(
            {label: n for label, n in sorted((self._bearers if labels is None else labels).items()) if label},
            dict(sorted((self._triples if relations is None else relations).items())),
            self._properties(self._of_label, self._bearers),
            self._properties(self._of_relation, self._relations),
            sampled,
            sampled_names,
            frozenset(sampled_relations),
            frozenset(sampled_properties),
            frozenset(sampled_relation_properties),
            cypher_labels or {},
            cypher_relations or {},
            {label: frozenset(names) for label, names in (columns or {}).items()},
            {name: frozenset(names) for name, names in (relation_columns or {}).items()},
        )

    def _properties(
        self, owners: Mapping[str, Mapping[str, _Property]], counts: Mapping[str, int]
    ) -> dict[str, dict[str, PropertySchema]]:
        return {
            owner: {name: known.schema(counts[owner], self.examples) for name, known in sorted(found.items())}
            for owner, found in sorted(owners.items())
            if found
        }


def schema_of(nodes: Sequence[Node], edges: Sequence[Edge], sample: int = SAMPLE) -> GraphSchema:
    """Return the schema of a graph that is read whole: all is counted, and properties are read from a sample.

    Parameters
    ----------
    sample
        Of at most so many nodes of each set of labels, and edges of each relation, evenly spread, properties are read.
    """
    builder = SchemaBuilder()
    sets: dict[tuple[str, ...], list[Node]] = {}
    relations: dict[str, list[Edge]] = {}
    for node in nodes:
        sets.setdefault(tuple(dict.fromkeys(node.labels)) or ("",), []).append(node)
    for edge in edges:
        relations.setdefault(edge.relation, []).append(edge)
    labels_of = {node.id: labels for labels, bearers in sets.items() for node in bearers}
    kinds = Counter(
        (labels_of[edge.source], edge.relation, labels_of[edge.target])
        for edge in edges
        if edge.source in labels_of and edge.target in labels_of
    )
    labels: Counter[str] = Counter()
    triples: Counter[tuple[str, str, str]] = Counter()
    for own, bearers in sets.items():
        labels.update(dict.fromkeys(own, len(bearers)))
        some = _spread(bearers, sample)
        builder.observe_nodes(some, max(1, round(len(bearers) / len(some))))
    for (sources, relation, targets), n in kinds.items():
        triples.update({(source, relation, target): n for source in sources for target in targets})
    for links in relations.values():
        some_links = _spread(links, sample)
        builder.observe_edges(some_links, times=max(1, round(len(links) / len(some_links))))
    return builder.build(
        labels,
        triples,
        sampled_properties={label for own, bearers in sets.items() if len(bearers) > sample for label in own},
        sampled_relation_properties=[relation for relation, links in relations.items() if len(links) > sample],
    )


def _spread(items: list[T], most: int) -> list[T]:
    return items if len(items) <= most else [items[i * len(items) // most] for i in range(most)]


def type_of(value: Any) -> str:
    """Return the type of a value in the words of `PropertySchema.type`."""
    if isinstance(value, bool):
        return "BOOLEAN"
    if isinstance(value, str):
        return "STRING"
    if isinstance(value, int):
        return "INTEGER"
    if isinstance(value, float):
        return "FLOAT"
    if isinstance(value, Mapping):
        return "MAP"
    if _is_point(value):
        return "POINT"
    if _is_duration(value):
        return "DURATION"
    if isinstance(value, (list, tuple)):
        return f"LIST OF {merged_type(type_of(v) for v in value if v is not None)}"
    if isinstance(value, datetime.datetime):
        return "DATE_TIME"
    if isinstance(value, datetime.date):
        return "DATE"
    if isinstance(value, datetime.time):
        return "TIME"
    return "ANY"


def _is_duration(value: Any) -> bool:
    """Whether a value is a duration, which Neo4j's driver makes a tuple."""
    return isinstance(value, datetime.timedelta) or (hasattr(value, "months") and hasattr(value, "nanoseconds"))


def _is_point(value: Any) -> bool:
    """Whether a value is a point of Neo4j, which its driver makes a tuple."""
    return hasattr(value, "srid")


def merged_type(types: Iterable[str]) -> str:
    """Return the one type of values of several: numbers are ``FLOAT``, lists are lists, all else is ``ANY``."""
    found = set(types)
    if len(found) == 1:
        return found.pop()
    if found and found <= {"INTEGER", "FLOAT"}:
        return "FLOAT"
    if found and all(kind.startswith("LIST OF ") for kind in found):
        return f"LIST OF {merged_type(kind.removeprefix('LIST OF ') for kind in found - {'LIST OF ANY'})}"
    return "ANY"


class _Example(NamedTuple):
    """A value as it is shown, and the text by which it is told apart."""

    text: str
    value: Any


#: A property by name, its type and how it is shown, if it is.
_Seen = tuple[str, str, _Example | None]


class _Property:
    def __init__(self) -> None:
        self.n = 0
        self.types: set[str] = set()
        self.counts: dict[str, int] = {}
        self.values: dict[str, Any] = {}

    def schema(self, owners: int, examples: int) -> PropertySchema:
        likeliest = sorted(self.counts.items(), key=lambda item: (-item[1], item[0]))[:examples]
        return PropertySchema(
            merged_type(self.types),
            self.n / owners if owners else 0.0,
            tuple(self.values[text] for text, _ in likeliest),
        )


def _seen(properties: Mapping[str, Any]) -> list[_Seen]:
    return [(name, type_of(value), _example(value)) for name, value in properties.items() if value is not None]


def _observe(known: dict[str, _Property], properties: Iterable[_Seen], times: int) -> None:
    for name, kind, example in properties:
        seen = known.get(name)
        if seen is None:
            seen = known[name] = _Property()
        seen.n += times
        seen.types.add(kind)
        if example is None:
            continue
        text, value = example
        if text in seen.counts:
            seen.counts[text] += times
        elif len(seen.counts) < _VALUES_COUNTED:
            seen.counts[text], seen.values[text] = times, value


def _example(value: Any) -> _Example | None:
    """Return a value, shortened, with its JSON; `None` for what shows little: an object, a point, or a list of them."""
    if isinstance(value, Mapping) or _is_point(value):
        return None
    if isinstance(value, (list, tuple)) and not _is_duration(value):
        short = [_cut(v) if isinstance(v, str) else v for v in value[:_LIST_LENGTH]]
        plain = short and all(isinstance(v, (str, int, float, bool)) for v in short)
        return _Example(json.dumps(short), short) if plain else None
    shown = value if isinstance(value, (bool, int, float)) else _cut(str(value))
    return _Example(json.dumps(shown), shown)


def _cut(value: str) -> str:
    return value if len(value) <= _VALUE_LENGTH else value[: _VALUE_LENGTH - 1] + "…"
