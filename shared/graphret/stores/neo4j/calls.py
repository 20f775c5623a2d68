"""The calls of a store as work to be run, whichever way: arguments checked, statements planned, answers read."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from graphret.errors import InvalidInput, QueryRefused, StoreError
from graphret.schema import GraphSchema
from graphret.stores.base import Rows, require_direction, require_ids, require_limit, require_names, require_seconds
from graphret.stores.changes import Written
from graphret.stores.incidence import Incidence
from graphret.stores.neo4j import amending, preparing, relationships, writes
from graphret.stores.neo4j import incidence as incident
from graphret.stores.neo4j.connection import Options
from graphret.stores.neo4j.following import Step, require_same_database
from graphret.stores.neo4j.layout import FOREIGN, LLAMA_INDEX, MARKER, OWN, Layout
from graphret.stores.neo4j.names import quote
from graphret.stores.neo4j.reads import Graph
from graphret.stores.neo4j.results import Reader
from graphret.stores.neo4j.sampling import Sampler
from graphret.stores.neo4j.statements import Plan, Statement, Work
from graphret.types import Edge, Node
from graphret.where import Where, WhereLike

_LLAMA = "__Node__"


def schema(graph: Graph) -> Work[GraphSchema]:
    """Read the schema."""
    return Work(lambda: Sampler(graph).schema())


def get(graph: Graph, ids: Sequence[str]) -> Work[list[Node | None]]:
    """Read nodes by id."""
    wanted = require_ids(ids)
    return Work(lambda: graph.get(wanted))


def neighbors(
    graph: Graph,
    ids: Sequence[str],
    relations: Collection[str] | None,
    labels: Collection[str] | None,
    where: WhereLike,
    direction: str,
    limit: int | None,
) -> Work[list[Edge]]:
    """Read the edges that touch nodes."""
    wanted, condition = require_ids(ids), Where.parse(where)
    types, borne = require_names("relations", relations), require_names("labels", labels)
    require_direction(direction)
    require_limit(limit)
    return Work(lambda: graph.neighbors(wanted, types, borne, condition, direction, limit))


def degree(graph: Graph, node: str) -> Work[int]:
    """Count the edges of a node."""
    (wanted,) = require_ids([node])
    return Work(lambda: incident.degree(graph, wanted))


def incidence(graph: Graph, node: str) -> Work[Incidence | None]:
    """Read the edges of a node in columns."""
    (wanted,) = require_ids([node])
    return Work(lambda: incident.incidence(graph, wanted))


def hubs(graph: Graph, above: int) -> Work[list[tuple[str, int]]]:
    """Find the nodes with very many edges."""
    return Work(lambda: incident.hubs(graph, above))


def count(graph: Graph) -> Work[tuple[int, int]]:
    """Count nodes and edges."""
    return Work(graph.count)


def upsert(options: Options, layout: Layout, nodes: Iterable[Node], edges: Iterable[Edge]) -> Iterator[Work[None]]:
    """Write nodes and edges, behind the constraint that finds graphret's by id, and what indexes make of them."""
    nodes, edges = list(nodes), list(edges)
    change = preparing.prepared(layout, nodes, edges, options.nested, options.writers)
    yield from _at_home(options)
    if layout.lossless and not options.constrained:  # a label of others is theirs to constrain
        yield Work(lambda: writes.constrained(layout), writes=True)
        options.constrained = True
    step = Step(Graph(layout), options.followers, nodes, edges)
    yield step.work(lambda: writes.upsert(layout, change))
    options.layout, options.settled = layout, True
    step.adopt()


