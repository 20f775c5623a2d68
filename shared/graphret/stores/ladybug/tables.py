"""The tables of a Ladybug database: how they and their columns are named, and how their rows are nodes and edges."""

from __future__ import annotations

import datetime
import json
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from graphret.errors import InvalidInput
from graphret.types import Edge, Node

if TYPE_CHECKING:
    from graphret.stores.ladybug.database import Session

#: The columns of a node table, and of a relation table, before the properties.
NODE_COLUMNS = {"id": "STRING", "name": "STRING", "text": "STRING", "labels": "STRING[]"}
EDGE_COLUMNS = {"weight": "DOUBLE", "source_row": "INT64", "target_row": "INT64"}
#: The column of the properties that no typed column holds, as a JSON object.
OVERFLOW = "properties"
#: Types of whole numbers that a parameter can have.
INTEGERS = {"INT64", "INT32", "INT16", "INT8", "UINT32", "UINT16", "UINT8", "SERIAL"}

#: The table of the nodes without a label.
UNLABELLED = "_unlabelled"
#: What the comment on a table begins with whose name is not that of its label or relation.
COMMENTS = ("graphret label: ", "graphret relation: ")
_NUMBERS = {*INTEGERS, "UINT64", "INT128", "DOUBLE", "FLOAT"}
_PREFIX = "properties."
_RESERVED = {*NODE_COLUMNS, "weight", OVERFLOW, "_id", "_label", "_src", "_dst", "from", "to", "*"}
_FOLD = {ord(upper): ord(upper) + 32 for upper in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"}

EdgeKey = tuple[str, str, str, int, int]


def quoted(name: str) -> str:
    """Return a name as it is written in a query."""
    return "`" + name.replace("`", "``") + "`"


def literal(text: str) -> str:
    """Return a string as it is written in a query; only where the grammar takes no parameter."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def folded(name: str) -> str:
    """Return what the database compares names by: it does not tell a from A, but é from É."""
    return name.translate(_FOLD)


def column_of(name: str) -> str:
    """Return the column of a property: its own name, behind a prefix where a column of the layout has that name."""
    return _PREFIX + name if folded(name) in _RESERVED or name.startswith(_PREFIX) else name


def is_text(value: str) -> bool:
    """Whether the database takes a string as it is."""
    return "\0" not in value and value.encode(errors="replace").decode() == value


def edge_key(edge: Edge) -> EdgeKey:
    """Return what an edge is identified and ordered by."""
    rows = (edge.properties.get(row) for row in ("source_row", "target_row")) if edge.properties else (None, None)
    source_row, target_row = (row if isinstance(row, int) else -1 for row in rows)
    return edge.source, edge.target, edge.relation, source_row, target_row


def json_value(value: Any) -> Any:
    """Return what a column holds as a JSON value: what JSON lacks as text, dates as ISO's, and NaN as `None`."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, (list, tuple)):
        return [json_value(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): json_value(item) for key, item in value.items()}
    return value.isoformat() if isinstance(value, (datetime.date, datetime.time)) else str(value)


@dataclass(frozen=True)
class Table:
    """A table of nodes or edges.

    `label` is that of its rows, or their relation; `own` are the columns that are no properties, that of the id first;
    `number` is its own in the database's ids; `pairs` are the tables that a relation joins.
    """

    name: str
    label: str
    columns: Mapping[str, str]
    own: Sequence[str | None] = ()
    number: int = -1
    pairs: Sequence[tuple[str, str]] = ()

    @cached_property
    def properties(self) -> dict[str, str]:
        """The column of each property."""
        return {column.removeprefix(_PREFIX): column for column in self.columns if column not in self.own}

    @cached_property
    def read(self) -> list[str]:
        """The columns of which a node is made, besides the id."""
        return [*(column for column in self.own[1:] if column and column in self.columns), *self.properties.values()]


@dataclass(frozen=True)
class Catalog:
    """The tables of a database, by name, and how their rows are nodes and edges.

    `native` says whether graphret made them, and may write to them; `own` are the columns of a node's id, name and text
    in every table; without the first, ids are the database's own, ``table:offset``. `id_type` is that of its column.
    """

    nodes: Mapping[str, Table]
    relations: Mapping[str, Table]
    native: bool = True
    own: Sequence[str | None] = ("id", "name", "text")
    id_type: str = "STRING"

    @classmethod
    def read(cls, session: Session, own: Sequence[str | None]) -> Catalog:
        """Ask the database; `own` are the properties that are a node's id, name and text where something else wrote."""
        nodes: dict[str, Table] = {}
        relations: dict[str, Table] = {}
        for number, name, kind, _, comment in sorted(session.rows("CALL show_tables() RETURN *")):
            columns = {row[1]: row[2] for row in session.rows(f"CALL table_info({literal(name)}) RETURN *")}
            label = next((comment[len(head) :] for head in COMMENTS if comment.startswith(head)), name)
            if kind == "NODE":
                nodes[name] = Table(name, "" if label == name == UNLABELLED else label, columns, number=number)
            elif kind == "REL":
                joined = session.rows(f"CALL show_connection({literal(name)}) RETURN *")
                weight = ["weight"] if columns.get("weight") in _NUMBERS else []
                relations[name] = Table(name, label, columns, weight, number, [(row[0], row[1]) for row in joined])
        if not any(own) and all(
            layout.items() <= table.columns.items()
            for tables, layout in ((nodes, NODE_COLUMNS), (relations, EDGE_COLUMNS))
            for table in tables.values()
        ):
            nodes = {name: replace(table, own=[*NODE_COLUMNS, OVERFLOW]) for name, table in nodes.items()}
            return cls(nodes, {name: replace(table, own=["weight", OVERFLOW]) for name, table in relations.items()})
        kinds = {table.columns.get(own[0], "") for table in nodes.values()} if own[0] else {"INTERNAL_ID"}
        if own[0] and kinds not in ({one} for one in (*INTEGERS, "STRING")):
            tables = ", ".join(nodes)
            raise InvalidInput(f"id_property: {own[0]!r} is not text, or a whole number, in each table: {tables}")
        return cls({name: replace(table, own=own) for name, table in nodes.items()}, relations, False, own, *kinds)

    def id_of(self, variable: str) -> str:
        """Return what a query returns as the id of a node: a string."""
        own = f"{variable}.{quoted(self.own[0])}" if self.own[0] else f"id({variable})"
        return own if self.id_type == "STRING" else f"CAST({own} AS STRING)"

    def by_key(self, table: Table, key: str) -> str:
        """Return the pattern of the node ``n`` that one of `keys` finds, and a condition to which more may be added."""
        if self.own[0] is None:
            return f"(n:{quoted(table.name)}) WHERE offset(id(n)) = {key}"
        return f"(n:{quoted(table.name)} {{{quoted(self.own[0])}: {key}}}) WHERE true"

    def keys(self, table: Table, ids: Iterable[str]) -> list[Any]:
        """Return by what `by_key` finds the nodes of some ids; what no node of the table can have is left out."""
        if self.own[0] is None:
            parts = (one.partition(":") for one in ids)
            return [int(offset) for number, _, offset in parts if number == str(table.number) and _is_whole(offset)]
        return [*ids] if self.id_type == "STRING" else [int(one) for one in ids if _is_whole(one)]

    def returned(self, table: Table) -> str:
        """Return what a query returns of a node ``n`` for `node`."""
        return ", ".join([self.id_of("n"), *(f"n.{quoted(column)}" for column in table.read)])

    def node(self, table: Table, row: Sequence[Any]) -> Node:
        """Return the node of what was returned."""
        own, *values = row
        held: dict[str | None, Any] = dict(zip(table.read, values, strict=True))
        labels = tuple(held["labels"]) if self.native else (table.label,)
        name, text = (_shown(held.get(column)) for column in self.own[1:])
        return Node(str(own), labels, name, text, self._properties(table, held))

    def node_of(self, record: Mapping[str, Any]) -> Node:
        """Return a node that a query returned as such."""
        table, place = self.nodes[record["_LABEL"]], record["_ID"]
        own = record[self.own[0]] if self.own[0] else f"{place['table']}:{place['offset']}"
        return self.node(table, [own, *(record.get(column) for column in table.read)])

    def edge(self, table: Table, source: str, target: str, held: Mapping[Any, Any]) -> Edge:
        """Return the edge of the values of its columns."""
        weight = held.get("weight") if "weight" in table.own else None
        weight = 1.0 if weight is None or not math.isfinite(weight) else float(weight)
        return Edge(source, table.label, target, weight, self._properties(table, held))

    def _properties(self, table: Table, held: Mapping[Any, Any]) -> dict[str, Any]:
        found = {name: value for name, column in table.properties.items() if (value := held.get(column)) is not None}
        if not self.native:
            return {name: shown for name, value in found.items() if (shown := json_value(value)) is not None}
        return found | json.loads(beside) if (beside := held.get(OVERFLOW)) else found


def read_together(tables: Iterable[Table]) -> list[list[Table]]:
    """Return tables in groups that one query can read: what is in columns of one name has one type in it."""
    kinds: defaultdict[str, set[tuple[str, str]]] = defaultdict(set)
    listed = [*tables]
    for table in listed:
        for column in table.columns.items():
            kinds[folded(column[0])].add(column)
    agreeing = [table for table in listed if all(len(kinds[folded(column)]) == 1 for column in table.columns)]
    return [group for group in (agreeing, *([table] for table in listed if table not in agreeing)) if group]


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else str(json_value(value))


def _is_whole(text: str) -> bool:
    digits = text.removeprefix("-")
    return digits.isascii() and digits.isdigit() and len(digits) < 19 and str(int(text)) == text
