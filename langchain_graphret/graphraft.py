"""GraphRAFT in LangChain and LangGraph: a retriever, and a graph of its steps."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeAlias

from langchain_core.runnables import RunnableLambda
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from pydantic import TypeAdapter

from graphret.content import Content
from graphret.graphraft import Candidate, Entity, GraphRAFT, GraphRAFTSettings
from graphret.graphraft.candidates import QueryWriter
from graphret.graphraft.entities import EntityNamer
from graphret.graphraft.reasoner import Reasoner
from graphret.planning import PathPlanner
from graphret.retriever import Retriever
from graphret.search.index import TextIndex, require_k
from graphret.stores.base import GraphStore
from graphret.trace import Trace
from graphret.types import Hit
from graphret.where import WhereLike
from langchain_graphret.chat import ChatModelLike, as_core_model
from langchain_graphret.documents import plain
from langchain_graphret.retriever import CoreRetriever, Part
from langchain_graphret.seeds import LangChainRetriever, as_seeds
from langchain_graphret.state import (
    AnswerOutput,
    Checkpointer,
    Json,
    NodeSteps,
    QuestionInput,
    QuestionState,
    accept_question,
    answer_update,
    node,
    question_of,
)

_ENTITIES = TypeAdapter(list[Entity])
_CANDIDATES = TypeAdapter(list[Candidate])
_HITS = TypeAdapter(list[Hit])


class GraphRAFTRetriever(CoreRetriever):
    """Retrieve by the best existing queries around a question's entities (GraphRAFT).

    Exactly `k` documents come back where that many qualify; evidence and traces are as
    `SageRetriever` has them.

    Parameters
    ----------
    store
        The graph.
    index
        What fills free places: a text index over its nodes.
    writer, planner, entities, reasoner, settings, fallback, fill, on_failure
        As `graphret.graphraft.GraphRAFT` has them; `entities` and `reasoner` may be
        chat models of LangChain, and `fallback` a retriever of LangChain.
    content, k, where, name, tags, metadata
        As `SageRetriever` has them.

    Examples
    --------
    >>> retriever = GraphRAFTRetriever(store, index, k=5)  # doctest: +SKIP
    >>> retriever.invoke("films that share a director with Heat")  # doctest: +SKIP
    """

    store: Part[GraphStore]
    index: Part[TextIndex]
    writer: Part[QueryWriter | None] = None
    planner: Part[PathPlanner | None] = None
    entities: Part[ChatModelLike | EntityNamer | None] = None
    reasoner: Part[ChatModelLike | Reasoner | None] = None
    settings: Part[GraphRAFTSettings | None] = None
    fallback: Part[LangChainRetriever | Retriever | None] = None
    on_failure: str = "fallback"

    def __init__(
        self,
        store: GraphStore,
        index: TextIndex,
        *,
        writer: QueryWriter | None = None,
        planner: PathPlanner | None = None,
        entities: ChatModelLike | EntityNamer | None = None,
        reasoner: ChatModelLike | Reasoner | None = None,
        settings: GraphRAFTSettings | None = None,
        fallback: LangChainRetriever | Retriever | None = None,
        fill: bool = True,
        on_failure: str = "fallback",
        content: Content | None = None,
        k: int = 10,
        where: WhereLike = None,
        name: str | None = None,
        tags: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(  # type: ignore[call-arg]  # fields of this class
            store=store,
            index=index,
            writer=writer,
            planner=planner,
            entities=entities,
            reasoner=reasoner,
            settings=settings,
            fallback=fallback,
            fill=fill,
            on_failure=on_failure,
            content=content,
            k=k,
            where=where,
            name=name,
            tags=tags,
            metadata=metadata,
        )
        self._check()

    def _make(self) -> GraphRAFT:
        return GraphRAFT(
            self.store,
            self.index,
            writer=self.writer,
            planner=self.planner,
            entities=as_core_model(self.entities),
            reasoner=as_core_model(self.reasoner),
            settings=self.settings,
            fallback=as_seeds(self.fallback),
            fill=self.fill,
            on_failure=self.on_failure,
        )


class GraphRAFTState(AnswerOutput, QuestionState, total=False):
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
    store: GraphStore,
    index: TextIndex,
    *,
    writer: QueryWriter | None = None,
    planner: PathPlanner | None = None,
    entities: ChatModelLike | EntityNamer | None = None,
    reasoner: ChatModelLike | Reasoner | None = None,
    settings: GraphRAFTSettings | None = None,
    fallback: LangChainRetriever | Retriever | None = None,
    fill: bool = True,
    on_failure: str = "fallback",
    k: int = 10,
    checkpointer: Checkpointer = None,
) -> GraphRAFTGraph:
    """Return a LangGraph graph with GraphRAFT's steps as nodes.

    They are ``entities``, ``paths``, ``write``, ``run`` and ``reason``.

    ``{"question": …}`` goes in, `AnswerOutput` comes out; ``k`` and ``where`` of the
    input are used instead of the graph's own `k`, and to filter what is returned. As a
    node over `MessagesState` it takes the last human message for the question, and adds
    one that tells the hits.

    Parameters
    ----------
    store, index, writer, planner, entities, reasoner, settings, fallback, fill,
    on_failure
        As `GraphRAFTRetriever` has them.
    k
        How many hits are returned: exactly as many where they qualify.
    checkpointer
        As `StateGraph.compile` takes it.
    """
    core = GraphRAFT(
        store,
        index,
        writer=writer,
        planner=planner,
        entities=as_core_model(entities),
        reasoner=as_core_model(reasoner),
        settings=settings,
        fallback=as_seeds(fallback),
        fill=fill,
        on_failure=on_failure,
    )
    return _Steps(core, require_k(k)).compile(checkpointer)


class _Steps:
    """The nodes of `create_graphraft_graph`: the steps of `core`, each on its own."""

    def __init__(self, core: GraphRAFT, k: int) -> None:
        self.core = core
        self.k = k

    def compile(self, checkpointer: Checkpointer) -> GraphRAFTGraph:
        builder = StateGraph(
            GraphRAFTState, input_schema=QuestionInput, output_schema=AnswerOutput
        )
        order = [self.entities, self.paths, self.write, self.run, self.reason]
        builder.add_sequence([(step.__name__, self._traced(step)) for step in order])
        builder.add_edge(START, "entities")
        builder.add_edge("reason", END)
        return builder.compile(checkpointer=checkpointer, name="graphraft")

    def entities(self, state: GraphRAFTState, trace: Trace) -> NodeSteps:
        """Find the entities that the question names."""
        question, update = accept_question(state, self.k)
        named_entities = yield from self.core.entities(question, trace)
        return {"entities": _ENTITIES.dump_python(named_entities)} | update

    def paths(self, state: GraphRAFTState, trace: Trace) -> NodeSteps:
        """Build the queries that exist around these entities."""
        candidates = yield from self.core.candidates(
            _ENTITIES.validate_python(state["entities"]), trace
        )
        return {"candidates": _CANDIDATES.dump_python(candidates, by_alias=True)}

    def write(self, state: GraphRAFTState, trace: Trace) -> NodeSteps:
        """Choose the queries that fit the question best."""
        candidates = _CANDIDATES.validate_python(state["candidates"])
        question = state["asked"]["question"]
        written = yield from self.core.write(question, candidates, trace)
        return {"written": written}

    def run(self, state: GraphRAFTState, trace: Trace) -> NodeSteps:
        """Run the chosen queries."""
        candidates = _CANDIDATES.validate_python(state["candidates"])
        hits = yield from self.core.run(
            *question_of({**state, **state["asked"]}, self.k),
            candidates,
            state["written"],
            trace,
        )
        return {"found": _HITS.dump_python(hits)}

    def reason(self, state: GraphRAFTState, trace: Trace) -> NodeSteps:
        """Rerank what was found, and answer with it."""
        question, depth, where = question_of({**state, **state["asked"]}, self.k)
        hits = yield from self.core.reason(
            question, _HITS.validate_python(state["found"]), trace
        )
        answer = yield from self.core.answer(question, depth, where, hits, trace)
        answer_json = answer.to_dict()
        results = {"hits": answer_json["hits"], "rows": answer_json["rows"]}
        return answer_update(state, results, "graphraft")

    def _traced(
        self, step: Callable[[GraphRAFTState, Trace], NodeSteps]
    ) -> RunnableLambda[Any, Any]:
        """Return a node that runs a step, with the trace of the question so far."""

        @wraps(step)
        def steps(state: GraphRAFTState) -> NodeSteps:
            is_first = step == self.entities
            trace = Trace() if is_first else Trace.from_dict(state["trace"])
            update = yield from step(state, trace)
            messages = (
                {"messages": chat_messages}
                if (chat_messages := update.pop("messages", []))
                else {}
            )
            return plain({**update, "trace": trace.to_dict()}) | messages

        return node(steps)
