"""A write to a Ladybug database: planned and checked first, then done in one transaction."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from graphret.errors import InvalidInput
from graphret.stores.ladybug.catalog import Catalog, TableNames
from graphret.stores.ladybug.columns import Columns
from graphret.stores.ladybug.engine import Session
from graphret.stores.ladybug.names import EDGE_COLUMNS, NODE_COLUMNS, is_text, literal, quoted
from graphret.stores.ladybug.records import EdgeKey, edge_key
from graphret.stores.ladybug.values import arrow_array
from graphret.types import Edge, Node, require_id
from graphret.validation import require_edge, require_properties

#: A batch of at least this many rows is copied, a smaller one created row by row: a copy costs a checkpoint.
COPIED = 2_000

#: Up to this many edges are looked for from their sources; more, by a join with the whole table.
FROM_SOURCES = 1_000

_ROWS = ("source_row", "target_row")
Pair = tuple[str, str, str]


@dataclass(slots=True)
class Plan:
    """What a write will do.

    Parameters
    ----------
    located
        The table of each node that is there and concerned.
    """

    catalog: Catalog
    names: TableNames
    located: dict[str, str]
    nested: str
    nodes: dict[str, Columns] = field(default_factory=dict)
    relations: dict[str, Columns] = field(default_factory=dict)
    pairs: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    fresh: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict)
    changed: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict)
    moved: dict[str, list[str]] = field(default_factory=dict)
    edges: dict[Pair, dict[EdgeKey, dict[str, Any]]] = field(default_factory=dict)

    def add_node(self, session: Session, node: Node) -> None:
        """Plan to write a node."""
        table = self.names.of(node.label, f"node {node.id!r}")
        columns = self.nodes.get(table)
        if columns is None:
            columns = self.nodes[table] = self._node_columns(table, node)
        row = {"id": node.id, "name": node.name, "text": node.text, "labels": list(node.labels)}
        row.update(columns.place(session, f"node {node.id!r}", node.properties))
        old = self.located.get(node.id)
        if old == table:
            self.changed.setdefault(table, {})[node.id] = row
        else:
            self.fresh.setdefault(table, {})[node.id] = row
            if old is not None:
                self.moved.setdefault(old, []).append(node.id)

    def _node_columns(self, table: str, node: Node) -> Columns:
        known = self.catalog.nodes.get(table)
        if known is None:
            return Columns(None, NODE_COLUMNS, self.nested)
        known.require_native(f"node {node.id!r}")
        return Columns(f"(x:{quoted(table)})", known.columns, self.nested)

    def add_edge(self, session: Session, key: EdgeKey, edge: Edge, tables: Mapping[str, str]) -> None:
        """Plan to write an edge between nodes of which the tables are given."""
        relation = self.names.of(edge.relation, _what(edge), relation=True)
        columns = self.relations.get(relation)
        if columns is None:
            columns = self.relations[relation] = self._relation_columns(relation, _what(edge))
        placed: dict[str, Any] = {"weight": float(edge.weight)}
        if edge.properties:
            placed |= _rows_of(edge)
            others = {name: value for name, value in edge.properties.items() if name not in _ROWS}
            placed |= columns.place(session, _what(edge), others)
        pair = relation, tables[edge.source], tables[edge.target]
        edges = self.edges.get(pair)
        if edges is None:
            edges = self.edges[pair] = {}
            self.pairs.setdefault(relation, []).append(pair[1:])
        edges[key] = placed

    def _relation_columns(self, relation: str, what: str) -> Columns:
        known = self.catalog.relations.get(relation)
        if known is None:
            return Columns(None, EDGE_COLUMNS, self.nested)
        known.require_native(what)
        return Columns(f"()-[x:{quoted(relation)}]->()", known.columns, self.nested)

    @property
    def alone(self) -> bool:
        """Whether readers must wait: tables change, or rows are copied."""
        ddl = any(
            c.pattern is None or c.final() != dict(c.stored) for c in [*self.nodes.values(), *self.relations.values()]
        )
        known = {(t.name, *pair) for t in self.catalog.relations.values() for pair in t.pairs}
        pairs = any((relation, *pair) not in known for relation, pairs in self.pairs.items() for pair in pairs)
        many = max([0, *map(len, self.fresh.values()), *map(len, self.edges.values())]) >= COPIED
        return ddl or pairs or many

    def run(self, session: Session) -> None:
        """Do it, in the transaction that is open."""
        for table, columns in self.nodes.items():
            if columns.unlined and table in self.catalog.nodes:
                self.catalog.nodes[table].facts["lined"] = False
        for statement in self._definitions():
            session.do(statement)
        for table, ids in self.moved.items():
            delete_nodes(session, table, ids)
        for table, rows in self.changed.items():
            _replace_nodes(session, table, self.nodes[table].final(), [*rows.values()])
        for pair, edges in self.edges.items():
            if pair[1:] in (self.catalog.relations[pair[0]].pairs if pair[0] in self.catalog.relations else ()):
                old = [key for key in edges if key[0] in self.located and key[1] in self.located]
                delete_edges(session, pair, old)
        for table, rows in self.fresh.items():
            _insert_nodes(session, table, self.nodes[table].final(), [*rows.values()])
        for pair, edges in self.edges.items():
            _insert_edges(session, pair, self.relations[pair[0]].final(), edges)

    def _definitions(self) -> Iterable[str]:
        for table, columns in self.nodes.items():
            if columns.pattern is None:
                listed = ", ".join(f"{quoted(c)} {kind}" for c, kind in columns.final().items())
                yield f"CREATE NODE TABLE {quoted(table)} ({listed}, PRIMARY KEY (id))"
                yield from self.names.comment(table)
            else:
                yield from columns.statements(table)
        for relation, columns in self.relations.items():
            wanted = self.pairs.get(relation, [])
            if columns.pattern is None:
                ends = ", ".join(f"FROM {quoted(a)} TO {quoted(b)}" for a, b in wanted)
                listed = ", ".join(f"{quoted(c)} {kind}" for c, kind in columns.final().items())
                yield f"CREATE REL TABLE {quoted(relation)} ({ends}, {listed})"
                yield from self.names.comment(relation)
                continue
            yield from columns.statements(relation)
            for a, b in wanted:
                if (a, b) not in self.catalog.relations[relation].pairs:
                    yield f"ALTER TABLE {quoted(relation)} ADD FROM {quoted(a)} TO {quoted(b)}"


def checked_nodes(nodes: Iterable[Node]) -> dict[str, Node]:
    """Return nodes by id.

    Raises
    ------
    InvalidInput
        When one is malformed, or an id comes twice.
    """
    found: dict[str, Node] = {}
    for node in nodes:
        require_id(node.id, "node")
        for what, value in (("id", node.id), ("name", node.name), ("text", node.text)):
            if not isinstance(value, str) or not is_text(value):
                raise InvalidInput(f"node {node.id!r}: the {what} must be a string of Unicode text, not {value!r:.80}")
        if isinstance(node.labels, str) or not all(isinstance(v, str) and is_text(v) for v in node.labels):
            raise InvalidInput(f"node {node.id!r}: the labels must be a tuple of strings")
        require_properties(node.properties, f"node {node.id!r}")
        if node.id in found:
            raise InvalidInput(f"node {node.id!r}: the id comes twice")
        found[node.id] = node
    return found


def checked_edges(edges: Iterable[Edge]) -> dict[EdgeKey, Edge]:
    """Return edges by what identifies them, the last of each; an `InvalidInput` names one that is malformed."""
    found: dict[EdgeKey, Edge] = {}
    for edge in edges:
        require_edge(edge)
        found[edge_key(edge)] = edge
    return found


def check(session: Session, plan: Plan, nodes: Iterable[Node], edges: Iterable[Edge]) -> None:
    """Plan to write nodes and edges one by one, and keep of each no more than the types of its columns."""
    for node in nodes:
        checked_nodes([node])
        plan.add_node(session, node)
        plan.fresh.clear()
    for edge in edges:
        for key in checked_edges([edge]):
            plan.add_edge(session, key, edge, dict.fromkeys(key[:2], ""))
        plan.edges.clear()
        plan.pairs.clear()


def _what(edge: Edge) -> str:
    return f"edge {edge.source!r} to {edge.target!r}"


def _rows_of(edge: Edge) -> dict[str, int]:
    return {row: int(edge.properties[row]) for row in _ROWS if row in edge.properties}


def require_ends(edges: Iterable[Edge], there: Collection[str]) -> None:
    """Raise an `InvalidInput` that names the first edge with an end that is not there."""
    for edge in edges:
        for end in (edge.source, edge.target):
            if end not in there:
                raise InvalidInput(f"{_what(edge)}: there is no node {end!r}")


def delete_nodes(session: Session, table: str, ids: Sequence[str]) -> None:
    """Delete nodes of a table, and every edge that touches them."""
    session.do(f"UNWIND $ids AS i MATCH (n:{quoted(table)} {{id: i}}) DETACH DELETE n", {"ids": [*ids]})


def _arrow(columns: Mapping[str, str], rows: Sequence[Mapping[str, Any]]) -> Any:
    """Rows as an Arrow table with the columns c0, c1 and so on."""
    import pyarrow as pa

    arrays = [arrow_array([row.get(column) for row in rows], kind) for column, kind in columns.items()]
    return pa.table(arrays, names=[f"c{i}" for i in range(len(arrays))])


def _insert_nodes(session: Session, table: str, columns: Mapping[str, str], rows: Sequence[Mapping[str, Any]]) -> None:
    data = {"rows": _arrow(columns, rows)}
    if len(rows) >= COPIED:
        session.do(f"COPY {quoted(table)}({', '.join(map(quoted, columns))}) FROM $rows", data)
        return
    values = ", ".join(f"{quoted(column)}: c{i}" for i, column in enumerate(columns))
    session.do(f"LOAD FROM $rows CREATE (:{quoted(table)} {{{values}}})", data)


def _replace_nodes(session: Session, table: str, columns: Mapping[str, str], rows: Sequence[Mapping[str, Any]]) -> None:
    ordered = {"id": columns["id"], **columns}
    values = ", ".join(f"n.{quoted(column)} = c{i}" for i, column in enumerate(ordered) if i)
    match = f"MATCH (n:{quoted(table)} {{id: c0}})"
    session.do(f"LOAD FROM $rows {match} SET {values}", {"rows": _arrow(ordered, rows)})


def delete_edges(session: Session, pair: Pair, keys: Sequence[EdgeKey]) -> None:
    if not keys:
        return
    import pyarrow as pa

    relation, source, target = map(quoted, pair)
    columns = [[key[0] for key in keys], [key[1] for key in keys], [key[3] for key in keys], [key[4] for key in keys]]
    types = [pa.string(), pa.string(), pa.int64(), pa.int64()]
    arrays = [pa.array(column, type=kind) for column, kind in zip(columns, types, strict=True)]
    same = " AND ".join(
        f"((r.{row} IS NULL AND c{i} = -1) OR (r.{row} IS NOT NULL AND r.{row} = c{i}))"
        for i, row in enumerate(_ROWS, 2)
    )
    if len(keys) <= FROM_SOURCES:  # see Reader._around
        match = (
            f"MATCH (a:{source} {{id: c0}}) OPTIONAL MATCH (a)-[r:{relation}]->(b:{target}) "
            f"WITH r, b, c1, c2, c3 WHERE b.id = c1 AND {same}"
        )
    else:
        match = f"MATCH (a:{source} {{id: c0}})-[r:{relation}]->(b:{target} {{id: c1}}) WHERE {same}"
    names = ["c0", "c1", "c2", "c3"]
    session.do(f"LOAD FROM $rows {match} DELETE r", {"rows": pa.table(arrays, names=names)})


def _insert_edges(
    session: Session, pair: Pair, columns: Mapping[str, str], edges: Mapping[EdgeKey, Mapping[str, Any]]
) -> None:
    relation, source, target = pair
    rows = [{"from": key[0], "to": key[1], **row} for key, row in edges.items()]
    ends = {"from": "STRING", "to": "STRING"}
    data = {"rows": _arrow({**ends, **columns}, rows)}
    if len(rows) >= COPIED:
        listed = ", ".join(map(quoted, columns))
        pair_of = f"(from={literal(source)}, to={literal(target)})"
        session.do(f"COPY {quoted(relation)}({listed}) FROM $rows {pair_of}", data)
        return
    values = ", ".join(f"{quoted(column)}: c{i}" for i, column in enumerate(columns, 2))
    session.do(
        f"LOAD FROM $rows MATCH (a:{quoted(source)} {{id: c0}}) MATCH (b:{quoted(target)} {{id: c1}}) "
        f"CREATE (a)-[:{quoted(relation)} {{{values}}}]->(b)",
        data,
    )
