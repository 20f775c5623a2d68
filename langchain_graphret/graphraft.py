"""GraphRAFT in LangChain and LangGraph: a retriever, and a graph of nodes that do its steps one by one."""

from __future__ import annotations

from dataclasses import asdict
from itertools import pairwise
from typing import Any, TypeAlias

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import Runnable
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from pydantic import Field
from typing_extensions import TypedDict

from graphret.graphraft import Candidate, Entity, GraphRAFT
from graphret.graphraft.retriever import Written
from graphret.planning import GraphPlan
from graphret.retriever import Retriever
from graphret.search.index import require_k
from graphret.types import Evidence, Hit, Trace
from langchain_graphret.chat import as_core_model
from langchain_graphret.documents import plain
from langchain_graphret.retriever import CoreRetriever
from langchain_graphret.seeds import LangChainSeeds
from langchain_graphret.state import Json, NodeSteps, QuestionInput, asked_of, node


def _core(store: Any, index: Any, options: Json) -> GraphRAFT:
    models = {name: as_core_model(one) for name, one in options.items() if isinstance(one, BaseChatModel)}
    return GraphRAFT(store, LangChainSeeds(index) if isinstance(index, Runnable) else index, **options | models)


class GraphRAFTRetriever(CoreRetriever):
    """Retrieve what the best of the queries find that exist around a question's entities (GraphRAFT).

    Exactly `k` documents come back where that many qualify; `k`, `where`, evidence and traces are as `SageRetriever`
    has them.

    Parameters
    ----------
    store
        The graph.
    index
        What fills free places: a text index over its nodes, or a LangChain or graphret retriever.
    options, on_failure
        As `graphret.graphraft.GraphRAFT` has them; the options are `writer`, `planner`, `settings`, and `entities` and
        `reasoner`, which may be chat models of LangChain.
    k
        How many documents are returned.
    where
        A filter dictionary (see `to_where`) or a `Where`.

    Examples
    --------
    >>> retriever = GraphRAFTRetriever(store, index, k=5)  # doctest: +SKIP
    >>> retriever.invoke("films that share a director with Heat")  # doctest: +SKIP
    """

    store: Any = Field(repr=False)
    index: Any = Field(repr=False)
    options: Any = Field(default_factory=dict, repr=False)

    def __init__(self, store: Any, index: Any, **options: Any) -> None:
        super().__init__(**options | {"store": store, "index": index})

    def _made(self) -> Retriever:
        return _core(self.store, self.index, {**self.options, "on_failure": self.on_failure})


class GraphRAFTOutput(TypedDict, total=False):
    """What comes of it: `hits` and `trace` as `Retrieval.to_dict` has them."""

    question: str
    hits: list[Json]
    trace: Json


class GraphRAFTState(GraphRAFTOutput, total=False):
    """The state of `create_graphraft_graph`, plain JSON.

    `entities` are what the question names, `candidates` the queries around them, `written` the places of the best with
    the probability of each, `found` the ids that they lead to with scores and evidence.
    """

    k: int | None
    where: Json | None
    entities: list[Json]
    candidates: list[Json]
    written: list[list[Any]]
    found: list[Json]


#: A compiled graph that answers by queries that exist.
GraphRAFTGraph: TypeAlias = CompiledStateGraph[GraphRAFTState, None, QuestionInput, GraphRAFTOutput]


def create_graphraft_graph(
    store: Any, index: Any, *, k: int = 10, checkpointer: BaseCheckpointSaver[Any] | bool | None = None, **options: Any
) -> GraphRAFTGraph:
    """Return a LangGraph graph with the nodes ``entities``, ``paths``, ``write``, ``run`` and ``reason``.

    ``{"question": …}`` goes in, `GraphRAFTOutput` comes out; ``k`` and ``where`` of the input are used instead of the
    graph's own `k`, and to filter what is returned.

    Parameters
    ----------
    store, index, options
        As `GraphRAFTRetriever` has them.
    k
        How many hits are returned: exactly as many where they qualify.
    checkpointer
        As `StateGraph.compile` takes it.
    """
    core, k = _core(store, index, options), require_k(k)

    def entities(state: GraphRAFTState) -> NodeSteps:
        (question, _, _), trace = asked_of(state, k), Trace()
        found = yield from core.entities(question, trace)
        return {"entities": [plain(asdict(one)) for one in found], "trace": plain(trace.to_dict())}

    def paths(state: GraphRAFTState) -> NodeSteps:
        trace = Trace.from_dict(state["trace"])
        places = [
            Entity(**{**one, "labels": (*one["labels"],), "place": (*one["place"],)}) for one in state["entities"]
        ]
        found = yield from core.candidates(places, trace)
        told = [
            {"plan": one.plan.model_dump(mode="json", by_alias=True), "text": one.text, "size": one.size}
            for one in found
        ]
        told = [one | {"bindings": plain(candidate.bindings)} for one, candidate in zip(told, found, strict=True)]
        return {"candidates": told, "trace": plain(trace.to_dict())}

    def write(state: GraphRAFTState) -> NodeSteps:
        trace, known = Trace.from_dict(state["trace"]), _candidates(state)
        written = yield from core.write(state["question"], known, trace)
        places = [[known.index(one.candidate), one.probability] for one in written]
        return {"written": places, "trace": plain(trace.to_dict())}

    def run(state: GraphRAFTState) -> NodeSteps:
        (question, wanted, where), trace, known = (
            asked_of(state, k),
            Trace.from_dict(state["trace"]),
            _candidates(state),
        )
        written = [Written(known[place], probability) for place, probability in state["written"]]
        hits = yield from core.run(question, wanted, where, written, trace)
        found = [
            {"id": one.id, "score": one.score, "evidence": [why.to_dict() for why in one.evidence]} for one in hits
        ]
        return {"found": plain(found), "trace": plain(trace.to_dict())}

    def reason(state: GraphRAFTState) -> NodeSteps:
        (question, wanted, where), trace, found = asked_of(state, k), Trace.from_dict(state["trace"]), state["found"]
        nodes = zip(core.store.get([one["id"] for one in found]), found, strict=True)
        hits = [Hit(n, one["score"], tuple(Evidence(**why) for why in one["evidence"])) for n, one in nodes if n]
        hits = yield from core.reason(question, hits, trace)
        answer = yield from core.answer(question, wanted, where, hits, trace)
        return {name: plain(value) for name, value in answer.to_dict().items() if name in ("hits", "trace")}

    builder = StateGraph(GraphRAFTState, input_schema=QuestionInput, output_schema=GraphRAFTOutput)
    steps = {"entities": entities, "paths": paths, "write": write, "run": run, "reason": reason}
    for name, step in steps.items():
        builder.add_node(name, node(step))
    order = [START, *steps, END]
    for before, after in pairwise(order):
        builder.add_edge(before, after)
    return builder.compile(checkpointer=checkpointer, name="graphraft")


def _candidates(state: GraphRAFTState) -> list[Candidate]:
    return [
        Candidate(GraphPlan.model_validate(one["plan"]), one["bindings"], one["text"], one["size"])
        for one in state["candidates"]
    ]
