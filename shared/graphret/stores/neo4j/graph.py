"""The Cypher that reads and writes a graph in Neo4j, and how its results are read."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from graphret.errors import InvalidInput, StoreMismatch
from graphret.executors import batched
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
#: The beginning of the text of a date, a time or a duration.
_ISO = re.compile(r"-?\d{4}(-|$)|\d\d:|-?P\d")


class Filter(Conditions):
    """Conditions on a node whose fields are where `layout` has them."""

    def __init__(self, layout: Layout, variable: str, prefix: str = "where") -> None:
        super().__init__(variable, prefix)
        self.layout = layout

    def has_label(self, labels: Sequence[str] | None) -> str:
        """Write that the node has one of the labels, or any but the store's own."""
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
        """Return a field's expression, and whether it is text; `None` for maps."""
        if where.field == "id":
            return self.layout.id_of(self.variable), True
        if where.field == "name":
            return self.layout.text_of(self.variable, "name"), True
        if where.field == "text":
            return self.layout.text_of(self.variable, "text"), True
        name = where.field.removeprefix(PROPERTIES)
        if "." in name:  # a map is stored as JSON
            return None
        key = escaped(name, self.layout.reserved_names(written=False))
        value = f"{self.variable}.{quote(key, 'where')}"
        operands = where.value if isinstance(where.value, tuple) else (where.value,)
        dated = any(
            isinstance(operand, str) and _ISO.match(operand) for operand in operands
        )
        in_text = where.operator in ("$contains", "$icontains")
        if not self.layout.own and (dated or in_text):
            value = (
                f"CASE WHEN {value} IS :: {_TEMPORAL} THEN split(toString({value}),"
                f" '[')[0] ELSE {value} END"
            )
        return value, False

    def compared(self, op: str, operands: Sequence[Any], value: str, kind: bool) -> str:
        """Write a comparison with a value of any type, or (`kind`) always a text."""
        if op == "$icontains":
            sent = self.parameter(operands[0].lower())
            comparison = f"toLower({value}) CONTAINS {sent}"
            if not kind:
                comparison = f"CASE WHEN {value} IS :: STRING THEN {comparison} END"
            return f"coalesce({comparison}, false)"
        sent = self.parameter(operands if op == "$in" else operands[0])
        if op == "$contains":
            in_text = (
                f"{value} CONTAINS {sent}" if isinstance(operands[0], str) else "false"
            )
            in_list = f"CASE WHEN {value} IS :: LIST<ANY> THEN {sent} IN {value} ELSE"
            comparison = (
                in_text
                if kind
                else f"{in_list} CASE WHEN {value} IS :: STRING THEN {in_text} END END"
            )
        else:
            comparison = f"{value} {SIGNS.get(op, 'IN' if op == '$in' else '=')} {sent}"
        return f"coalesce({comparison}, false)"


