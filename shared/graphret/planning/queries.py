"""The matches of a plan in any store, and a plan as one query (GRASP, section 3.1)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from graphret.planning.graph_plan import GraphPlan, Order, PlanHop
from graphret.planning.matches import (
    DECIMALS,
    Bindings,
    PlanMatch,
    match_in_memory,
    measured,
    ordered,
)
from graphret.planning.subgraph import fetch_plan_graph
from graphret.schema import GraphSchema
from graphret.stores.base import CypherStore, GraphStore, as_cypher
from graphret.where import Where

#: Rows that are read where the plan has an order of its own, which is made of the
#: nodes.
_MOST_ORDERED = 10_000


def find_matches(
    plan: GraphPlan,
    store: GraphStore,
    bindings: Bindings,
    *,
    schema: GraphSchema | None = None,
    limit: int = 1000,
    timeout: float | None = None,
) -> list[PlanMatch]:
    """Return what a plan finds in a graph.

    It is found by one query where the store answers Cypher, and else by set joins: over
    the graph in this process, or over the part of it that the plan may match. A plan
    that asks for properties of relations is found by joins everywhere.

    Parameters
    ----------
    plan
        A plan that is valid on the graph: see `GraphPlan.checked`.
    store
        Any `GraphStore`; no view of a database.
    bindings
        Of every anchor the nodes that it may mean, with the cosine of each; an anchor
        of none matches nothing.
    schema
        That of the store, which is else read from a database each time.
    limit
        Most matches that are returned: the best.
    timeout
        Seconds after which a database gives up.

    Raises
    ------
    QueryTimeout
        When it took longer.
    """
    database = as_cypher(store)
    if database is None or plan.reads_relations:
        graph = store.local_graph()
        if graph is None:
            graph = fetch_plan_graph(plan, store, bindings)
        return match_in_memory(plan, graph, bindings, limit)
    if any(
        not bindings.get(anchor.var)
        for anchor in plan.anchors
        if anchor.var in plan.joined()
    ):
        return []
    query, parameters = compile_plan(
        plan, database, bindings, schema=schema, limit=limit
    )
    rows = database.query(query, parameters, timeout=timeout).rows
    if plan.order is None:
        matches = [
            PlanMatch(row[0], round(row[1], DECIMALS), int(row[2])) for row in rows
        ]
        return sorted(matches, key=_best_first)
    return _ordered(plan.order, rows, store)[:limit]


def _best_first(match: PlanMatch) -> tuple[float, int, str]:
    return -match.score, -match.paths, match.id


def _ordered(
    order: Order, rows: Sequence[Sequence[Any]], store: GraphStore
) -> list[PlanMatch]:
    """Return the matches in the rows of an ordered plan.

    A row has the target's id, score and paths, and what it is ordered by: an id or a
    number.
    """
    scores: dict[str, float] = {}
    paths: Counter[str] = Counter()
    for target, score, n, _ in rows:
        scores[target] = max(score, scores.get(target, score))
        paths[target] += int(n)
    matches = [
        PlanMatch(target, round(score, DECIMALS), paths[target])
        for target, score in scores.items()
    ]
    if order.by:
        pairs = [(row[0], row[3]) for row in rows]
        measured_ids = list(dict.fromkeys(end for _, end in pairs))
        nodes = {
            node.id: node for node in store.get(ids=measured_ids) if node is not None
        }
        measures = measured(order, pairs, nodes)
    else:
        measures = {row[0]: int(row[3]) for row in rows}
    return ordered(order, sorted(matches, key=_best_first), measures)


def compile_plan(
    plan: GraphPlan,
    store: CypherStore,
    bindings: Bindings,
    *,
    schema: GraphSchema | None = None,
    limit: int = 1000,
) -> tuple[str, dict[str, Any]]:
    """Return a plan as one query in a store's dialect, and its parameters.

    Nothing of the plan is in its text but names of the schema, quoted. Every hop is
    matched in a clause of its own, so that two variables may stand for one node. Where
    the plan has an order of its own, more than `limit` rows are read and then ordered.
    """
    most = limit if plan.order is None else max(limit, _MOST_ORDERED)
    return _Compiler(plan, store, bindings, schema or store.schema()).query(most)


class _Compiler:
    def __init__(
        self,
        plan: GraphPlan,
        store: CypherStore,
        bindings: Bindings,
        schema: GraphSchema,
    ) -> None:
        self.plan, self.store, self.bindings, self.schema = (
            plan,
            store,
            bindings,
            schema,
        )
        self.names = {
            var: f"v{chr(97 + place)}" for place, var in enumerate(plan.labels_of())
        }
        self.anchored = {anchor.var for anchor in plan.anchors}
        self.parameters: dict[str, Any] = {}
        self.clauses = ["WITH 0.0 AS s, 1.0 AS n"]
        self.matched: list[str] = []

    def query(self, limit: int) -> tuple[str, dict[str, Any]]:
        """Write it, a clause for each step."""
        target = self.plan.target.var
        begin, steps = self.plan.steps(
            {var: len(self.bindings.get(var, ())) for var in self.anchored}
        )
        self._match(begin, None)
        for hop, _, far, needed in steps:
            (self._without if hop.negated else self._match)(far, hop)
            self.matched = [var for var in self.matched if var in needed]
            columns = [
                *(self.names[var] for var in self.matched),
                "max(s) AS s, sum(n) AS n",
            ]
            self.clauses.append(f"WITH {', '.join(columns)}")
        node_id = self.store.id_in_cypher(self.names[target])
        returned = f"RETURN {node_id} AS id, max(s) AS score, sum(n) AS paths"
        first = ""
        if (order := self.plan.order) is not None:
            other = self.store.id_in_cypher(self.names[order.of or target])
            measure = other if order.by else f"count(DISTINCT {other})"
            returned += f", {measure} AS measure"
            if not order.by:
                first = f"measure {'DESC' if order.descending else 'ASC'}, "
        self.clauses.append(
            f"{returned} ORDER BY {first}score DESC, paths DESC, id LIMIT {limit:d}"
        )
        return "\n".join(self.clauses), self.parameters

    def _match(self, var: str, hop: PlanHop | None) -> None:
        """Match a variable, as the end of a hop or by itself.

        An anchor is matched with its bindings, whose cosines are added.
        """
        pattern, conditions = self._node(var)
        if hop is not None:
            pattern = self._pattern(hop, var, pattern)
        name, score = self.names[var], "s"
        if var not in self.matched:
            self.matched.append(var)
            if var in self.anchored:
                bound = self.bindings[var].items()
                self.parameters[f"{name}_bound"] = [
                    {"id": node_id, "score": float(cosine)} for node_id, cosine in bound
                ]
                self.clauses.append(f"UNWIND ${name}_bound AS {name}_b")
                conditions.insert(0, f"{self.store.id_in_cypher(name)} = {name}_b.id")
                score = f"s + {name}_b.score"
        self.clauses.append(f"MATCH {pattern}{_where(conditions)}")
        columns = ", ".join(
            self.names[matched] for matched in self.matched
        )  # edges that differ in their parts alone are one
        self.clauses.append(f"WITH DISTINCT {columns}, {score} AS s, n")

    def _without(self, var: str, hop: PlanHop) -> None:
        """Keep what a hop to a variable leads nowhere from."""
        pattern, conditions = self._node(var)
        if var not in self.matched and var in self.anchored:
            conditions.insert(0, self._among_bound(var))
        patterns = [self._pattern(hop, var, pattern)]
        for further, _, far in self.plan.going_on(var):
            pattern, more = self._node(far)
            if far in self.anchored:
                more.insert(0, self._among_bound(far))
            patterns.append(self._pattern(further, far, pattern))
            conditions += more
        # Within one MATCH Neo4j goes along no edge twice, such as there and back.
        # Ladybug does, and reads only one MATCH here.
        apart = ", " if self.store.dialect == "ladybug" else " MATCH "
        inside = apart.join(patterns) + _where(conditions)
        columns = ", ".join(self.names[matched] for matched in self.matched)
        self.clauses.append(
            f"WITH {columns}, s, n WHERE NOT EXISTS {{ MATCH {inside} }}"
        )

    def _among_bound(self, var: str) -> str:
        """Write that an anchor's variable is one of its nodes."""
        name = self.names[var]
        self.parameters[f"{name}_ids"] = list(self.bindings.get(var, {}))
        return f"{self.store.id_in_cypher(name)} IN ${name}_ids"

    def _pattern(self, hop: PlanHop, far: str, node: str) -> str:
        """The pattern of a hop from a matched variable to another's node."""
        near = hop.source if far == hop.to_var else hop.to_var
        cypher_names = self.schema.cypher_relations
        types = "|".join(
            f"`{cypher_names.get(name, name).replace('`', '``')}`" for name in hop.rel
        )
        out, into = (hop.direction == "out", hop.direction == "in")
        if near != hop.source:
            out, into = into, out
        left, right = "<" if into else "", ">" if out else ""
        return f"({self.names[near]}){left}-[:{types}]-{right}{node}"

    def _node(self, var: str) -> tuple[str, list[str]]:
        """The pattern of a variable, and what its nodes satisfy, which is said once."""
        if var in self.matched:
            return f"({self.names[var]})", []
        where = Where.parse(self.plan.where.get(var))
        pattern, condition, parameters = self.store.node_in_cypher(
            self.names[var], self.plan.labels_of()[var] or None, where
        )
        self.parameters |= parameters
        conditions = [condition] if condition != "true" else []
        if self.plan.apart and self.anchored and var not in self.anchored:
            self.parameters["anchors"] = sorted(
                {node_id for bound in self.bindings.values() for node_id in bound}
            )
            conditions.append(
                f"NOT {self.store.id_in_cypher(self.names[var])} IN $anchors"
            )
        return pattern, conditions


def _where(conditions: list[str]) -> str:
    return f" WHERE {' AND '.join(conditions)}" if conditions else ""
