"""LlamaIndex's loaders, splitters, stores and filters; nodes in both directions."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import chromadb
import numpy as np
import pytest
from chromadb.config import Settings
from hypothesis import given, settings
from hypothesis import strategies as st
from llama_index.core import (
    Document,
    MockEmbedding,
    SimpleDirectoryReader,
    StorageContext,
    VectorStoreIndex,
)
from llama_index.core.ingestion import IngestionPipeline
from llama_index.core.node_parser import MarkdownNodeParser, SentenceSplitter
from llama_index.core.schema import (
    BaseNode,
    ImageNode,
    IndexNode,
    MediaResource,
    MetadataMode,
    NodeRelationship,
    ObjectType,
    RelatedNodeInfo,
    TextNode,
)
from llama_index.core.schema import Document as LlamaDocument
from llama_index.core.schema import Node as MediaNode
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.vector_stores import SimpleVectorStore
from llama_index.core.vector_stores.types import (
    BasePydanticVectorStore,
    FilterCondition,
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
)
from llama_index.core.vector_stores.utils import (
    build_metadata_filter_fn,
    metadata_dict_to_node,
    node_to_metadata_dict,
)
from llama_index.vector_stores.chroma import ChromaVectorStore
from llama_support import HashEmbedding, World
from tests_support import VENUE_QUESTION, HashingEncoder, mentions

import graphret
from graphret import SageGraph as CoreGraph
from graphret import Table
from graphret.corpus import HeuristicMetadata, describe, to_nodes
from graphret.errors import InvalidInput
from graphret.sage.state import Changes
from graphret.types import Node
from llama_index_graphret import (
    EncoderEmbedding,
    SageGraph,
    SageNodeParser,
    SageRetriever,
    evidence_of,
    from_llama_node,
    to_llama_node,
    to_where,
)
from llama_index_graphret.graph import nodes_of

NEW = "new"


@pytest.fixture
def documents(venues: Path) -> list[Document]:
    return list(SimpleDirectoryReader(venues, recursive=True).load_data())


def split(documents: list[Document]) -> list[BaseNode]:
    return SentenceSplitter(chunk_size=128, chunk_overlap=20).get_nodes_from_documents(
        documents
    )


def pipeline(documents: list[Document]) -> list[BaseNode]:
    return list(
        IngestionPipeline(transformations=[SageNodeParser()]).run(documents=documents)
    )


def docstore(documents: list[Document]) -> list[BaseNode]:
    store = SimpleDocumentStore()
    nodes = split(documents)
    random.Random(1).shuffle(nodes)
    store.add_documents(nodes)
    return list(store.docs.values())


@pytest.mark.parametrize(
    "made",
    [split, pipeline, docstore, MarkdownNodeParser().get_nodes_from_documents],
    ids=["sentences", "pipeline", "docstore", "markdown"],
)
def test_nodes_get_the_links_of_the_files(
    documents: list[Document],
    venue_links: set[tuple[str, int, str]],
    made: Callable[[list[Document]], list[BaseNode]],
) -> None:
    nodes = made(documents)
    graph = SageGraph.from_nodes(nodes, encoder=None)
    assert mentions(graph) == venue_links
    first, second = SageRetriever(graph, similarity_top_k=2).retrieve(VENUE_QUESTION)
    nodes_by_id = {node.node_id: node for node in nodes}
    for scored in (first, second):
        assert nodes_by_id[scored.node_id].hash == scored.node.hash
        assert scored.node.get_content() == nodes_by_id[scored.node_id].get_content()
    assert {"1990" in first.text, "1990" in second.text} == {True, False}
    evidence = [
        str(evidence_text)
        for scored in (first, second)
        for evidence_text in evidence_of(scored)
    ]
    assert any(
        "row 12 -MENTIONS→ Stadion Poljud (exact, column Stadium)" in evidence_text
        for evidence_text in evidence
    )


def chroma() -> ChromaVectorStore:
    client = chromadb.EphemeralClient(Settings(anonymized_telemetry=False))
    return ChromaVectorStore(
        client.get_or_create_collection(f"venues-{random.random()}")
    )


@pytest.fixture(params=[SimpleVectorStore, chroma], ids=["simple", "chroma"])
def index(
    request: pytest.FixtureRequest, documents: list[Document]
) -> VectorStoreIndex:
    store: BasePydanticVectorStore = request.param()
    context = StorageContext.from_defaults(vector_store=store)
    return VectorStoreIndex(
        split(documents), storage_context=context, embed_model=MockEmbedding(8)
    )


def test_an_index_gets_the_links_of_the_files_and_is_followed(
    index: VectorStoreIndex, venue_links: set[tuple[str, int, str]]
) -> None:
    graph = SageGraph.from_nodes(nodes_of(index), encoder=None)
    assert mentions(graph) == venue_links
    assert not graph.refresh_from_index(index)
    assert not graph.refresh(nodes_of(index))

    poljud = [node for node in graph.nodes if node.name == "Stadion Poljud"]
    index.delete_ref_doc(poljud[0].properties["source_id"], delete_from_docstore=True)
    text = "# Stadion Poljud\n\nPoljud was rebuilt. Its architect was Ada Lovelace."
    index.insert_nodes(
        [TextNode(text=text, id_=NEW, metadata={"file_name": "poljud.md"})]
    )
    done = graph.refresh_from_index(index)
    assert (done.added, done.changed, set(done.deleted)) == (
        (NEW,),
        (),
        {node.id for node in poljud},
    )
    assert str(done) == f"1 added, 0 changed, {len(poljud)} deleted"
    assert NEW in {
        scored.node_id
        for scored in SageRetriever(graph, similarity_top_k=2).retrieve(VENUE_QUESTION)
    }
    assert mentions(graph) == mentions(
        SageGraph.from_nodes(nodes_of(index), encoder=None)
    )


def test_a_graph_takes_what_its_class_took(documents: list[Document]) -> None:
    graph = SageGraph.from_nodes(split(documents), encoder=None)
    graph.add([Document(text="# Mole\n\nA tower in Turin.", id_="mole")])
    graph.add([TextNode(text="Turin lies on the Po.", id_="turin")])
    graph.add([graphret.Document("The Po is long.", id="po")])
    assert {"mole#0", "turin"} <= set(graph.nodes.ids)
    assert graph.remove(["mole"]) == ["mole#0"]
    with pytest.raises(InvalidInput, match=r"graphret.read.*llama_index"):
        graphret.SageGraph.build(documents)
    assert "Stadion Poljud" in {
        node.name
        for node in graphret.SageGraph.build(
            graphret.read(documents), encoder=None
        ).nodes
    }


def test_a_graph_is_brought_to_what_a_reader_reads_now(
    documents: list[Document],
) -> None:
    graph = SageGraph.from_documents(documents, encoder=None)
    assert not graph.refresh(documents)
    done = graph.refresh(documents[1:])
    assert done.deleted
    assert done == Changes(deleted=done.deleted)
    assert [*graph.nodes] == [
        *SageGraph.from_documents(documents[1:], encoder=None).nodes
    ]


# -- embeddings


def test_nothing_is_embedded_again(world: World) -> None:
    embedding = HashEmbedding()
    index = VectorStoreIndex(list(world.nodes), embed_model=embedding)
    embedding._texts.clear()
    graph = SageGraph.from_index(index)
    assert embedding._texts == []
    assert embedding._queries == []
    assert len(graph) == len(world.nodes)
    embeddings = np.asarray(
        [index.vector_store.get(node_id) for node_id in graph.nodes.ids]
    )  # type: ignore[attr-defined]
    assert graph.index.dense is not None
    graph.as_retriever().retrieve("a stadium")
    assert embedding._queries == ["a stadium"]
    assert np.allclose(
        graph.index.dense.vectors,
        embeddings / np.linalg.norm(embeddings, axis=1, keepdims=True),
        atol=1e-6,
    )


def test_an_encoder_is_a_llama_index_model_and_the_graph_s_own(
    world: World, tmp_path: Any
) -> None:
    encoder = HashingEncoder()
    model = EncoderEmbedding(encoder)
    index = VectorStoreIndex(list(world.nodes), embed_model=model)
    texts = [node.get_content(metadata_mode=MetadataMode.EMBED) for node in world.nodes]
    assert encoder.encoded == texts
    graph = SageGraph.from_index(index)
    assert encoder.encoded == texts
    assert graph.encoder is not None
    assert graph.encoder.name == encoder.name
    assert model.get_query_embedding("x") == asyncio.run(
        model.aget_query_embedding("x")
    )
    assert model.get_text_embedding("x") == asyncio.run(model.aget_text_embedding("x"))
    graph.save(tmp_path / "g")
    opened = CoreGraph.load(tmp_path / "g", encoder=encoder)
    assert (
        opened.retriever().retrieve("stadium", 5).ids
        == graph.retriever().retrieve("stadium", 5).ids
    )
    with pytest.raises(InvalidInput, match="encoder"):
        EncoderEmbedding(None)


LONG = "The pool of Poljud has ten lanes. " * 12


@pytest.mark.parametrize("splitter", [SentenceSplitter, SageNodeParser])
def test_a_changed_document_takes_the_place_of_its_chunks(splitter: Any) -> None:
    pipeline = IngestionPipeline(
        transformations=[
            SentenceSplitter(chunk_size=64, chunk_overlap=8)
            if splitter is SentenceSplitter
            else SageNodeParser()
        ],
        docstore=SimpleDocumentStore(),
        vector_store=SimpleVectorStore(),
        docstore_strategy="upserts",
        disable_cache=True,
    )

    def run(pool: str) -> list[BaseNode]:
        documents = [
            LlamaDocument(text=pool, doc_id="pool"),
            LlamaDocument(text=f"The hall of Gripe. {LONG}", doc_id="hall"),
        ]
        nodes = pipeline.run(documents=documents)
        return [node.model_copy(update={"embedding": None}) for node in nodes]

    graph = SageGraph.from_nodes(run(f"The pool is open. {LONG * 3}"), encoder=None)
    before = {node.id for node in graph.nodes}
    halls = {node.id for node in graph.nodes if node.properties["source_id"] == "hall"}
    added = graph.add_nodes(run(f"The pool is closed. {LONG * 2}"))
    assert {node.id for node in graph.nodes} == halls | {*added}
    assert before > halls
    [first, *_] = graph.as_retriever(k=3).retrieve("is the pool open or closed")
    assert "closed" in first.text
    graph.add([LlamaDocument(text="The pool is gone.", doc_id="pool")])
    texts = [node.text for node in graph.nodes if node.id not in halls]
    assert texts == ["The pool is gone."]


def test_pieces_of_a_document_can_be_added_one_after_the_other() -> None:
    document = LlamaDocument(text=f"The pool. {LONG * 3}", doc_id="pool")
    cut = SentenceSplitter(chunk_size=64, chunk_overlap=16)
    pieces = cut.get_nodes_from_documents([document])
    graph = SageGraph.from_nodes(pieces[:3], encoder=None)
    graph.add_nodes(pieces[3:])
    assert len(graph) == len(pieces) > 6
    again = cut.get_nodes_from_documents([document])
    graph.add_nodes(again, replace_documents=False)
    assert len(graph) == 2 * len(pieces)


def test_what_gives_no_nodes_out_is_a_clear_error(world: World) -> None:
    with pytest.raises(InvalidInput, match=r"SimpleVectorStore.*from_nodes"):
        SageGraph.from_index(VectorStoreIndex([], embed_model=HashEmbedding()))
    with pytest.raises(InvalidInput, match="VectorStoreIndex"):
        SageGraph.from_index(world.graph)  # type: ignore[arg-type]


#: Metadata of names that mean something to graphret, with values of all kinds.
ODD: dict[str, Any] = {
    "title": "",
    "name": ["x", None],
    "source_id": "s",
    "chunk_index": 0.5,
    "table_rows": [["a"]],
    "extracted": {"n": True},
    "label": None,
    "a.b": 2**40,
    "ü": "",
}


def same(one: Any, other: Any) -> None:
    """Two LlamaIndex nodes are alike in everything that LlamaIndex looks at."""
    assert type(one) is type(other)
    assert one == other
    assert one.hash == other.hash
    for mode in MetadataMode:
        assert one.get_content(metadata_mode=mode) == other.get_content(
            metadata_mode=mode
        )


@pytest.mark.parametrize(
    "node",
    [
        TextNode(id_="empty"),
        TextNode(text="ü", id_="odd", metadata=ODD),
        TextNode(
            text="x", id_="made", metadata={"llama_index": {"class_name": "TextNode"}}
        ),
        TextNode(
            text="told",
            id_="full",
            metadata={"page": 3},
            excluded_llm_metadata_keys=["page"],
            relationships={
                NodeRelationship.SOURCE: RelatedNodeInfo(
                    node_id="d", node_type=ObjectType.DOCUMENT, metadata=ODD, hash="h"
                ),
                NodeRelationship.NEXT: RelatedNodeInfo(node_id="n"),
            },
            metadata_template="{key}={value}",
            text_template="{content} ({metadata_str})",
            start_char_idx=7,
        ),
        LlamaDocument(text="x", id_="d", metadata={"a": [1]}),
        ImageNode(text="caption", image_url="http://example.org/y.png", id_="i"),
        IndexNode(
            text="q", index_id="other", id_="z", obj=TextNode(text="inner", id_="in")
        ),
        MediaNode(
            id_="m",
            text_resource=MediaResource(text="t"),
            image_resource=MediaResource(url="http://a.org/c.png"),
        ),
    ],
    ids=lambda node: f"{type(node).__name__}-{node.node_id}",
)
def test_a_node_of_llama_index_comes_back_as_it_was(node: Any) -> None:
    same(to_llama_node(from_llama_node(node)), node)


@pytest.mark.parametrize(
    "properties", [{}, ODD | {"extracted": ["topic"], "topic": "towns"}]
)
@pytest.mark.parametrize(
    ("name", "text"),
    [("", ""), ("Bonn", ""), ("", "It lies on the Rhine."), ("Bonn", "It.")],
)
def test_a_graphret_node_comes_back_as_it_was(
    name: str, text: str, properties: dict[str, Any]
) -> None:
    node = Node("a", ("City", "Place"), name, text, properties)
    assert from_llama_node(to_llama_node(node)) == node


def test_a_vector_store_s_flat_metadata_keep_a_table_segment() -> None:
    table = Table(
        ["City", "Year"],
        [["Bonn", "1949"]],
        id="t",
        title="Capitals",
        section="Germany",
    )
    [node] = describe(to_nodes([table]), HeuristicMetadata())
    flat = node_to_metadata_dict(to_llama_node(node), flat_metadata=True)
    assert from_llama_node(metadata_dict_to_node(flat)) == node


def test_what_graphret_made_is_in_no_text_of_a_node() -> None:
    document = graphret.Document(
        "Bonn was the capital. It lies on the Rhine.",
        id="d",
        title="Bonn",
        metadata={"year": 1949},
    )
    [node] = describe(to_nodes([document]), HeuristicMetadata())
    llama_node = to_llama_node(node)
    for mode in (MetadataMode.LLM, MetadataMode.EMBED):
        assert (
            llama_node.get_content(metadata_mode=mode)
            == f"title: Bonn\nyear: 1949\n\n{document.text}"
        )
    assert llama_node.ref_doc_id == "d"
    assert (llama_node.start_char_idx, llama_node.end_char_idx) == (
        0,
        len(document.text),
    )


def test_metadata_that_are_no_json_are_refused_by_name() -> None:
    with pytest.raises(InvalidInput, match=r"node 'a'.*metadata.*'when'"):
        from_llama_node(TextNode(text="x", id_="a", metadata={"when": object()}))


# -- the parser


ROWS = "\n".join(f"| Team {i} | Park {i} | {1900 + i} |" for i in range(12))
PAGE = f"""# Ballparks

