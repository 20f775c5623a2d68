"""`PlanRetriever`: what a plan finds in the graph, ranked (GRASP, section 3.1)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from graphret.contracts import implements, require_same_view
from graphret.cypher.execution import TIMEOUT
from graphret.errors import GraphretError, InvalidInput, RetrievalFailed
from graphret.linking import Linker
from graphret.planning.graph_plan import Anchor, GraphPlan, PlanHop, Target
from graphret.planning.matches import Bindings, PlanMatch, has_properties
from graphret.planning.planner import Planner, PlannerResult
from graphret.planning.queries import compile_plan, find_matches
from graphret.retriever import (
    Call,
    Compute,
    Retriever,
    Steps,
    require_on_failure,
    sure_of,
)
from graphret.rows import row_node
from graphret.schema import GraphSchema
from graphret.search.index import TextIndex
from graphret.stores.base import GraphStore, as_cypher, require_cypher
from graphret.trace import Trace
from graphret.types import Edge, Evidence, Hit, Node, Retrieval, Signals
from graphret.where import Where

#: Hits for which the path of the plan is found, edge by edge, and the most edges that
#: are looked at for a hop of it.
_PATHS, _MOST_EDGES = 10, 10_000
_MOST_COUNTED = 10_000  # nodes that a plan which counts is asked for


class PlanRetriever(Retriever):
    """Plan, link the plan's anchors, and run it: the first stage of GRASP.

    A hit's anchor score is the sum of the cosines of the nodes that the anchors stand
    for, that of the best path to it; where the plan has a relevance text, the likeness
    of the hit's own text to it is added. Beyond the paper, of equals that with more
    paths comes first, then that whose text is more like the question. Where there is no
    valid plan nothing is found, and `Signals.plan_valid` says so: `Fuse` then goes by
    the others, `Fallback` asks another.

    Parameters
    ----------
    planner
        Who writes the plan: `LLMPlanner`, or `graphret.planning.PathPlanner`, which
        needs no model.
    store
        The graph. No view of a database: a plan could read past it.
    linker
        Finds what anchors mean that the planner did not link; made of the store's nodes
        when first needed, by their embeddings too where `documents` has an encoder
        (section 3.1).
    documents
        An index of whole nodes, which relevance texts are held against: cosines of a
        `DenseIndex`, as in the paper, or any other's scores, as shares of the highest
        possible. Without one they are left out.
    limit
        Most nodes that a plan finds, unless it counts them: the best.
    timeout
        Seconds for the query of a plan, in a database.
    on_failure
        ``"fallback"`` finds nothing where planner or graph fail, and says so in the
        trace; ``"raise"`` raises `RetrievalFailed`.
    """

    name = "plan"

    def __init__(
        self,
        planner: Planner,
        store: GraphStore,
        *,
        linker: Linker | None = None,
        documents: TextIndex | None = None,
        limit: int = 1000,
        timeout: float = TIMEOUT,
        on_failure: str = "fallback",
    ) -> None:
        if not implements(planner, Planner):
            raise InvalidInput(
                "planner: expected an object with plan and aplan, got"
                f" {type(planner).__name__}"
            )
        self._database = as_cypher(store)
        if self._database is not None:
            require_cypher(store, whole=True)
        if documents is not None:
            require_same_view(store, documents)
        self.planner = planner
        self.store = store
        self.documents = documents
        self.limit = limit
        self.timeout = timeout
        self.on_failure = require_on_failure(on_failure)
        self._linker = linker
        self._schema: GraphSchema | None = None

    @property
    def linker(self) -> Linker:
        """What finds the nodes that anchors mean."""
        if self._linker is None:
            self._linker = _linker_of(self.store, self.documents)
        return self._linker

    @property
    def graph_store(self) -> GraphStore | None:
        return self.store

    def _steps(self, query: str, k: int, where: Where | None) -> Steps:
        trace = Trace()
        with trace.stage("plan", planner=self.planner.name) as stage:
            try:
                planned: PlannerResult = yield Call(
                    lambda: self.planner.plan(query), lambda: self.planner.aplan(query)
                )
            except Exception as error:
                planned = PlannerResult(
                    None, problem=f"{type(error).__name__}: {error}"
                )
            stage.details.update(planned.details)
            if planned.plan is not None:
                stage.details.update(
                    plan=planned.plan.model_dump(by_alias=True, exclude_defaults=True)
                )
                stage.details.update(
                    reading=str(planned.plan), risk_level=planned.plan.risk_level
                )
            if planned.doubts:
                stage.details["doubts"] = list(planned.doubts)
        if planned.plan is None:
            problem = planned.problem or "the planner found no plan"
            return _in_doubt(
                self._nothing(query, k, problem, trace, valid=False), planned
            )
        try:
            retrieval: Retrieval = yield Compute(
                partial(
                    self.run, query, k, planned.plan, planned.bindings, trace, where
                )
            )
        except InvalidInput as error:
            return self._nothing(query, k, str(error), trace, valid=False)
        except GraphretError as error:
            return self._nothing(
                query, k, f"{type(error).__name__}: {error}", trace, valid=True
            )
        return _in_doubt(retrieval, planned)

    def _nothing(
        self, query: str, k: int, problem: str, trace: Trace, *, valid: bool
    ) -> Retrieval:
        if self.on_failure == "raise":
            raise RetrievalFailed(f"{self.name} failed: {problem}")
        trace.note("fallback", failed=self.name, error=problem)
        return Retrieval(
            query, k, [], Signals(0, walked_edges=False, plan_valid=valid), trace
        )

    def run(
        self,
        query: str,
        k: int,
        plan: GraphPlan,
        linked: Bindings | None = None,
        trace: Trace | None = None,
        where: Where | None = None,
    ) -> Retrieval:
        """Return what a plan finds; the first `k` of those that satisfy `where`.

        Parameters
        ----------
        linked
            Of some anchors the nodes that they stand for, with the cosine of each; the
            others are linked.

        Raises
        ------
        InvalidInput
            When the plan cannot be run on the graph.
        QueryTimeout
            When it took longer than `timeout`.
        """
        trace = Trace() if trace is None else trace
        bindings = self._bindings(plan, linked or {}, trace)
        matches = self._traced_matches(plan, bindings, trace)
        matches = self._rescored(query, plan, matches, trace)
        hits = self._hits(plan, matches, k, where)
        hits = self._with_paths(plan, bindings, hits, trace)
        labels = tuple(dict.fromkeys(hit.node.label for hit in hits)) or None
        signals = Signals(
            len(matches),
            None,
            bool(plan.hops),
            labels,
            plan_valid=True,
            risk=plan.risk_level,
        )
        if not plan.count or not all(bindings.values()):
            return Retrieval(query, k, hits, signals, trace)
        rows: list[dict[str, Any]] = [{"count": self._counted(matches, where)}]
        hits = [self._count_hit(plan, rows[0], hits), *hits][:k]
        return Retrieval(query, k, hits, signals, trace, rows)

    def _counted(self, matches: Sequence[PlanMatch], where: Where | None) -> int | str:
        """Return how many matches satisfy `where`, or at least how many."""
        n = len(matches)
        if where is not None:
            nodes = self.store.get([match.id for match in matches])
            n = sum(node is not None and where.matches(node) for node in nodes)
        return n if len(matches) < _MOST_COUNTED else f"at least {n}"

    def _count_hit(
        self, plan: GraphPlan, row: Mapping[str, Any], counted: Sequence[Hit]
    ) -> Hit:
        """Return the number of a plan's targets as a hit, with the best score."""
        plan_text = {"plan": str(plan)}
        reason = Evidence("path", retriever=self.name, rank=1, properties=plan_text)
        score = max((hit.score for hit in counted), default=1.0)
        return Hit(row_node(row, str(plan), 1), score, (reason,))

    def _bindings(
        self, plan: GraphPlan, linked: Bindings, trace: Trace
    ) -> dict[str, Mapping[str, float]]:
        """Return the nodes of each anchor: those linked before, or those found now."""
        with trace.stage("link") as stage:
            bindings = {
                anchor.var: linked.get(anchor.var) or self.link(anchor)
                for anchor in plan.anchors
            }
            stage.details["bindings"] = {
                var: dict(nodes) for var, nodes in bindings.items()
            }
        return bindings

    def _traced_matches(
        self, plan: GraphPlan, bindings: Bindings, trace: Trace
    ) -> list[PlanMatch]:
        """Find what matches the plan; the trace has the query where there is one."""
        with trace.stage("match") as stage:
            most = _MOST_COUNTED if plan.count else self.limit
            matches = self._matches(plan, bindings, most)
            stage.details["candidates"] = len(matches)
            database = None if plan.reads_relations else self._database
            if matches and database is not None:
                stage.details["cypher"], _ = compile_plan(
                    plan,
                    database,
                    bindings,
                    schema=self._schema,
                    limit=most,
                )
        return matches

    def _hits(
        self,
        plan: GraphPlan,
        matches: Sequence[PlanMatch],
        k: int,
        where: Where | None,
    ) -> list[Hit]:
        """Read the nodes of the first `k` matches that satisfy `where`."""
        if where is None:
            matches = matches[:k]
        nodes = self.store.get([match.id for match in matches])
        qualified = [
            (node, match)
            for node, match in zip(nodes, matches, strict=True)
            if node and (where is None or where.matches(node))
        ]
        plan_text = {"plan": str(plan)}
        reason = Evidence("path", retriever=self.name, properties=plan_text)
        # without an anchor all scores are 0, and an order is none of scores
        by_rank = plan.order is not None or not plan.anchors
        n = len(qualified)
        return [
            Hit(
                node,
                1 - (rank - 1) / n if by_rank else match.score,
                (replace(reason, rank=rank),),
            )
            for rank, (node, match) in enumerate(qualified[:k], 1)
        ]

    def _with_paths(
        self, plan: GraphPlan, bindings: Bindings, hits: Sequence[Hit], trace: Trace
    ) -> list[Hit]:
        """Return the hits, the first of them with the edges that lead to them."""
        paths: dict[str, list[Evidence]] = {}
        with trace.stage("paths") as stage:
            try:
                paths = self.paths(plan, bindings, [hit.node for hit in hits[:_PATHS]])
            except GraphretError as error:
                # what was found is not lost for want of its reasons
                stage.details["error"] = f"{type(error).__name__}: {error}"
        return [
            replace(hit, evidence=(*paths.get(hit.id, ()), *hit.evidence))
            for hit in hits
        ]

    def link(self, anchor: Anchor) -> dict[str, float]:
        """Return the nodes that an anchor may stand for, with the likeness of each."""
        mode = anchor.match_mode if self.linker.documents is not None else "name"
        links = self.linker.link(
            anchor.text,
            mode=mode,
            labels=None if anchor.label is None else [anchor.label],
        )
        return {link.id: link.score for link in links}

    def _matches(
        self, plan: GraphPlan, bindings: Bindings, limit: int
    ) -> list[PlanMatch]:
        if self._schema is None and self._database is not None:
            self._schema = self._database.schema()
        return find_matches(
            plan,
            self.store,
            bindings,
            schema=self._schema,
            limit=limit,
            timeout=self.timeout,
        )

    def _rescored(
        self, query: str, plan: GraphPlan, matches: list[PlanMatch], trace: Trace
    ) -> list[PlanMatch]:
        """Add the likeness of nodes to the plan's relevance text to their scores.

        Without one, the question decides between equal scores.

        A plan with an order of its own keeps it.
        """
        if self.documents is None or not matches or plan.order is not None:
            return matches
        text = plan.target.relevance_text.strip()
        with trace.stage("rescore", text=text or query) as stage:
            try:
                likeness = self._likeness(
                    text or query, [match.id for match in matches]
                )
            except GraphretError as error:
                stage.details["error"] = f"{type(error).__name__}: {error}"
                return matches
        weight = 1.0 if text else 0.0
        rescored = [
            (replace(match, score=match.score + weight * like), like)
            for match, like in zip(matches, likeness, strict=True)
        ]
        rescored.sort(
            key=lambda pair: (-pair[0].score, -pair[0].paths, -pair[1], pair[0].id)
        )
        return [match for match, _ in rescored]

    def _likeness(self, text: str, ids: Sequence[str]) -> list[float]:
        """How like nodes are to a text: cosines and scores up to 1 as they are.

        Other scores become shares of the highest.
        """
        assert self.documents is not None
        scores = np.asarray(self.documents.score(text, ids), dtype=np.float64)
        ceiling = self.documents.ceiling(text)
        most = scores.max() if ceiling is None else ceiling
        return [float(score) for score in scores / max(most, 1.0)]

    # -- why

    def paths(
        self, plan: GraphPlan, bindings: Bindings, hits: Sequence[Node]
    ) -> dict[str, list[Evidence]]:
        """Return the edges by which the best anchors of a plan lead to what it found.

        From the target outwards, each hop is followed to the node of the highest anchor
        score that the rest of the plan allows.
        """
        # for each variable reached the node that each hit's path goes through
        chosen = {plan.target.var: {node.id: node.id for node in hits}}
        steps: list[_Step] = []
        waiting = [hop for hop in plan.hops if not hop.negated]
        while hop := _next_hop(waiting, chosen):
            waiting.remove(hop)
            near, far = hop.ends(chosen)
            if far in chosen:
                continue
            scores = self._scores_of(plan, far, bindings)
            near_nodes = dict.fromkeys(chosen[near].values())
            best = self._best_edges(near_nodes, hop, scores)
            hop_steps = [
                _Step(hit, node, *best[node])
                for hit, node in chosen[near].items()
                if node in best
            ]
            chosen[far] = {step.hit: step.far for step in hop_steps}
            steps += hop_steps
        return self._evidence(steps, hits)

    def _scores_of(
        self, plan: GraphPlan, var: str, bindings: Bindings
    ) -> dict[str, float]:
        """Return the anchor scores of the nodes that a variable may stand for."""
        target = Target(var=var)
        asking_for_var = plan.model_copy(update={"target": target, "order": None})
        matches = self._matches(asking_for_var, bindings, _MOST_EDGES)
        return {match.id: match.score for match in matches}

    def _best_edges(
        self,
        nodes: Collection[str],
        hop: PlanHop,
        scores: Mapping[str, float],
    ) -> dict[str, tuple[str, Edge]]:
        """Return for each end the edge to the neighbour of the highest score.

        Of neighbours with equal scores the one with the smallest id; none without one.
        """
        if not nodes:
            return {}
        best: dict[str, tuple[str, Edge]] = {}
        edges = self.store.neighbors(list(nodes), relations=hop.rel, limit=_MOST_EDGES)
        for edge in edges:
            if not has_properties({**edge.properties, "weight": edge.weight}, hop):
                continue
            for end, other in (
                (edge.source, edge.target),
                (edge.target, edge.source),
            ):
                if end not in nodes or other not in scores:
                    continue
                rank = -scores[other], other
                if end not in best or rank < (-scores[best[end][0]], best[end][0]):
                    best[end] = other, edge
        return best

    def _evidence(
        self, steps: Sequence[_Step], hits: Sequence[Node]
    ) -> dict[str, list[Evidence]]:
        """Return the steps to each hit as evidence, from the anchor on."""
        ids = list(dict.fromkeys(id for step in steps for id in (step.near, step.far)))
        nodes = dict(zip(ids, self.store.get(ids) if ids else [], strict=True))
        evidence: dict[str, list[Evidence]] = {node.id: [] for node in hits}
        for step in reversed(steps):
            near, far = nodes[step.near], nodes[step.far]
            if near is not None and far is not None:
                reason = Evidence.of_edge(step.edge, near, far)
                evidence[step.hit].append(
                    replace(reason, kind="path", retriever=self.name)
                )
        return evidence


