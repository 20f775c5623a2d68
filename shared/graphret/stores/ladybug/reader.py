"""`Reader`: all that a graph store answers, read from a Ladybug database in a query for each table or pair of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from graphret.schema import GraphSchema, SchemaBuilder, schema_of
from graphret.stores.base import require_direction, require_ids, require_limit, require_names
from graphret.stores.ladybug.database import Session
from graphret.stores.ladybug.filters import Filter, filters
from graphret.stores.ladybug.tables import EDGE_COLUMNS, NODE_COLUMNS, Catalog, NodeTable, Relations, agreeing
from graphret.types import Edge, Node
from graphret.where import Where, WhereLike, both

BLOCK = 10_000
#: The edges of so many nodes are read together.
_SOURCES = 1_000
#: Of so many nodes of each label, and edges of each pair of labels that a relation joins, the properties are read.
SAMPLE = 1_000
#: A node with so many edges more than a limit is asked for alone, and the database cuts them.
_HUB = 1_000
Triple = tuple[str, str, str]


class Reader:
    """Reads a graph, or as much of one as satisfies a condition.

    Parameters
    ----------
    opened
        Gives a session for the time of one call, and says what tables there are.
    restriction
        Nothing but nodes that satisfy this, and edges among them, is read.
    """

    def __init__(
        self, opened: Callable[[], AbstractContextManager[tuple[Session, Catalog]]], restriction: Where | None = None
    ) -> None:
        self._opened = opened
        self.restriction = restriction

    def get(self, ids: Sequence[str]) -> list[Node | None]:
        """Return nodes by id, `None` for those that are not here."""
        listed = require_ids(ids)
        with self._opened() as (session, catalog):
            found = {node.id: node for _, node in self._find(session, catalog, listed)}
        return [found.get(i) for i in listed]

    def locate(self, session: Session, catalog: Catalog, ids: Iterable[str]) -> dict[str, str]:
        """Return the table of each node that is here."""
        return {node.id: table for table, node in self._find(session, catalog, ids, whole=False)}

    def _find(
        self, session: Session, catalog: Catalog, ids: Iterable[str], *, whole: bool = True
    ) -> Iterator[tuple[str, Node]]:
        left = {*ids}
        for table in catalog.nodes.values():
            for node in self._nodes_of(session, table, left, whole=whole) if left else ():
                left.discard(node.id)
                yield table.name, node

    def _nodes_of(self, session: Session, table: NodeTable, ids: Iterable[str], *, whole: bool = True) -> list[Node]:
        """Return the nodes of a table that have one of some ids, whole or with their ids alone."""
        keys, (one,) = table.keys(ids), filters([table], self.restriction)
        if not keys:
            return []
        whole |= one.rest is not None
        returned = ", ".join(table.returned("n")) if whole else table.id_of("n")
        query = f"UNWIND $ids AS i MATCH {table.by_key('i')} AND {one.text} RETURN {returned}"
        rows = session.rows(query, {"ids": keys, **one.parameters})
        nodes = map(table.node, rows) if whole else (Node(row[0]) for row in rows)
        return [node for node in nodes if one.rest is None or one.rest.matches(node)]

    def neighbors(
        self,
        ids: Sequence[str],
        *,
        relations: Collection[str] | None = None,
        labels: Collection[str] | None = None,
        where: WhereLike = None,
        direction: str = "both",
        limit: int | None = None,
    ) -> list[Edge]:
        """Return the edges that touch the nodes; see `GraphStore.neighbors`."""
        require_direction(direction)
        require_limit(limit)
        wanted, named = require_names("relations", relations), require_names("labels", labels)
        other = both(self.restriction, _bearing(named, Where.parse(where)))
        with self._opened() as (session, catalog):
            located = self.locate(session, catalog, require_ids(ids))
            return self.around(session, catalog, located, wanted, other, direction, limit)

    def around(
        self,
        session: Session,
        catalog: Catalog,
        located: Mapping[str, str],
        relations: Collection[str] | None = None,
        other: Where | None = None,
        direction: str = "both",
        limit: int | None = None,
    ) -> list[Edge]:
        """Return the edges that touch nodes of which the tables are given; `other` is of the nodes at the other end."""
        of_anchor: dict[str, dict[tuple[Any, ...], Edge]] = {}
        for name, nodes in _by_table(located.items()):
            for outgoing in {"both": (True, False), "out": (True,), "in": (False,)}[direction]:
                near, far = (0, 1) if outgoing else (1, 0)
                leaving = (t for t in catalog.related(relations) if any(pair[near] == name for pair in t.pairs))
                for tables in agreeing(leaving):
                    ends = {pair[far] for table in tables for pair in table.pairs if pair[near] == name}
                    for one in filters((catalog.nodes[end] for end in sorted(ends)), other, "m"):
                        spokes = _Spokes(session, catalog.nodes[name], Relations(tables), one, outgoing)
                        for anchor, key, edge in spokes.edges(nodes, limit):
                            of_anchor.setdefault(anchor, {})[key] = edge
        found: dict[tuple[Any, ...], Edge] = {}
        for edges in of_anchor.values():
            found.update(sorted(edges.items(), key=lambda item: (-item[1].weight, item[0]))[:limit])
        return [found[key] for key in sorted(found)]

    def count(self) -> tuple[int, int]:
        """Return how many nodes and how many edges there are."""
        with self._opened() as (session, catalog):
            n = 0
            for one in filters(catalog.nodes.values(), self.restriction):
                if one.rest is not None:
                    break
                query = f"MATCH ({one.pattern}) WHERE {one.text} RETURN count(*)"
                n += session.rows(query, one.parameters)[0][0]
            else:
                return n, sum(self._triples(session, catalog).values())
        return sum(map(len, self.nodes())), sum(map(len, self.edges()))

    def nodes(self, labels: Collection[str] | None = None, where: WhereLike = None) -> Iterator[list[Node]]:
        """Go through all nodes, or those that bear one of `labels` and satisfy `where`, in blocks, by id."""
        chosen = both(self.restriction, _bearing(require_names("labels", labels), Where.parse(where)))
        return Reader(self._opened, chosen)._node_blocks()

    def _node_blocks(self) -> Iterator[list[Node]]:
        for block in self._ids(BLOCK):
            with self._opened() as (session, now):
                tables = ((now.nodes[name], ids) for name, ids in _by_table(block) if name in now.nodes)
                found = [node for table, ids in tables for node in self._nodes_of(session, table, ids)]
            if found:
                yield sorted(found, key=lambda node: node.id)

    def edges(self, relations: Collection[str] | None = None) -> Iterator[list[Edge]]:
        """Go through all edges, or those of some relations, in blocks, each edge once."""
        return self._edge_blocks(require_names("relations", relations))

    def _edge_blocks(self, relations: list[str] | None) -> Iterator[list[Edge]]:
        for block in self._ids(_SOURCES):
            with self._opened() as (session, catalog):
                sources = self.locate(session, catalog, [i for i, _ in block]) if self.restriction else dict(block)
                found = self.around(session, catalog, sources, relations, self.restriction, "out")
            for start in range(0, len(found), BLOCK):
                yield found[start : start + BLOCK]

    def _ids(self, block: int) -> Iterator[list[tuple[str, str]]]:
        """Go through the ids of nodes, each with its table, in order; the store may be written between two blocks."""
        with self._opened() as (session, catalog):
            there = [
                (row[0], table.name)
                for table in catalog.nodes.values()
                for one in filters([table], self.restriction)
                for row in session.rows(
                    f"MATCH ({one.pattern}) WHERE {one.text} RETURN {table.id_of('n')}", one.parameters
                )
            ]
        there.sort()
        yield from (there[start : start + block] for start in range(0, len(there), block))

    def schema(self, *, sample: int = SAMPLE) -> GraphSchema:
        """Return labels and triples with their counts, and properties with types, coverage and examples.

        An edge counts under the primary labels of its ends. Properties have the names that Cypher knows them by,
        ``id``, ``name`` and ``text`` among them; labels and relations their own, beside which the schema says what
        Cypher calls them. Labels and triples are counted. A view whose condition Cypher cannot say is read whole.

        Parameters
        ----------
        sample
            Properties are read of the first so many nodes of each label, and edges of each pair of labels that a
            relation joins; the schema says where there are more.
        """
        with self._opened() as (session, catalog):
            if all(one.rest is None for one in filters(catalog.nodes.values(), self.restriction)):
                return self._schema(session, catalog, sample)
        nodes = [node for block in self.nodes() for node in block]
        primary = [replace(node, labels=node.labels[:1]) for node in nodes]
        edges = [edge for block in self.edges() for edge in block]
        return replace(schema_of(nodes, edges, sample), relations=schema_of(primary, edges, sample).relations)

    def _schema(self, session: Session, catalog: Catalog, sample: int) -> GraphSchema:
        builder = SchemaBuilder()
        labels: Counter[str] = Counter()
        in_part: set[str] = set()
        edges_in_part: set[str] = set()
        for table in catalog.nodes.values():
            (one,) = filters([table], self.restriction)
            head = f"MATCH ({one.pattern}) WHERE {one.text}"
            borne = session.rows(f"{head} RETURN {table.labels_of('n')}, count(*)", one.parameters)
            n = sum(m for _, m in borne)
            for own, m in borne:
                labels.update(dict.fromkeys(own, m))
                in_part.update((own or [""]) if n > sample else ())
            returned = f"RETURN {', '.join(table.returned('n'))} LIMIT {sample}"
            rows = session.rows(f"{head} {returned}", one.parameters)
            nodes = [table.in_cypher(table.node(row)) for row in rows]
            builder.observe_nodes(nodes, times=max(1, round(n / max(1, len(nodes)))))
        triples = self._triples(session, catalog)
        for (source, name, target), n in triples.items():
            relation, (relations, a, b) = catalog.relations[name], self._joined(catalog, source, name, target)
            match = f"MATCH ({a.pattern})-[{relations.pattern}]->({b.pattern}) WHERE {a.text} AND {b.text}"
            returned = f"RETURN {', '.join(relations.returned)} LIMIT {sample}"
            rows = session.rows(f"{match} {returned}", {**a.parameters, **b.parameters})
            edges = [relation.in_cypher(relations.edge("", "", row)[1]) for row in rows]
            builder.observe_edges(edges, times=max(1, round(n / max(1, len(edges)))))
            edges_in_part.update([relation.label] if n > sample else [])
        return _named(builder, catalog, labels, triples, in_part, edges_in_part)

    def _triples(self, session: Session, catalog: Catalog) -> Counter[Triple]:
        """Count the edges that join the tables."""
        found: Counter[Triple] = Counter()
        for table in catalog.relations.values():
            for source, target in table.pairs:
                relations, a, b = self._joined(catalog, source, table.name, target)
                where = "" if self.restriction is None else f" WHERE {a.text} AND {b.text}"  # without, it is known
                query = f"MATCH ({a.pattern})-[{relations.pattern}]->({b.pattern}){where} RETURN count(*)"
                found[source, table.name, target] = session.rows(query, {**a.parameters, **b.parameters})[0][0]
        return +found

    def _joined(self, catalog: Catalog, source: str, name: str, target: str) -> tuple[Relations, Filter, Filter]:
        (a,) = filters([catalog.nodes[source]], self.restriction, "a")
        (b,) = filters([catalog.nodes[target]], self.restriction, "b")
        return Relations([catalog.relations[name]]), a, b


@dataclass(frozen=True, slots=True)
class _Spokes:
    """The edges ``r`` from nodes ``n`` of a table, or to them, at whose other end is a node ``m``."""

    session: Session
    table: NodeTable
    relations: Relations
    other: Filter
    outgoing: bool

    def edges(self, ids: Iterable[str], limit: int | None) -> Iterator[tuple[str, tuple[Any, ...], Edge]]:
        """Go through edges, each with its anchor and its key; those that a limit for each anchor leaves are there."""
        keys = self.table.keys(ids)
        edge = f"-[{self.relations.pattern}]-"
        pattern = f"(n){edge}>({self.other.pattern})" if self.outgoing else f"(n)<{edge}({self.other.pattern})"
        # optional in form alone: the database starts from the nodes, not from every edge of the table
        together = f"UNWIND $i AS i MATCH {self.table.by_key('i')} OPTIONAL MATCH {pattern}"
        hubs: list[Any] = []
        if limit is not None and self.other.rest is None:
            most = {"i": keys, "most": limit + _HUB}
            count = f"{together} WITH i, count(r) AS edges WHERE edges > $most RETURN i"
            hubs = keys if len(keys) == 1 else [row[0] for row in self.session.rows(count, most)]
            keys = [key for key in keys if key not in {*hubs}]
        far = self.other.tables[0].id_of("m")
        for hub in hubs:
            order = ", ".join([f"{self.relations.weight} DESC", far, *self.relations.rest])
            alone = f"MATCH {self.table.by_key('$i')} MATCH {pattern} WHERE {self.other.text}"
            yield from self._read(alone, hub, f" ORDER BY {order} LIMIT {limit}")
        if keys:
            yield from self._read(f"{together} WHERE {self.other.text} WITH n, r, m WHERE r IS NOT NULL", keys)

    def _read(self, match: str, given: Any, tail: str = "") -> Iterator[tuple[str, tuple[Any, ...], Edge]]:
        ends = [self.table.id_of("n"), self.other.tables[0].id_of("m")]
        returned = ", ".join([*ends, *self.relations.returned, *self.other.returned])
        width = len(self.relations.returned)
        for near, far, *row in self.session.rows(
            f"{match} RETURN {returned}{tail}", {"i": given, **self.other.parameters}
        ):
            if self.other.passes(row[width:]):
                yield near, *self.relations.edge(*((near, far) if self.outgoing else (far, near)), row[:width])


def _by_table(there: Iterable[tuple[str, str]]) -> Iterator[tuple[str, list[str]]]:
    """Group ids by table."""
    for name, pairs in groupby(sorted(there, key=lambda pair: pair[1]), key=lambda pair: pair[1]):
        yield name, [i for i, _ in pairs]


def _bearing(labels: list[str] | None, condition: Where | None) -> Where | None:
    return condition if labels is None else both(Where("$in", "label", tuple(labels)), condition)


def _named(
    builder: SchemaBuilder,
    catalog: Catalog,
    labels: Counter[str],
    triples: Counter[Triple],
    in_part: set[str],
    edges_in_part: set[str],
) -> GraphSchema:
    """Return the schema with the names of the graph, and those of queries beside them."""
    primary, named = catalog.nodes, catalog.relations
    counted: Counter[Triple] = Counter()
    for (source, name, target), n in triples.items():
        counted[primary[source].label, named[name].label, primary[target].label] += n
    relations = {name for _, name, _ in counted}
    tables = {table.label: name for name, table in primary.items()}
    return builder.build(
        labels,
        counted,
        sampled_properties=in_part,
        sampled_relation_properties=edges_in_part,
        cypher_labels={label: tables.get(label) for label in sorted(labels) if label and tables.get(label) != label},
        cypher_relations={t.label: t.name for t in named.values() if t.label != t.name and t.label in relations},
        columns={t.label: NODE_COLUMNS for t in primary.values() if t.native and t.label and t.label in labels},
        relation_columns={
            t.label: EDGE_COLUMNS.keys() if t.native else {"weight"}
            for t in named.values()
            if t.weighs and t.label in relations
        },
    )
