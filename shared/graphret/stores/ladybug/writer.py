"""Writing to a Ladybug database: the columns of a batch, and its statements."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from graphret.columns import to_json
from graphret.errors import InvalidInput
from graphret.stores.conditions import is_text
from graphret.stores.ladybug.database import Session
from graphret.stores.ladybug.graph import Graph, by_table
from graphret.stores.ladybug.tables import (
    COMMENT,
    EDGE_COLUMNS,
    NODE_COLUMNS,
    PROPERTIES,
    UNLABELLED,
    Catalog,
    Table,
    column_of,
    folded,
    literal,
    quoted,
)
from graphret.types import Edge, EdgeKey, Node
from graphret.validation import edge_words

#: A batch of at least this many rows is copied, a smaller one created row by row: a
#: copy costs a checkpoint.
_COPIED = 2_000
_SCALARS = {str: "STRING", bool: "BOOL", int: "INT64", float: "DOUBLE"}
_ARROW = {"STRING": "string", "BOOL": "bool", "INT64": "int64", "DOUBLE": "double"}
#: The type of a property of which only empty lists were seen.
_EMPTY = "[]"

Item = Node | Edge
K = TypeVar("K")
V = TypeVar("V")


class TablePlan:
    """The table of a label or relation, with the columns and pairs that a batch needs."""

    def __init__(
        self, name: str, label: str, relation: bool, stored: Table | None
    ) -> None:
        self.name, self.label, self.relation, self.stored = (
            name,
            label,
            relation,
            stored,
        )
        self.types = dict(
            stored.columns
            if stored is not None
            else EDGE_COLUMNS
            if relation
            else NODE_COLUMNS
        )
        self.pairs: dict[tuple[str, str], None] = {}
        self._folded = {folded(column): column for column in self.types}
        self._columns: dict[tuple[str, str], str] = {}

    def observe(self, item: Item) -> None:
        """Add the columns for an item's properties; refuse one that cannot have any."""
        for name, value in item.properties.items():
            if (
                value is not None
                and (name, kind := type_of(value)) not in self._columns
            ):
                self.add_column(name, kind, item)

    def add_column(self, name: str, kind: str, item: Item) -> None:
        """Add the column for a property of a type, which an item has."""
        column = column_of(name)
        if not (
            name
            and is_text(name)
            and self._folded.setdefault(folded(column), column) == column
        ):
            problem = (
                "cannot be a name in a Ladybug database, or differs from another in"
                " case alone"
            )
            raise InvalidInput(f"{_words(item)}: the property {name!r} {problem}")
        self.types[column] = _common(self.types.get(column, kind), kind)
        self._columns[name, kind] = column

    def row(self, item: Item) -> dict[str, Any]:
        """Return the values of the columns of one node or edge."""
        if isinstance(item, Node):
            row: dict[str, Any] = {
                "id": item.id,
                "name": item.name,
                "text": item.text,
                "labels": [*item.labels],
            }
        else:
            row = {"from": item.source, "to": item.target, "weight": float(item.weight)}
        if item.properties:
            row[PROPERTIES] = to_json(dict(item.properties))
        for name, value in item.properties.items():
            if value is not None:
                column = self._columns[name, type_of(value)]
                row[column] = self.as_stored(column, value)
        return row

    def as_stored(self, column: str, value: Any) -> Any:
        """Return a value as its column holds it: JSON where that is of text."""
        is_json = self.types[column] == "STRING" and not isinstance(value, str)
        return to_json(value) if is_json and value is not None else value

    def statements(self) -> Iterator[str]:
        """Yield the statements that create the missing table and columns."""
        self.types = {
            column: "STRING[]" if kind == _EMPTY else kind
            for column, kind in self.types.items()
        }
        table = quoted(self.name)
        ends = {
            pair: f"FROM {quoted(pair[0])} TO {quoted(pair[1])}" for pair in self.pairs
        }
        if self.stored is None:
            columns = ", ".join(
                [
                    *ends.values(),
                    *(
                        f"{quoted(column)} {kind}"
                        for column, kind in self.types.items()
                    ),
                ]
            )
            key = "" if self.relation else ", PRIMARY KEY (id)"
            yield (
                f"CREATE {'REL' if self.relation else 'NODE'} TABLE {table}"
                f" ({columns}{key})"
            )
            if self.name != self.label:
                yield f"COMMENT ON TABLE {table} IS {literal(COMMENT + self.label)}"
            return
        yield from (
            f"ALTER TABLE {table} ADD {end}"
            for pair, end in ends.items()
            if pair not in self.stored.pairs
        )
        for column, kind in self.types.items():
            stored, old, fresh = (
                self.stored.columns.get(column),
                quoted(column),
                quoted(f"{PROPERTIES}.new"),
            )
            if stored is None:
                yield f"ALTER TABLE {table} ADD {old} {kind}"
            elif stored != kind:
                yield f"ALTER TABLE {table} ADD {fresh} {kind}"
                pattern = f"()-[x:{table}]->()" if self.relation else f"(x:{table})"
                yield f"MATCH {pattern} SET x.{fresh} = CAST(x.{old} AS {kind})"
                yield f"ALTER TABLE {table} DROP {old}"
                yield f"ALTER TABLE {table} RENAME {fresh} TO {old}"


