"""What tables a Ladybug database has, and how graphret reads them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from graphret.errors import InvalidInput
from graphret.stores.ladybug.engine import Session
from graphret.stores.ladybug.names import (
    EDGE_COLUMNS,
    NODE_COLUMNS,
    OVERFLOW,
    UNLABELLED,
    column_of,
    folded,
    literal,
    property_of,
    quoted,
)


@dataclass(frozen=True, slots=True)
class Layout:
    """Which properties of a database that something else wrote are the id, the name and the text of a node.

    Without an id property, ids are those of the database, ``table:offset``.
    """

    id_property: str | None = None
    name_property: str | None = None
    text_property: str | None = None


@dataclass(frozen=True, slots=True)
class NodeTable:
    """A table of nodes.

    Parameters
    ----------
    name
        Its name, the primary label of its nodes.
    number
        The number that the database gave it.
    columns
        The type of each column.
    key
        The column of the primary key.
    native
        Whether it has graphret's layout.
    id_column, name_column, text_column
        The columns of a node's own fields; `None` where there is none.
    facts
        What was found out about its rows, until tables change or many rows are written. ``lined``: all JSON has lines.
    """

    name: str
    number: int
    columns: dict[str, str]
    key: str
    native: bool
    id_column: str | None
    name_column: str | None
    text_column: str | None
    facts: dict[str, bool] = field(default_factory=dict, compare=False, repr=False)

    @property
    def properties(self) -> dict[str, str]:
        """The column of each property."""
        own = {self.id_column, self.name_column, self.text_column}
        if self.native:
            own |= {"labels", OVERFLOW}
            return {property_of(column): column for column in self.columns if column not in own}
        return {column: column for column in self.columns if column not in own}

    @property
    def overflows(self) -> bool:
        """Whether nodes may have properties as JSON."""
        return self.native and OVERFLOW in self.columns

    @property
    def layout(self) -> tuple[Any, ...]:
        """What must be equal for tables to be read in one query."""
        id_type = self.columns[self.id_column] if self.id_column else None
        return self.native, self.id_column, id_type, self.name_column, self.text_column


@dataclass(frozen=True, slots=True)
class RelationTable:
    """A table of edges: its name is their relation, and `pairs` the node tables that they join."""

    name: str
    columns: dict[str, str]
    pairs: tuple[tuple[str, str], ...]

    @property
    def native(self) -> bool:
        """Whether it has graphret's layout."""
        return all(self.columns.get(column) == kind for column, kind in EDGE_COLUMNS.items())

    @property
    def properties(self) -> dict[str, str]:
        """The column of each property, without weight and rows."""
        if self.native:
            return {property_of(c): c for c in self.columns if c not in EDGE_COLUMNS and c != OVERFLOW}
        return {column: column for column in self.columns if column != "weight" or self.columns[column] != "DOUBLE"}

    @property
    def overflows(self) -> bool:
        """Whether edges may have properties as JSON."""
        return self.native and OVERFLOW in self.columns