Ballparks are fields for baseball. Each of them has a story of its own.

## Teams

These are the teams.

| Team | Park | Opened |
| --- | --- | --- |
{ROWS}

## After

The story goes on here. It is a long one.
"""


def relation(node: Any, name: str) -> str | None:
    related = node.relationships.get(NodeRelationship[name])
    return None if related is None else related.node_id


def test_a_document_with_a_table_is_cut_into_text_and_rows() -> None:
    document = LlamaDocument(text=PAGE, id_="page", metadata={"lang": "en", "when": 3})
    nodes = SageNodeParser().get_nodes_from_documents([document])
    assert [node.node_id for node in nodes] == [
        "page#0",
        "page/table-0#0",
        "page/table-0#1",
    ]
    assert all(relation(node, "SOURCE") == "page" for node in nodes)
    assert all(
        node.relationships[NodeRelationship.SOURCE].hash == document.hash
        for node in nodes
    )  # type: ignore[union-attr]
    assert [relation(node, "NEXT") for node in nodes] == [
        "page/table-0#0",
        "page/table-0#1",
        None,
    ]
    assert [relation(node, "PREVIOUS") for node in nodes] == [
        None,
        "page#0",
        "page/table-0#0",
    ]
    assert all(
        (node.metadata["lang"], node.metadata["when"]) == ("en", 3) for node in nodes
    )
    text, first, second = nodes
    assert "Team 1 " not in text.get_content()
    assert "Team 0 | Park 0 | 1900" in first.get_content()
    assert "Team 11 | Park 11 | 1911" in second.get_content()
    segment = from_llama_node(first)
    assert segment.labels == ("Table",)
    assert segment.properties["table_header"] == ["Team", "Park", "Opened"]
    assert segment.properties["section"] == "Teams"
    assert len(segment.properties["table_rows"]) == 6


ORDER = [FilterOperator.GT, FilterOperator.GTE, FilterOperator.LT, FilterOperator.LTE]
LISTS = [FilterOperator.IN, FilterOperator.NIN]


NUMBER, WORD = st.integers(0, 3), st.sampled_from(["a", "b", "ab", ""])
EQUAL = [FilterOperator.EQ, FilterOperator.NE]
TEXT = [FilterOperator.TEXT_MATCH, FilterOperator.TEXT_MATCH_INSENSITIVE]


def leaf(
    key: str, value: st.SearchStrategy[Any], operators: list[FilterOperator]
) -> st.SearchStrategy[MetadataFilter]:
    return st.builds(
        MetadataFilter,
        key=st.just(key),
        value=value,
        operator=st.sampled_from(operators),
    )


#: Filters whose values fit the kind of their key: ``n`` holds numbers, ``s`` strings,
#: ``l`` lists of strings.
LEAVES = st.one_of(
    leaf("n", NUMBER, EQUAL + ORDER),
    leaf("n", st.lists(NUMBER, max_size=2), LISTS),
    leaf("s", WORD, [*EQUAL, *ORDER, FilterOperator.CONTAINS]),
    leaf("s", st.sampled_from(["a", "B", "Ab", ""]), TEXT),
    leaf("l", WORD, [FilterOperator.CONTAINS]),
    leaf(
        "l",
        st.lists(WORD, min_size=1, max_size=2),
        [FilterOperator.ANY, FilterOperator.ALL],
    ),
    *(leaf(key, st.none(), [FilterOperator.IS_EMPTY]) for key in "nsl"),
)

properties = st.fixed_dictionaries(
    {},
    optional={
        "n": NUMBER,
        "s": WORD,
        "l": st.lists(st.sampled_from(["a", "b"]), max_size=2),
    },
)


@settings(max_examples=60)
@given(
    st.lists(LEAVES, min_size=1, max_size=3),
    st.sampled_from(list(FilterCondition)),
    properties,
)
def test_filters_match_as_they_do_in_llama_index(
    filters: list[MetadataFilter],
    condition: FilterCondition,
    given_properties: dict[str, Any],
) -> None:
    both = MetadataFilters(filters=filters, condition=condition)
    expected = build_metadata_filter_fn(lambda _: given_properties, both)("x")
    where = to_where(both)
    assert where is not None
    assert where.matches(Node("x", properties=given_properties)) is expected


def test_an_operator_without_counterpart_is_refused_by_name() -> None:
    metadata_filter = MetadataFilter(
        key="title", value="x", operator=FilterOperator.ANY
    )
    with pytest.raises(InvalidInput, match=r"any.*title"):
        to_where(MetadataFilters(filters=[metadata_filter]))


@pytest.mark.parametrize("key", ["id", "name", "text", "label", "title"])
def test_a_key_is_one_of_the_metadata_whatever_it_is_called(key: str) -> None:
    node = from_llama_node(
        TextNode(
            id_="a", text="b", metadata={"title": "c", "name": "d"} | {key: "mine"}
        )
    )
    filters = MetadataFilters(filters=[MetadataFilter(key=key, value="mine")])
    where = to_where(filters)
    assert where is not None
    assert where.matches(node)
    bare = from_llama_node(TextNode(id_="mine", text="mine"))
    assert not where.matches(bare)
