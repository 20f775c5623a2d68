"""`ArkRetriever`: agents explore, LlamaIndex gets nodes, evidence and events."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from llama_index.core import Settings
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.graph_stores import SimplePropertyGraphStore
from llama_index.core.graph_stores.types import ChunkNode, EntityNode, Relation
from llama_index.core.indices.property_graph import PropertyGraphIndex
from llama_index.core.instrumentation.events.retrieval import RetrievalEndEvent, RetrievalStartEvent
from llama_index.core.llms.mock import MockFunctionCallingLLM, MockLLM
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.retrievers import QueryFusionRetriever
from llama_index.core.schema import NodeWithScore, TextNode
from llama_index.core.vector_stores.types import FilterOperator, MetadataFilter, MetadataFilters
from llama_support import FixedRetriever, HashEmbedding, Recording, World

from graphret import BM25Index, Expand, IndexRetriever, MemoryStore
from graphret.ark import Ark, ArkSession, ArkSettings, Run
from graphret.ark.scripted import ScriptedExplorer as Policy
from graphret.errors import InvalidInput
from graphret.llm import Message, Reply
from graphret.types import Edge, Node
from llama_index_graphret import (
    ArkRetriever,
    LlamaIndexSeeds,
    SageRetrievalEvent,
    ScriptedExplorer,
    as_llama_index_retriever,
    evidence_of,
    from_llama_node,
    from_property_graph_store,
    retrieval_of,
    to_llama_node,
)

QUESTION = "Which films did Tom Hanks star in?"
FILMS = {"Big": 1988, "Cast Away": 2000, "Splash": 1984, "Alien": 1979, "Heat": 1995}
NODES = [
    Node("p1", ("person",), "Tom Hanks"),
    *(
        Node(f"m{i}", ("movie",), name, f"A film of {year}.", {"year": year})
        for i, (name, year) in enumerate(FILMS.items())
    ),
]
EDGES = [Edge(f"m{i}", "starred_actors", "p1") for i in range(3)]
STORE = MemoryStore.of(NODES, EDGES)
INDEX = BM25Index.build(NODES)
STARRED = ["m0", "m1", "m2"]


def ids(nodes: Sequence[NodeWithScore]) -> list[str]:
    return [one.node.node_id for one in nodes]


def found_by(retriever: ArkRetriever, awaited: bool, question: str = QUESTION) -> list[NodeWithScore]:
    return asyncio.run(retriever.aretrieve(question)) if awaited else retriever.retrieve(question)


@pytest.mark.parametrize("awaited", [False, True])
@pytest.mark.parametrize("k", [1, 3, 5])
def test_what_agents_select_comes_first_and_k_is_the_total(k: int, awaited: bool) -> None:
    settings = ArkSettings(early_stop=False)  # or the last of three that agree may not get to vote
    found = found_by(ArkRetriever(ScriptedExplorer(), STORE, INDEX, settings=settings, similarity_top_k=k), awaited)
    core = Ark(Policy(), STORE, INDEX, settings=settings).retrieve(QUESTION, k)
    assert ids(found) == core.ids
    assert ids(found)[:3] == STARRED[:k]
    assert [one.score for one in found] == [hit.relevance for hit in core.hits]
    assert [evidence_of(one) for one in found] == [list(hit.evidence) for hit in core.hits]
    assert evidence_of(found[0])[0].properties == {"votes": 3, "of": 3, "agents": [1, 2, 3]}


def test_filters_limit_what_is_returned_and_not_what_is_explored() -> None:
    filters = MetadataFilters(filters=[MetadataFilter(key="year", value=1990, operator=FilterOperator.LT)])
    retriever = ArkRetriever(ScriptedExplorer(), STORE, INDEX, similarity_top_k=3, filters=filters)
    found = retriever.retrieve(QUESTION)
    assert ids(found) == ["m0", "m2", "m3"]
    assert [e.kind for e in evidence_of(found[2])][-1] == "fill"


def test_a_view_hides_nodes() -> None:
    where = {"name": {"$ne": "Big"}}
    found = ArkRetriever(ScriptedExplorer(), STORE.view(where), INDEX.view(where), similarity_top_k=6).retrieve(
        QUESTION
    )
    assert len(found) == 5
    retrieval = retrieval_of(found)
    assert retrieval is not None
    assert "m0" not in str(retrieval.trace.to_dict())


def test_evidence_is_no_part_of_the_node() -> None:
    given = [TextNode(id_=f"t{i}", text=f"Tom Hanks stars in film {i}.", metadata={"page": i}) for i in range(3)]
    nodes = [from_llama_node(node) for node in given]
    store = MemoryStore.of(nodes, [Edge("t0", "next", "t1")])
    found = ArkRetriever(ScriptedExplorer(), store, BM25Index.build(nodes), similarity_top_k=3).retrieve("Tom Hanks")
    assert {one.node.node_id: one.node.hash for one in found} == {node.node_id: node.hash for node in given}
    for one in found:
        assert evidence_of(one)
        assert one.node.metadata == given[int(one.node.node_id[1:])].metadata


def test_a_retrieval_is_remembered_with_every_step() -> None:
    retriever = ArkRetriever(ScriptedExplorer(), STORE, INDEX, settings=ArkSettings(n_agents=2))
    found = retriever.retrieve(QUESTION)
    retrieval = retriever.retrieval_of(QUESTION)
    assert retrieval is retrieval_of(found)
    assert retrieval is not None
    names = [stage.name for stage in retrieval.trace.stages]
    assert {"explore", "explore/agent 1/step 1", "explore/agent 2/step 1", "explore/agent 2", "vote"} <= set(names)


def test_steps_and_runs_are_told() -> None:
    steps: list[tuple[int, str | None]] = []
    runs: list[Run] = []

    def on_step(session: ArkSession) -> None:
        steps.append((session.agent, session.stop))

    settings = ArkSettings(n_agents=2, early_stop=False)
    ArkRetriever(ScriptedExplorer(), STORE, INDEX, settings=settings, on_step=on_step, on_run=runs.append).retrieve(
        QUESTION
    )
    assert {(0, "finished"), (1, "finished")} <= set(steps)
    [run] = runs
    assert [session.selection for session in run.sessions] == [STARRED, STARRED]


# -- models


class Awaited(Policy):
    """Counts how it is asked; can be told to wait for ever, or to fail."""

    def __init__(self, *, wait: bool = False, fail: bool = False) -> None:
        self.wait, self.fail = wait, fail
        self.asked = self.cancelled = 0

    def chat(self, messages: Sequence[Message], **options: Any) -> Reply:
        raise AssertionError("it is to be awaited")

    async def achat(self, messages: Sequence[Message], **options: Any) -> Reply:
        self.asked += 1
        if self.fail:
            raise ConnectionError("the model is away")
        try:
            await asyncio.sleep(3600 if self.wait else 0)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        return Policy().chat(messages, tools=options["tools"])


async def test_a_core_model_is_awaited() -> None:
    model = Awaited()
    assert ids(await ArkRetriever(model, STORE, INDEX, similarity_top_k=3).aretrieve(QUESTION)) == STARRED
    assert model.asked >= 9


async def test_cancelling_stops_every_agent() -> None:
    model = Awaited(wait=True)
    task = asyncio.create_task(ArkRetriever(model, STORE, INDEX).aretrieve(QUESTION))
    while model.asked < 3:  # noqa: ASYNC110 - the condition is the model's
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (model.asked, model.cancelled) == (3, 3)


async def test_each_agent_may_have_its_own_model() -> None:
    models = [ScriptedExplorer(), Awaited(), Awaited(fail=True)]
    found = await ArkRetriever(models, STORE, INDEX, similarity_top_k=3).aretrieve(QUESTION)
    assert ids(found) == STARRED
    retrieval = retrieval_of(found)
    assert retrieval is not None
    [note] = retrieval.trace.fallbacks
    assert note.details["failed"] == "agent 3"
    assert "the model is away" in note.details["error"]


@pytest.mark.parametrize(
    "options",
    [
        {"llm": "gpt-4o"},
        {"llm": [ScriptedExplorer()]},
        {"similarity_top_k": 0},
        {"filters": {"$near": 3}},
        {"fallback": object()},
        {"on_failure": "ignore"},
        {"temperature": [0.1]},
    ],
)
def test_malformed_arguments_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        ArkRetriever(**{"llm": ScriptedExplorer(), "store": STORE, "index": INDEX, **options})


# -- in LlamaIndex's engines


@pytest.mark.parametrize("awaited", [False, True])
def test_a_query_engine_reads_what_was_found(awaited: bool) -> None:
    engine = RetrieverQueryEngine.from_args(ArkRetriever(ScriptedExplorer(), STORE, INDEX, similarity_top_k=3))
    response = asyncio.run(engine.aquery(QUESTION)) if awaited else engine.query(QUESTION)
    assert ids(response.source_nodes) == STARRED
    assert all(evidence_of(one) for one in response.source_nodes)
    assert "A film of 1988." in str(response)
    assert "votes" not in str(response)


def test_it_is_fused_with_others_as_if_its_nodes_were_raw() -> None:
    ark = ArkRetriever(ScriptedExplorer(), STORE, INDEX, similarity_top_k=3)
    flat = as_llama_index_retriever(IndexRetriever(INDEX), similarity_top_k=6)
    fusion = QueryFusionRetriever(
        [ark, flat], num_queries=1, mode="reciprocal_rerank", similarity_top_k=6, llm=Settings.llm
    )
    found = fusion.retrieve(QUESTION)
    assert len(found) == len(set(ids(found))) == 6
    raw = FixedRetriever([NodeWithScore(node=to_llama_node(one), score=1.0) for one in NODES[1:4]])
    fusion = QueryFusionRetriever(
        [raw, flat], num_queries=1, mode="reciprocal_rerank", similarity_top_k=6, llm=Settings.llm
    )
    assert {one.node.node_id: one.score for one in fusion.retrieve(QUESTION)} == {
        one.node.node_id: one.score for one in found
    }


@pytest.mark.parametrize("awaited", [False, True])
def test_events_and_spans_are_those_of_graphret_s_retrievers(awaited: bool) -> None:
    retriever = ArkRetriever(ScriptedExplorer(), STORE, INDEX, similarity_top_k=3)
    with Recording() as recording:
        found_by(retriever, awaited)
    [event] = recording.events.of(SageRetrievalEvent)
    assert event.query == QUESTION
    assert list(event.evidence) == STARRED
    assert event.evidence["m0"][0]["kind"] == "votes"
    assert event.trace["stages"][0]["name"] == "explore"
    assert len(recording.events.of(RetrievalStartEvent, RetrievalEndEvent)) == 2
    assert f"ArkRetriever.{'_aretrieve' if awaited else '_retrieve'}" in recording.span_names


def test_its_nodes_are_seeds_for_others() -> None:
    seeds = ArkRetriever(ScriptedExplorer(), STORE, INDEX, similarity_top_k=2)
    found = Expand(LlamaIndexSeeds(seeds), STORE, INDEX).retrieve(QUESTION, 4)
    assert set(STARRED[:2]) <= set(found.ids)


# -- graphs of LlamaIndex


def property_graph() -> SimplePropertyGraphStore:
    graph = SimplePropertyGraphStore()
    graph.upsert_nodes(
        [
            EntityNode(name="Tom Hanks", label="person"),
            *(EntityNode(name=name, label="movie", properties={"year": year}) for name, year in FILMS.items()),
            ChunkNode(text="Tom Hanks stars in Big, as a boy in a man's body.", id_="c1"),
        ]
    )
    starred = [Relation(label="STARS", source_id=name, target_id="Tom Hanks") for name in list(FILMS)[:3]]
    graph.upsert_relations([*starred, Relation(label="MENTIONS", source_id="c1", target_id="Big")])
    return graph


def test_a_property_graph_of_llama_index_is_explored() -> None:
    index = PropertyGraphIndex.from_existing(
        property_graph_store=property_graph(), llm=MockLLM(), embed_model=HashEmbedding(), embed_kg_nodes=False
    )
    store = from_property_graph_store(index.property_graph_store)
    text = BM25Index.build([node for block in store.nodes() for node in block])
    found = ArkRetriever(ScriptedExplorer(), store, text, similarity_top_k=7).retrieve(QUESTION)
    assert set(ids(found)[:3]) == {"Big", "Cast Away", "Splash"}
    assert len(found) == 7
    chunk = next(one for one in found if one.node.node_id == "c1")
    assert chunk.node.get_content() == "Tom Hanks stars in Big, as a boy in a man's body."


def test_documents_as_a_graph_are_explored(world: World) -> None:
    """The graph that SAGE makes of a vector index's nodes, under agents."""
    graph = world.graph
    question = world.questions[0].question
    found = ArkRetriever(ScriptedExplorer(), graph.store, graph.index, similarity_top_k=5).retrieve(question)
    originals = {node.node_id: node for node in world.nodes}
    assert len(found) == 5
    assert all(one.node.hash == originals[one.node.node_id].hash for one in found)


def test_the_temperature_is_the_model_s_own_unless_given() -> None:
    """Providers refuse others than theirs for models that reason."""
    heard: list[Any] = []

    def answer(messages: Any, **options: Any) -> Any:
        heard.append(options.get("temperature"))
        return ChatMessage(role="assistant", content="I give up.")

    llm = MockFunctionCallingLLM(response_generator=answer)
    one = ArkSettings(n_agents=1, max_steps=1)
    for options in ({}, {"temperature": 0.3}):
        ArkRetriever(llm, MemoryStore.of(NODES, EDGES), BM25Index.build(NODES), settings=one, **options).retrieve("?")
    assert heard[0] is None
    assert heard[-1] == 0.3
