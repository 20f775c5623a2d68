"""GRASP in LangChain: a retriever, and its plan as a node for graphs of LangGraph."""

from __future__ import annotations

from typing import Any

from langchain_core.runnables import Runnable, RunnableLambda
from typing_extensions import TypedDict

from graphret.content import Content
from graphret.errors import InvalidInput
from graphret.grasp import Grasp, GraspSettings, LLMPlanner
from graphret.linking import Linker
from graphret.planning import Planner
from graphret.rerank import Reranker
from graphret.retriever import Call, Retriever
from graphret.search.index import TextIndex
from graphret.stores.base import GraphStore
from graphret.where import WhereLike
from langchain_graphret.chat import ChatModelLike, as_core_model
from langchain_graphret.retriever import CoreRetriever, Part
from langchain_graphret.seeds import LangChainRetriever, LangChainSeeds
from langchain_graphret.state import Json, NodeSteps, node, question_of


class GraspRetriever(CoreRetriever):
    """Retrieve by a plan over the graph, fused with text search, reranked (GRASP).

    Exactly `k` documents come back where that many qualify; evidence and traces are as
    `SageRetriever` has them. For a stage alone give `as_langchain_retriever` a
    `graphret.grasp.PlanRetriever`, a `graphret.Fuse` or a `graphret.rerank.Rerank`.

    Parameters
    ----------
    planner
        Who writes plans: a LangChain or graphret chat model, any graphret `Planner`, or
        `None`, which needs no model.
    store
        The graph.
    index
        The second opinion: a text index over its nodes, or a LangChain or graphret
        retriever.
    documents, linker, reranker, settings, on_failure
        As `graphret.grasp.Grasp` has them.
    fill, content, k, where, name, tags, metadata
        As `SageRetriever` has them.

    Examples
    --------
    >>> retriever = GraspRetriever(None, store, index, k=5)  # doctest: +SKIP
    >>> retriever.invoke("films that share a director with Heat")  # doctest: +SKIP
    """

    planner: Part[Planner | ChatModelLike | None]
    store: Part[GraphStore]
    index: Part[TextIndex | LangChainRetriever | Retriever]
    documents: Part[TextIndex | None] = None
    linker: Part[Linker | None] = None
    reranker: Part[Reranker | None] = None
    settings: Part[GraspSettings | None] = None
    on_failure: str = "fallback"

    def __init__(
        self,
        planner: Planner | ChatModelLike | None,
        store: GraphStore,
        index: TextIndex | LangChainRetriever | Retriever,
        *,
        documents: TextIndex | None = None,
        linker: Linker | None = None,
        reranker: Reranker | None = None,
        settings: GraspSettings | None = None,
        on_failure: str = "fallback",
        fill: bool = True,
        content: Content | None = None,
        k: int = 10,
        where: WhereLike = None,
        name: str | None = None,
        tags: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(  # type: ignore[call-arg]  # fields of this class
            planner=planner,
            store=store,
            index=index,
            documents=documents,
            linker=linker,
            reranker=reranker,
            settings=settings,
            on_failure=on_failure,
            fill=fill,
            content=content,
            k=k,
            where=where,
            name=name,
            tags=tags,
            metadata=metadata,
        )
        self._check()

    def _make(self) -> Retriever:
        index = self.index
        return Grasp(
            as_core_model(self.planner),
            self.store,
            LangChainSeeds(index) if isinstance(index, Runnable) else index,
            documents=self.documents,
            linker=self.linker,
            reranker=self.reranker,
            settings=self.settings,
            on_failure=self.on_failure,
        )


class PlanOutput(TypedDict, total=False):
    """A plan (`GraphPlan` as JSON) with its anchors' entities, or `None` and why."""

    plan: Json | None
    bindings: Json
    problem: str


def create_plan_node(
    planner: Planner | ChatModelLike, store: GraphStore | None = None
) -> RunnableLambda[Any, PlanOutput]:
    """Return a LangGraph node that turns the question of the state into a plan.

    It reads ``question`` and writes what `PlanOutput` has;
    ``graphret.grasp.PlanRetriever.run`` runs a plan.

    Parameters
    ----------
    planner
        A graphret `Planner`, or a LangChain or graphret chat model, which needs the
        `store`.
    """
    if not isinstance(planner, Planner):
        if store is None:
            raise InvalidInput(
                "store: expected a graph for the model's plans, got None"
            )
        planner = LLMPlanner(as_core_model(planner), store)

    def plan(state: Any) -> NodeSteps:
        question, _, _ = question_of(state, 1)
        planned = yield Call(
            lambda: planner.plan(question), lambda: planner.aplan(question)
        )
        plan_json = (
            None
            if planned.plan is None
            else planned.plan.model_dump(mode="json", by_alias=True)
        )
        bindings = {var: dict(entities) for var, entities in planned.bindings.items()}
        return {"plan": plan_json, "bindings": bindings, "problem": planned.problem}

    return node(plan)
