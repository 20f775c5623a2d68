"""What LlamaIndex's own loaders, splitters, pipelines and vector stores make gets the graph that files get."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import chromadb
import pytest
from chromadb.config import Settings
from llama_index.core import Document, MockEmbedding, SimpleDirectoryReader, StorageContext, VectorStoreIndex
from llama_index.core.ingestion import IngestionPipeline
from llama_index.core.node_parser import MarkdownNodeParser, SentenceSplitter
from llama_index.core.schema import BaseNode, TextNode
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.vector_stores import SimpleVectorStore
from llama_index.core.vector_stores.types import BasePydanticVectorStore
from llama_index.vector_stores.chroma import ChromaVectorStore
from venue_files import QUESTION, mentions

import graphret
from graphret.errors import InvalidInput
from llama_index_graphret import SageGraph, SageNodeParser, SageRetriever, evidence_of

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
