"""The edges of one node in columns, of which a hub's are read many times as fast as one by one."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from graphret.stores.incidence import Incidence, Part, assembled
from graphret.stores.neo4j.layout import LABELS
from graphret.stores.neo4j.reads import WEIGHT, Graph
from graphret.stores.neo4j.statements import Plan, Statement
from graphret.stores.neo4j.stored_ids import shared


def degree(graph: Graph, node: str) -> Plan[int]:
    """Count the edges of a node, whatever the neighbours: the database has them counted where there are many."""
    match, parameters = _anchor(graph, node)
    text = f"{match} RETURN coalesce(sum(COUNT {{ (a)--() }}), 0), count(a)"
    ((edges, nodes),) = yield Statement(text, parameters)
    yield from graph.refuse_shared([node] if nodes > 1 else [])
    return int(edges)


def hubs(graph: Graph, above: int) -> Plan[list[tuple[str, int]]]:
    """Find the nodes with more edges than `above`, the most first; no edge is read for it."""
    clause, parameters = graph.conditions("n", "COUNT { (n)--() } > $above")
    text = f"MATCH {graph.layout.node('n')}{clause} RETURN {graph.layout.id_of('n')}, COUNT {{ (n)--() }}"
    rows = yield Statement(text, parameters | {"above": above})
    if graph.layout.may_share_ids:
        counts = Counter(node_id for node_id, _ in rows)
        yield from graph.refuse_shared(node_id for node_id, nodes in counts.items() if nodes > 1)
    return sorted(((node, edges) for node, edges in rows), key=lambda one: (-one[1], one[0]))


def incidence(graph: Graph, node: str) -> Plan[Incidence | None]:
    """Read the edges of a node, a row for each relation, direction and set of labels: rows are what takes time."""
    match, parameters = _anchor(graph, node)
    others, more = graph.conditions("b")
    layout = graph.layout
    ordered = f"b.{LABELS}" if layout.lossless else "null"
    weight = "coalesce(r.weight, 1.0)" if layout.own else WEIGHT
    place = "elementId(b)" if layout.may_share_ids else "null"
    if layout.may_share_ids:
        yield from degree(graph, node)
    parts: list[Part] = []
    places: list[tuple[str, str]] = []
    for outgoing, (left, right) in ((True, ("-", "->")), (False, ("<-", "-"))):
        no_loop = "" if outgoing else f"{' AND' if others else ' WHERE'} a <> b"  # a loop has been read
        rows = yield Statement(
            f"{match} MATCH (a){left}[r]{right}{layout.node('b')}{others}{no_loop} "
            f"RETURN type(r), labels(b), {ordered}, collect({layout.id_of('b')}), collect({weight}), "
            f"collect({place})",
            parameters | more,
        )
        for *row, elements in rows:
            parts.append(_part(graph, outgoing, *row))
            places += zip(row[3], elements, strict=False)
    yield from graph.refuse_shared(shared(places))
    return assembled(parts)


def _anchor(graph: Graph, node: str) -> tuple[str, dict[str, Any]]:
    keys: dict[str, Any] = {}
    clause, more = graph.conditions("a", graph.layout.among("a", [node], keys))
    return f"MATCH {graph.layout.node('a')}{clause}", keys | more


def _part(
    graph: Graph, outgoing: bool, relation: str, labels: list[str], ordered: Any, ids: list[str], weights: list[float]
) -> Part:
    weight = np.asarray(weights, dtype=np.float64)
    borne = graph.layout.labels(labels, ordered)
    codes = np.zeros(len(ids), dtype=np.int32)
    return Part(relation, outgoing, ids, codes, [borne], weight)