def amend(options: Options, layout: Layout, changes: Iterable[tuple[Node, Node]]) -> Iterator[Work[None]]:
    """Write nodes in place of what was written of them before."""
    changes = list(changes)
    if layout.lossless:
        yield from upsert(options, layout, [after for _, after in changes], ())
        return
    amended = amending.prepared(layout, changes, options.nested, options.writers)
    yield from _at_home(options)
    step = Step(Graph(layout), options.followers)

    def plan() -> Plan[None]:
        if step.followers:
            step.nodes = yield from amending.as_they_will_be(step.graph, changes)
        yield from step.plan(amending.amend(layout, amended))

    written = Written.of(after.id for _, after in changes)
    yield Work(plan, writes=True, computes=bool(step.followers), written=written)
    step.adopt()


def delete(options: Options, graph: Graph, ids: Iterable[str]) -> Iterator[Work[None]]:
    """Take nodes away, from the indexes too."""
    preparing.require_writable(graph.layout)
    gone = require_ids(ids)
    step = Step(graph, options.followers, deletes=gone)
    yield from _at_home(options)
    yield step.work(lambda: writes.delete(graph.layout, gone))
    step.adopt()


def delete_edges(options: Options, graph: Graph, edges: Iterable[Edge]) -> Iterator[Work[None]]:
    """Take edges away, and tell the indexes of their ends."""
    gone = list(edges)
    keys = preparing.edge_keys(graph.layout, gone)
    step = Step(graph, options.followers, edges=gone)
    yield from _at_home(options)
    yield step.work(lambda: relationships.delete_edges(graph.layout, keys))
    step.adopt()


def _at_home(options: Options) -> Iterator[Work[None]]:
    """Find out whether indexes that were made with other stores lie in this database, once."""
    if unknown := list(options.strangers):
        yield Work(lambda: require_same_database(options.uri, unknown), computes=True)
        options.strangers[:] = [one for one in options.strangers if one not in unknown]


def query(
    graph: Graph, cypher: str, parameters: Mapping[str, Any] | None, timeout: float | None, max_rows: int | None
) -> Work[Rows]:
    """Run a query that is not the store's own."""
    cap = require_limit(max_rows)
    require_seconds("timeout", timeout, zero=True)
    if not isinstance(cypher, str):
        raise InvalidInput(f"cypher: a string is expected, not {type(cypher).__name__}")
    asked = Statement(cypher, dict(parameters or {}), None if cap is None else cap + 1)

    def plan() -> Plan[Rows]:
        reader = Reader(graph.layout)
        answer = yield asked
        columns, rows = answer.columns, answer[:cap]
        try:
            yield from graph.get(sorted((yield from reader.resolve(rows))))
            values = [tuple(map(reader.value, row)) for row in rows]
        except RecursionError:
            raise StoreError("what the query returns is nested too deeply to be read") from None
        return Rows(columns, values, len(answer) > len(rows))

    return Work(plan, timeout=timeout, rows=1000 if cap is None else min(1000, cap + 1))


def explain(cypher: str, timeout: float | None) -> Work[str | None]:
    """Ask what kind of query something is."""
    require_seconds("timeout", timeout, zero=True)

    def plan() -> Plan[str | None]:
        return (yield Statement(f"EXPLAIN {cypher}")).kind

    return Work(plan, timeout=timeout)


def detect() -> Work[tuple[Layout, bool]]:
    """Find out how a graph lies in a database, and whether there is one at all."""

    def plan() -> Plan[tuple[Layout, bool]]:
        counts = []
        for pattern in ("(n)", f"(n:{quote(MARKER)})", f"(n:{quote(_LLAMA)})"):
            ((n,),) = yield Statement(f"MATCH {pattern} RETURN count(n)")
            counts.append(n)
        everything, own, llama = counts
        if own or not everything:
            return OWN, bool(everything)
        if llama:
            return replace(LLAMA_INDEX, label=_LLAMA if llama == everything else None), True
        return FOREIGN, True

    return Work(plan)


def refuse_on_view(scope: Where | None, what: str) -> None:
    """Refuse what a view does not do."""
    if scope is None:
        return
    if what == "query":
        raise QueryRefused("a view answers no free Cypher: nothing would keep it to the nodes of the view")
    raise StoreError("a view of a store cannot be written to; write to the store itself")
