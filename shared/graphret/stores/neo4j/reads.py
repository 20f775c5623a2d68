"""What is asked of a graph in Neo4j, as Cypher, and how the answers are read."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from graphret.errors import InvalidInput
from graphret.stores.neo4j.layout import ROWS, Layout
from graphret.stores.neo4j.statements import Plan, Statement
from graphret.stores.neo4j.stored_ids import shared
from graphret.stores.neo4j.values import edge_from, node_from
from graphret.stores.neo4j.where import bears, relation_types, scope_of
from graphret.types import Edge, Node
from graphret.where import Where

#: Ids in one statement.
CHUNK = 10_000
#: So few nodes are read as one row, which takes two thirds of the time.
FEW = 200
#: The weight of an edge ``r``; one that is no finite number is 1.
WEIGHT = (
    "CASE WHEN r.weight IS :: INTEGER NOT NULL THEN r.weight "
    "WHEN r.weight IS :: FLOAT NOT NULL THEN CASE WHEN r.weight - r.weight = 0 THEN r.weight ELSE 1.0 END ELSE 1.0 END"
)


@dataclass(frozen=True, slots=True)
class Graph:
    """A graph in a database, as far as its nodes satisfy a condition."""

    layout: Layout
    scope: Where | None = None

    def conditions(self, variable: str, *more: str, where: Where | None = None) -> tuple[str, dict[str, Any]]:
        """Return the WHERE clause of a node that may be seen, empty where all may, and its parameters."""
        seen, parameters = scope_of(self.layout, variable, self.scope, f"{variable}_scope")
        asked, values = scope_of(self.layout, variable, where, f"{variable}_where")
        parts = [part for part in (*more, seen, asked) if part != "true"]
        return (f" WHERE {' AND '.join(parts)}" if parts else ""), parameters | values

    # nodes

    def get(self, ids: Sequence[str]) -> Plan[list[Node | None]]:
        """Read nodes by id.

        Raises
        ------
        InvalidInput
            When an id is that of several nodes, as it may be in a graph that something else wrote.
        """
        stored: dict[str, list[Any]] = defaultdict(list)
        found: dict[str, Node] = {}
        distinct = list(dict.fromkeys(ids))
        for start in range(0, len(distinct), CHUNK):
            parameters: dict[str, Any] = {}
            among = self.layout.among("n", distinct[start : start + CHUNK], parameters)
            clause, more = self.conditions("n", among)
            columns, few = self._node_columns(), len(distinct) <= FEW
            returned = f"RETURN collect([{columns}])" if few else f"RETURN {columns}"
            rows = yield Statement(f"MATCH {self.layout.node('n')}{clause} {returned}", parameters | more)
            for row in rows[0][0] if few else rows:
                found[row[0]] = node_from(self.layout, *row)
                if self.layout.may_share_ids:
                    stored[row[0]].append(row[2].get(self.layout.id))
        for node_id, values in sorted(stored.items()):
            if len(values) > 1:
                shown = " and ".join(sorted(map(repr, values[:2])))
                raise InvalidInput(f"node {node_id!r}: {len(values)} nodes have this id: {self.layout.id} is {shown}")
        return [found.get(node_id) for node_id in ids]

    def refuse_shared(self, ids: Iterable[str]) -> Plan[None]:
        """Raise what `get` does of ids that were found to be those of several nodes; no ids, no error."""
        if found := sorted(ids):
            yield from self.get(found)
            raise InvalidInput(f"node {found[0]!r}: several nodes have this id")

    def nodes(self, labels: list[str] | None, where: Where | None) -> Statement:
        """Read all nodes by id; each row is read by `node`."""
        clause, parameters = self.conditions("n", bears(self.layout, "n", labels), where=where)
        order = self.layout.order_of("n")
        text = f"MATCH {self.layout.node('n')}{clause} RETURN {self._node_columns()} ORDER BY {order}"
        return Statement(text, parameters)

    def node(self, row: list[Any]) -> Node:
        """Read a row of `nodes`."""
        return node_from(self.layout, *row)

    def require_apart(self, before: str | None, rows: Sequence[list[Any]]) -> Plan[str]:
        """Refuse an id that follows on itself in rows of `nodes`, which are by id, and return the last.

        Parameters
        ----------
        before
            The last of the rows before.
        """
        ids = [before, *(row[0] for row in rows)]
        yield from self.refuse_shared(one for one, after in pairwise(ids) if one is not None and one == after)
        return str(ids[-1])

    def _node_columns(self) -> str:
        return f"{self.layout.id_of('n')}, labels(n), {self.layout.values_of('n')}"

    # edges

    def edges(self, relations: list[str] | None) -> Statement | None:
        """Read all edges; each row is read by `edge_from`."""
        types = relation_types(relations)
        if types is None:
            return None
        pattern, parameters = self.edge(types)
        columns = f"{self.layout.id_of('a')}, type(r), {self.layout.id_of('b')}, properties(r)"
        return Statement(f"{pattern} RETURN {columns}", parameters)

    def edge(self, types: str) -> tuple[str, dict[str, Any]]:
        """Return a MATCH of the edges ``r`` from ``a`` to ``b`` that may be seen, and its parameters."""
        leaving, parameters = self.conditions("a")
        entering, more = self.conditions("b")
        clause = leaving + entering.replace(" WHERE ", " AND " if leaving else " WHERE ", 1)
        return f"MATCH {self.layout.node('a')}-[r{types}]->{self.layout.node('b')}{clause}", parameters | more

    def neighbors(
        self,
        ids: Sequence[str],
        relations: list[str] | None,
        labels: list[str] | None,
        where: Where | None,
        direction: str,
        limit: int | None,
    ) -> Plan[list[Edge]]:
        """Read the edges that touch nodes; see `GraphStore.neighbors`."""
        types = relation_types(relations)
        if types is None or not ids:
            return []
        left, right = ("<-", "-") if direction == "in" else ("-", "->") if direction == "out" else ("-", "-")
        path = f"(a){left}[r{types}]{right}{self.layout.node('b')}"
        others, parameters = self.conditions("b", bears(self.layout, "b", labels), where=where)
        columns = [self._end("startNode(r)"), "type(r)", self._end("endNode(r)"), "properties(r)", "elementId(r)"]
        if self.layout.may_share_ids:
            columns += ["elementId(startNode(r))", "elementId(endNode(r))", "shared"]
        touching = f"MATCH {path}{others} {self._kept(limit)}"
        found: dict[str, Edge] = {}
        places: list[tuple[str, str]] = []
        distinct = list(dict.fromkeys(ids))
        for start in range(0, len(distinct), CHUNK):
            keys: dict[str, Any] = {}
            among = self.layout.among("a", distinct[start : start + CHUNK], keys)
            clause, more = self.conditions("a", among)
            text = f"MATCH {self.layout.node('a')}{clause} {self._and_shared(touching)} RETURN {', '.join(columns)}"
            rows = yield Statement(text, parameters | more | keys | {"limit": limit})
            if self.layout.may_share_ids:
                yield from self.refuse_shared(row[-1] for row in rows if row[-1] is not None)
            for source, relation, target, values, element, *ends in rows:
                found[element] = edge_from(source, relation, target, values)
                places += zip((source, target), ends, strict=False)
        yield from self.refuse_shared(shared(places))
        ordered = sorted(found.items(), key=lambda pair: (edge_order(pair[1]), pair[0]))  # others make edges alike
        return [edge for _, edge in ordered]

    def _and_shared(self, touching: str) -> str:
        """Go on from nodes ``a`` to what `touching` finds of them, and to each id that several of them have."""
        if not self.layout.may_share_ids:
            return touching
        return (
            "WITH collect(a) AS found CALL { "
            f"WITH found UNWIND found AS a WITH {self.layout.id_of('a')} AS shared, count(*) AS nodes WHERE nodes > 1 "
            f"RETURN shared, null AS r UNION ALL WITH found UNWIND found AS a {touching} RETURN null AS shared, r }}"
        )

    def _end(self, node: str) -> str:
        return self.layout.id_of(node)

    def _kept(self, limit: int | None) -> str:
        """Keep the heaviest edges of each anchor."""
        if limit is None:
            return "WITH DISTINCT r"
        order = [
            f"{WEIGHT} DESC",
            self._end("startNode(r)"),
            self._end("endNode(r)"),
            "type(r)",
            *(f"coalesce(r.{row}, -1)" for row in ROWS),
            *([] if self.layout.own else ["elementId(r)"]),
        ]
        kept = "WITH a, collect(r)[..$limit] AS kept UNWIND kept AS r WITH DISTINCT r"
        return f"WITH DISTINCT a, r ORDER BY {', '.join(order)} {kept}"

    # counts

    def count(self) -> Plan[tuple[int, int]]:
        """Count nodes and edges, from the database's own counts where they are the graph's."""
        if self.scope is None:
            nodes, whole = yield from self.whole()
            if whole:
                ((edges,),) = yield Statement("MATCH ()-[r]->() RETURN count(r)")
                return nodes, edges
        clause, parameters = self.conditions("n")
        ((nodes,),) = yield Statement(f"MATCH {self.layout.node('n')}{clause} RETURN count(n)", parameters)
        pattern, parameters = self.edge("")
        ((edges,),) = yield Statement(f"{pattern} RETURN count(r)", parameters)
        return nodes, edges

    def whole(self) -> Plan[tuple[int, bool]]:
        """Count the nodes of the database, and say whether the graph is all of it."""
        ((everything,),) = yield Statement("MATCH (n) RETURN count(n)")
        if self.scope is not None or self.layout.label is None:
            return everything, self.scope is None
        ((own,),) = yield Statement(f"MATCH {self.layout.node('n')} RETURN count(n)")
        return everything, own == everything


def edge_order(edge: Edge) -> tuple[Any, ...]:
    """The place of an edge: by source, target, relation and rows."""
    rows = (edge.properties.get(row) for row in ROWS)
    return edge.source, edge.target, edge.relation, *(row if isinstance(row, int) else -1 for row in rows)
