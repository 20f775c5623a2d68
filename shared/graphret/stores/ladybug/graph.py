"""What a Ladybug database holds as nodes and edges, read in a query for each table or pair of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from graphret.stores.ladybug.database import Session
from graphret.stores.ladybug.filters import Filter
from graphret.stores.ladybug.tables import Catalog, Table, edge_key, quoted, read_together
from graphret.types import Edge, Node
from graphret.where import Where

#: A node with so many edges more than a limit is asked for alone, and the database cuts them.
_HUB = 1_000
Triple = tuple[str, str, str]


class Graph:
    """The graph behind a session, or as much of it as a condition leaves.

    Parameters
    ----------
    scope
        Nothing but nodes that satisfy this, and edges among them, is read.
    """

    def __init__(self, session: Session, catalog: Catalog, scope: Where | None = None) -> None:
        self.session, self.catalog, self.scope = session, catalog, scope

    def nodes(self, ids: Iterable[str], *, whole: bool = True) -> Iterator[tuple[str, Node]]:
        """Go through the nodes of some ids that are here, each with its table, whole or with their ids alone."""
        left = {*ids}
        for table in self.catalog.nodes.values():
            for node in self.of_table(table, left, whole=whole) if left else ():
                left.discard(node.id)
                yield table.name, node

    def locate(self, ids: Iterable[str]) -> dict[str, str]:
        """Return the table of each node that is here."""
        return {node.id: table for table, node in self.nodes(ids, whole=False)}

    def of_table(self, table: Table, ids: Iterable[str], *, whole: bool = True) -> list[Node]:
        """Return the nodes of a table that have one of some ids, whole or with their ids alone."""
        keys, condition = self.catalog.keys(table, ids), self.of(table)
        if not keys:
            return []
        whole |= condition.rest is not None
        match = f"UNWIND $ids AS i MATCH {self.catalog.by_key(table, 'i')} AND {condition.text}"
        returned = self.catalog.returned(table) if whole else self.catalog.id_of("n")
        rows = self.session.rows(f"{match} RETURN {returned}", {"ids": keys, **condition.parameters})
        nodes = (self.catalog.node(table, row) if whole else Node(row[0]) for row in rows)
        return [node for node in nodes if condition.rest is None or condition.rest.matches(node)]

    def ids(self) -> list[tuple[str, str]]:
        """Return the ids of all nodes, in order, each with its table; some may fail what `Where.matches` decides."""
        found = []
        for table in self.catalog.nodes.values():
            condition = self.of(table)
            query = f"MATCH ({condition.pattern}) WHERE {condition.text} RETURN {self.catalog.id_of('n')}"
            found += [(row[0], table.name) for row in self.session.rows(query, condition.parameters)]
        return sorted(found)

    def neighbors(
        self,
        located: Mapping[str, str],
        relations: Collection[str] | None = None,
        where: Where | None = None,
        direction: str = "both",
        limit: int | None = None,
    ) -> list[Edge]:
        """Return the edges that touch nodes of which the tables are given; `where` is of the nodes at the other end."""
        of_anchor: dict[str, dict[tuple[Any, ...], Edge]] = {}
        for name, nodes in by_table(located.items()):
            for outgoing in {"both": (True, False), "out": (True,), "in": (False,)}[direction]:
                near, far = (0, 1) if outgoing else (1, 0)
                related = (t for t in self.catalog.relations.values() if relations is None or t.label in relations)
                for tables in read_together(t for t in related if any(pair[near] == name for pair in t.pairs)):
                    ends = sorted({pair[far] for table in tables for pair in table.pairs if pair[near] == name})
                    other = Filter(where, self.catalog, [self.catalog.nodes[end] for end in ends], "m")
                    for anchor, key, edge in self._touching(
                        self.catalog.nodes[name], nodes, tables, other, outgoing, limit
                    ):
                        of_anchor.setdefault(anchor, {})[key] = edge
        found: dict[tuple[Any, ...], Edge] = {}
        for edges in of_anchor.values():
            found.update(sorted(edges.items(), key=lambda item: (-item[1].weight, item[0]))[:limit])
        return [found[key] for key in sorted(found)]

    def _touching(
        self,
        table: Table,
        ids: Iterable[str],
        tables: Sequence[Table],
        other: Filter,
        outgoing: bool,
        limit: int | None,
    ) -> Iterator[tuple[str, tuple[Any, ...], Edge]]:
        """Go through the edges of some tables at nodes of one, each with its anchor and its key.

        Those are there that a limit for each anchor leaves, and others.
        """
        keys, far = self.catalog.keys(table, ids), self.catalog.id_of("m")
        edge = f"-[r:{'|'.join(quoted(one.name) for one in tables)}]-"
        pattern = f"(n){edge}>({other.pattern})" if outgoing else f"(n)<{edge}({other.pattern})"
        # optional in form alone: the database starts from the nodes, not from every edge of the table
        together = f"UNWIND $i AS i MATCH {self.catalog.by_key(table, 'i')} OPTIONAL MATCH {pattern}"
        columns = [*dict.fromkeys(column for one in tables for column in one.columns)]
        returned = [self.catalog.id_of("n"), far, "label(r)", "offset(id(r))", *(f"r.{quoted(c)}" for c in columns)]
        hubs: list[Any] = []
        if limit is not None and other.rest is None:
            count = f"{together} WITH i, count(r) AS edges WHERE edges > $most RETURN i"
            most = {"i": keys, "most": limit + _HUB}
            hubs = keys if len(keys) == 1 else [row[0] for row in self.session.rows(count, most)]
        finite = "CASE WHEN r.weight - r.weight = 0 THEN CAST(r.weight AS DOUBLE) ELSE 1.0 END"
        weight = finite if any("weight" in one.own for one in tables) else "1.0"
        rows = ["coalesce(r.source_row, -1)", "coalesce(r.target_row, -1)"] if self.catalog.native else []
        heaviest = ", ".join([f"{weight} DESC", far, "label(r)", *rows])
        alone = f"MATCH {self.catalog.by_key(table, '$i')} MATCH {pattern} WHERE {other.text}"
        asked = [(hub, f"{alone} RETURN {', '.join(returned)} ORDER BY {heaviest} LIMIT {limit}") for hub in hubs]
        if others := [key for key in keys if key not in {*hubs}]:
            there = f"{together} WHERE {other.text} WITH n, r, m WHERE r IS NOT NULL"
            asked.append((others, f"{there} RETURN {', '.join(returned)}"))
        named = {one.name: one for one in tables}
        found = [row for key, query in asked for row in self.session.rows(query, {"i": key, **other.parameters})]
        if other.rest is not None:
            ends = Graph(self.session, self.catalog).nodes(row[1] for row in found)
            passing = {node.id for _, node in ends if other.rest.matches(node)}
            found = [row for row in found if row[1] in passing]
        for anchor, end, name, place, *values in found:
            source, target = (anchor, end) if outgoing else (end, anchor)
            edge_ = self.catalog.edge(named[name], source, target, dict(zip(columns, values, strict=True)))
            yield anchor, (*edge_key(edge_), place), edge_

    @property
    def decided(self) -> bool:
        """Whether the database decides the scope by itself."""
        return all(self.of(table).rest is None for table in self.catalog.nodes.values())

    def of(self, table: Table, variable: str = "n") -> Filter:
        """Return the scope as a condition on a node of a table."""
        return Filter(self.scope, self.catalog, [table], variable)

    def count(self) -> tuple[int, int]:
        """Return how many nodes and how many edges there are, where the scope is `decided`."""
        n = 0
        for table in self.catalog.nodes.values():
            own = self.of(table)
            n += self.session.rows(f"MATCH ({own.pattern}) WHERE {own.text} RETURN count(*)", own.parameters)[0][0]
        return n, sum(self.triples().values())

    def triples(self) -> Counter[Triple]:
        """Count the edges that join the tables."""
        every = ((a, table.name, b) for table in self.catalog.relations.values() for a, b in table.pairs)
        return +Counter({triple: self.joined(triple, "count(*)")[0][0] for triple in every})

    def joined(self, triple: Triple, returned: str) -> list[list[Any]]:
        """Return something of the edges ``r`` that join two tables."""
        a, b = self.of(self.catalog.nodes[triple[0]], "a"), self.of(self.catalog.nodes[triple[2]], "b")
        where = "" if self.scope is None else f" WHERE {a.text} AND {b.text}"  # without, their number is known
        match = f"MATCH ({a.pattern})-[r:{quoted(triple[1])}]->({b.pattern}){where}"
        return self.session.rows(f"{match} RETURN {returned}", {**a.parameters, **b.parameters})


def by_table(there: Iterable[tuple[str, str]]) -> Iterator[tuple[str, list[str]]]:
    """Group ids by table."""
    for name, pairs in groupby(sorted(there, key=lambda pair: pair[1]), key=lambda pair: pair[1]):
        yield name, [i for i, _ in pairs]
