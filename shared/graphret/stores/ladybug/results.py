"""What a free query returned, in graphret's nouns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from graphret.stores.ladybug.catalog import Catalog, NodeTable
from graphret.stores.ladybug.engine import Session
from graphret.stores.ladybug.names import folded, quoted
from graphret.stores.ladybug.records import EdgeReader, NodeReader, id_expression, is_cast, node_id
from graphret.stores.ladybug.values import json_key, json_value
from graphret.types import Edge, Node

#: Types of columns whose values may have nodes or edges in them.
_HOLDERS = ("NODE", "REL", "RECURSIVE_REL", "STRUCT", "MAP", "INTERNAL_ID", "UNION")

#: Types of columns whose values are returned as they are.
_PLAIN = frozenset({"STRING", "INT64", "BOOL", "STRING[]"})

Place = tuple[int, int]


def is_plain(types: Sequence[str]) -> bool:
    """Whether what columns of these types hold is returned as it is."""
    return _PLAIN.issuperset(types)


def has_entities(types: Sequence[str]) -> bool:
    """Whether columns of these types may hold nodes or edges."""
    return any(kind.startswith(_HOLDERS) for kind in types)


class Values:
    """Turns the values of a result into nodes, edges and JSON values.

    Parameters
    ----------
    session
        Where the result came from, in the same transaction: an edge knows its ends by their places only, and values of
        columns that have another type in another table come back as something else, so that these are read again.
    """

    def __init__(self, session: Session, catalog: Catalog, rows: Sequence[Sequence[Any]]) -> None:
        self._session = session
        self._catalog = catalog
        self._tables = catalog.numbered()
        self._nodes: dict[Place, Node] = {}
        self._edges: dict[Place, Edge] = {}
        self._ids: dict[Place, str] = {}
        found_nodes: dict[Place, dict[str, Any]] = {}
        found_edges: dict[Place, dict[str, Any]] = {}
        for row in rows:
            for value in _walked(row):
                (found_edges if "_SRC" in value else found_nodes)[_place(value["_ID"])] = value
        self._read_nodes(found_nodes)
        self._read_edges(found_edges)

    def __call__(self, value: Any) -> Any:
        """Return a value as graphret does."""
        if isinstance(value, dict):
            if "_ID" in value and "_LABEL" in value:
                return (self._edges if "_SRC" in value else self._nodes)[_place(value["_ID"])]
            if value.keys() == {"_NODES", "_RELS"}:
                return self._path(value)
            if value.keys() == {"offset", "table"}:
                return node_id(value)
            return {json_key(key): self(item) for key, item in value.items()}
        return [self(item) for item in value] if isinstance(value, list) else json_value(value)

    def _path(self, value: dict[str, Any]) -> list[Node | Edge]:
        nodes, edges = [self(node) for node in value["_NODES"]], [self(edge) for edge in value["_RELS"]]
        if len(nodes) != len(edges) + 1:  # the value of a variable-length relationship leaves its ends out
            return edges
        return [item for pair in zip(nodes, [*edges, None], strict=True) for item in pair if item is not None]

    def _read_nodes(self, found: dict[Place, dict[str, Any]]) -> None:
        mixed = self._catalog.conflicted() if found else set()
        mixed |= {t.name for t in self._tables.values() if any(is_cast(t, c) for c in t.own)}
        again: dict[int, list[int]] = {}
        for place, value in found.items():
            table = self._catalog.nodes[value["_LABEL"]]
            if table.name in mixed:
                again.setdefault(table.number, []).append(place[1])
                continue
            self._nodes[place] = NodeReader(table).node(_row(table, value))
        for number, offsets in again.items():
            table = self._tables[number]
            reader = NodeReader(table)
            for offset, *row in self._at(table, offsets, reader.expressions("n")):
                self._nodes[number, offset] = reader.node(row)
        self._ids = {place: node.id for place, node in self._nodes.items()}

    def _at(self, table: NodeTable, offsets: list[int], expressions: str) -> list[list[Any]]:
        return self._session.rows(
            f"MATCH (n:{quoted(table.name)}) WHERE list_contains($offsets, offset(id(n))) "
            f"RETURN offset(id(n)), {expressions}",
            {"offsets": sorted(offsets)},
        )

    def _read_edges(self, found: dict[Place, dict[str, Any]]) -> None:
        ends: dict[int, set[int]] = {}
        for value in found.values():
            for end in (_place(value["_SRC"]), _place(value["_DST"])):
                if end not in self._ids:
                    ends.setdefault(end[0], set()).add(end[1])
        for number, offsets in ends.items():
            table = self._tables[number]
            for offset, own in self._at(table, [*offsets], id_expression(table, "n")):
                self._ids[number, offset] = node_id(own)
        mixed = self._mixed_relations() if found else set()
        again: dict[str, set[int]] = {}
        for place, value in found.items():
            name = value["_LABEL"]
            if name in mixed:
                again.setdefault(name, set()).add(place[1])
            ends_of = self._ids[_place(value["_SRC"])], self._ids[_place(value["_DST"])]
            reader = EdgeReader([self._catalog.relations[name]])
            if name not in mixed:
                self._edges[place] = reader.of_record(*ends_of, name, value)
        for name, places in again.items():
            reader = EdgeReader([self._catalog.relations[name]])
            rows = self._session.rows(
                f"MATCH (a)-[{reader.pattern('r')}]->(b) WHERE list_contains($offsets, offset(id(r))) "
                f"RETURN id(r), id(a), id(b), {reader.expressions('r')}",
                {"offsets": sorted(places)},
            )
            for own, source, target, *row in rows:
                if _place(own) in found:
                    ends_of = self._ids[_place(source)], self._ids[_place(target)]
                    self._edges[_place(own)] = reader.edge(*ends_of, row)

    def _mixed_relations(self) -> set[str]:
        types: dict[str, set[str]] = {}
        for table in self._catalog.relations.values():
            for column, kind in table.columns.items():
                types.setdefault(folded(column), set()).add(kind)
        mixed = {column for column, kinds in types.items() if len(kinds) > 1}
        return {t.name for t in self._catalog.relations.values() if any(folded(c) in mixed for c in t.columns)}


def _row(table: NodeTable, value: dict[str, Any]) -> list[Any]:
    """The values of a node in the order in which `NodeReader` asks for them."""
    own = value["_ID"] if table.id_column is None else value.get(table.id_column)
    return [own, *(value.get(column) for column in NodeReader(table).columns)]


def _walked(value: Any) -> Iterator[dict[str, Any]]:
    """Every node and edge in a value."""
    if isinstance(value, dict):
        if "_ID" in value and "_LABEL" in value:
            yield value
            return
        for item in value.values():
            yield from _walked(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _walked(item)


def _place(value: dict[str, int]) -> Place:
    return value["table"], value["offset"]
