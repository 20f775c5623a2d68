"""What tables a Ladybug database has, and how graphret reads them."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Any

from graphret.errors import InvalidInput, StoreMismatch
from graphret.stores.ladybug.engine import Session
from graphret.stores.ladybug.names import (
    EDGE_COLUMNS,
    NODE_COLUMNS,
    NULLS,
    OVERFLOW,
    UNLABELLED,
    column_of,
    comment_of,
    folded,
    literal,
    named_in,
    property_of,
    quoted,
    require_name,
)
from graphret.stores.ladybug.values import number_type


@dataclass(frozen=True, slots=True)
class Layout:
    """Which properties of a database that something else wrote are the id, the name and the text of a node.

    Without an id property, ids are those of the database, ``table:offset``.
    """

    id_property: str | None = None
    name_property: str | None = None
    text_property: str | None = None

    def __post_init__(self) -> None:
        for what in ("id_property", "name_property", "text_property"):
            given = getattr(self, what)
            if given is not None and (not isinstance(given, str) or not given):
                raise InvalidInput(f"{what}: the name of a property is expected, not {given!r}")


@dataclass(frozen=True, slots=True)
class NodeTable:
    """A table of nodes.

    Parameters
    ----------
    name
        Its name, by which queries know the nodes.
    label
        Their primary label, empty where they have none: the name, but for names that no two tables can have.
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
        What was found out about its rows, until tables change or many rows are written. ``lined``: all JSON has lines;
        ``odd keys: …``: maps in a column, which something else wrote, have keys that the database does not find.
    """

    name: str
    label: str
    number: int
    columns: dict[str, str]
    key: str
    native: bool
    id_column: str | None
    name_column: str | None
    text_column: str | None
    facts: dict[str, bool] = field(default_factory=dict, compare=False, repr=False)

    @property
    def own(self) -> tuple[str | None, str | None, str | None]:
        """The columns of the id, the name and the text."""
        return self.id_column, self.name_column, self.text_column

    @property
    def properties(self) -> dict[str, str]:
        """The column of each property."""
        own = {*self.own}
        if self.native:
            own |= {"labels", OVERFLOW, NULLS}
            return {property_of(column): column for column in self.columns if column not in own}
        return {column: column for column in self.columns if column not in own}

    @property
    def overflows(self) -> bool:
        """Whether nodes may have properties as JSON."""
        return self.native and OVERFLOW in self.columns

    @property
    def has_nulls(self) -> bool:
        """Whether nodes may have properties that are null."""
        return self.native and NULLS in self.columns

    @property
    def layout(self) -> tuple[Any, ...]:
        """What must be equal for tables to be read in one query."""
        return self.native, *((column, self.columns[column] if column else None) for column in self.own)

    def require_native(self, what: str) -> None:
        """Raise a `StoreMismatch` that begins with `what` if graphret cannot write to the table."""
        if not self.native:
            raise StoreMismatch(
                f"{what}: the table {self.name!r} was made by something else, or is opened with properties for id, "
                "name and text; graphret writes only to tables of its own"
            )


@dataclass(frozen=True, slots=True)
class RelationTable:
    """A table of edges: what queries call it, their relation, and in `pairs` the node tables that they join."""

    name: str
    relation: str
    columns: dict[str, str]
    pairs: tuple[tuple[str, str], ...]

    @property
    def native(self) -> bool:
        """Whether it has graphret's layout."""
        return all(self.columns.get(column) == kind for column, kind in EDGE_COLUMNS.items())

    def require_native(self, what: str) -> None:
        """Raise a `StoreMismatch` that begins with `what` if graphret cannot write to the table."""
        if not self.native:
            raise StoreMismatch(f"{what}: the relation {self.name!r} was made by something else")

    @property
    def properties(self) -> dict[str, str]:
        """The column of each property, without weight and rows."""
        if self.native:
            own = {*EDGE_COLUMNS, OVERFLOW, NULLS}
            return {property_of(column): column for column in self.columns if column not in own}
        return {column: column for column in self.columns if column != "weight" or not self.weighs}

    @property
    def weighs(self) -> bool:
        """Whether there are weights: a column of that name holds numbers, of whatever type."""
        return number_type(self.columns.get("weight")) is not None

    @property
    def overflows(self) -> bool:
        """Whether edges may have properties as JSON."""
        return self.native and OVERFLOW in self.columns

    @property
    def has_nulls(self) -> bool:
        """Whether edges may have properties that are null."""
        return self.native and NULLS in self.columns


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
        for number, name, kind, _, comment in sorted(session.rows("CALL show_tables() RETURN *")):
            info = session.rows(f"CALL table_info({literal(name)}) RETURN *")
            columns = {row[1]: row[2] for row in info}
            if kind == "NODE":
                key = next((row[1] for row in info if row[4] is True), "")
                label = named_in(comment, relation=False)
                if label is None:
                    label = "" if name == UNLABELLED else name
                nodes[name] = _node_table(name, label, number, columns, key, layout)
            elif kind == "REL":
                pairs = session.rows(f"CALL show_connection({literal(name)}) RETURN *")
                relation = named_in(comment, relation=True) or name
                relations[name] = RelationTable(name, relation, columns, tuple((row[0], row[1]) for row in pairs))
        return cls(nodes, relations)

    def numbered(self) -> dict[int, NodeTable]:
        """The tables of nodes by their numbers."""
        return {table.number: table for table in self.nodes.values()}

    def related(self, relations: Collection[str] | None) -> list[RelationTable]:
        """Return the tables of some relations, or all."""
        return [table for table in self.relations.values() if relations is None or table.relation in relations]

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


class TableNames:
    """The table of each label and each relation, of those that are yet to be made too.

    A table has the name of its label or relation. Where another table has that, whatever the case of its letters, for
    labels and relations share one space of names, an underscore follows it; and one stands for each dot, which the
    database does not take. The table's comment then says what it is of.
    """

    def __init__(self, catalog: Catalog) -> None:
        self._tables = {(False, table.label): table.name for table in catalog.nodes.values()}
        self._tables |= {(True, table.relation): table.name for table in catalog.relations.values()}
        self._taken = {folded(name) for name in (*catalog.nodes, *catalog.relations)}
        self._comments: dict[str, str] = {}

    def of(self, name: str, what: str, *, relation: bool = False) -> str:
        """Return the table of a label, or of a relation.

        Raises
        ------
        InvalidInput
            Begins with `what`; when no table can have a name that is made of this one.
        """
        key = relation, name
        if key not in self._tables:
            require_name(name or UNLABELLED, f"{what}, {'relation' if relation else 'label'}")
            free = name.replace(".", "_") or UNLABELLED
            while folded(free) in self._taken or (name and folded(free) == UNLABELLED):
                free += "_"
            self._taken.add(folded(free))
            self._tables[key] = free
            if free != (name or UNLABELLED):
                self._comments[free] = comment_of(name, relation=relation)
        return self._tables[key]

    def comment(self, table: str) -> Iterable[str]:
        """Return the statement that says what a new table is of, where its name does not."""
        if table in self._comments:
            yield f"COMMENT ON TABLE {quoted(table)} IS {literal(self._comments[table])}"


def _node_table(name: str, label: str, number: int, columns: dict[str, str], key: str, layout: Layout) -> NodeTable:
    native = key == "id" and all(columns.get(column) == kind for column, kind in NODE_COLUMNS.items())
    if native and layout == Layout():
        return NodeTable(name, label, number, columns, key, True, "id", "name", "text")

    def present(column: str | None) -> str | None:
        return column if column in columns else None

    return NodeTable(
        name,
        label,
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