class Writer:
    """Writes nodes and edges, in the transaction that a session has open."""

    def __init__(self, session: Session, catalog: Catalog) -> None:
        self._session, self._catalog = session, catalog
        self._graph = Graph(session, catalog)
        stored = ((False, catalog.nodes), (True, catalog.relations))
        self._names = {
            (kind, table.label): name
            for kind, some in stored
            for name, table in some.items()
        }
        self._taken = {folded(name) for name in (*catalog.nodes, *catalog.relations)}
        self._plans: dict[tuple[bool, str], TablePlan] = {}

    def upsert(self, nodes: Mapping[str, Node], linked: Mapping[EdgeKey, Edge]) -> None:
        """Write nodes and edges; refuse an edge with a missing end."""
        graph = self._graph
        located = graph.locate(
            nodes.keys() | {end for key in linked for end in key[:2]}
        )
        placed = self._observe_nodes(nodes.values())
        moved = {
            node_id: located[node_id]
            for node_id, table in placed.items()
            if located.get(node_id, table) != table
        }
        if moved:  # their primary label changes, and their edges move with them
            moved_edges = graph.neighbors(moved)
            linked = {edge.identity: edge for edge in moved_edges} | dict(linked)
            located |= graph.locate(
                {end for edge in moved_edges for end in (edge.source, edge.target)}
            )
        table_of = located | placed
        self._observe_edges(linked.values(), table_of)
        self.define()
        self._delete_nodes(moved)
        existing = {
            node_id
            for node_id, table in placed.items()
            if located.get(node_id) == table
        }
        self._replace([node for node in nodes.values() if node.id in existing])
        self._delete_edges(
            [key for key in linked if {*key[:2]} <= located.keys()], table_of
        )
        self._insert(
            (node for node in nodes.values() if node.id not in existing), table_of
        )
        self._insert(linked.values(), table_of)

    def delete(self, ids: Iterable[str]) -> None:
        """Delete nodes and every edge that touches them."""
        self._delete_nodes(self._graph.locate(ids))

    def delete_edges(self, linked: Mapping[EdgeKey, Edge]) -> None:
        """Delete edges."""
        self._delete_edges(
            linked.keys(),
            self._graph.locate({end for key in linked for end in key[:2]}),
        )

    def _observe_nodes(self, nodes: Iterable[Node]) -> dict[str, str]:
        """Add the columns that nodes need, and return the table of each."""
        table_of = {}
        for node in nodes:
            plan = self.plan(node)
            plan.observe(node)
            table_of[node.id] = plan.name
        return table_of

    def _observe_edges(
        self, edges: Iterable[Edge], table_of: Mapping[str, str]
    ) -> None:
        """Add the columns that edges need, given the tables of their ends."""
        for edge in edges:
            for end in (edge.source, edge.target):
                if end not in table_of:
                    raise InvalidInput(f"{edge_words(edge)}: there is no node {end!r}")
            plan = self.plan(edge)
            plan.observe(edge)
            plan.pairs[table_of[edge.source], table_of[edge.target]] = None

    def plan(self, item: Item) -> TablePlan:
        """Return the table of an item, which may be yet to create; see `LadybugStore`."""
        relation, label = (
            (False, item.label) if isinstance(item, Node) else (True, item.relation)
        )
        if (relation, label) not in self._plans:
            if (name := self._names.get((relation, label))) is None:
                if not is_text(label):
                    raise InvalidInput(
                        f"{_words(item)}: {label!r} cannot be a name in a Ladybug"
                        " database"
                    )
                name = label.replace(".", "_") or UNLABELLED
                while folded(name) in self._taken:
                    name += "_"
                self._taken.add(folded(name))
            stored = (self._catalog.relations if relation else self._catalog.nodes).get(
                name
            )
            self._plans[relation, label] = TablePlan(name, label, relation, stored)
        return self._plans[relation, label]

    def define(self) -> None:
        """Create the tables and columns that the plans need."""
        for plan in sorted(self._plans.values(), key=lambda plan: plan.relation):
            for statement in plan.statements():
                self._session.do(statement)

    def _delete_nodes(self, located: Mapping[str, str]) -> None:
        for table, ids in by_table(located.items()):
            self._session.do(
                f"UNWIND $ids AS i MATCH (n:{quoted(table)} {{id: i}}) DETACH DELETE n",
                ids=ids,
            )

    def _delete_edges(
        self, keys: Collection[EdgeKey], table_of: Mapping[str, str]
    ) -> None:
        tables_of_keys = (
            (
                self._names.get((True, key[2]), ""),
                table_of.get(key[0], ""),
                table_of.get(key[1], ""),
            )
            for key in keys
        )
        kinds = {
            "source": "STRING",
            "target": "STRING",
            "source_row": "INT64",
            "target_row": "INT64",
        }
        for (table, *ends), edge_keys in _grouped(
            zip(tables_of_keys, keys, strict=True)
        ):
            if table and tuple(ends) in self._catalog.relations[table].pairs:
                relation, source, target = map(quoted, (table, *ends))
                # not really optional: this makes the database start from the sources,
                # and not from every edge of the table
                self._session.do(
                    f"LOAD FROM $rows MATCH (a:{source} {{id: c0}}) OPTIONAL MATCH"
                    f" (a)-[r:{relation}]->(b:{target}) WITH r, b, c1, c2, c3 WHERE"
                    " b.id = c1 AND coalesce(r.source_row, -1) = c2 AND"
                    " coalesce(r.target_row, -1) = c3 DELETE r",
                    rows=_arrow(
                        kinds,
                        [
                            dict(zip(kinds, (*key[:2], *key[3:]), strict=True))
                            for key in edge_keys
                        ],
                    ),
                )

    def _replace(self, nodes: Iterable[Node]) -> None:
        """Overwrite the nodes with the same ids and tables."""
        for plan, batch in _grouped((self.plan(node), node) for node in nodes):
            values = ", ".join(
                f"n.{quoted(column)} = c{i}"
                for i, column in enumerate(plan.types)
                if column != "id"
            )
            match = (
                f"MATCH (n:{quoted(plan.name)} {{id: c{[*plan.types].index('id')}}})"
            )
            self._session.do(
                f"LOAD FROM $rows {match} SET {values}",
                rows=_arrow(plan.types, map(plan.row, batch)),
            )

    def _insert(self, items: Iterable[Item], table_of: Mapping[str, str]) -> None:
        """Insert new nodes or edges."""
        placed = (
            (
                (
                    self.plan(item),
                    *(
                        (table_of[item.source], table_of[item.target])
                        if isinstance(item, Edge)
                        else ()
                    ),
                ),
                item,
            )
            for item in items
        )
        for (plan, *ends), batch in _grouped(placed):
            kinds = {"from": "STRING", "to": "STRING"} if ends else {}
            rows = _arrow(kinds | plan.types, map(plan.row, batch))
            self.insert_rows(plan, ends, rows)

    def insert_rows(
        self,
        plan: TablePlan,
        ends: Sequence[str],
        rows: Any,
        copied: int = _COPIED,
    ) -> None:
        """Insert the rows of an Arrow table, by a copy if there are at least `copied`.

        In the rows of edges the ids of their ends come before the columns of `plan`.
        """
        table, columns = quoted(plan.name), ", ".join(map(quoted, plan.types))
        values = ", ".join(
            f"{quoted(column)}: c{i}" for i, column in enumerate(plan.types, len(ends))
        )
        if ends:
            source, target = ends
            statement = (
                f"MATCH (a:{quoted(source)} {{id: c0}}) MATCH (b:{quoted(target)}"
                f" {{id: c1}}) CREATE (a)-[:{table} {{{values}}}]->(b)"
            )
            between = f" (from={literal(source)}, to={literal(target)})"
        else:
            statement, between = f"CREATE (:{table} {{{values}}})", ""
        statement = f"LOAD FROM $rows {statement}"
        if rows.num_rows >= copied:
            statement = f"COPY {table}({columns}) FROM $rows{between}"
        self._session.do(statement, rows=rows)


