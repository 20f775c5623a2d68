"""What a free query returned, in graphret's nouns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from graphret.stores.neo4j.layout import LONG_ID, Layout
from graphret.stores.neo4j.statements import Plan, Statement
from graphret.stores.neo4j.stored_ids import shared
from graphret.stores.neo4j.values import edge_from, json_value, node_from


def row_of(record: Any) -> list[Any]:
    """Return the values of a record of the driver, whose own methods refuse one with a date that Python lacks."""
    return list(tuple.__iter__(record))


class Reader:
    """Turns values of the driver into nodes, edges and JSON values.

    A relationship knows the element ids of its ends alone. Those that the result does not hold as nodes are looked up
    once, by `missing` and `learn`.
    """

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self._ids: dict[str, str] = {}

    def resolve(self, rows: list[list[Any]]) -> Plan[set[str]]:
        """Find out the ids of the nodes and of the ends of relationships in the rows; return those of several nodes."""
        unknown: set[str] = set()
        for value in _entities(rows):
            if hasattr(value, "labels"):
                node_id = self._id_in(value)
                if isinstance(node_id, float):
                    unknown.add(value.element_id)  # the database writes it as text
                elif node_id is not None:
                    self._ids[value.element_id] = node_id
            else:
                unknown.update(end.element_id for end in value.nodes if end is not None)
        unknown -= self._ids.keys()
        if unknown:
            text = f"MATCH (n) WHERE elementId(n) IN $elements RETURN elementId(n), {self.layout.id_of('n')}"
            found = yield Statement(text, {"elements": sorted(unknown)})
            self._ids.update({element: node_id for element, node_id in found if node_id is not None})
        if not self.layout.may_share_ids:
            return set()
        return shared((node_id, element) for element, node_id in self._ids.items())

    def value(self, value: Any) -> Any:
        """Return a value as graphret has it."""
        if hasattr(value, "relationships"):
            return list(self._path(value))
        if hasattr(value, "labels") and hasattr(value, "element_id"):
            return node_from(self.layout, self._id(value), list(value.labels), dict(value))
        if hasattr(value, "start_node") and hasattr(value, "element_id"):
            return edge_from(self._id(value.start_node), value.type, self._id(value.end_node), dict(value))
        if isinstance(value, list):
            return [self.value(v) for v in value]
        if isinstance(value, dict):
            return {key: self.value(v) for key, v in value.items()}
        return json_value(value)

    def _path(self, path: Any) -> Iterator[Any]:
        for i, node in enumerate(path.nodes):
            yield self.value(node)
            if i < len(path.relationships):
                yield self.value(path.relationships[i])

    def _id(self, node: Any) -> str:
        return self._ids.get(node.element_id, str(node.element_id))

    def _id_in(self, node: Any) -> str | float | None:
        values = dict(node)
        if self.layout.id is None:
            return str(node.element_id)
        long = values.get(LONG_ID) if self.layout.lossless else None
        found = values.get(self.layout.id) if long is None else long
        if isinstance(found, float):
            return found
        return str(found) if isinstance(found, (str, int)) and not isinstance(found, bool) else None


def _entities(value: Any) -> Iterator[Any]:
    if hasattr(value, "relationships"):
        yield from value.nodes
        yield from value.relationships
    elif hasattr(value, "element_id"):
        yield value
    elif isinstance(value, (list, tuple)) and not hasattr(value, "srid"):
        for inner in value:
            yield from _entities(inner)
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _entities(inner)
