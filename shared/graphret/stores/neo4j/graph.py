"""What is asked of a graph in Neo4j and written to it, as Cypher, and how the answers are read."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from graphret.errors import InvalidInput, StoreMismatch
from graphret.stores.database import EdgeKey
from graphret.stores.neo4j.connection import Answer
from graphret.stores.neo4j.filters import Filter
from graphret.stores.neo4j.layout import ADDED, ADDED_EDGE, CONSTRAINT, MARKER, ROWS, Layout, quote
from graphret.stores.neo4j.values import edge_from, edge_rows, node_from, node_rows
from graphret.types import Edge, Node
from graphret.validation import json_value
from graphret.where import Where

T = TypeVar("T")
#: A statement and its parameters.
Statement = tuple[str, dict[str, Any]]

#: Rows in one statement that writes.
_ROWS_WRITTEN = 5_000
#: The ends ``a`` and ``b`` of rows that begin with two element ids, and the edges between them with the same rows.
_ENDS = "UNWIND $rows AS row MATCH (a) WHERE elementId(a) = row[0] MATCH (b) WHERE elementId(b) = row[1]"
_SAME = "MATCH (a)-[r:%s]->(b) WHERE coalesce(r.source_row, -1) = row[2] AND coalesce(r.target_row, -1) = row[3]"


@dataclass(frozen=True, slots=True)
class Graph:
    """A graph in a database, as far as its nodes satisfy the condition of a view; `run` runs a statement."""

    run: Callable[..., Answer]
    layout: Layout
    scope: Where | None = None

    def conditions(
        self, variable: str, *more: str, where: Where | None = None
    ) -> tuple[str, dict[str, Any], Where | None]:
        """Write the WHERE clause of a node that may be seen and satisfies `where` and `more`, empty where all do.

        Returns the clause, its parameters, and what Cypher could not say of `where`.
        """
        seen, asked = Filter(self.layout, variable, f"{variable}_scope"), Filter(self.layout, variable, variable)
        within, _ = seen.write(self.scope)
        condition, left = asked.write(where)
        parts = [part for part in (*more, within, condition) if part != "true"]
        clause = f" WHERE {' AND '.join(parts)}" if parts else ""
        return clause, seen.parameters | asked.parameters, left

    def matching(self, *more: str, where: Where | None = None) -> tuple[str, dict[str, Any], Where | None]:
        """Write a MATCH of the nodes ``n`` that satisfy `conditions`; returns what these do."""
        clause, parameters, left = self.conditions("n", *more, where=where)
        return f"MATCH {self.layout.node('n')}{clause}", parameters, left

    def node_in_cypher(self, variable: str, where: Where | None) -> tuple[str, str, dict[str, Any], Where | None]:
        """Write a pattern of a node, a condition on it and its parameters, and return what Cypher could not say."""
        clause, parameters, left = self.conditions(variable, where=where)
        return self.layout.node(variable), clause.removeprefix(" WHERE ") or "true", parameters, left

    # nodes

    def get(self, ids: Sequence[str]) -> dict[str, Node]:
        """Read nodes by id."""
        found: dict[str, Node] = {}
        for row in self._among(ids, self._columns()):
            if row[0] in found:
                raise InvalidInput(f"node {row[0]!r}: several nodes of the database have this {self.layout.id}")
            found[row[0]] = node_from(self.layout, *row)
        return found

    def places(self, ids: Sequence[str]) -> dict[str, str]:
        """Return the element ids of nodes; those that are not here are left out."""
        return dict(map(tuple, self._among(ids, f"{self.layout.id_of('n')} AS id, elementId(n) AS place")))

    def _among(self, ids: Sequence[str], columns: str) -> Answer:
        keys: dict[str, Any] = {}
        match, parameters, _ = self.matching(self.layout.among("n", list(dict.fromkeys(ids)), keys))
        return self.run(f"{match} RETURN {columns}", parameters | keys)

    def nodes(self, where: Where | None) -> tuple[str, dict[str, Any], Where | None]:
        """Write the statement that reads nodes by id, each row for `node_from`; returns what `conditions` does."""
        match, parameters, left = self.matching(where=where)
        return f"{match} RETURN {self._columns()} ORDER BY {self.layout.id_of('n')}", parameters, left

    def _columns(self) -> str:
        """The columns of which `node_from` makes a node."""
        return f"{self.layout.id_of('n')}, labels(n), {self.layout.values_of('n')}"

    # edges

    def edges(self, relations: list[str] | None) -> Statement:
        """Write the statement that reads all edges, each row for `edge_from`."""
        match, parameters = self.edge(_types(relations))
        columns = f"{self.layout.id_of('a')}, type(r), {self.layout.id_of('b')}, properties(r)"
        return f"{match} RETURN {columns}", parameters

    def edge(self, types: str) -> Statement:
        """Write a MATCH of the edges ``r`` from ``a`` to ``b`` that may be seen."""
        leaving, parameters, _ = self.conditions("a")
        entering, more, _ = self.conditions("b")
        clause = leaving + entering.replace(" WHERE ", " AND " if leaving else " WHERE ", 1)
        return f"MATCH {self.layout.node('a')}-[r{types}]->{self.layout.node('b')}{clause}", parameters | more

    def neighbors(
        self,
        ids: Sequence[str],
        relations: list[str] | None,
        where: Where | None,
        direction: str,
        limit: int | None,
    ) -> list[Edge]:
        """Read the edges that touch nodes; see `GraphStore.neighbors`.

        The database takes the heaviest of each node. Where it cannot decide all of `where`, it gives all edges, and the
        nodes at their other ends are read.
        """
        others, parameters, left = self.conditions("b", where=where)
        touching = self._touching(_types(relations), others, direction, limited=limit is not None and left is None)
        keys: dict[str, Any] = {"limit": limit}
        clause, more, _ = self.conditions("a", self.layout.among("a", list(dict.fromkeys(ids)), keys))
        text = (
            f"MATCH {self.layout.node('a')}{clause} CALL {{ {touching} }} "
            f"RETURN {self.layout.id_of('a')} AS anchor, source, type(r), target, properties(r), elementId(r)"
        )
        found: dict[str, dict[str, Edge]] = defaultdict(dict)
        for anchor, *row, element in self.run(text, parameters | more | keys):
            found[anchor][element] = edge_from(*row)
        if left is not None:
            ends = {_other(edge, anchor) for anchor, edges in found.items() for edge in edges.values()}
            fits = {end for end, node in self.get(sorted(ends)).items() if left.matches(node)}
            for anchor, edges in found.items():
                there = [one for one in edges.items() if _other(one[1], anchor) in fits]
                found[anchor] = dict(sorted(there, key=lambda one: (-one[1].weight, _edge_order(*one)))[:limit])
        chosen = {element: edge for edges in found.values() for element, edge in edges.items()}
        return [edge for _, edge in sorted(chosen.items(), key=lambda one: _edge_order(*one))]

    def _touching(self, types: str, others: str, direction: str, *, limited: bool) -> str:
        """Write the subquery that finds the edges ``r`` of a node ``a``, `source` and `target`."""
        left, right = {"out": ("-", "->"), "in": ("<-", "-"), "both": ("-", "-")}[direction]
        ends = f"{self.layout.id_of('startNode(r)')} AS source, {self.layout.id_of('endNode(r)')} AS target"
        weight = "r.weight" if self.layout.own else "CASE WHEN r.weight IS :: INTEGER | FLOAT THEN r.weight END"
        rows = ", ".join(f"coalesce(r.{row}, -1)" for row in ROWS)
        order = f"coalesce({weight}, 1.0) DESC, source, target, type(r), {rows}, elementId(r)"
        kept = f"ORDER BY {order} LIMIT $limit " if limited else ""
        match = f"WITH a MATCH (a){left}[r{types}]{right}{self.layout.node('b')}{others}"
        return f"{match} WITH r, {ends} {kept}RETURN r, source, target"

    # counts

    def count(self) -> tuple[int, int]:
        """Count nodes and edges."""
        graph = self.unlabelled()
        match, parameters, _ = graph.matching()
        ((nodes,),) = self.run(f"{match} RETURN count(n)", parameters)
        match, parameters = graph.edge("")
        ((edges,),) = self.run(f"{match} RETURN count(r)", parameters)
        return nodes, edges

    def unlabelled(self) -> Graph:
        """Return the graph without its label where every node has it, so that the database's own counts are used."""
        if self.scope is not None or self.layout.label is None:
            return self
        ((everything,), (own,)) = self.run(
            f"MATCH (n) RETURN count(n) AS n UNION ALL MATCH {self.layout.node('n')} RETURN count(n) AS n"
        )
        return replace(self, layout=replace(self.layout, label=None)) if everything == own else self

    # writing

    def constrain(self) -> None:
        """Make the ids of the nodes that graphret writes unique and quick to find, if they are not."""
        if self.layout.id is None:
            raise StoreMismatch(
                "something else wrote this graph: to add nodes to it, name the property of its ids (id_property=)"
            )
        name = CONSTRAINT if self.layout.marker == MARKER else ""
        node = f"(n:{quote(self.layout.marker)})"
        self.run(f"CREATE CONSTRAINT {name} IF NOT EXISTS FOR {node} REQUIRE n.{quote(self.layout.id)} IS UNIQUE")

    def upsert(self, nodes: Mapping[str, Node], edges: Mapping[EdgeKey, Edge]) -> None:
        """Write nodes, then edges."""
        of_relation = edge_rows(self.layout, edges)
        self._refuse_others(list(nodes))
        for labels, rows in node_rows(self.layout, nodes).items():
            node = f"(n:{quote(self.layout.marker)} {{{quote(self.layout.id or '')}: row[0]}})"
            borne = f" SET n:{':'.join(map(quote, labels))}" if labels else ""
            text = (
                f"UNWIND $rows AS row MERGE {node} SET n = row[1]{borne} "
                "WITH n UNWIND labels(n) AS label WITH DISTINCT label WHERE NOT label IN $keep RETURN label"
            )
            for some in _blocks(rows, _ROWS_WRITTEN):
                if stale := self.run(text, {"rows": some, "keep": [*labels, self.layout.marker]}):
                    gone = "".join(f":{quote(label)}" for (label,) in stale)
                    self.run(f"UNWIND $rows AS row MATCH {node} REMOVE n{gone}", {"rows": some})
        for relation, rows in of_relation.items():
            text = f"{_without_same(relation)} CREATE (a)-[r:{quote(relation)}]->(b) SET r = row[4]"
            for some in _blocks(rows, _ROWS_WRITTEN):
                placed = self._placed(relation, some)
                for (source, target, *_), row in zip(some, placed, strict=True):
                    if None in row[:2]:
                        missing = source if row[0] is None else target
                        raise InvalidInput(f"edge {source!r} to {target!r}: there is no node {missing!r}")
                self.run(text, {"rows": placed})

    def delete(self, ids: Sequence[str]) -> None:
        """Take nodes and their edges away."""
        self._refuse_others(ids)
        parameters: dict[str, Any] = {}
        among = self.layout.among("n", ids, parameters)
        self.run(f"MATCH (n:{quote(self.layout.marker)}) WHERE {among} DETACH DELETE n", parameters)

    def delete_edges(self, edges: Mapping[EdgeKey, Edge]) -> None:
        """Take edges away."""
        for relation, rows in edge_rows(replace(self.layout, nested=True), edges).items():
            for some in _blocks(rows, _ROWS_WRITTEN):
                self.run(_without_same(relation), {"rows": [row[:4] for row in self._placed(relation, some)]})

    def _refuse_others(self, ids: Sequence[str]) -> None:
        """Raise an `InvalidInput` if an id is that of a node which something else wrote."""
        if self.layout.own:
            return
        parameters: dict[str, Any] = {}
        text = f"MATCH {self.layout.node('n')} WHERE {self.layout.among('n', ids, parameters)} AND NOT n:{ADDED}"
        for (node_id,) in self.run(f"{text} RETURN {self.layout.id_of('n')} LIMIT 1", parameters):
            raise InvalidInput(f"node {node_id!r}: something else wrote it, and graphret changes no node of others")

    def _placed(self, relation: str, rows: Sequence[list[Any]]) -> list[list[Any]]:
        """Return rows with the element ids of their ends; an `InvalidInput` names an edge that something else made."""
        places = self.places(sorted({end for row in rows for end in row[:2]}))
        placed = [[places.get(row[0]), places.get(row[1]), *row[2:]] for row in rows]
        if not self.layout.own:
            others = f"{_SAME % quote(relation)} AND r.{ADDED_EDGE} IS NULL RETURN r"
            ends = f"{self.layout.id_of('a')}, {self.layout.id_of('b')}"
            text = f"{_ENDS} CALL {{ WITH a, b, row {others} }} RETURN {ends} LIMIT 1"
            for source, target in self.run(text, {"rows": [row[:4] for row in placed]}):
                raise InvalidInput(f"edge {source!r} to {target!r}: something else made this {relation!r}")
        return placed