def _words(item: Item) -> str:
    return edge_words(item) if isinstance(item, Edge) else f"node {item.id!r}"


def _grouped(pairs: Iterable[tuple[K, V]]) -> Iterator[tuple[K, list[V]]]:
    """Group the values of pairs by their keys."""
    groups: defaultdict[K, list[V]] = defaultdict(list)
    for key, value in pairs:
        groups[key].append(value)
    return iter(groups.items())


def _arrow(kinds: Mapping[str, str], rows: Iterable[Mapping[str, Any]]) -> Any:
    """Return rows as an Arrow table with the columns c0, c1 and so on."""
    listed = [*rows]
    columns = {
        column: arrow_column(column, kind, [row.get(column) for row in listed])
        for column, kind in kinds.items()
    }
    return arrow_table(kinds, columns, len(listed))


def arrow_table(
    kinds: Mapping[str, str], columns: Mapping[str, Any], n_rows: int
) -> Any:
    """Return arrays as a table with the columns c0, c1 and so on; absent ones are null."""
    import pyarrow as pa

    arrays = [
        columns[column] if column in columns else pa.nulls(n_rows, _arrow_type(kind))
        for column, kind in kinds.items()
    ]
    return pa.table(arrays, names=[f"c{i}" for i in range(len(arrays))])


