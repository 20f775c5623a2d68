"""Symbolic filtering, then search, then a model's order (Boer et al. 2024 and 2025).

4StepFocus (SAGE, appendix C.1) and FocusedRetriever (appendix C.2).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from graphret.baselines.base import Baseline, Part
from graphret.graphraft import Reasoner
from graphret.grasp import LLMPlanner
from graphret.llm import ChatModel
from graphret.planning import Anchor, GraphPlan, PlanHop
from graphret.planning.matches import direction_from
from graphret.retriever import Call, Compute
from graphret.search.index import TextIndex
from graphret.stores.base import GraphStore
from graphret.trace import Trace
from graphret.types import Evidence, Hit
from graphret.where import Where

#: Nodes that may stand for a variable, `None` for any that has its label.
_Candidates = dict[str, set[str] | None]

#: Candidates that the model orders, and the nodes of an anchor: the first number of
#: them, and the last.
_RERANKED, _FIRST, _MOST = 20, 1, 64
#: Nodes of an anchor where they do not grow.
_ANCHORED = 10


class FourStepFocus(Baseline):
    """Filter candidates by triplets, score them, and let a model order (4StepFocus).

    What a search finds is added before the model orders the best.

    The triplets and the target are those of a plan (`LLMPlanner`), whose anchors are
    found by search.
    """

    name = "4stepfocus"

    def __init__(
        self,
        model: ChatModel,
        store: GraphStore,
        index: TextIndex,
        *,
        on_failure: str = "fallback",
    ) -> None:
        super().__init__(model, store, index, on_failure=on_failure)
        self.planner = LLMPlanner(model, store)
        self.reasoner = Reasoner(model)

    def _run(
        self, query: str, k: int, where: Where | None, trace: Trace
    ) -> Part[list[Hit]]:
        with trace.stage("triplets", model=self.model.name) as stage:
            planned = yield Call(
                lambda: self.planner.plan(query), lambda: self.planner.aplan(query)
            )
            stage.details |= planned.details
        ranked: list[str] = []
        if planned.plan is not None:
            with trace.stage("filter") as stage:
                ranked = yield Compute(lambda: self._filtered(query, planned.plan, k))
                stage.details["candidates"] = len(ranked)
        else:
            trace.note("fallback", failed="triplets", error=planned.problem)
        searched = yield from self._searched(query, k, None, trace)
        ids = list(dict.fromkeys([*ranked, *(hit.id for hit in searched)]))
        hits = yield from self._hits(ids)
        return (yield from self._ordered(query, hits, trace))

    def _filtered(self, query: str, plan: GraphPlan, k: int) -> list[str]:
        """Return the candidates that the triplets leave, by text (steps 2 and 3)."""
        return self._best(query, self._grounded(plan, _ANCHORED), max(k, _RERANKED))

    def _grounded(self, plan: GraphPlan, most: int) -> list[str]:
        """Return the possible targets once every triplet holds.

        Each anchor stands for at most so many nodes.
        """
        candidates: _Candidates = {
            anchor.var: self._matches_of(anchor, most) for anchor in plan.anchors
        }
        hops = [hop for hop in plan.hops if not hop.negated]
        changed = True
        while changed:  # every pass takes nodes away, or binds a variable
            changed = False
            for hop in hops:
                for bound, free in ((hop.source, hop.to_var), (hop.to_var, hop.source)):
                    reached = self._reached(hop, candidates.get(bound), bound)
                    if reached is None:
                        continue
                    before = candidates.get(free)
                    after = reached if before is None else before & reached
                    if after != before:
                        candidates[free], changed = after, True
        targets = sorted(candidates.get(plan.target.var) or ())
        return self._labelled(targets, plan.target.labels)

    def _matches_of(self, anchor: Anchor, most: int) -> set[str]:
        """Return the nodes that an anchor may mean, those that a search finds."""
        labels = None if anchor.label is None else [anchor.label]
        hits = self.index.search(anchor.text, most, labels=labels)
        scored = zip(hits.ids, hits.scores.tolist(), strict=True)
        return {node_id for node_id, score in scored if score > 0}

    def _reached(
        self, hop: PlanHop, bound: Collection[str] | None, variable: str
    ) -> set[str] | None:
        """Return the nodes at the other end of a hop; `None` where any node may be."""
        if bound is None:
            return None
        edges = self.store.neighbors(
            sorted(bound),
            relations=hop.rel,
            direction=direction_from(hop, variable),
        )
        neighbors = {
            other
            for edge in edges
            for near, other in (
                (edge.source, edge.target),
                (edge.target, edge.source),
            )
            if near in bound
        }
        label = hop.to_label if variable == hop.source else None
        return set(self._labelled(sorted(neighbors), [label or ""]))

    def _labelled(self, ids: Sequence[str], labels: Sequence[str]) -> list[str]:
        """Return the nodes with one of some labels; all nodes if no label is given."""
        allowed = {label for label in labels if label}
        if not allowed or not ids:
            return list(ids)
        return [
            node.id
            for node in self.store.get(ids)
            if node is not None and allowed.intersection(node.labels)
        ]

    def _ordered(self, query: str, hits: list[Hit], trace: Trace) -> Part[list[Hit]]:
        """Have the model order the best hits (the last step)."""
        if not hits:
            return hits
        with trace.stage("rerank", model=self.model.name) as stage:
            reply = yield self.reasoner.ask(query, hits[:_RERANKED])
            stage.details["tokens"] = reply.usage.total_tokens
        numbers = dict.fromkeys(n for n in reply.value.numbers if 0 < n <= len(hits))
        chosen = [hits[n - 1] for n in numbers]
        chosen_ids = {hit.id for hit in chosen}
        ordered = chosen + [hit for hit in hits if hit.id not in chosen_ids]
        return [
            replace(
                hit,
                score=1 - place / len(ordered),
                evidence=(
                    *hit.evidence,
                    Evidence("rank", rank=place + 1, retriever=self.model.name),
                ),
            )
            for place, hit in enumerate(ordered)
        ]


class FocusedRetriever(FourStepFocus):
    """Do as `FourStepFocus` with ever more nodes for each anchor (FocusedRetriever).

    It stops once there are enough candidates.

    Its authors have the triplets written as Cypher; here they are the same triplets of
    a plan, so that nothing that a model wrote runs.
    """

    name = "focused"

    def _filtered(self, query: str, plan: GraphPlan, k: int) -> list[str]:
        node_ids: list[str] = []
        most = _FIRST
        while len(node_ids) < k and most <= _MOST:
            node_ids = self._grounded(plan, most) or node_ids
            most *= 2
        return self._best(query, node_ids, max(k, _RERANKED))
