"""The tables of a Ladybug database: how they and their columns are named, and how their rows are nodes and edges."""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar

from graphret.errors import InvalidInput, StoreMismatch
from graphret.stores.ladybug.database import Session
from graphret.types import Edge, Node

#: The columns of a node table of graphret's layout, and of a relation table, before the properties.
NODE_COLUMNS = {"id": "STRING", "name": "STRING", "text": "STRING", "labels": "STRING[]"}
EDGE_COLUMNS = {"weight": "DOUBLE", "source_row": "INT64", "target_row": "INT64"}
#: The column of the properties that no typed column holds, as a JSON object.
OVERFLOW = "properties"
#: Types of whole numbers that a parameter can have.
INTEGERS = {"INT64", "INT32", "INT16", "INT8", "UINT32", "UINT16", "UINT8", "SERIAL"}

#: The table of the nodes without a label.
_UNLABELLED = "_unlabelled"
_NUMBERS = {*INTEGERS, "UINT64", "INT128", "DOUBLE", "FLOAT"}
_PREFIX = "properties."
_COMMENTS = ("graphret label: ", "graphret relation: ")
_RESERVED = {*NODE_COLUMNS, *EDGE_COLUMNS, OVERFLOW, "_id", "_label", "_src", "_dst", "from", "to", "*"}
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
    """Whether a string can be written as utf-8."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def require_name(name: str, what: str) -> None:
    """Raise an `InvalidInput` that begins with `what` if no table or column can have a name."""
    if not name or "\0" in name or not is_text(name):
        raise InvalidInput(f"{what}: {name!r} cannot be a name in a Ladybug database")


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
    """A table: what queries call it, the label or relation of its rows, and the type of each column.

    `native` says whether it has graphret's layout; one that has not is only read.
    """

    name: str
    label: str
    columns: dict[str, str]
    native: bool

    @property
    def own(self) -> Collection[str | None]:
        """The columns that are no properties."""
        raise NotImplementedError

    @cached_property
    def properties(self) -> dict[str, str]:
        """The column of each property."""
        return {column.removeprefix(_PREFIX): column for column in self.columns if column not in self.own}

    def require_native(self, what: str) -> None:
        """Raise a `StoreMismatch` that begins with `what` if graphret cannot write to the table."""
        if not self.native:
            raise StoreMismatch(f"{what}: the table {self.name!r} has not graphret's layout, and is only read")

    def values(self, held: Mapping[str, Any]) -> dict[str, Any]:
        """Return the properties that are there, as JSON values, of what the columns hold."""
        found = {name: value for name, column in self.properties.items() if (value := held.get(column)) is not None}
        if not self.native:
            found = {name: shown for name, value in found.items() if (shown := json_value(value)) is not None}
        elif overflow := held.get(OVERFLOW):
            found |= json.loads(overflow)
        return found


@dataclass(frozen=True)
class NodeTable(Table):
    """A table of nodes of one primary label, its number in the database, and the columns of a node's own fields."""

    number: int
    id_column: str | None
    name_column: str | None
    text_column: str | None

    @property
    def own(self) -> Collection[str | None]:
        """The columns that are no properties."""
        return (*NODE_COLUMNS, OVERFLOW) if self.native else (self.id_column, self.name_column, self.text_column)

    @property
    def layout(self) -> tuple[Any, ...]:
        """What is the same in tables that one query can read."""
        own = self.id_column, self.name_column, self.text_column
        return self.native, own, [self.columns[column] for column in own if column]

    @property
    def overflows(self) -> bool:
        """Whether nodes may have properties as JSON."""
        return self.native and OVERFLOW in self.columns

    def id_of(self, variable: str) -> str:
        """Return what a query returns as the id of a node: a string."""
        own = f"{variable}.{quoted(self.id_column)}" if self.id_column else f"id({variable})"
        return own if self.columns.get(self.id_column or "") == "STRING" else f"CAST({own} AS STRING)"

    def keys(self, ids: Iterable[str]) -> list[Any]:
        """Return by what `by_key` finds the nodes of some ids; what no node of the table can have is left out."""
        if self.id_column is None:
            parts = (one.partition(":") for one in ids)
            return [int(offset) for table, _, offset in parts if table == str(self.number) and _is_whole(offset)]
        return [int(one) for one in ids if _is_whole(one)] if self.columns[self.id_column] in INTEGERS else [*ids]

    def by_key(self, key: str) -> str:
        """Return the pattern of the node ``n`` of a key and the condition on it, to which more may be added."""
        if self.id_column is None:
            return f"(n:{quoted(self.name)}) WHERE offset(id(n)) = {key}"
        return f"(n:{quoted(self.name)} {{{quoted(self.id_column)}: {key}}}) WHERE true"

    @cached_property
    def read(self) -> list[str]:
        """The columns of which `node` makes a node, besides the id."""
        own = ["name", "text", "labels"] if self.native else [c for c in (self.name_column, self.text_column) if c]
        return [*own, *([OVERFLOW] if self.overflows else []), *self.properties.values()]

    def returned(self, variable: str) -> list[str]:
        """Return what a query returns of a node for `node`."""
        return [self.id_of(variable), *(f"{variable}.{quoted(column)}" for column in self.read)]

    def labels_of(self, variable: str) -> str:
        """Return what a query returns as the labels of a node."""
        return f"{variable}.labels" if self.native else f"[{literal(self.label)}]"

    def node(self, row: Sequence[Any]) -> Node:
        """Return the node of what was returned."""
        own, *values = row
        held = dict(zip(self.read, values, strict=True))
        labels = tuple(held["labels"]) if self.native else (self.label,)
        name, text = held.get(self.name_column or ""), held.get(self.text_column or "")
        return Node(str(own), labels, _shown(name), _shown(text), self.values(held))

    def node_of(self, record: Mapping[str, Any]) -> Node:
        """Return a node that a query returned as such."""
        place = record["_ID"]
        own = record[self.id_column] if self.id_column else f"{place['table']}:{place['offset']}"
        return self.node([own, *(record.get(column) for column in self.read)])

    def in_cypher(self, node: Node) -> Node:
        """Return a node with properties as queries name them, id, name and text among them."""
        fields = {self.id_column: node.id, self.name_column: node.name, self.text_column: node.text}
        own: dict[str, Any] = {column: value for column, value in fields.items() if column and value}
        named = {self.properties.get(name, name): value for name, value in node.properties.items()}
        return replace(node, properties=own | named)


