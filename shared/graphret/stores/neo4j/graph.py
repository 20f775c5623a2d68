"""What is asked of a graph in Neo4j and written to it, as Cypher, and how the answers
are read.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from graphret.errors import InvalidInput, StoreMismatch
from graphret.stores.conditions import SIGNS, Conditions, require_decided
from graphret.stores.neo4j.connection import QueryRows
from graphret.stores.neo4j.layout import (
    ADDED,
    ADDED_EDGE,
    CONSTRAINT,
    MARKER,
    Layout,
    edge_from,
    edge_rows,
    escaped,
    node_from,
    node_rows,
    quote,
)
from graphret.types import ROW_KEYS, Edge, EdgeKey, Node
from graphret.validation import json_value
from graphret.where import PROPERTIES, Where, both

#: A statement and its parameters.
Statement = tuple[str, dict[str, Any]]

#: Rows in one statement that writes.
_ROWS_WRITTEN = 5_000
_TEMPORAL = (
    "DATE | LOCAL TIME | ZONED TIME | LOCAL DATETIME | ZONED DATETIME | DURATION"
)
#: What begins as the text of a date, a time or a duration does.
_ISO = re.compile(r"-?\d{4}(-|$)|\d\d:|-?P\d")


class Filter(Conditions):
    """Conditions on a node whose fields are where `layout` has them."""

    def __init__(self, layout: Layout, variable: str, prefix: str = "where") -> None:
        super().__init__(variable, prefix)
        self.layout = layout

    def bears(self, labels: Sequence[str] | None) -> str:
        """Write that the node bears one of the labels, or any that is not of the
        store's own use.
        """
        if labels is None:
            unseen = self.parameter(sorted(self.layout.unseen_labels))
            return f"any(l IN labels({self.variable}) WHERE NOT l IN {unseen})"
        shown = [
            label
            for label in labels
            if label and label not in self.layout.unseen_labels
        ]
        has_one = " OR ".join(f"{self.variable}:{quote(label)}" for label in shown)
        return f"({has_one or 'false'})"

    def value(self, where: Where) -> tuple[str, bool] | None:
        """Return what stands for a field, and whether it is always a text; `None` for
        what may lie in a map.
        """
        if where.field == "id":
            return self.layout.id_of(self.variable), True
        if where.field == "name":
            return self.layout.text_of(self.variable, "name"), True
        if where.field == "text":
            return self.layout.text_of(self.variable, "text"), True
        name = where.field.removeprefix(PROPERTIES)
        if "." in name:  # a map is kept as JSON
            return None
        key = escaped(name, self.layout.taken(written=False))
        value = f"{self.variable}.{quote(key, 'where')}"
        operands = where.value if isinstance(where.value, tuple) else (where.value,)
        dated = any(isinstance(one, str) and _ISO.match(one) for one in operands)
        in_text = where.operator in ("$contains", "$icontains")
        if not self.layout.own and (dated or in_text):
            value = (
                f"CASE WHEN {value} IS :: {_TEMPORAL} THEN split(toString({value}),"
                f" '[')[0] ELSE {value} END"
            )
        return value, False

    def compared(self, op: str, operands: Sequence[Any], value: str, kind: bool) -> str:
        """Write a comparison with a value of any type, or with one that is always a
        text.
        """
        if op == "$icontains":
            sent = self.parameter(operands[0].lower())
            found = f"toLower({value}) CONTAINS {sent}"
            if not kind:
                found = f"CASE WHEN {value} IS :: STRING THEN {found} END"
            return f"coalesce({found}, false)"
        sent = self.parameter(operands if op == "$in" else operands[0])
        if op == "$contains":
            in_text = (
                f"{value} CONTAINS {sent}" if isinstance(operands[0], str) else "false"
            )
            in_list = f"CASE WHEN {value} IS :: LIST<ANY> THEN {sent} IN {value} ELSE"
            found = (
                in_text
                if kind
                else f"{in_list} CASE WHEN {value} IS :: STRING THEN {in_text} END END"
            )
        else:
            found = f"{value} {SIGNS.get(op, 'IN' if op == '$in' else '=')} {sent}"
        return f"coalesce({found}, false)"


@dataclass(frozen=True, slots=True)
class Graph:
    """A graph in a database, as far as its nodes satisfy the condition of a view, which
    the database has to decide.
    """

    run: Callable[..., QueryRows]
    layout: Layout
    scope: Where | None = None

    def __post_init__(self) -> None:
        require_decided(Filter(self.layout, "n").write(self.scope)[1])

    def conditions(
        self, variable: str, *more: str, where: Where | None = None
    ) -> tuple[str, dict[str, Any], Where | None]:
        """Return a WHERE clause, empty where all nodes fit, its parameters, and what
        Cypher could not say.
        """
        asked = Filter(self.layout, variable, variable)
        condition, left = asked.write(both(self.scope, where))
        parts = [part for part in (*more, condition) if part != "true"]
        return f" WHERE {' AND '.join(parts)}" if parts else "", asked.parameters, left

    def matching(
        self, *more: str, where: Where | None = None
    ) -> tuple[str, dict[str, Any], Where | None]:
        """Write a MATCH of the nodes ``n`` that satisfy `conditions`; returns what
        these do.
        """
        clause, parameters, left = self.conditions("n", *more, where=where)
        return f"MATCH {self.layout.node('n')}{clause}", parameters, left

    def node_in_cypher(
        self, variable: str, where: Where | None
    ) -> tuple[str, str, dict[str, Any], Where | None]:
        """Write a pattern of a node, a condition on it and its parameters, and return
        what Cypher could not say.
        """
        clause, parameters, left = self.conditions(variable, where=where)
        return (
            self.layout.node(variable),
            clause.removeprefix(" WHERE ") or "true",
            parameters,
            left,
        )

    def get(self, ids: Sequence[str]) -> dict[str, Node]:
        """Read nodes by id."""
        found: dict[str, Node] = {}
        for row in self._among(ids, self._columns()):
            if row[0] in found:
                raise InvalidInput(
                    f"node {row[0]!r}: several nodes of the database have this"
                    f" {self.layout.id}"
                )
            found[row[0]] = node_from(self.layout, *row)
        return found

    def places(self, ids: Sequence[str]) -> dict[str, str]:
        """Return the element ids of nodes; those that are not here are left out."""
        return dict(
            map(
                tuple,
                self._among(
                    ids, f"{self.layout.id_of('n')} AS id, elementId(n) AS place"
                ),
            )
        )

    def _among(self, ids: Sequence[str], columns: str) -> QueryRows:
        keys: dict[str, Any] = {}
        match, parameters, _ = self.matching(
            self.layout.among("n", list(dict.fromkeys(ids)), keys)
        )
        return self.run(f"{match} RETURN {columns}", parameters | keys)

    def nodes(self, where: Where | None) -> Statement:
        """Write the statement that reads nodes by id, each row for `node_from`, as far
        as Cypher can say `where`.
        """
        match, parameters, _ = self.matching(where=where)
        return (
            f"{match} RETURN {self._columns()} ORDER BY {self.layout.id_of('n')}",
            parameters,
        )

    def _columns(self) -> str:
        """The columns of which `node_from` makes a node."""
        return f"{self.layout.id_of('n')}, labels(n), {self.layout.values_of('n')}"

    def edges(self, relations: list[str] | None) -> Statement:
        """Write the statement that reads all edges, each row for `edge_from`."""
        match, parameters = self.edge(_types(relations))
        columns = (
            f"{self.layout.id_of('a')}, type(r), {self.layout.id_of('b')},"
            " properties(r)"
        )
        return f"{match} RETURN {columns}", parameters

    def edge(self, types: str) -> Statement:
        """Write a MATCH of the edges ``r`` from ``a`` to ``b`` that may be seen."""
        leaving, parameters, _ = self.conditions("a")
        clause, more, _ = self.conditions(
            "b", leaving.removeprefix(" WHERE ") or "true"
        )
        return (
            (
                "MATCH"
                f" {self.layout.node('a')}-[r{types}]->{self.layout.node('b')}{clause}"
            ),
            parameters | more,
        )

    def neighbors(
        self,
        ids: Sequence[str],
        relations: list[str] | None,
        where: Where | None,
        direction: str,
        limit: int | None,
    ) -> list[Edge]:
        """Read the edges that touch nodes, the heaviest of each; the database decides
        `where`.
        """
        layout, keys = self.layout, dict[str, Any](limit=limit)
        others, parameters, _ = self.conditions("b", where=where)
        clause, more, _ = self.conditions(
            "a", layout.among("a", list(dict.fromkeys(ids)), keys)
        )
        left, right = {"out": ("-", "->"), "in": ("<-", "-"), "both": ("-", "-")}[
            direction
        ]
        weight = (
            "r.weight"
            if layout.own
            else "CASE WHEN r.weight IS :: INTEGER | FLOAT THEN r.weight END"
        )
        rows = ", ".join(f"coalesce(r.{row}, -1)" for row in ROW_KEYS)
        order = (
            f"coalesce({weight}, 1.0) DESC, source, target, type(r), {rows},"
            " elementId(r)"
        )
        text = (
            f"MATCH {layout.node('a')}{clause} CALL {{ WITH a MATCH"
            f" (a){left}[r{_types(relations)}]{right}{layout.node('b')}{others} WITH r,"
            f" {layout.id_of('startNode(r)')} AS source, {layout.id_of('endNode(r)')}"
            f" AS target {f'ORDER BY {order} LIMIT $limit ' if limit else ''}RETURN r,"
            " source, target } RETURN source, type(r), target, properties(r),"
            " elementId(r)"
        )
        found = {
            element: edge_from(*row)
            for *row, element in self.run(text, parameters | more | keys)
        }
        return [
            edge for _, edge in sorted(found.items(), key=lambda one: _edge_order(*one))
        ]

    def count(self) -> tuple[int, int]:
        """Count nodes and edges."""
        graph = self.unlabelled()
        match, parameters, _ = graph.matching()
        ((nodes,),) = self.run(f"{match} RETURN count(n)", parameters)
        match, parameters = graph.edge("")
        ((edges,),) = self.run(f"{match} RETURN count(r)", parameters)
        return nodes, edges

    def unlabelled(self) -> Graph:
        """Return the graph without its label where every node has it, so that the
        database's own counts are used.
        """
        if self.scope is not None or self.layout.label is None:
            return self
        (everything,), (own,) = self.run(
            f"MATCH (n) RETURN count(n) AS n UNION ALL MATCH {self.layout.node('n')}"
            " RETURN count(n) AS n"
        )
        return (
            replace(self, layout=replace(self.layout, label=None))
            if everything == own
            else self
        )

    def constrain(self) -> None:
        """Make the ids of the nodes that graphret writes unique and quick to find, if
        they are not.
        """
        if self.layout.id is None:
            raise StoreMismatch(
                "something else wrote this graph: to add nodes to it, name the property"
                " of its ids (id_property=)"
            )
        name = CONSTRAINT if self.layout.marker == MARKER else ""
        node = f"(n:{quote(self.layout.marker)})"
        self.run(
            f"CREATE CONSTRAINT {name} IF NOT EXISTS FOR {node} REQUIRE"
            f" n.{quote(self.layout.id)} IS UNIQUE"
        )

    def upsert(self, nodes: Mapping[str, Node], edges: Mapping[EdgeKey, Edge]) -> None:
        """Write nodes, then edges."""
        of_relation = edge_rows(self.layout, edges)
        self._refuse_others(list(nodes))
        for labels, rows in node_rows(self.layout, nodes).items():
            node = (
                f"(n:{quote(self.layout.marker)} {{{quote(self.layout.id or '')}:"
                " row[0]})"
            )
            borne = f" SET n:{':'.join(map(quote, labels))}" if labels else ""
            text = (
                f"UNWIND $rows AS row MERGE {node} SET n = row[1]{borne} WITH n UNWIND"
                " labels(n) AS label WITH DISTINCT label WHERE NOT label IN $keep"
                " RETURN label"
            )
            for some in _blocks(rows):
                if stale := self.run(
                    text, {"rows": some, "keep": [*labels, self.layout.marker]}
                ):
                    gone = "".join(f":{quote(label)}" for (label,) in stale)
                    self.run(
                        f"UNWIND $rows AS row MATCH {node} REMOVE n{gone}",
                        {"rows": some},
                    )
        for relation, rows in of_relation.items():
            text = (
                f"{self._without_same(relation)} CREATE (a)-[r:{quote(relation)}]->(b)"
                " SET r = row[4]"
            )
            for some in _blocks(rows):
                self.run(text, {"rows": self._placed(some, required=True)})

    def delete(self, ids: Sequence[str]) -> None:
        """Take nodes and their edges away."""
        self._refuse_others(ids)
        parameters: dict[str, Any] = {}
        among = self.layout.among("n", ids, parameters)
        self.run(
            f"MATCH (n:{quote(self.layout.marker)}) WHERE {among} DETACH DELETE n",
            parameters,
        )

    def delete_edges(self, edges: Mapping[EdgeKey, Edge]) -> None:
        """Take edges away."""
        rows: dict[str, list[list[Any]]] = defaultdict(list)
        for source, target, relation, *parts in edges:
            rows[relation].append([source, target, *parts])
        for relation, own in rows.items():
            for some in _blocks(own):
                self.run(self._without_same(relation), {"rows": self._placed(some)})

    def _refuse_others(self, ids: Sequence[str]) -> None:
        """Raise an `InvalidInput` if an id is that of a node which something else
        wrote.
        """
        if self.layout.own:
            return
        parameters: dict[str, Any] = {}
        text = (
            f"MATCH {self.layout.node('n')} WHERE"
            f" {self.layout.among('n', ids, parameters)} AND NOT n:{ADDED}"
        )
        for (node_id,) in self.run(
            f"{text} RETURN {self.layout.id_of('n')} LIMIT 1", parameters
        ):
            raise InvalidInput(
                f"node {node_id!r}: something else wrote it, and graphret changes no"
                " node of others"
            )

    def _placed(
        self, rows: Sequence[list[Any]], required: bool = False
    ) -> list[list[Any]]:
        """Return rows with the element ids of their ends; an `InvalidInput` names one
        that is not there.
        """
        places = self.places(sorted({end for row in rows for end in row[:2]}))
        for source, target, *_ in rows if required else ():
            if source not in places or target not in places:
                missing = target if source in places else source
                raise InvalidInput(
                    f"edge {source!r} to {target!r}: there is no node {missing!r}"
                )
        return [[places.get(row[0]), places.get(row[1]), *row[2:]] for row in rows]

    def _without_same(self, relation: str) -> str:
        """Write what takes graphret's edges away that have the ends and rows of
        ``$rows``, which are placed.
        """
        ours = "" if self.layout.own else f" AND r.{ADDED_EDGE}"
        # in a subquery, both ends are looked up first: else Neo4j would go through all
        # edges of a hub for each
        return (
            "UNWIND $rows AS row MATCH (a) WHERE elementId(a) = row[0] MATCH (b) WHERE"
            " elementId(b) = row[1] CALL { WITH a, b, row MATCH"
            f" (a)-[r:{quote(relation)}]->(b) WHERE coalesce(r.source_row, -1) = row[2]"
            f" AND coalesce(r.target_row, -1) = row[3]{ours} DELETE r }}"
        )


def _types(relations: list[str] | None) -> str:
    """Return relations as a pattern has them; none are all."""
    return f":{'|'.join(map(quote, relations))}" if relations else ""


def _edge_order(element: str, edge: Edge) -> tuple[Any, ...]:
    """The place of an edge: by source, target, relation and rows, of several that
    others made by element id.
    """
    rows = (edge.properties.get(row) for row in ROW_KEYS)
    return (
        edge.source,
        edge.target,
        edge.relation,
        *(row if isinstance(row, int) else -1 for row in rows),
        element,
    )


def _blocks(rows: Sequence[list[Any]]) -> Iterator[Sequence[list[Any]]]:
    return (
        rows[start : start + _ROWS_WRITTEN]
        for start in range(0, len(rows), _ROWS_WRITTEN)
    )


def read_rows(graph: Graph, rows: Sequence[list[Any]]) -> list[tuple[Any, ...]]:
    """Return rows of the driver's values as nodes, edges, whose ends are looked up by
    their places, and JSON values.
    """
    layout = graph.layout
    places = {node.element_id for row in rows for node in _nodes_in(row)}
    ids: dict[str, str] = {}
    if places and layout.id is not None:
        text = (
            "MATCH (n) WHERE elementId(n) IN $elements RETURN elementId(n),"
            f" {layout.id_of('n')}"
        )
        ids = dict(map(tuple, graph.run(text, {"elements": sorted(places)})))

    def id_of(node: Any) -> str:
        return ids.get(node.element_id) or str(node.element_id)

    def value(one: Any) -> Any:
        if hasattr(one, "relationships"):  # a path
            steps = zip(one.relationships, one.nodes[1:], strict=True)
            return [
                value(one.nodes[0]),
                *(value(part) for step in steps for part in step),
            ]
        if hasattr(one, "labels"):
            return node_from(layout, id_of(one), list(one.labels), dict(one))
        if hasattr(one, "start_node"):
            return edge_from(
                id_of(one.start_node), one.type, id_of(one.end_node), dict(one)
            )
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
