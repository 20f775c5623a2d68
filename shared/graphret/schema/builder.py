"""`SchemaBuilder`: the schema of nodes and edges that come in blocks."""

from __future__ import annotations

import datetime
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from graphret.schema.model import GraphSchema, PropertySchema
from graphret.types import Edge, Node

#: How many values are kept as examples of a property.
EXAMPLES = 3
_FEW_VALUES, _SHORT = 12, 40  # values that can all be shown, and their characters
_VALUES_COUNTED = 1000
_VALUE_LENGTH = 100
_LIST_LENGTH = 5


class SchemaBuilder:
    """Gathers the properties of blocks of nodes and edges."""

    def __init__(self) -> None:
        #: The empty label stands for nodes without one: it has properties, but is not
        #: listed as a label.
        self._label_counts: Counter[str] = Counter()
        self._relations: Counter[str] = Counter()
        self._of_label: dict[str, dict[str, _Property]] = {}
        self._of_relation: dict[str, dict[str, _Property]] = {}

    def observe_nodes(self, nodes: Iterable[Node], times: int = 1) -> None:
        """Read a block of nodes, each of which stands for `times` nodes."""
        for node in nodes:
            for label in dict.fromkeys(node.labels) or ("",):
                self._label_counts[label] += times
                _observe(self._of_label.setdefault(label, {}), node.properties, times)

    def observe_edges(self, edges: Iterable[Edge], times: int = 1) -> None:
        """Read a block of edges, each of which stands for `times` edges."""
        for edge in edges:
            self._relations[edge.relation] += times
            _observe(
                self._of_relation.setdefault(edge.relation, {}), edge.properties, times
            )

    def build(
        self,
        labels: Mapping[str, int],
        relations: Mapping[tuple[str, str, str], int],
        **more: Any,
    ) -> GraphSchema:
        """Return the schema with these counts, and `more` fields of `GraphSchema`."""
        return GraphSchema(
            {label: n for label, n in sorted(labels.items()) if label},
            dict(sorted(relations.items())),
            self._properties(self._of_label, self._label_counts),
            self._properties(self._of_relation, self._relations),
            **more,
        )

    def _properties(
        self, owners: Mapping[str, Mapping[str, _Property]], counts: Mapping[str, int]
    ) -> dict[str, dict[str, PropertySchema]]:
        return {
            owner: {
                name: observed.schema(counts[owner])
                for name, observed in sorted(properties.items())
            }
            for owner, properties in sorted(owners.items())
            if properties
        }


_TYPES: Sequence[tuple[type, str]] = (
    (bool, "BOOLEAN"),
    (str, "STRING"),
    (int, "INTEGER"),
    (float, "FLOAT"),
    (Mapping, "MAP"),
    (datetime.timedelta, "DURATION"),
    (datetime.datetime, "DATE_TIME"),
    (datetime.date, "DATE"),
    (datetime.time, "TIME"),
)


def type_of(value: Any) -> str:
    """Return the type of a value in the words of `PropertySchema.type`."""
    # The points and durations of Neo4j's driver are tuples.
    if hasattr(value, "srid"):
        return "POINT"
    if hasattr(value, "nanoseconds"):
        return "DURATION"
    if isinstance(value, (list, tuple)):
        return f"LIST OF {merged_type(type_of(v) for v in value if v is not None)}"
    return next((name for kind, name in _TYPES if isinstance(value, kind)), "ANY")


def merged_type(types: Iterable[str]) -> str:
    """Return the common type of several: ``FLOAT``, a list, or else ``ANY``."""
    distinct = set(types)
    if len(distinct) == 1:
        return distinct.pop()
    if distinct and distinct <= {"INTEGER", "FLOAT"}:
        return "FLOAT"
    if distinct and all(kind.startswith("LIST OF ") for kind in distinct):
        items = (kind.removeprefix("LIST OF ") for kind in distinct - {"LIST OF ANY"})
        return f"LIST OF {merged_type(items)}"
    return "ANY"


class _Property:
    """The observed count, types and value counts of a property; values are JSON."""

    def __init__(self) -> None:
        self.n = 0
        self.types: set[str] = set()
        self.counts: Counter[str] = Counter()

    def observe(self, value: Any, times: int) -> None:
        self.n += times
        self.types.add(type_of(value))
        shown = _shown(value)
        if shown is not None and (
            shown in self.counts or len(self.counts) < _VALUES_COUNTED
        ):
            self.counts[shown] += times

    def schema(self, owners: int) -> PropertySchema:
        likeliest = sorted(self.counts, key=lambda shown: (-self.counts[shown], shown))
        coverage = self.n / owners if owners else 0.0
        kind, values = merged_type(self.types), tuple(map(json.loads, likeliest))
        comes_again = 2 * len(values) <= sum(self.counts.values()) == self.n
        few = comes_again and len(values) <= _FEW_VALUES
        all_shown = few and all(len(shown) <= _SHORT for shown in likeliest)
        is_list = kind.startswith("LIST OF ")
        return PropertySchema(
            kind,
            coverage,
            values[:EXAMPLES],
            () if is_list or not all_shown else values,
        )


def _observe(
    observed: dict[str, _Property], properties: Mapping[str, Any], times: int
) -> None:
    for name, value in properties.items():
        if value is not None:
            observed.setdefault(name, _Property()).observe(value, times)


def _shown(value: Any) -> str | None:
    """Return a shortened value as JSON; `None` for objects, points and such lists."""
    kind = type_of(value)
    if kind in ("MAP", "POINT"):
        return None
    if kind.startswith("LIST OF "):
        short = [_cut(v) if isinstance(v, str) else v for v in value[:_LIST_LENGTH]]
        return (
            json.dumps(short)
            if short and all(isinstance(v, (str, int, float)) for v in short)
            else None
        )
    return json.dumps(
        value if isinstance(value, (bool, int, float)) else _cut(str(value))
    )


def _cut(value: str) -> str:
    return value if len(value) <= _VALUE_LENGTH else value[: _VALUE_LENGTH - 1] + "…"