@dataclass(frozen=True, slots=True)
class Graph:
    """A graph in a database: the nodes in the scope of a view, and their edges."""

    run: Callable[..., QueryRows]
    layout: Layout
    scope: Where | None = None

    def __post_init__(self) -> None:
        require_decided(Filter(self.layout, "n").write(self.scope)[1])

    def conditions(
        self, variable: str, *more: str, where: Where | None = None
    ) -> tuple[str, dict[str, Any], Where | None]:
        """Return a WHERE clause (or ""), its parameters, and the remaining condition.

        The database cannot decide the part that remains.
        """
        node_filter = Filter(self.layout, variable, variable)
        condition, remaining = node_filter.write(both(self.scope, where))
        parts = [part for part in (*more, condition) if part != "true"]
        return (
            f" WHERE {' AND '.join(parts)}" if parts else "",
            node_filter.parameters,
            remaining,
        )

    def matching(
        self, *more: str, where: Where | None = None
    ) -> tuple[str, dict[str, Any], Where | None]:
        """Write a MATCH of the nodes ``n`` with `conditions`, and return as they do."""
        clause, parameters, remaining = self.conditions("n", *more, where=where)
        return f"MATCH {self.layout.node('n')}{clause}", parameters, remaining

    def node_in_cypher(
        self, variable: str, where: Where | None
    ) -> tuple[str, str, dict[str, Any], Where | None]:
        """Return a node pattern, its condition and parameters, and what remains."""
        clause, parameters, remaining = self.conditions(variable, where=where)
        return (
            self.layout.node(variable),
            clause.removeprefix(" WHERE ") or "true",
            parameters,
            remaining,
        )

    def get(self, ids: Sequence[str]) -> dict[str, Node]:
        """Read nodes by id."""
        by_id: dict[str, Node] = {}
        for row in self._among(ids, self._columns()):
            if row[0] in by_id:
                raise InvalidInput(
                    f"node {row[0]!r}: several nodes of the database have this"
                    f" {self.layout.id}"
                )
            by_id[row[0]] = node_from(self.layout, *row)
        return by_id

    def places(self, ids: Sequence[str]) -> dict[str, str]:
        """Return the element ids of existing nodes."""
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
        """Write the statement that reads nodes as rows for `node_from`, by id.

        Rows satisfy `where` as far as Cypher can express it.
        """
        match, parameters, _ = self.matching(where=where)
        return (
            f"{match} RETURN {self._columns()} ORDER BY {self.layout.id_of('n')}",
            parameters,
        )

    def _columns(self) -> str:
        """Return the columns that `node_from` reads."""
        return f"{self.layout.id_of('n')}, labels(n), {self.layout.values_of('n')}"

    def edges(self, relations: list[str] | None) -> Statement:
        """Write the statement that reads all edges as rows for `edge_from`."""
        match, parameters = self.edge(_types(relations))
        columns = (
            f"{self.layout.id_of('a')}, type(r), {self.layout.id_of('b')},"
            " properties(r)"
        )
        return f"{match} RETURN {columns}", parameters

    def edge(self, types: str) -> Statement:
        """Write a MATCH of the visible edges ``r`` from ``a`` to ``b``."""
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
        """Read the heaviest edges that touch nodes; the database decides `where`."""
        layout, keys = self.layout, dict[str, Any](limit=limit)
        end_clause, parameters, _ = self.conditions("b", where=where)
        clause, more, _ = self.conditions(
            "a", layout.among("a", list(dict.fromkeys(ids)), keys)
        )
        before, after = {"out": ("-", "->"), "in": ("<-", "-"), "both": ("-", "-")}[
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
        heaviest = f"ORDER BY {order} LIMIT $limit " if limit else ""
        text = (
            f"MATCH {layout.node('a')}{clause} CALL {{ WITH a MATCH"
            f" (a){before}[r{_types(relations)}]{after}{layout.node('b')}{end_clause}"
            f" WITH r, {layout.id_of('startNode(r)')} AS source,"
            f" {layout.id_of('endNode(r)')} AS target {heaviest}RETURN r, source,"
            " target } RETURN source, type(r), target, properties(r),"
            " elementId(r)"
        )
        by_element = {
            element: edge_from(*row)
            for *row, element in self.run(text, parameters | more | keys)
        }
        return [
            edge
            for _, edge in sorted(
                by_element.items(), key=lambda item: _edge_order(*item)
            )
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
        """Drop the graph's label if all nodes have it, to use the stored counts."""
        if self.scope is not None or self.layout.label is None:
            return self
        (everything,), (of_label,) = self.run(
            f"MATCH (n) RETURN count(n) AS n UNION ALL MATCH {self.layout.node('n')}"
            " RETURN count(n) AS n"
        )
        return (
            replace(self, layout=replace(self.layout, label=None))
            if everything == of_label
            else self
        )

    def constrain(self) -> None:
        """Create the unique constraint on the ids of graphret's nodes, if missing."""
        if self.layout.id is None:
            raise StoreMismatch(
                "another program wrote this graph: to add nodes to it, pass the"
                " property of its ids (id_property=)"
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
        self._refuse_foreign(list(nodes))
        for labels, rows in node_rows(self.layout, nodes).items():
            node = (
                f"(n:{quote(self.layout.marker)} {{{quote(self.layout.id or '')}:"
                " row[0]})"
            )
            set_labels = f" SET n:{':'.join(map(quote, labels))}" if labels else ""
            text = (
                f"UNWIND $rows AS row MERGE {node} SET n = row[1]{set_labels} WITH n"
                " UNWIND labels(n) AS label WITH DISTINCT label WHERE NOT label IN"
                " $keep RETURN label"
            )
            for block in batched(rows, _ROWS_WRITTEN):
                if stale := self.run(
                    text, {"rows": block, "keep": [*labels, self.layout.marker]}
                ):
                    stale_labels = "".join(f":{quote(label)}" for (label,) in stale)
                    self.run(
                        f"UNWIND $rows AS row MATCH {node} REMOVE n{stale_labels}",
                        {"rows": block},
                    )
        for relation, rows in of_relation.items():
            text = (
                f"{self._without_same(relation)} CREATE (a)-[r:{quote(relation)}]->(b)"
                " SET r = row[4]"
            )
            for block in batched(rows, _ROWS_WRITTEN):
                self.run(text, {"rows": self._placed(block, required=True)})

    def insert(self, nodes: Mapping[str, Node], edges: Mapping[EdgeKey, Edge]) -> None:
        """Write nodes, then edges, of which none is there."""
        of_relation = edge_rows(self.layout, edges)
        self._refuse_foreign(list(nodes))
        marker = quote(self.layout.marker)
        for labels, rows in node_rows(self.layout, nodes).items():
            written = ":".join([marker, *map(quote, labels)])
            text = f"UNWIND $rows AS values CREATE (n:{written}) SET n = values"
            for block in batched(rows, _ROWS_WRITTEN):
                self.run(text, {"rows": [values for _, values in block]})
        end = f":{marker} {{{quote(self.layout.id or '')}: "
        for relation, rows in of_relation.items():
            text = (
                f"UNWIND $rows AS row MATCH (a{end}row[0]}}) MATCH (b{end}row[1]}})"
                f" CREATE (a)-[r:{quote(relation)}]->(b) SET r = row[4]"
                " RETURN count(r)"
            )
            for block in batched(rows, _ROWS_WRITTEN):
                ((count,),) = self.run(text, {"rows": block})
                if count < len(block):
                    self._placed(block, required=True)  # names the end that is missing

    def delete(self, ids: Sequence[str]) -> None:
        """Delete nodes and their edges."""
        self._refuse_foreign(ids)
        parameters: dict[str, Any] = {}
        among = self.layout.among("n", ids, parameters)
        self.run(
            f"MATCH (n:{quote(self.layout.marker)}) WHERE {among} DETACH DELETE n",
            parameters,
        )

    def delete_edges(self, edges: Mapping[EdgeKey, Edge]) -> None:
        """Delete edges."""
        rows: dict[str, list[list[Any]]] = defaultdict(list)
        for source, target, relation, *parts in edges:
            rows[relation].append([source, target, *parts])
        for relation, relation_rows in rows.items():
            for block in batched(relation_rows, _ROWS_WRITTEN):
                self.run(self._without_same(relation), {"rows": self._placed(block)})

    def _refuse_foreign(self, ids: Sequence[str]) -> None:
        """Refuse ids of nodes that another program wrote."""
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
                f"node {node_id!r}: another program wrote it, and graphret does not"
                " change such nodes"
            )

    def _placed(
        self, rows: Sequence[list[Any]], required: bool = False
    ) -> list[list[Any]]:
        """Return rows with the element ids of their ends; refuse a missing end."""
        places = self.places(sorted({end for row in rows for end in row[:2]}))
        for source, target, *_ in rows if required else ():
            if source not in places or target not in places:
                missing = target if source in places else source
                raise InvalidInput(
                    f"edge {source!r} to {target!r}: there is no node {missing!r}"
                )
        return [[places.get(row[0]), places.get(row[1]), *row[2:]] for row in rows]

    def _without_same(self, relation: str) -> str:
        """Write the deletion of graphret's edges with the ends and rows of ``$rows``.

        The ends are element ids, see `_placed`.
        """
        ours = "" if self.layout.own else f" AND r.{ADDED_EDGE}"
        # the subquery makes Neo4j look both ends up first; otherwise it would scan all
        # edges of a hub for each row
        return (
            "UNWIND $rows AS row MATCH (a) WHERE elementId(a) = row[0] MATCH (b) WHERE"
            " elementId(b) = row[1] CALL { WITH a, b, row MATCH"
            f" (a)-[r:{quote(relation)}]->(b) WHERE coalesce(r.source_row, -1) = row[2]"
            f" AND coalesce(r.target_row, -1) = row[3]{ours} DELETE r }}"
        )


def _types(relations: list[str] | None) -> str:
    """Return relations as written in a pattern; without any, all match."""
    return f":{'|'.join(map(quote, relations))}" if relations else ""


def _edge_order(element: str, edge: Edge) -> tuple[Any, ...]:
    """Return the sort key of an edge: source, target, relation, rows, element id."""
    rows = (edge.properties.get(row) for row in ROW_KEYS)
    return (
        edge.source,
        edge.target,
        edge.relation,
        *(row if isinstance(row, int) else -1 for row in rows),
        element,
    )


def read_rows(graph: Graph, rows: Sequence[list[Any]]) -> list[tuple[Any, ...]]:
    """Return rows of the driver's values as nodes, edges and JSON values.

    The ends of edges are looked up by their element ids.
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

    def value(driver_value: Any) -> Any:
        if hasattr(driver_value, "relationships"):  # a path
            steps = zip(driver_value.relationships, driver_value.nodes[1:], strict=True)
            return [
                value(driver_value.nodes[0]),
                *(value(part) for step in steps for part in step),
            ]
        if hasattr(driver_value, "labels"):
            return node_from(
                layout,
                id_of(driver_value),
                list(driver_value.labels),
                dict(driver_value),
            )
        if hasattr(driver_value, "start_node"):
            return edge_from(
                id_of(driver_value.start_node),
                driver_value.type,
                id_of(driver_value.end_node),
                dict(driver_value),
            )
        if isinstance(driver_value, list):
            return [value(item) for item in driver_value]
        if isinstance(driver_value, dict):
            return {key: value(item) for key, item in driver_value.items()}
        return json_value(driver_value)

    return [tuple(map(value, row)) for row in rows]


def _nodes_in(value: Any) -> Iterable[Any]:
    if hasattr(value, "nodes"):  # a relationship has its two ends
        yield from value.nodes
    elif hasattr(value, "element_id"):
        yield value
    elif isinstance(value, list | dict):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _nodes_in(inner)