@dataclass(frozen=True)
class RelationTable(Table):
    """A table of edges of one relation, `label`, and in `pairs` the node tables that they join."""

    pairs: tuple[tuple[str, str], ...]

    @property
    def own(self) -> Collection[str | None]:
        """The columns that are no properties."""
        return ("weight", OVERFLOW) if self.native else ("weight",) if self.weighs else ()

    @cached_property
    def weighs(self) -> bool:
        """Whether there are weights: a column of that name holds numbers."""
        return self.columns.get("weight") in _NUMBERS

    @property
    def layout(self) -> tuple[Any, ...]:
        """What is the same in tables that one query can read."""
        return self.native, self.weighs

    def edge(self, source: str, target: str, held: Mapping[str, Any]) -> Edge:
        """Return the edge of the values of its columns."""
        weight = held.get("weight") if self.weighs else None
        weight = 1.0 if weight is None or not math.isfinite(weight) else float(weight)
        return Edge(source, self.label, target, weight, self.values(held))

    def in_cypher(self, edge: Edge) -> Edge:
        """Return an edge with properties as queries name them, its weight among them if it is not 1."""
        named = {self.properties.get(name, name): value for name, value in edge.properties.items()}
        return replace(edge, properties=named if edge.weight == 1.0 else named | {"weight": edge.weight})


class Relations:
    """Relation tables that one query reads as ``r``: where a column has one name, it has one type."""

    def __init__(self, tables: Sequence[RelationTable]) -> None:
        self._tables = {table.name: table for table in tables}
        self._columns = [*dict.fromkeys(column for table in tables for column in table.columns)]
        self.pattern = "r:" + "|".join(map(quoted, self._tables))
        #: What a query returns of an edge for `edge`.
        self.returned = ["label(r)", "offset(id(r))", *(f"r.{quoted(column)}" for column in self._columns)]
        native, weighs = tables[0].native, tables[0].weighs
        #: What a query orders edges from one node by, before and behind the id at the other end.
        finite = "CASE WHEN r.weight - r.weight = 0 THEN CAST(r.weight AS DOUBLE) ELSE 1.0 END"
        self.weight = "r.weight" if native else finite if weighs else "1.0"
        self.rest = ["label(r)"] if len(tables) > 1 else []
        self.rest += ["coalesce(r.source_row, -1)", "coalesce(r.target_row, -1)"] if native else []

    def edge(self, source: str, target: str, row: Sequence[Any]) -> tuple[tuple[Any, ...], Edge]:
        """Return what an edge is ordered by and told from all others, and the edge, of what was returned."""
        name, place, *values = row
        edge = self._tables[name].edge(source, target, dict(zip(self._columns, values, strict=True)))
        return (*edge_key(edge), place), edge


T = TypeVar("T", NodeTable, RelationTable)


