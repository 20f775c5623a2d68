"""GRASP in LangChain: a retriever, and its plan as a node for graphs of LangGraph."""

from __future__ import annotations

from typing import Any

from langchain_core.runnables import Runnable, RunnableLambda
from typing_extensions import TypedDict

from graphret.errors import InvalidInput
from graphret.grasp import Grasp, LLMPlanner
from graphret.planning import Planner
from graphret.retriever import Call
from graphret.stores.base import GraphStore
from langchain_graphret.chat import as_core_model
from langchain_graphret.retriever import CoreRetriever
from langchain_graphret.seeds import LangChainSeeds
from langchain_graphret.state import Json, NodeSteps, asked_of, node


class GraspRetriever(CoreRetriever):
    """Retrieve what a plan over the graph finds, fused with a search by text, and
    reranked (GRASP).

    Exactly `k` documents come back where that many qualify; evidence and traces are as
    `SageRetriever` has them. For a stage alone give ``SageRetriever(retriever=…)`` a
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
    k, where
        As `SageRetriever` has them.

    Examples
    --------
    >>> retriever = GraspRetriever(None, store, index, k=5)  # doctest: +SKIP
    >>> retriever.invoke("films that share a director with Heat")  # doctest: +SKIP
    """

    def __init__(
        self, planner: Any, store: GraphStore, index: Any, **options: Any
    ) -> None:
        index = LangChainSeeds(index) if isinstance(index, Runnable) else index
        super().__init__(Grasp, as_core_model(planner), store, index, **options)


class PlanOutput(TypedDict, total=False):
    """A plan (`graphret.planning.GraphPlan` as JSON) or `None`, what its anchors stand
    for, and why there is none.
    """

    plan: Json | None
    bindings: Json
    problem: str


def create_plan_node(
    planner: Any, store: GraphStore | None = None
) -> RunnableLambda[Any, PlanOutput]:
    """Return a node for a graph of LangGraph that turns the question of the state into
    a plan.

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
            raise InvalidInput("store: a model plans over a graph, and none is given")
        planner = LLMPlanner(as_core_model(planner), store)

    def plan(state: Any) -> NodeSteps:
        question, _, _ = asked_of(state, 1)
        planned = yield Call(
            lambda: planner.plan(question), lambda: planner.aplan(question)
        )
        made = (
            None
            if planned.plan is None
            else planned.plan.model_dump(mode="json", by_alias=True)
        )
        bindings = {var: dict(found) for var, found in planned.bindings.items()}
        return {"plan": made, "bindings": bindings, "problem": planned.problem}

    return node(plan)
