"""Rows of the database as nodes and edges."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from graphret.stores.ladybug.catalog import NodeTable, RelationTable
from graphret.stores.ladybug.names import NULLS, OVERFLOW, quoted
from graphret.stores.ladybug.texts import own_text, text_expression
from graphret.stores.ladybug.values import FLOATS, conversions, convert, json_value, number_type
from graphret.types import Edge, Node

EdgeKey = tuple[str, str, str, int, int]


def id_expression(table: NodeTable, variable: str) -> str:
    """Return what a query returns as the id of a node."""
    return _own(table, table.id_column, variable) if table.id_column else f"id({variable})"


def is_cast(table: NodeTable, column: str | None) -> bool:
    """Whether an id, a name or a text is what the database makes of a value, of which `json_value` makes no text."""
    return column is not None and text_expression("x", table.columns[column]) is None


def _own(table: NodeTable, column: str, variable: str) -> str:
    value = f"{variable}.{quoted(column)}"
    return own_text(value, table.columns[column]) if is_cast(table, column) else value


def node_id(value: Any) -> str:
    """Return the id that a query returned."""
    if isinstance(value, str):
        return value
    return f"{value['table']}:{value['offset']}" if isinstance(value, dict) else str(json_value(value))


def end_text(end: NodeTable) -> str | None:
    """Return the text of the id of ``m``, by which edges from one node are ordered.

    `None` where the database does not order ids as Python does.
    """
    own = id_expression(end, "m")
    kind = end.columns[end.id_column] if end.id_column else "INTERNAL_ID"
    text = f"CAST({own} AS STRING)" if kind == "INTERNAL_ID" else text_expression(own, kind)
    return text if text is None or end.native else f"CASE WHEN {own} IS NULL THEN 'None' ELSE {text} END"


class NodeReader:
    """Reads the nodes of one table: what a query returns of them, and how that becomes a `Node`."""

    def __init__(self, table: NodeTable) -> None:
        self.table = table
        self.properties = [*table.properties]
        self._conversions = conversions(table.columns, table.properties, native=table.native)
        #: What is read besides the id, in order.
        self.columns = [column for column in (table.name_column, table.text_column) if column]
        self.columns += ["labels"] if table.native else []
        self.columns += [OVERFLOW] if table.overflows else []
        self.columns += [NULLS] if table.has_nulls else []
        self.columns += [*table.properties.values()]

    def expressions(self, variable: str) -> str:
        """Return what a query returns of a node."""
        own = self.table.name_column, self.table.text_column
        columns = (_own(self.table, c, variable) if c in own else f"{variable}.{quoted(c)}" for c in self.columns)
        return ", ".join([id_expression(self.table, variable), *columns])

    def node(self, row: Sequence[Any]) -> Node:
        """Return the node of what was returned."""
        values = iter(row)
        own_id = node_id(next(values))
        name = next(values) if self.table.name_column else ""
        text = next(values) if self.table.text_column else ""
        labels = next(values) if self.table.native else None
        overflow = next(values) if self.table.overflows else None
        nulls = next(values) if self.table.has_nulls else None
        found = {name: value for name, value in zip(self.properties, values, strict=True) if value is not None}
        convert(found, self._conversions)
        if self.table.native:
            found.update(json.loads(overflow) if overflow else {})
            found.update(dict.fromkeys(nulls or ()))
        return Node(
            own_id,
            self.labels(labels),
            _text(name),
            _text(text),
            found,
        )

    def in_cypher(self, node: Node) -> Node:
        """Return the node with properties as queries name them, id, name and text among them."""
        fields = {self.table.id_column: node.id, self.table.name_column: node.name, self.table.text_column: node.text}
        columns = self.table.properties
        found: dict[str, Any] = {column: value for column, value in fields.items() if column and value}
        found.update({columns.get(name, name): value for name, value in node.properties.items() if value is not None})
        return replace(node, properties=found)

    def labels(self, labels: Sequence[str] | None) -> tuple[str, ...]:
        """Return the labels that the column of labels holds, or that of the table."""
        if labels is None:
            return (self.table.label,) if self.table.label else ()
        return tuple(labels)


class EdgeReader:
    """Reads the edges of relation tables whose columns have one type each."""

    def __init__(self, tables: Sequence[RelationTable]) -> None:
        self.tables = {table.name: table for table in tables}
        self.native = tables[0].native
        columns = {column: kind for table in tables for column, kind in table.columns.items()}
        self.columns = [*columns]
        self._weight = columns.get("weight")
        self._properties = {table.name: [*table.properties.items()] for table in tables}
        self._conversions = {
            table.name: conversions(table.columns, table.properties, native=table.native) for table in tables
        }

    def pattern(self, variable: str) -> str:
        """Return the variable and its tables, as they are written between the brackets of a pattern."""
        return f"{variable}:" + "|".join(quoted(name) for name in self.tables)

    def expressions(self, variable: str) -> str:
        """Return what a query returns of an edge."""
        return ", ".join([f"label({variable})", *(f"{variable}.{quoted(column)}" for column in self.columns)])

    @property
    def weight(self) -> str:
        """What a query compares edges ``r`` by, the heaviest first: a finite double; zero has one sign."""
        if number_type(self._weight) is None:
            return "1.0"
        if self._weight not in FLOATS:  # as Python does it: by way of the digits
            return "CASE WHEN r.weight IS NULL THEN 1.0 ELSE CAST(CAST(r.weight AS STRING) AS DOUBLE) END"
        weight = "r.weight" if self._weight == "DOUBLE" else "CAST(r.weight AS DOUBLE)"
        return f"CASE WHEN r.weight - r.weight = 0 THEN {weight} + 0.0 ELSE 1.0 END"

    def place(self, variable: str) -> str:
        """Return what tells edges apart that are equal but for their properties, in what something else wrote."""
        return "" if self.native else f"offset(id({variable}))"

    def edge(self, source: str, target: str, row: Sequence[Any]) -> Edge:
        """Return the edge of what was returned."""
        name, *values = row
        return self.of_record(source, target, name, dict(zip(self.columns, values, strict=True)))

    def in_cypher(self, edge: Edge) -> Edge:
        """Return the edge with properties as queries name them, its weight among them if it is not 1."""
        table = next(table for table in self.tables.values() if table.relation == edge.relation)
        columns = table.properties
        found = {columns.get(name, name): value for name, value in edge.properties.items() if value is not None}
        if edge.weight != 1.0:
            found["weight"] = edge.weight if number_type(table.columns.get("weight")) is float else int(edge.weight)
        return replace(edge, properties=found)

    def of_record(self, source: str, target: str, name: str, values: Mapping[str, Any]) -> Edge:
        """Return the edge of the values of its columns, in the table of a name."""
        table = self.tables[name]
        found = {key: value for key, column in self._properties[name] if (value := values.get(column)) is not None}
        convert(found, self._conversions[name])
        if table.native:
            found.update({row: values[row] for row in ("source_row", "target_row") if values.get(row) is not None})
            if table.overflows and values.get(OVERFLOW):
                found.update(json.loads(values[OVERFLOW]))
            if table.has_nulls:
                found.update(dict.fromkeys(values.get(NULLS) or ()))
        weight = values.get("weight") if table.weighs else None
        if weight is None:
            return Edge(source, table.relation, target, 1.0, found)
        number = float(weight)
        if not math.isfinite(number):
            if (infinite := json_value(number)) is not None:
                found["weight"] = infinite
            number = 1.0
        return Edge(source, table.relation, target, number, found)


def edge_key(edge: Edge) -> EdgeKey:
    """Return what an edge is identified and ordered by."""
    if not edge.properties:
        return edge.source, edge.target, edge.relation, -1, -1
    source_row, target_row = (edge.properties.get(row, -1) for row in ("source_row", "target_row"))
    return (
        edge.source,
        edge.target,
        edge.relation,
        source_row if isinstance(source_row, int) else -1,
        target_row if isinstance(target_row, int) else -1,
    )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else str(json_value(value))
