"""What LlamaIndex's own loaders, splitters, pipelines and vector stores make gets the graph that files get."""

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
from llama_index.core import Document, MockEmbedding, SimpleDirectoryReader, StorageContext, VectorStoreIndex
from llama_index.core.ingestion import IngestionPipeline
from llama_index.core.node_parser import MarkdownNodeParser, SentenceSplitter
from llama_index.core.schema import BaseNode, MetadataMode, TextNode
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.vector_stores import SimpleVectorStore
from llama_index.core.vector_stores.types import BasePydanticVectorStore
from llama_index.vector_stores.chroma import ChromaVectorStore
from llama_support import HashEmbedding, World
from tests_support import HashingEncoder
from venue_files import QUESTION, mentions

import graphret
from graphret import SageGraph as CoreGraph
from graphret.errors import InvalidInput
from llama_index_graphret import EncoderEmbedding, SageGraph, SageNodeParser, SageRetriever, evidence_of

NEW = "new"


@pytest.fixture
def documents(venues: Path) -> list[Document]:
    return list(SimpleDirectoryReader(venues, recursive=True).load_data())


def split(documents: list[Document]) -> list[BaseNode]:
    return SentenceSplitter(chunk_size=128, chunk_overlap=20).get_nodes_from_documents(documents)


def pipeline(documents: list[Document]) -> list[BaseNode]:
    return list(IngestionPipeline(transformations=[SageNodeParser()]).run(documents=documents))


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
    first, second = SageRetriever(graph, similarity_top_k=2).retrieve(QUESTION)
    given = {node.node_id: node for node in nodes}
    for found in (first, second):
        assert given[found.node_id].hash == found.node.hash
        assert found.node.get_content() == given[found.node_id].get_content()
    assert {"1990" in first.text, "1990" in second.text} == {True, False}
    evidence = [str(one) for found in (first, second) for one in evidence_of(found)]
    assert any("row 12 -MENTIONS→ Stadion Poljud (exact, column Stadium)" in one for one in evidence)


def chroma() -> ChromaVectorStore:
    client = chromadb.EphemeralClient(Settings(anonymized_telemetry=False))
    return ChromaVectorStore(client.get_or_create_collection(f"venues-{random.random()}"))


@pytest.fixture(params=[SimpleVectorStore, chroma], ids=["simple", "chroma"])
def index(request: pytest.FixtureRequest, documents: list[Document]) -> VectorStoreIndex:
    store: BasePydanticVectorStore = request.param()
    context = StorageContext.from_defaults(vector_store=store)
    return VectorStoreIndex(split(documents), storage_context=context, embed_model=MockEmbedding(8))


def test_an_index_gets_the_links_of_the_files_and_is_followed(
    index: VectorStoreIndex, venue_links: set[tuple[str, int, str]]
) -> None:
    graph = SageGraph.from_index(index, embeddings=False)
    assert mentions(graph) == venue_links
    assert not graph.refresh_from_index(index)

    poljud = [node for node in graph.nodes if node.name == "Stadion Poljud"]
    index.delete_ref_doc(poljud[0].properties["source_id"], delete_from_docstore=True)
    text = "# Stadion Poljud\n\nPoljud was rebuilt. Its architect was Ada Lovelace."
    index.insert_nodes([TextNode(text=text, id_=NEW, metadata={"file_name": "poljud.md"})])
    done = graph.refresh_from_index(index)
    assert (done.added, done.changed, set(done.deleted)) == ((NEW,), (), {node.id for node in poljud})
    assert str(done) == f"1 added, 0 changed, {len(poljud)} deleted"
    assert NEW in {found.node_id for found in SageRetriever(graph, similarity_top_k=2).retrieve(QUESTION)}
    assert mentions(graph) == mentions(SageGraph.from_index(index, embeddings=False))


def test_a_graph_takes_what_its_class_took(documents: list[Document]) -> None:
    graph = SageGraph.from_nodes(split(documents), encoder=None)
    graph.add([Document(text="# Mole\n\nA tower in Turin.", id_="mole")])
    graph.add([TextNode(text="Turin lies on the Po.", id_="turin")])
    graph.add([graphret.Document("The Po is long.", id="po")])
    assert {"mole#0", "turin"} <= set(graph.nodes.ids)
    assert graph.remove(["mole"]) == ["mole#0"]
    with pytest.raises(InvalidInput, match=r"llama_index.*graphret.read"):
        graphret.SageGraph.build(documents)
    assert "Stadion Poljud" in {
        node.name for node in graphret.SageGraph.build(graphret.read(documents), encoder=None).nodes
    }


# -- embeddings


def test_nothing_is_embedded_again(world: World) -> None:
    embedding = HashEmbedding()
    index = VectorStoreIndex(list(world.nodes), embed_model=embedding)
    embedding._texts.clear()
    graph = SageGraph.from_index(index)
    assert embedding._texts == []
    assert embedding._queries == []
    assert len(graph) == len(world.nodes)
    given = np.asarray([index.vector_store.get(node_id) for node_id in graph.nodes.ids])  # type: ignore[attr-defined]
    assert graph.index.dense is not None
    graph.as_retriever().retrieve("a stadium")
    assert embedding._queries == ["a stadium"]
    assert np.allclose(graph.index.dense.vectors, given / np.linalg.norm(given, axis=1, keepdims=True), atol=1e-6)


def test_an_encoder_is_a_llama_index_model_and_the_graph_s_own(world: World, tmp_path: Any) -> None:
    encoder = HashingEncoder()
    model = EncoderEmbedding(encoder)
    index = VectorStoreIndex(list(world.nodes), embed_model=model)
    texts = [node.get_content(metadata_mode=MetadataMode.EMBED) for node in world.nodes]
    assert encoder.encoded == texts
    graph = SageGraph.from_index(index)
    assert encoder.encoded == texts
    assert graph.encoder is not None
    assert graph.encoder.name == encoder.name
    assert model.get_query_embedding("x") == asyncio.run(model.aget_query_embedding("x"))
    assert model.get_text_embedding("x") == asyncio.run(model.aget_text_embedding("x"))
    graph.save(tmp_path / "g")
    opened = CoreGraph.load(tmp_path / "g", encoder=encoder)
    assert opened.retriever().retrieve("stadium", 5).ids == graph.retriever().retrieve("stadium", 5).ids
    with pytest.raises(InvalidInput, match="encoder"):
        EncoderEmbedding(None)


def test_what_gives_no_nodes_out_is_a_clear_error(world: World) -> None:
    with pytest.raises(InvalidInput, match=r"SimpleVectorStore.*from_nodes"):
        SageGraph.from_index(VectorStoreIndex([], embed_model=HashEmbedding()))
    with pytest.raises(InvalidInput, match="VectorStoreIndex"):
        SageGraph.from_index(world.graph)  # type: ignore[arg-type]