def agreeing(tables: Iterable[T], columns: Collection[str] | None = None) -> list[list[T]]:
    """Return tables in groups that one query can read: of one layout, and in each column, or some, of one type."""
    groups: list[tuple[list[T], dict[str, tuple[str, str]]]] = []
    for table in tables:
        own = {folded(name): (name, kind) for name, kind in table.columns.items() if columns is None or name in columns}
        for members, seen in groups:
            if members[0].layout == table.layout and all(seen.get(key, kind) == kind for key, kind in own.items()):
                members.append(table)
                seen.update(own)
                break
        else:
            groups.append(([table], own))
    return [members for members, _ in groups]


@dataclass(frozen=True)
class Catalog:
    """The tables of a database, by name."""

    nodes: dict[str, NodeTable] = field(default_factory=dict)
    relations: dict[str, RelationTable] = field(default_factory=dict)

    @classmethod
    def read(cls, session: Session, own: Sequence[str | None]) -> Catalog:
        """Ask the database; `own` are the properties that are a node's id, name and text where something else wrote."""
        catalog = cls()
        for number, name, kind, _, comment in sorted(session.rows("CALL show_tables() RETURN *")):
            info = session.rows(f"CALL table_info({literal(name)}) RETURN *")
            columns = {row[1]: row[2] for row in info}
            label = next((comment[len(head) :] for head in _COMMENTS if comment.startswith(head)), name)
            if kind == "NODE":
                is_key = any(row[1] == "id" and row[4] is True for row in info)
                native = not any(own) and is_key and NODE_COLUMNS.items() <= columns.items()
                fields = [one if one in columns else None for one in (("id", "name", "text") if native else own)]
                if fields[0] is not None and columns[fields[0]] not in (*INTEGERS, "STRING"):
                    fields[0] = None
                label = "" if label == name == _UNLABELLED else label
                catalog.nodes[name] = NodeTable(name, label, columns, native, number, *fields)
            elif kind == "REL":
                joined = session.rows(f"CALL show_connection({literal(name)}) RETURN *")
                native = EDGE_COLUMNS.items() <= columns.items()
                pairs = tuple((row[0], row[1]) for row in joined)
                catalog.relations[name] = RelationTable(name, label, columns, native, pairs)
        return catalog

    def related(self, relations: Collection[str] | None) -> list[RelationTable]:
        """Return the tables of some relations, or all."""
        return [table for table in self.relations.values() if relations is None or table.label in relations]


class TableNames:
    """The table of each label and each relation, of those that are yet to be made too; see `LadybugStore`."""

    def __init__(self, catalog: Catalog) -> None:
        self._tables = {(False, table.label): table.name for table in catalog.nodes.values()}
        self._tables |= {(True, table.label): table.name for table in catalog.relations.values()}
        self._taken = {folded(name) for name in (*catalog.nodes, *catalog.relations)}
        self._comments: dict[str, str] = {}

    def of(self, name: str, item: Node | Edge) -> str:
        """Return the table of the label of a node, or the relation of an edge; an `InvalidInput` if none can be."""
        relation = isinstance(item, Edge)
        if (relation, name) not in self._tables:
            require_name(name or _UNLABELLED, f"{named(item)}, {'relation' if relation else 'label'}")
            free = name.replace(".", "_") or _UNLABELLED
            while folded(free) in self._taken or (name and folded(free) == _UNLABELLED):
                free += "_"
            self._taken.add(folded(free))
            self._tables[relation, name] = free
            if free != (name or _UNLABELLED):
                self._comments[free] = _COMMENTS[relation] + name
        return self._tables[relation, name]

    def comment(self, table: str) -> Iterator[str]:
        """Return the statement that says what a new table is of, where its name does not."""
        if table in self._comments:
            yield f"COMMENT ON TABLE {quoted(table)} IS {literal(self._comments[table])}"


def named(item: Node | Edge) -> str:
    """Return the words for a node or an edge that errors begin with."""
    return f"node {item.id!r}" if isinstance(item, Node) else f"edge {item.source!r} to {item.target!r}"


def edge_key(edge: Edge) -> EdgeKey:
    """Return what an edge is identified and ordered by."""
    rows = (edge.properties.get(row) for row in ("source_row", "target_row")) if edge.properties else (None, None)
    source_row, target_row = (row if isinstance(row, int) else -1 for row in rows)
    return edge.source, edge.target, edge.relation, source_row, target_row


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else str(json_value(value))


def _is_whole(text: str) -> bool:
    digits = text.removeprefix("-")
    return digits.isascii() and digits.isdigit() and len(digits) < 19 and str(int(text)) == text