@dataclass(frozen=True, slots=True)
class Catalog:
    """The tables of a database, by name."""

    nodes: dict[str, NodeTable] = field(default_factory=dict)
    relations: dict[str, RelationTable] = field(default_factory=dict)

    @classmethod
    def read(cls, session: Session, layout: Layout) -> Catalog:
        """Ask the database."""
        nodes: dict[str, NodeTable] = {}
        relations: dict[str, RelationTable] = {}
        for number, name, kind, *_ in sorted(session.rows("CALL show_tables() RETURN *")):
            info = session.rows(f"CALL table_info({literal(name)}) RETURN *")
            columns = {row[1]: row[2] for row in info}
            if kind == "NODE":
                key = next((row[1] for row in info if row[4] is True), "")
                nodes[name] = _node_table(name, number, columns, key, layout)
            elif kind == "REL":
                pairs = session.rows(f"CALL show_connection({literal(name)}) RETURN *")
                relations[name] = RelationTable(name, columns, tuple((row[0], row[1]) for row in pairs))
        return cls(nodes, relations)

    def numbered(self) -> dict[int, NodeTable]:
        """The tables of nodes by their numbers."""
        return {table.number: table for table in self.nodes.values()}

    def table_of(self, label: str) -> str:
        """Return the name of the table of a primary label."""
        return label or UNLABELLED

    def require_free(self, name: str, what: str, *, relation: bool) -> None:
        """Raise an `InvalidInput` that begins with `what` if another table takes the place of this one."""
        same = self.relations if relation else self.nodes
        if name in same:
            return
        for kind, tables in (("label", self.nodes), ("relation", self.relations)):
            for other in tables:
                if folded(other) == folded(name):
                    raise InvalidInput(
                        f"{what}: a Ladybug database has no room for the {'relation' if relation else 'label'} "
                        f"{name[:80]!r} beside the {kind} {other[:80]!r}: it does not tell upper from lower case, "
                        "and a label from a relation"
                    )

    def conflicted(self) -> set[str]:
        """The tables of nodes with a column that has another type in another table.

        Read together, the database turns such values into text, and in a path into anything (0.22).
        """
        types: dict[str, set[str]] = {}
        for table in self.nodes.values():
            for column, kind in table.columns.items():
                types.setdefault(folded(column), set()).add(kind)
        mixed = {column for column, kinds in types.items() if len(kinds) > 1}
        return {t.name for t in self.nodes.values() if any(folded(column) in mixed for column in t.columns)}


def _node_table(name: str, number: int, columns: dict[str, str], key: str, layout: Layout) -> NodeTable:
    native = key == "id" and all(columns.get(column) == kind for column, kind in NODE_COLUMNS.items())
    if native and layout == Layout():
        return NodeTable(name, number, columns, key, True, "id", "name", "text")

    def present(column: str | None) -> str | None:
        return column if column in columns else None

    return NodeTable(
        name,
        number,
        columns,
        key,
        False,
        present(layout.id_property),
        present(layout.name_property),
        present(layout.text_property),
    )


@dataclass(frozen=True, slots=True)
class NodeGroup:
    """Tables of nodes that one query can read: of one layout, the columns in question of one type in all."""

    tables: tuple[NodeTable, ...]

    @property
    def first(self) -> NodeTable:
        """One of them, to ask for what all have in common."""
        return self.tables[0]

    def pattern(self, variable: str) -> str:
        """Return the variable and its tables, as they are written between the brackets of a pattern."""
        return variable + "".join(f":{quoted(table.name)}" for table in self.tables)

    def columns_of(self, name: str) -> list[tuple[str, str]]:
        """Return the column and the type of a property; none if no table has it."""
        column = column_of(name) if self.first.native else name
        for table in self.tables:
            if column in table.columns and table.properties.get(name) == column:
                return [(column, table.columns[column])]
        return []


def node_groups(tables: Iterable[NodeTable], names: Iterable[str] = ()) -> list[NodeGroup]:
    """Return tables in groups in which each of the named properties has one type."""
    wanted = [*names]
    groups: list[tuple[list[NodeTable], dict[str, tuple[str, str]]]] = []
    for table in tables:
        asked = {folded(column_of(name) if table.native else name) for name in wanted}
        types = {folded(column): (column, kind) for column, kind in table.columns.items() if folded(column) in asked}
        for members, seen in groups:
            if members[0].layout == table.layout and _agree(seen, types):
                members.append(table)
                seen.update(types)
                break
        else:
            groups.append(([table], types))
    return [NodeGroup(tuple(members)) for members, _ in groups]


def relation_groups(tables: Iterable[RelationTable]) -> list[list[RelationTable]]:
    """Return tables in groups in which each column has one type."""
    groups: list[tuple[list[RelationTable], dict[str, tuple[str, str]]]] = []
    for table in tables:
        types = {folded(column): (column, kind) for column, kind in table.columns.items()}
        for members, seen in groups:
            if members[0].native == table.native and _agree(seen, types):
                members.append(table)
                seen.update(types)
                break
        else:
            groups.append(([table], types))
    return [members for members, _ in groups]


def _agree(left: dict[str, tuple[str, str]], right: dict[str, tuple[str, str]]) -> bool:
    return all(left.get(name, column) == column for name, column in right.items())
