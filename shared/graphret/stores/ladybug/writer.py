"""Writing to a Ladybug database: what columns hold a batch, checked first, and the statements that write it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any, TypeVar

from graphret.columns import to_json
from graphret.errors import InvalidInput
from graphret.stores.base import GraphStore
from graphret.stores.ladybug.database import Session
from graphret.stores.ladybug.reader import Reader
from graphret.stores.ladybug.tables import (
    EDGE_COLUMNS,
    NODE_COLUMNS,
    OVERFLOW,
    Catalog,
    EdgeKey,
    Table,
    TableNames,
    column_of,
    edge_key,
    folded,
    is_text,
    literal,
    named,
    quoted,
    require_name,
)
from graphret.types import Edge, Node
from graphret.validation import checked_nodes, require_edge, require_properties

#: A batch of at least this many rows is copied, a smaller one created row by row: a copy costs a checkpoint.
_COPIED = 2_000
#: So many rows of a graph that is loaded wait to be copied.
_WAITING = 500_000
#: What a transaction wrote stays in memory until it ends, with a good deal for each table: so many copies are in one.
_COPIES = 32
_EXACT = 2**53
_ROWS = ("source_row", "target_row")
_SCALARS = {str: "STRING", bool: "BOOL", int: "INT64", float: "DOUBLE"}
#: The type of a property of which only empty lists were seen.
_EMPTY = "EMPTY[]"

Pair = tuple[str, str, str]
Row = dict[str, Any]
K = TypeVar("K")
V = TypeVar("V")


class Columns:
    """The columns of a table, with those that a batch needs.

    Parameters
    ----------
    pattern
        What matches all nodes or edges of the table, as ``x``.
    stored
        The columns that there are, with their types; `None` for a table that is yet to be made.
    own
        The columns of its layout.
    nested
        ``refuse`` or ``json``, see `LadybugStore`.
    """

    def __init__(self, pattern: str, stored: Mapping[str, str] | None, own: Mapping[str, str], nested: str) -> None:
        self.pattern, self.stored, self.nested = pattern, stored, nested
        self.types = dict(own if stored is None else stored)
        self._folded = {folded(column): column for column in self.types}
        self._large: set[str] = set()  # columns with integers that are no doubles

    def place(self, session: Session, item: Node | Edge, properties: Mapping[str, Any]) -> Row:
        """Return the values of the columns of one node or edge, and widen the columns to hold them.

        Raises
        ------
        InvalidInput
            Names the node or edge and the property that cannot be held.
        """
        row: Row = {}
        beside: Row = {}
        for name, value in properties.items():
            if value is None:
                continue
            problem = self._problem(session, item, name, value)
            if problem is None:
                row[column_of(name)] = value
            elif self.nested == "json":
                beside[name] = value
            else:
                hint = "nested='json' keeps such values as JSON"
                raise InvalidInput(f"{named(item)}, property {name[:80]!r}: {problem}; {hint}")
        if beside:
            row[OVERFLOW] = to_json(beside)
            self.types[OVERFLOW] = "STRING"
            if not is_text(row[OVERFLOW]):
                raise InvalidInput(f"{named(item)}, properties {sorted(beside)}: they are not Unicode text")
        return row

    def _problem(self, session: Session, item: Node | Edge, name: str, value: Any) -> str | None:
        """Why no column can hold a value; if one can, it is there and of a fitting type afterwards."""
        kind, column = _type_of(value), column_of(name)
        if kind is None:
            return f"no column of a Ladybug database can hold {value!r:.80}"
        known = self.types.get(column)
        if known is None:
            if folded(column) in self._folded:
                return f"there is a property {self._folded[folded(column)]!r}, from which only the case differs"
            require_name(name, f"{named(item)}, property {name[:80]!r}")
            self._folded[folded(column)] = column
            known = self.types[column] = kind
        merged = _merged(known, kind)
        if merged is None:
            return f"{value!r:.80} does not go with the column's type, {known}"
        if kind.startswith("INT64") and _is_large(value):
            self._large.add(column)
        if merged.startswith("DOUBLE") and (column in self._large or not self._widens(session, column, merged)):
            return f"with {value!r:.80} not all numbers of the column are exact as floating-point numbers"
        self.types[column] = merged
        return None

    def _widens(self, session: Session, column: str, kind: str) -> bool:
        """Whether all that is stored is exact as doubles, where integers become such."""
        stored = (self.stored or {}).get(column, "")
        if self.types[column] == kind or not stored.startswith("INT64"):
            return True
        value = f"x.{quoted(column)}"
        inexact = f"CAST(CAST({value} AS {kind}) AS {stored}) <> {value}"
        return not session.rows(f"MATCH {self.pattern} WHERE {inexact} RETURN 1 LIMIT 1")

    @property
    def final(self) -> dict[str, str]:
        """The type of each column; lists of which none has an item are lists of text."""
        return {column: "STRING[]" if kind == _EMPTY else kind for column, kind in self.types.items()}

    @property
    def definition(self) -> str:
        """The columns of a new table, as they are written."""
        return ", ".join(f"{quoted(column)} {kind}" for column, kind in self.final.items())

    def alterations(self, table: str) -> Iterator[str]:
        """Return the statements that give a table that there is its columns."""
        stored, alter = self.stored or {}, f"ALTER TABLE {quoted(table)}"
        for column, kind in self.final.items():
            fresh, old = quoted(f"{OVERFLOW}.new"), quoted(column)
            if column not in stored:
                yield f"{alter} ADD {old} {kind}"
            elif kind != stored[column]:
                yield f"{alter} ADD {fresh} {kind}"
                yield f"MATCH {self.pattern} SET x.{fresh} = CAST(x.{old} AS {kind})"
                yield f"{alter} DROP {old}"
                yield f"{alter} RENAME {fresh} TO {old}"


class Tables:
    """The tables that nodes and edges are written to, of those that there are and those that are to be made."""

    def __init__(self, catalog: Catalog, nested: str) -> None:
        self.catalog, self._nested, self._names = catalog, nested, TableNames(catalog)
        self.nodes: dict[str, Columns] = {}
        self.relations: dict[str, Columns] = {}
        self._joined: dict[tuple[str, str, str], tuple[Pair, Columns]] = {}

    def node(self, session: Session, node: Node) -> tuple[str, Row]:
        """Return the table of a node and its row."""
        table = self._names.of(node.label, node)
        if table not in self.nodes:
            stored = _stored(self.catalog.nodes, table, node)
            self.nodes[table] = Columns(f"(x:{quoted(table)})", stored, NODE_COLUMNS, self._nested)
        row = {"id": node.id, "name": node.name, "text": node.text, "labels": [*node.labels]}
        return table, row | self.nodes[table].place(session, node, node.properties)

    def edge(self, session: Session, edge: Edge, source: str, target: str) -> tuple[Pair, Row]:
        """Return the table of an edge, those of its ends, which are given, and its row."""
        joined = edge.relation, source, target
        if joined not in self._joined:
            table = self._names.of(edge.relation, edge)
            if table not in self.relations:
                stored = _stored(self.catalog.relations, table, edge)
                self.relations[table] = Columns(f"()-[x:{quoted(table)}]->()", stored, EDGE_COLUMNS, self._nested)
            self._joined[joined] = (table, source, target), self.relations[table]
        pair, columns = self._joined[joined]
        row: Row = {"from": edge.source, "to": edge.target, "weight": float(edge.weight)}
        if edge.properties:
            others = {name: value for name, value in edge.properties.items() if name not in _ROWS}
            row |= {name: int(edge.properties[name]) for name in _ROWS if name in edge.properties}
            row |= columns.place(session, edge, others)
        return pair, row

    def define(self, session: Session) -> None:
        """Make the tables and columns that there are not."""
        statements: list[str] = []
        for table, columns in self.nodes.items():
            made = f"CREATE NODE TABLE {quoted(table)} ({columns.definition}, PRIMARY KEY (id))"
            new = columns.stored is None
            statements += [made, *self._names.comment(table)] if new else columns.alterations(table)
        for table, columns in self.relations.items():
            known = self.catalog.relations[table].pairs if columns.stored is not None else ()
            pairs = [ends for (name, *ends), _ in self._joined.values() if name == table and tuple(ends) not in known]
            ends = [f"FROM {quoted(a)} TO {quoted(b)}" for a, b in pairs]
            if columns.stored is None:
                statements.append(f"CREATE REL TABLE {quoted(table)} ({', '.join(ends)}, {columns.definition})")
                statements += self._names.comment(table)
            else:
                statements += [*columns.alterations(table), *(f"ALTER TABLE {quoted(table)} ADD {one}" for one in ends)]
        for statement in statements:
            session.do(statement)


def upsert(
    reader: Reader, session: Session, tables: Tables, nodes: Mapping[str, Node], linked: dict[EdgeKey, Edge]
) -> None:
    """Write nodes and edges, in the transaction that is open.

    Raises
    ------
    InvalidInput, StoreMismatch
        Names what has no place, and an edge that lacks an end.
    """
    catalog = tables.catalog
    ends = {end for edge in linked.values() for end in (edge.source, edge.target)}
    located = reader.locate(session, catalog, nodes.keys() | ends)
    placed = {node.id: tables.node(session, node) for node in nodes.values()}
    moved = {own: located[own] for own, (table, _) in placed.items() if located.get(own, table) != table}
    if moved:  # their primary label is another one, and their edges go with them
        kept = reader.around(session, catalog, moved)
        linked = {edge_key(edge): edge for edge in kept} | linked
        located |= reader.locate(session, catalog, {end for edge in kept for end in (edge.source, edge.target)})
    table_of = located | {own: table for own, (table, _) in placed.items()}
    for edge in linked.values():
        for end in (edge.source, edge.target):
            if end not in table_of:
                raise InvalidInput(f"{named(edge)}: there is no node {end!r}")
    joined = [
        (key, *tables.edge(session, edge, table_of[edge.source], table_of[edge.target])) for key, edge in linked.items()
    ]
    tables.define(session)
    for table, ids in _grouped((table, own) for own, table in moved.items()):
        delete_nodes(session, table, ids)
    changed = (place for own, place in placed.items() if located.get(own) == place[0])
    for table, rows in _grouped(changed):
        _replace_nodes(session, tables, table, rows)
    known = {(table.name, *pair) for table in catalog.relations.values() for pair in table.pairs}
    stale = ((pair, key) for key, pair, _ in joined if pair in known and {*key[:2]} <= located.keys())
    for pair, keys in _grouped(stale):
        delete_edges(session, pair, keys)
    for table, rows in _grouped(place for own, place in placed.items() if located.get(own) != place[0]):
        _insert_nodes(session, tables, table, rows)
    for pair, rows in _grouped((pair, row) for _, pair, row in joined):
        _insert_edges(session, tables, pair, rows)


def _grouped(pairs: Iterable[tuple[K, V]]) -> Iterator[tuple[K, list[V]]]:
    """Group values by what stands before each."""
    found: dict[K, list[V]] = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    return iter(found.items())


def load(session: Session, tables: Tables, source: GraphStore) -> None:
    """Copy a graph into tables without rows, in several transactions where it is large.

    It is gone through twice: first for the types of the columns, and for an `InvalidInput` that names what has none.
    """
    table_of: dict[str, str] = {}

    def nodes() -> Iterator[tuple[str, Row]]:
        for node in chain.from_iterable(source.nodes()):
            table_of[node.id], row = tables.node(session, node)
            yield table_of[node.id], row

    def edges() -> Iterator[tuple[Pair, Row]]:
        for edge in chain.from_iterable(source.edges()):
            yield tables.edge(session, edge, table_of[edge.source], table_of[edge.target])

    small = sum(source.count()) <= _WAITING
    placed = [*nodes()] if small else deque(nodes(), 0)
    linked = [*edges()] if small else deque(edges(), 0)
    session.do("BEGIN TRANSACTION")
    tables.define(session)
    copies: Iterator[Callable[[], None]] = chain(
        (partial(_insert_nodes, session, tables, table, rows) for table, rows in _gathered(placed or nodes())),
        (partial(_insert_edges, session, tables, pair, rows) for pair, rows in _gathered(linked or edges())),
    )
    for i, copy in enumerate(copies, 1):
        copy()
        if not i % _COPIES:
            session.do("COMMIT")
            session.do("BEGIN TRANSACTION")
    session.do("COMMIT")


def _gathered(rows: Iterable[tuple[K, Row]]) -> Iterator[tuple[K, list[Row]]]:
    """Go through rows by their table, many at a time."""
    waiting: dict[K, list[Row]] = {}
    for i, (table, row) in enumerate(rows, 1):
        waiting.setdefault(table, []).append(row)
        if not i % _WAITING:
            yield from ((one, waiting.pop(one)) for one in [*waiting] if len(waiting[one]) >= _COPIED)
    yield from waiting.items()


def require_nodes(nodes: Iterable[Node]) -> dict[str, Node]:
    """Return nodes by id; an `InvalidInput` names one that is malformed, or an id that comes twice."""
    found: dict[str, Node] = {}
    for node in checked_nodes(nodes):
        if not all(map(is_text, node.labels)):
            raise InvalidInput(f"node {node.id!r}: a label is not Unicode text")
        require_properties(node.properties, f"node {node.id!r}")
        if node.id in found:
            raise InvalidInput(f"node {node.id!r}: the id comes twice")
        found[node.id] = node
    return found


def require_edges(edges: Iterable[Edge]) -> dict[EdgeKey, Edge]:
    """Return edges by what identifies them, the last of each; an `InvalidInput` names one that is malformed."""
    found: dict[EdgeKey, Edge] = {}
    for edge in edges:
        require_edge(edge)
        found[edge_key(edge)] = edge
    return found


def delete_nodes(session: Session, table: str, ids: Sequence[str]) -> None:
    """Delete nodes of a table, and every edge that touches them."""
    session.do(f"UNWIND $ids AS i MATCH (n:{quoted(table)} {{id: i}}) DETACH DELETE n", {"ids": [*ids]})


def delete_edges(session: Session, pair: Pair, keys: Sequence[EdgeKey]) -> None:
    """Delete edges that join the tables of a pair."""
    relation, source, target = map(quoted, pair)
    kinds = {"source": "STRING", "target": "STRING", "source_row": "INT64", "target_row": "INT64"}
    rows = [dict(zip(kinds, (key[0], key[1], *key[3:]), strict=True)) for key in keys]
    # optional in form alone: the database starts from the sources, not from every edge of the table
    session.do(
        f"LOAD FROM $rows MATCH (a:{source} {{id: c0}}) OPTIONAL MATCH (a)-[r:{relation}]->(b:{target}) "
        "WITH r, b, c1, c2, c3 "
        "WHERE b.id = c1 AND coalesce(r.source_row, -1) = c2 AND coalesce(r.target_row, -1) = c3 DELETE r",
        {"rows": _arrow(kinds, rows)},
    )


def _replace_nodes(session: Session, tables: Tables, table: str, rows: Sequence[Row]) -> None:
    kinds = tables.nodes[table].final
    values = ", ".join(f"n.{quoted(column)} = c{i}" for i, column in enumerate(kinds) if column != "id")
    match = f"MATCH (n:{quoted(table)} {{id: c{[*kinds].index('id')}}})"
    session.do(f"LOAD FROM $rows {match} SET {values}", {"rows": _arrow(kinds, rows)})


def _insert_nodes(session: Session, tables: Tables, table: str, rows: Sequence[Row]) -> None:
    kinds = tables.nodes[table].final
    values = ", ".join(f"{quoted(column)}: c{i}" for i, column in enumerate(kinds))
    create = f"LOAD FROM $rows CREATE (:{quoted(table)} {{{values}}})"
    copy = f"COPY {quoted(table)}({', '.join(map(quoted, kinds))}) FROM $rows"
    session.do(copy if len(rows) >= _COPIED else create, {"rows": _arrow(kinds, rows)})


def _insert_edges(session: Session, tables: Tables, pair: Pair, rows: Sequence[Row]) -> None:
    (relation, source, target), kinds = pair, tables.relations[pair[0]].final
    values = ", ".join(f"{quoted(column)}: c{i}" for i, column in enumerate(kinds, 2))
    match = f"MATCH (a:{quoted(source)} {{id: c0}}) MATCH (b:{quoted(target)} {{id: c1}})"
    create = f"LOAD FROM $rows {match} CREATE (a)-[:{quoted(relation)} {{{values}}}]->(b)"
    ends = f"(from={literal(source)}, to={literal(target)})"
    copy = f"COPY {quoted(relation)}({', '.join(map(quoted, kinds))}) FROM $rows {ends}"
    data = _arrow({"from": "STRING", "to": "STRING", **kinds}, rows)
    session.do(copy if len(rows) >= _COPIED else create, {"rows": data})


def _arrow(kinds: Mapping[str, str], rows: Sequence[Row]) -> Any:
    """Rows as an Arrow table with the columns c0, c1 and so on."""
    import pyarrow as pa

    scalars = {"STRING": pa.string(), "BOOL": pa.bool_(), "INT64": pa.int64(), "DOUBLE": pa.float64()}
    arrays = []
    for column, kind in kinds.items():
        scalar = scalars[kind.removesuffix("[]")]
        own = pa.list_(scalar) if kind.endswith("[]") else scalar
        arrays.append(pa.array([row.get(column) for row in rows], type=own))
    return pa.table(arrays, names=[f"c{i}" for i in range(len(arrays))])


def _stored(tables: Mapping[str, Table], name: str, item: Node | Edge) -> dict[str, str] | None:
    if name not in tables:
        return None
    tables[name].require_native(named(item))
    return tables[name].columns


def _type_of(value: Any) -> str | None:
    """The type of the column that can hold a value as it is, `None` if none can."""
    scalar = _SCALARS.get(type(value))
    if scalar == "INT64":
        return scalar if -(2**63) <= value < 2**63 else None
    if scalar == "STRING":
        return scalar if is_text(value) else None
    if scalar is not None or not isinstance(value, (list, tuple)):
        return scalar
    merged: str | None = _EMPTY
    for item in value:
        kind = None if isinstance(item, (list, tuple)) else _type_of(item)
        merged = _merged(merged, f"{kind}[]") if kind and merged else None
    whole = [item for item in value if isinstance(item, int)]
    return None if merged == "DOUBLE[]" and _is_large(whole) else merged


def _merged(left: str, right: str) -> str | None:
    """The type that holds the values of both, `None` if there is none."""
    if left == right:
        return left
    if _EMPTY in (left, right):
        other = left if right == _EMPTY else right
        return other if other.endswith("[]") else None
    for kinds in ({"INT64", "DOUBLE"}, {"INT64[]", "DOUBLE[]"}):
        if {left, right} == kinds:
            return min(kinds)
    return None


def _is_large(value: Any) -> bool:
    return any(abs(one) > _EXACT for one in value) if isinstance(value, (list, tuple)) else abs(value) > _EXACT
