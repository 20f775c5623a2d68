"""The tables of a Ladybug database: names, columns, and rows as nodes and edges."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from graphret.errors import StoreMismatch
from graphret.types import Edge, Node

if TYPE_CHECKING:
    from graphret.stores.ladybug.database import Session

#: The column of the properties, as a JSON object. Beside it each property has a column
#: of its own, for queries.
PROPERTIES = "properties"
#: The columns of a node table, and of a relation table, before those of single
#: properties.
NODE_COLUMNS = {
    "id": "STRING",
    "name": "STRING",
    "text": "STRING",
    "labels": "STRING[]",
    PROPERTIES: "STRING",
}
EDGE_COLUMNS = {
    "weight": "DOUBLE",
    "source_row": "INT64",
    "target_row": "INT64",
    PROPERTIES: "STRING",
}
#: The table of the nodes without a label.
UNLABELLED = "_unlabelled"
#: What the comment on a table begins with whose name is not that of its label or
#: relation.
COMMENT = "graphret: "
_PREFIX = "properties."
_RESERVED = {
    *NODE_COLUMNS,
    "weight",
    "_id",
    "_label",
    "_src",
    "_dst",
    "from",
    "to",
    "*",
}
_FOLD = {ord(upper): ord(upper) + 32 for upper in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"}


def quoted(name: str) -> str:
    """Return a name as it is written in a query."""
    return "`" + name.replace("`", "``") + "`"


def literal(text: str) -> str:
    """Return a string literal, for places where the grammar takes no parameter."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def folded(name: str) -> str:
    """Return a name as the database compares it: ASCII letters in lower case."""
    return name.translate(_FOLD)


def column_of(name: str) -> str:
    """Return a property's column: its name, with a prefix if the layout has that name."""
    return (
        _PREFIX + name
        if folded(name) in _RESERVED or name.startswith(_PREFIX)
        else name
    )


@dataclass(frozen=True)
class Table:
    """A table of nodes or edges; `pairs` are the tables that a relation joins."""

    name: str
    label: str  # or relation
    columns: Mapping[str, str]  # and their types
    number: int  # its own in the database's ids
    pairs: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True)
class Catalog:
    """The tables of nodes and of edges, by name."""

    nodes: Mapping[str, Table]
    relations: Mapping[str, Table]

    @classmethod
    def read(cls, session: Session) -> Catalog:
        """Read the database's tables; refuse one that graphret did not create."""
        nodes: dict[str, Table] = {}
        relations: dict[str, Table] = {}
        for number, name, kind, _, comment in sorted(
            session.rows("CALL show_tables() RETURN *")
        ):
            columns = {
                row[1]: row[2]
                for row in session.rows(f"CALL table_info({literal(name)}) RETURN *")
            }
            if (
                not (NODE_COLUMNS if kind == "NODE" else EDGE_COLUMNS).items()
                <= columns.items()
            ):
                raise StoreMismatch(
                    f"another program than graphret created the table {name!r}"
                )
            label = comment[len(COMMENT) :] if comment.startswith(COMMENT) else name
            if kind == "NODE":
                nodes[name] = Table(name, label, columns, number)
            else:
                joined = session.rows(f"CALL show_connection({literal(name)}) RETURN *")
                relations[name] = Table(
                    name, label, columns, number, [(row[0], row[1]) for row in joined]
                )
        return cls(nodes, relations)

    def names_of(self, labels: Iterable[str]) -> dict[str, str | None]:
        """Return the names of labels in queries, `None` if something else has the name.

        A table's label has the table's name, any other label its own.
        """
        tables = {table.label: table.name for table in self.nodes.values()}
        names: dict[str, str | None] = {}
        used_names = {folded(name) for name in self.nodes}
        for label in sorted(labels):
            name = tables.get(label, label)
            if label not in tables and folded(label) in used_names:
                names[label] = None
                continue
            used_names.add(folded(name))
            names[label] = name
        return names


#: What a query returns of a node ``n`` for `node`.
NODE_RETURNED = ", ".join(f"n.{column}" for column in NODE_COLUMNS)


def node(row: Sequence[Any]) -> Node:
    """Return the node with the values of `NODE_COLUMNS`."""
    node_id, name, text, labels, properties = row
    return Node(
        node_id, tuple(labels), name, text, json.loads(properties) if properties else {}
    )


def edge(
    table: Table, source: str, target: str, weight: float, properties: str | None
) -> Edge:
    """Return the edge of a row of a table."""
    return Edge(
        source,
        table.label,
        target,
        weight,
        json.loads(properties) if properties else {},
    )