def _without_same(relation: str) -> str:
    """Write what takes away the edges of the same ends and rows as those of ``$rows``, which are placed."""
    # in a subquery, both ends are looked up first: else Neo4j would go through all edges of a hub for each
    return f"{_ENDS} CALL {{ WITH a, b, row {_SAME % quote(relation)} DELETE r }}"


def _types(relations: list[str] | None) -> str:
    """Return relations as a pattern has them; none are all."""
    return f":{'|'.join(map(quote, relations))}" if relations else ""


def _edge_order(element: str, edge: Edge) -> tuple[Any, ...]:
    """The place of an edge: by source, target, relation and rows, of several that others made by element id."""
    rows = (edge.properties.get(row) for row in ROWS)
    return edge.source, edge.target, edge.relation, *(row if isinstance(row, int) else -1 for row in rows), element


def _other(edge: Edge, anchor: str) -> str:
    return edge.target if edge.source == anchor else edge.source


def _blocks(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    return (items[start : start + size] for start in range(0, len(items), size))


# -- what a free query returns


def read_rows(graph: Graph, rows: Sequence[list[Any]]) -> list[tuple[Any, ...]]:
    """Return rows of the driver's values with nodes, edges, and JSON values in their place.

    A relationship knows where its ends are, and not their ids, which are looked up.
    """
    layout = graph.layout
    places = {node.element_id for row in rows for node in _nodes_in(row)}
    ids: dict[str, str] = {}
    if places and layout.id is not None:
        text = f"MATCH (n) WHERE elementId(n) IN $elements RETURN elementId(n), {layout.id_of('n')}"
        ids = dict(map(tuple, graph.run(text, {"elements": sorted(places)})))

    def id_of(node: Any) -> str:
        return ids.get(node.element_id) or str(node.element_id)

    def value(one: Any) -> Any:
        if hasattr(one, "relationships"):  # a path
            steps = zip(one.relationships, one.nodes[1:], strict=True)
            return [value(one.nodes[0]), *(value(part) for step in steps for part in step)]
        if hasattr(one, "labels"):
            return node_from(layout, id_of(one), list(one.labels), dict(one))
        if hasattr(one, "start_node"):
            return edge_from(id_of(one.start_node), one.type, id_of(one.end_node), dict(one))
        if isinstance(one, list):
            return [value(item) for item in one]
        if isinstance(one, dict):
            return {key: value(item) for key, item in one.items()}
        return json_value(one)

    return [tuple(map(value, row)) for row in rows]


def _nodes_in(value: Any) -> Iterable[Any]:
    if hasattr(value, "nodes"):  # a relationship has its two ends
        yield from value.nodes
    elif hasattr(value, "element_id"):
        yield value
    elif isinstance(value, list | dict):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _nodes_in(inner)
