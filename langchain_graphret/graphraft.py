"""GraphRAFT in LangChain and LangGraph: a retriever, and a graph of nodes that do its
steps one by one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import RunnableLambda
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from pydantic import TypeAdapter

from graphret.graphraft import Candidate, Entity, GraphRAFT
from graphret.search.index import require_k
from graphret.stores.base import GraphStore
from graphret.trace import Trace
from graphret.types import Hit
from langchain_graphret.chat import as_core_model
from langchain_graphret.documents import plain
from langchain_graphret.retriever import CoreRetriever
from langchain_graphret.state import (
    AnswerOutput,
    Asked,
    Json,
    NodeSteps,
    QuestionInput,
    asked_of,
    first_asked,
    node,
)

_ENTITIES = TypeAdapter(list[Entity])
_CANDIDATES = TypeAdapter(list[Candidate])
_HITS = TypeAdapter(list[Hit])


def _core(store: GraphStore, index: Any, **options: Any) -> GraphRAFT:
    models = {
        name: as_core_model(one)
        for name, one in options.items()
        if isinstance(one, BaseChatModel)
    }
    return GraphRAFT(store, index, **options | models)


class GraphRAFTRetriever(CoreRetriever):
    """Retrieve what the best of the queries find that exist around a question's
    entities (GraphRAFT).

    Exactly `k` documents come back where that many qualify; evidence and traces are as
    `SageRetriever` has them.

    Parameters
    ----------
    store
        The graph.
    index
        What fills free places: a text index over its nodes.
    writer, planner, entities, reasoner, settings, on_failure
        As `graphret.graphraft.GraphRAFT` has them; `entities` and `reasoner` may be
        chat models of LangChain.
    k, where
        As `SageRetriever` has them.

    Examples
    --------
    >>> retriever = GraphRAFTRetriever(store, index, k=5)  # doctest: +SKIP
    >>> retriever.invoke("films that share a director with Heat")  # doctest: +SKIP
    """

    def __init__(self, store: GraphStore, index: Any, **options: Any) -> None:
        super().__init__(_core, store, index, **options)


class GraphRAFTState(AnswerOutput, Asked, total=False):
    """The state of `create_graphraft_graph`, plain JSON.

    `entities` are what the question names, `candidates` the queries around them,
    `written` the places of the best with the probability of each, `found` the hits that
    they lead to.
    """

    entities: list[Json]
    candidates: list[Json]
    written: list[tuple[int, float]]
    found: list[Json]


#: A compiled graph that answers by queries that exist.
GraphRAFTGraph: TypeAlias = CompiledStateGraph[
    GraphRAFTState, None, QuestionInput, AnswerOutput
]


def create_graphraft_graph(
    store: Any,
    index: Any,
    *,
    k: int = 10,
    checkpointer: BaseCheckpointSaver[Any] | bool | None = None,
    **options: Any,
) -> GraphRAFTGraph:
    """Return a LangGraph graph with the nodes ``entities``, ``paths``, ``write``,
    ``run`` and ``reason``.

    ``{"question": …}`` goes in, `AnswerOutput` comes out; ``k`` and ``where`` of the
    input are used instead of the graph's own `k`, and to filter what is returned.

    Parameters
    ----------
    store, index, options
        As `GraphRAFTRetriever` has them.
    k
        How many hits are returned: exactly as many where they qualify.
    checkpointer
        As `StateGraph.compile` takes it.
    """
    core, k = _core(store, index, **options), require_k(k)

    def entities(state: GraphRAFTState, trace: Trace) -> NodeSteps:
        question, asked = first_asked(state, k)
        found = yield from core.entities(question, trace)
        return {"entities": _ENTITIES.dump_python(found)} | asked

    def paths(state: GraphRAFTState, trace: Trace) -> NodeSteps:
        found = yield from core.candidates(
            _ENTITIES.validate_python(state["entities"]), trace
        )
        return {"candidates": _CANDIDATES.dump_python(found, by_alias=True)}

    def write(state: GraphRAFTState, trace: Trace) -> NodeSteps:
        known = _CANDIDATES.validate_python(state["candidates"])
        written = yield from core.write(state["question"], known, trace)
        return {"written": written}

    def run(state: GraphRAFTState, trace: Trace) -> NodeSteps:
        known = _CANDIDATES.validate_python(state["candidates"])
        hits = yield from core.run(
            *asked_of({**state, **state["asked"]}, k), known, state["written"], trace
        )
        return {"found": _HITS.dump_python(hits)}

    def reason(state: GraphRAFTState, trace: Trace) -> NodeSteps:
        question, wanted, where = asked_of({**state, **state["asked"]}, k)
        hits = yield from core.reason(
            question, _HITS.validate_python(state["found"]), trace
        )
        answer = yield from core.answer(question, wanted, where, hits, trace)
        return {"hits": answer.to_dict()["hits"]}

    def traced(
        step: Callable[[GraphRAFTState, Trace], NodeSteps],
    ) -> RunnableLambda[Any, Any]:
        def steps(state: GraphRAFTState) -> NodeSteps:
            trace = Trace() if step is entities else Trace.from_dict(state["trace"])
            update = yield from step(state, trace)
            return plain({**update, "trace": trace.to_dict()})

        return node(steps)

    builder = StateGraph(
        GraphRAFTState, input_schema=QuestionInput, output_schema=AnswerOutput
    )
    order = [entities, paths, write, run, reason]
    builder.add_sequence([(step.__name__, traced(step)) for step in order])
    builder.add_edge(START, "entities")
    builder.add_edge("reason", END)
    return builder.compile(checkpointer=checkpointer, name="graphraft")
