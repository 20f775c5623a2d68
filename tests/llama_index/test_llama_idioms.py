"""What users of LlamaIndex write: engines, tools, pipelines, transforms and
postprocessors, over a graph.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, date, datetime
from typing import Any

import pytest
from llama_index.core import Document, StorageContext, VectorStoreIndex
from llama_index.core.agent.workflow import AgentWorkflow, FunctionAgent
from llama_index.core.base.llms.types import ChatMessage, ToolCallBlock
from llama_index.core.chat_engine import CondensePlusContextChatEngine
from llama_index.core.indices.query.query_transform import HyDEQueryTransform
from llama_index.core.ingestion import DocstoreStrategy, IngestionPipeline
from llama_index.core.llms.mock import MockFunctionCallingLLM, MockLLM
from llama_index.core.node_parser import (
    HierarchicalNodeParser,
    SentenceSplitter,
    get_leaf_nodes,
)
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.query_engine import (
    RetrieverQueryEngine,
    SubQuestionQueryEngine,
    TransformQueryEngine,
)
from llama_index.core.question_gen.types import SubQuestion
from llama_index.core.retrievers import AutoMergingRetriever, QueryFusionRetriever
from llama_index.core.schema import (
    BaseNode,
    MetadataMode,
    NodeWithScore,
    QueryBundle,
    TextNode,
)
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.tools import QueryEngineTool
from llama_index.core.vector_stores import SimpleVectorStore
from llama_support import FixedRetriever, HashEmbedding, World, ids

from graphret import SageGraph as CoreGraph
from graphret.errors import InvalidInput
from llama_index_graphret import (
    GraphReranker,
    RelationsAsText,
    RRFFusion,
    RRFFusionRetriever,
    SageExpansion,
    SageGraph,
    SageIngestion,
    SageRetriever,
    evidence_of,
    retrieval_of,
)

TEXTS = {
    "Stadion Poljud": "It opened in 1979. Its architect was Boris Magaš.",
    "European Championships": "In 1990 they were held at the Stadion Poljud.",
    "Neckarstadion": "It opened in 1933, and has been rebuilt since.",
    "Cake": "Beat the eggs with sugar, fold in the flour, and bake it for an hour.",
}


def passages() -> list[BaseNode]:
    return [
        TextNode(id_=title, text=text, metadata={"title": title})
        for title, text in TEXTS.items()
    ]


@pytest.fixture(scope="module")
def graph() -> SageGraph:
    return SageGraph.from_nodes(passages(), embed_model=HashEmbedding())


ASKED = "Who was the architect of the stadium of the 1990 championships?"


# -- engines and tools


def test_a_graph_is_asked_and_talked_to_as_an_index_is(graph: SageGraph) -> None:
    engine = graph.as_query_engine(
        MockLLM(), similarity_top_k=2, node_postprocessors=[RelationsAsText()]
    )
    answer = engine.query(ASKED)
    assert isinstance(engine, RetrieverQueryEngine)
    assert len(answer.source_nodes) == 2
    assert "Boris Magaš" in str(answer)
    chat = graph.as_chat_engine(MockLLM(), k=2)
    assert isinstance(chat, CondensePlusContextChatEngine)
    assert len(chat.chat(ASKED).source_nodes) == 2
    plain = graph.as_chat_engine(MockLLM(), chat_mode="context", k=1)  # type: ignore[arg-type]
    assert len(plain.chat(ASKED).source_nodes) == 1
    with pytest.raises(InvalidInput, match="chat_mode: expected 'condense_plus"):
        graph.as_chat_engine(MockLLM(), chat_mode="react")  # type: ignore[arg-type]


async def test_an_agent_asks_a_graph_as_its_tool(graph: SageGraph) -> None:
    tool = graph.as_tool(name="stadiums", description="Finds stadiums.", k=2)

    def answer(messages: Sequence[ChatMessage], **_: Any) -> ChatMessage:
        if messages[-1].role == "tool":
            return ChatMessage(f"I read: {messages[-1].content}", role="assistant")
        call = ToolCallBlock(
            tool_call_id="1", tool_name="stadiums", tool_kwargs={"input": ASKED}
        )
        return ChatMessage(role="assistant", blocks=[call])

    llm = MockFunctionCallingLLM(response_generator=answer)
    agent = FunctionAgent(name="guide", tools=[tool], llm=llm, streaming=False)
    said = str(await AgentWorkflow(agents=[agent]).run(user_msg=ASKED))
    assert "Boris Magaš" in said


def test_a_question_in_parts_is_answered_by_a_graph(graph: SageGraph) -> None:
    class Parts:
        """Asks one thing of each tool."""

        def generate(self, tools: Any, query: QueryBundle) -> list[SubQuestion]:
            return [SubQuestion(sub_question=ASKED, tool_name=t.name) for t in tools]

        async def agenerate(self, tools: Any, query: Any) -> list[SubQuestion]:
            return self.generate(tools, query)

        def get_prompts(self) -> dict[str, Any]:
            return {}

    engine = SubQuestionQueryEngine.from_defaults(
        [QueryEngineTool.from_defaults(graph.as_query_engine(k=1), name="stadiums")],
        llm=MockLLM(),
        question_gen=Parts(),  # type: ignore[arg-type]
        use_async=False,
    )
    assert [
        scored
        for scored in engine.query(ASKED).source_nodes
        if scored.node.node_id in TEXTS
    ]


# -- what a question means


class Cook(MockLLM):
    """Makes up an answer about cakes, whatever is asked."""

    def predict(self, prompt: Any, **_: Any) -> str:
        return TEXTS["Cake"]


def best(retriever: Any, asked: Any, awaited: bool = False) -> str:
    nodes = (
        asyncio.run(retriever.aretrieve(asked))
        if awaited
        else retriever.retrieve(asked)
    )
    first: str = ids(nodes)[0]
    return first


@pytest.mark.parametrize("awaited", [False, True])
@pytest.mark.parametrize("over", ["graph", "seeds", "fusion", "expansion"])
def test_a_made_up_answer_has_its_effect(
    graph: SageGraph, over: str, awaited: bool
) -> None:
    index = VectorStoreIndex(passages(), embed_model=HashEmbedding())
    retriever: Any = {
        "graph": SageRetriever(graph, k=4),
        "seeds": SageRetriever(graph, seeds=index.as_retriever(similarity_top_k=1)),
        "fusion": RRFFusionRetriever([graph.retriever(), index.as_retriever()]),
        "expansion": SageRetriever(graph, k=4),
    }[over]
    post: list[BaseNodePostprocessor] = (
        [SageExpansion(graph, k=1)] if over == "expansion" else []
    )
    bundle = HyDEQueryTransform(Cook(max_tokens=None), include_original=False).run(
        "zzz"
    )
    assert best(retriever, bundle, awaited) == "Cake"
    engine = TransformQueryEngine(
        RetrieverQueryEngine.from_args(
            retriever, llm=MockLLM(), node_postprocessors=post
        ),
        HyDEQueryTransform(Cook(max_tokens=None), include_original=False),
    )
    response = asyncio.run(engine.aquery("zzz")) if awaited else engine.query("zzz")
    assert ids(response.source_nodes)[0] == "Cake"


def test_an_embedding_counts_where_it_may_be_the_graph_s_own(graph: SageGraph) -> None:
    cake = HashEmbedding().get_query_embedding(TEXTS["Cake"])
    of_cake = QueryBundle("zzz", embedding=cake)
    assert best(graph.as_retriever(), of_cake) == "Cake"
    assert best(graph.view({"title": {"$ne": "x"}}).as_retriever(), of_cake) == "Cake"
    without = best(graph.as_retriever(), "zzz")
    other = QueryBundle("zzz", embedding=[1.0, 0.0])  # of a model of another width
    assert best(graph.as_retriever(), other) == without != "Cake"
    # Another index left the embedding of its own model in the bundle.
    own_graph = SageGraph.from_nodes(passages(), encoder=graph.encoder)
    assert best(own_graph.as_retriever(), of_cake) == without


# -- fusion, relations, dates


@pytest.mark.parametrize("awaited", [False, True])
def test_nodes_are_fused_with_what_a_graph_finds(world: World, awaited: bool) -> None:
    question, raw = world.questions[0].question, {n.node_id: n for n in world.nodes}
    inputs = world.index.as_retriever(similarity_top_k=5).retrieve(question)
    graph = world.graph.as_retriever(similarity_top_k=50).retrieve(question)
    fusion = RRFFusion(world.graph, weights=[1, 2], rrf_k=10, top_n=8)
    nodes = (
        asyncio.run(fusion.apostprocess_nodes(inputs, query_str=question))
        if awaited
        else fusion.postprocess_nodes(inputs, query_str=question)
    )
    scores = dict.fromkeys([*ids(inputs), *ids(graph)], 0.0)
    for weight, ranked in ((1, inputs), (2, graph)):
        for rank, one in enumerate(ids(ranked), start=1):
            scores[one] += weight / (10 + rank)
    expected = sorted(scores, key=lambda one: (-scores[one], one))[:8]
    assert ids(nodes) == expected
    assert [one.score for one in nodes] == pytest.approx([scores[e] for e in expected])
    assert all(one.node.hash == raw[one.node.node_id].hash for one in nodes)


def test_fusion_goes_on_where_one_has_nothing_or_fails(graph: SageGraph) -> None:
    alone = RRFFusion(graph, k=2).postprocess_nodes([], query_str=ASKED)
    assert ids(alone) == ids(graph.as_retriever(k=2).retrieve(ASKED))
    inputs = [NodeWithScore(node=passages()[3], score=1.0)]
    away = FixedRetriever([], error=ConnectionError("away"))
    fused = RRFFusion(away).postprocess_nodes(inputs, query_str=ASKED)
    assert ids(fused) == ["Cake"]
    assert retrieval_of(fused).trace.fallbacks[0].details["failed"] == "FixedRetriever"  # type: ignore[union-attr]


class Longest:
    """A cross-encoder that prefers long texts."""

    def predict(self, pairs: list[tuple[str, str]]) -> list[float]:
        return [float(len(text)) for _, text in pairs]


def test_a_reranker_may_fuse_ranks() -> None:
    nodes = [
        NodeWithScore(node=TextNode(id_=text, text=text), score=score)
        for text, score in (("a", 9.0), ("bb", 1.0), ("cc dd", 0.9))
    ]
    retrieved = GraphReranker(Longest(), rrf_k=60).postprocess_nodes(
        nodes, query_str="x"
    )
    by_rank = {"a": (1, 3), "bb": (2, 2), "cc dd": (3, 1)}
    assert {scored.node.node_id: scored.score for scored in retrieved} == pytest.approx(
        {
            name: sum(0.5 / (60 + rank) for rank in both)
            for name, both in by_rank.items()
        }
    )


def test_relations_are_told_as_a_property_graph_tells_them(graph: SageGraph) -> None:
    nodes = SageRetriever(graph, k=2).retrieve(ASKED)
    with_relations = RelationsAsText().postprocess_nodes(nodes)
    assert ids(with_relations) == ids(nodes)
    for scored, before in zip(with_relations, nodes, strict=True):
        text = scored.node.get_content(metadata_mode=MetadataMode.NONE)
        assert text == (
            "Here are some facts extracted from the provided text:\n\n"
            "European Championships -> MENTIONS -> Stadion Poljud\n\n"
            f"{before.node.get_content()}"
        )
        assert evidence_of(scored) == evidence_of(before)
    cake = [NodeWithScore(node=passages()[3], score=1.0)]
    assert RelationsAsText().postprocess_nodes(cake) == cake


def test_dates_in_metadata_go_through_everything_as_they_are() -> None:
    when = {
        "at": datetime(2024, 5, 1, 12, tzinfo=UTC),
        "day": date(2024, 5, 1),
    }
    nodes = passages()
    for node in nodes:
        node.metadata.update(when)
    hashes = {node.node_id: node.hash for node in nodes}
    graph = SageGraph.from_nodes(nodes, encoder=None)
    stranger = TextNode(id_="stranger", text="Poljud", metadata=dict(when))
    hashes["stranger"] = stranger.hash
    inputs = [NodeWithScore(node=one, score=1.0) for one in (nodes[1], stranger)]
    fused = RRFFusionRetriever([FixedRetriever(inputs), graph.retriever()], k=5)
    merged = QueryFusionRetriever(
        [FixedRetriever(inputs), graph.as_retriever()],
        num_queries=1,
        mode="reciprocal_rerank",  # type: ignore[arg-type]
        similarity_top_k=9,
    )
    for retrieved in (
        SageExpansion(graph, k=5).postprocess_nodes(inputs, query_str=ASKED),
        GraphReranker(Longest()).postprocess_nodes(inputs, query_str=ASKED),
        RRFFusion(graph, k=5).postprocess_nodes(inputs, query_str=ASKED),
        fused.retrieve(ASKED),
        merged.retrieve(ASKED),
    ):
        assert "stranger" in ids(retrieved)
        assert len(ids(retrieved)) == len(set(ids(retrieved))) >= 2
        assert all(one.node.hash == hashes[one.node.node_id] for one in retrieved)
        assert all(one.metadata["at"] == when["at"] for one in retrieved)
    late = graph.as_retriever(filters={"day": {"$gte": "2024-05-02"}})
    assert not late.retrieve(ASKED)


# -- pipelines and parsers


def test_a_pipeline_keeps_a_graph_up_to_date(graph: SageGraph) -> None:
    live = SageGraph.from_nodes(passages(), encoder=None)
    splitter = SentenceSplitter(chunk_size=64, chunk_overlap=0)
    pipeline = IngestionPipeline(
        transformations=[splitter, SageIngestion(live), HashEmbedding()],
        vector_store=SimpleVectorStore(),
        docstore=SimpleDocumentStore(),
        docstore_strategy=DocstoreStrategy.UPSERTS,
    )
    document = Document(
        text="The Vltava Arena opened in 2008.",
        id_="arena",
        metadata={"title": "Vltava Arena"},
    )
    for _ in range(2):  # what is cached is added all the same, where it has gone
        [chunk] = IngestionPipeline(
            transformations=pipeline.transformations[:2], cache=pipeline.cache
        ).run(documents=[document])
        assert chunk.node_id in {node.id for node in live.nodes}
        assert best(live.as_retriever(), "Vltava Arena") == chunk.node_id
        live.remove([chunk.node_id])
    [chunk] = asyncio.run(pipeline.arun(documents=[document]))
    assert not pipeline.run(documents=[document])
    assert chunk.node_id in {node.id for node in live.nodes}
    document.set_content("The Vltava Arena was pulled down in 2020.")
    [changed] = pipeline.run(documents=[document])
    node_ids = {node.id for node in live.nodes}
    assert changed.node_id in node_ids
    assert chunk.node_id not in node_ids  # the document has changed
    with pytest.raises(InvalidInput, match="graph: expected a graphret SageGraph"):
        SageIngestion(CoreGraph.build)  # type: ignore[arg-type]


def test_a_step_in_another_process_is_refused() -> None:
    graph = SageGraph.from_nodes(passages(), encoder=None)
    step = SageIngestion(graph)
    step._process += 1
    with pytest.raises(InvalidInput, match="num_workers"):
        step([TextNode(text="x")])


def test_parents_do_not_say_twice_what_their_children_say() -> None:
    text = " ".join(f"Park number {i} is in town {i}. It is old." for i in range(40))
    parser = HierarchicalNodeParser.from_defaults(
        chunk_sizes=[256, 64], chunk_overlap=0
    )
    nodes = parser.get_nodes_from_documents([Document(text=text, id_="parks")])
    leaves = {node.node_id for node in get_leaf_nodes(nodes)}
    assert len(leaves) < len(nodes)
    graph = SageGraph.from_nodes(nodes, embed_model=HashEmbedding())
    assert {node.id for node in graph.nodes} == leaves
    assert set(graph.add_nodes(nodes)) == leaves
    context = StorageContext.from_defaults()
    context.docstore.add_documents(nodes)
    merging = AutoMergingRetriever(graph.as_retriever(k=12), context)  # type: ignore[arg-type]
    merged = ids(merging.retrieve("Which parks are in towns?"))
    assert set(merged) - leaves
    with pytest.raises(InvalidInput, match="vectors: expected only the leaves"):
        SageGraph.from_nodes(nodes, encoder=None, vectors=[[1.0]] * len(nodes))


@pytest.mark.parametrize(
    ("make", "wrong", "right"),
    [
        (lambda g, **k: SageRetriever(g, **k), "top_k", "similarity_top_k"),
        (lambda g, **k: SageRetriever(g, **k), "filter", "filters"),
        (lambda g, **k: SageExpansion(g, **k), "similarity_top_k", "top_n"),
        (lambda g, **k: GraphReranker("m", **k), "top_k", "top_n"),
    ],
)
def test_a_wrong_keyword_is_answered_with_the_right_one(
    graph: SageGraph, make: Any, wrong: str, right: str
) -> None:
    with pytest.raises(InvalidInput, match=f"got '{wrong}'; did you mean '{right}'"):
        make(graph, **{wrong: 3})