def arrow_column(column: str, kind: str, values: Sequence[Any]) -> Any:
    """Return values as an array of a column's type."""
    import pyarrow as pa

    try:
        return pa.array(values, type=_arrow_type(kind))
    except ValueError as error:  # an integer that no float can hold
        raise InvalidInput(f"property {column!r}: {error}") from error


def _arrow_type(kind: str) -> Any:
    """Return the type in Arrow of a column's type."""
    import pyarrow as pa

    scalar = pa.type_for_alias(_ARROW[kind.removesuffix("[]")])
    return pa.list_(scalar) if kind.endswith("[]") else scalar


def type_of(value: Any) -> str:
    """Return the column type of a value; text for a value without one, such as a map."""
    if isinstance(value, (list, tuple)):
        kinds = {*map(_scalar_type, value)}
        kind = (
            "DOUBLE"
            if kinds == {"INT64", "DOUBLE"}
            else next(iter(kinds), "")
            if len(kinds) < 2
            else None
        )
        return "STRING" if kind is None else f"{kind}[]"
    return _scalar_type(value) or "STRING"


def _scalar_type(value: Any) -> str | None:
    kind = _SCALARS.get(type(value))
    return None if kind == "INT64" and not -(2**63) <= value < 2**63 else kind


def _common(first: str, second: str) -> str:
    """Return the type for values of two types: floats hold integers, text holds all."""
    if first == second or (second == _EMPTY and first.endswith("[]")):
        return first
    if first == _EMPTY and second.endswith("[]"):
        return second
    for kind in ("DOUBLE", "DOUBLE[]"):
        if {first, second} == {kind, kind.replace("DOUBLE", "INT64")}:
            return kind
    return "STRING"