def _linker_of(store: GraphStore, documents: TextIndex | None) -> Linker:
    """Return a linker of the store's nodes by name, and by description if possible.

    Descriptions need the encoder of an index of whole nodes.
    """
    local = None if documents is None else documents.local_index()
    dense = None if local is None else local.dense_part()
    if dense is None or dense.encoder is None:
        return Linker.of_store(store)
    n_nodes, _ = store.count()
    if len(dense.table) == n_nodes:
        return Linker.of_index(dense)
    return Linker.of_store(store, encoder=dense.encoder)  # it has not all the nodes


def _in_doubt(retrieval: Retrieval, planned: PlannerResult) -> Retrieval:
    """Return a retrieval with its confidence and its doubts.

    It is in doubt where the planner says so, or nothing satisfies the conditions.
    """
    doubts = planned.doubts
    if planned.plan is not None and planned.plan.where and not retrieval.hits:
        doubts += ("no node satisfies the conditions of the plan",)
        retrieval.trace.note("doubt", reason=doubts[-1])
    confidence = sure_of(planned.confidence, doubts)
    signals = replace(retrieval.signals, confidence=confidence, doubts=doubts or None)
    return replace(retrieval, signals=signals)


class _Step(NamedTuple):
    """An edge of the path to a hit: its end nearer to the hit, and the other."""

    hit: str
    near: str
    far: str
    edge: Edge


def _next_hop(waiting: Sequence[PlanHop], reached: Collection[str]) -> PlanHop | None:
    """Return the first hop that begins or ends at a variable that was reached."""
    for hop in waiting:
        if hop.source in reached or hop.to_var in reached:
            return hop
    return None
