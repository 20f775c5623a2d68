"""`PlanRetriever`: what a plan finds in the graph, ranked by its anchors and by what it
says (GRASP, section 3.1).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from graphret.contracts import implements, require_same_view
from graphret.cypher.execution import TIMEOUT
from graphret.errors import GraphretError, InvalidInput, RetrievalFailed
from graphret.linking import Linker
from graphret.planning.graph_plan import Anchor, GraphPlan, Target
from graphret.planning.matches import Bindings, PlanMatch
from graphret.planning.planner import Planned, Planner
from graphret.planning.queries import compile_plan, find_matches
from graphret.retriever import Call, Compute, Retriever, Steps, require_on_failure
from graphret.schema import GraphSchema
from graphret.search.index import TextIndex
from graphret.stores.base import GraphStore, as_cypher, require_cypher
from graphret.trace import Trace
from graphret.types import Edge, Evidence, Hit, Node, Retrieval, Signals
from graphret.where import Where

#: Hits for which the path of the plan is found, edge by edge, and the most edges that
#: are looked at for a hop of it.
_PATHS, _MOST_EDGES = 10, 10_000


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
        when first needed.
    documents
        An index of whole nodes, which relevance texts are held against: cosines of a
        `DenseIndex`, as in the paper, or any other's scores, as shares of the highest
        possible. Without one they are left out.
    limit
        Most nodes that a plan finds: the best.
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
            self._linker = Linker.of_store(self.store)
        return self._linker

    def _steps(self, query: str, k: int, where: Where | None) -> Steps:
        trace = Trace()
        with trace.stage("plan", planner=self.planner.name) as stage:
            try:
                planned: Planned = yield Call(
                    lambda: self.planner.plan(query), lambda: self.planner.aplan(query)
                )
            except Exception as error:
                planned = Planned(None, problem=f"{type(error).__name__}: {error}")
            stage.details.update(planned.details)
            if planned.plan is not None:
                stage.details.update(
                    plan=planned.plan.model_dump(by_alias=True, exclude_defaults=True)
                )
                stage.details.update(
                    reading=str(planned.plan), risk_level=planned.plan.risk_level
                )
        if planned.plan is None:
            return self._nothing(
                query,
                k,
                planned.problem or "the planner found no plan",
                trace,
                valid=False,
            )
        try:
            found: Retrieval = yield Compute(
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
        return found

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
        with trace.stage("link") as stage:
            bindings = {
                a.var: (linked or {}).get(a.var) or self.link(a) for a in plan.anchors
            }
            stage.details["bindings"] = {
                var: dict(found) for var, found in bindings.items()
            }
        with trace.stage("match") as stage:
            matches = self._matches(plan, bindings, self.limit)
            stage.details["candidates"] = len(matches)
            if matches and self._database is not None:
                stage.details["cypher"], _ = compile_plan(
                    plan,
                    self._database,
                    bindings,
                    schema=self._schema,
                    limit=self.limit,
                )
        matches = self._rescored(query, plan, matches, trace)
        read = matches[:k] if where is None else matches
        nodes = zip(self.store.get([match.id for match in read]), read, strict=True)
        found = [
            (node, match)
            for node, match in nodes
            if node and (where is None or where.matches(node))
        ]
        told = Evidence("path", retriever=self.name, properties={"plan": str(plan)})
        hits = [
            Hit(node, match.score, (replace(told, rank=rank),))
            for rank, (node, match) in enumerate(found[:k], 1)
        ]
        paths: dict[str, list[Evidence]] = {}
        with trace.stage("paths") as stage:
            try:
                paths = self.paths(plan, bindings, [hit.node for hit in hits[:_PATHS]])
            except (
                GraphretError
            ) as error:  # what was found is not lost for want of its reasons
                stage.details["error"] = f"{type(error).__name__}: {error}"
        hits = [
            replace(hit, evidence=(*paths.get(hit.id, ()), *hit.evidence))
            for hit in hits
        ]
        labels = tuple(dict.fromkeys(hit.node.label for hit in hits)) or None
        signals = Signals(
            len(matches),
            None,
            bool(plan.hops),
            labels,
            plan_valid=True,
            risk=plan.risk_level,
        )
        return Retrieval(query, k, hits, signals, trace)

    def link(self, anchor: Anchor) -> dict[str, float]:
        """Return the nodes that an anchor may stand for, with the likeness of each."""
        mode = anchor.match_mode if self.linker.documents is not None else "name"
        found = self.linker.link(
            anchor.text,
            mode=mode,
            labels=None if anchor.label is None else [anchor.label],
        )
        return {one.id: one.score for one in found}

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
        """Add the likeness of each node to the plan's relevance text; without one the
        question decides between equals.

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
        both = zip(matches, likeness, strict=True)
        added = [
            (replace(one, score=one.score + more * bool(text)), more)
            for one, more in both
        ]
        ranked = sorted(
            added, key=lambda one: (-one[0].score, -one[0].paths, -one[1], one[0].id)
        )
        return [match for match, _ in ranked]

    def _likeness(self, text: str, ids: Sequence[str]) -> list[float]:
        """How like nodes are to a text: cosines, and scores that are scaled to 1, as
        they are, others as shares.
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
        """Return for nodes that a plan found the edges by which the best of its anchors
        lead to them.

        From the target outwards, each hop is followed to the node of the highest anchor
        score that the rest of the plan allows.
        """
        chosen = {plan.target.var: {node.id: node.id for node in hits}}
        steps: list[
            tuple[str, Edge, str, str]
        ] = []  # of a hit: the edge, its end nearer to the hit, and the other
        waiting = [hop for hop in plan.hops if not hop.negated]
        while hop := next(
            (one for one in waiting if {one.source, one.to_var} & chosen.keys()), None
        ):
            waiting.remove(hop)
            near, far = hop.ends(chosen)
            if far in chosen:
                continue
            asked = plan.model_copy(update={"target": Target(var=far), "order": None})
            scores = {
                match.id: match.score
                for match in self._matches(asked, bindings, _MOST_EDGES)
            }
            best: dict[str, tuple[float, str, Edge]] = {}
            ends = dict.fromkeys(chosen[near].values())
            for edge in (
                self.store.neighbors([*ends], relations=hop.rel, limit=_MOST_EDGES)
                if ends
                else []
            ):
                for one, other in (
                    (edge.source, edge.target),
                    (edge.target, edge.source),
                ):
                    found = (-scores.get(other, 0.0), other, edge)
                    if (
                        one in ends
                        and other in scores
                        and found[:2] < best.get(one, (1.0, ""))[:2]
                    ):
                        best[one] = found
            chosen[far] = {
                hit: best[node][1] for hit, node in chosen[near].items() if node in best
            }
            steps += [
                (hit, best[node][2], node, best[node][1])
                for hit, node in chosen[near].items()
                if node in best
            ]
        ids = list(dict.fromkeys(end for _, _, *ends in steps for end in ends))
        nodes = dict(zip(ids, self.store.get(ids) if ids else [], strict=True))
        told: dict[str, list[Evidence]] = {node.id: [] for node in hits}
        for hit, edge, *places in reversed(steps):
            end, start = (nodes[place] for place in places)
            if end is not None and start is not None:
                told[hit].append(
                    replace(
                        Evidence.of_edge(edge, end, start),
                        kind="path",
                        retriever=self.name,
                    )
                )
        return told
