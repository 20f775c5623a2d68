"""What LangChain's own loaders, splitters and stores make gets the graph that files get."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable
from pathlib import Path

import chromadb
import pytest
from chromadb.config import Settings
from langchain_chroma import Chroma
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.stores import BaseStore, InMemoryStore
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore
from langchain_text_splitters import MarkdownHeaderTextSplitter, RecursiveCharacterTextSplitter
from venue_files import QUESTION, mentions

import graphret
from graphret.corpus import HeuristicMetadata
from graphret.errors import InvalidInput
from langchain_graphret import SageGraph, SageRetriever, evidence_of

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    from langchain_community.document_loaders import CSVLoader, DirectoryLoader, TextLoader


@pytest.fixture
def documents(venues: Path) -> list[Document]:
    rows = DirectoryLoader(str(venues), glob="*.csv", loader_cls=CSVLoader).load()
    return [*rows, *DirectoryLoader(str(venues), glob="*.md", loader_cls=TextLoader).load()]


def characters(documents: list[Document], *, shuffled: bool = False) -> list[Document]:
    made = RecursiveCharacterTextSplitter(chunk_size=300, chunk_overlap=40, add_start_index=shuffled).split_documents(
        documents
    )
    if shuffled:
        random.Random(3).shuffle(made)
    return made


def headers(documents: list[Document]) -> list[Document]:
    splitter = MarkdownHeaderTextSplitter([("#", "Header 1"), ("##", "Header 2")])
    pages = [document for document in documents if document.metadata["source"].endswith(".md")]
    parts = [(part, page) for page in pages for part in splitter.split_text(page.page_content)]
    for part, page in parts:
        part.metadata |= page.metadata
    return [*(document for document in documents if document not in pages), *(part for part, _ in parts)]


@pytest.mark.parametrize(
    "made",
    [characters, lambda documents: characters(documents, shuffled=True), headers, list],
    ids=["characters", "shuffled", "headers", "whole"],
)
def test_documents_get_the_links_of_the_files(
    documents: list[Document],
    venue_links: set[tuple[str, int, str]],
    made: Callable[[list[Document]], list[Document]],
) -> None:
    chunks = made(documents)
    graph = SageGraph.from_documents(chunks, None)
    assert mentions(graph) == venue_links
    found = SageRetriever(graph, k=2).invoke(QUESTION)
    assert any("row 12 -MENTIONS→ Stadion Poljud" in str(one) for document in found for one in evidence_of(document))
    given = {document.page_content: document.metadata for document in chunks}
    for document in found:
        assert {k: v for k, v in document.metadata.items() if k != "graphret"} == given[document.page_content]


def documents_store(documents: list[Document]) -> InMemoryStore:
    store = InMemoryStore()
    store.mset([(f"id-{n}", document) for n, document in enumerate(documents)])
    return store


def memory(documents: list[Document]) -> VectorStore:
    return InMemoryVectorStore.from_documents(documents, DeterministicFakeEmbedding(size=8))


def chroma(documents: list[Document]) -> VectorStore:
    client = chromadb.EphemeralClient(Settings(anonymized_telemetry=False))
    options = {"client": client, "collection_name": f"venues-{random.random()}"}
    return Chroma.from_documents(documents, DeterministicFakeEmbedding(size=8), **options)


@pytest.mark.parametrize("kind", [documents_store, memory, chroma], ids=["docstore", "memory", "chroma"])
def test_a_graph_follows_a_store(
    documents: list[Document],
    venue_links: set[tuple[str, int, str]],
    kind: Callable[[list[Document]], BaseStore[str, Document] | VectorStore],
) -> None:
    store = kind(characters(documents))
    graph = SageGraph.from_documents([Document("x", id="old")], None)
    assert graph.refresh_from_store(store).deleted == ("old",)
    assert mentions(graph) == venue_links
    assert not graph.refresh_from_store(store)

    gone = sorted(node.id for node in graph.nodes if node.name == "Stadion Poljud")
    new = Document("# Stadion Poljud\n\nRebuilt. Its architect was Ada Lovelace.", metadata={"source": "poljud.md"})
    if isinstance(store, BaseStore):
        store.mdelete(gone)
        store.mset([("new", new)])
    else:
        store.delete(gone)
        store.add_documents([new], ids=["new"])
    done = graph.refresh_from_store(store)
    assert (done.added, done.changed, sorted(done.deleted)) == (("new",), (), gone)
    assert "new" in [document.id for document in SageRetriever(graph, k=2).invoke(QUESTION)]


def test_a_graph_takes_what_its_class_took(documents: list[Document]) -> None:
    graph = SageGraph.from_documents(documents, None)
    assert graph.add([Document("The Mole is a tower in Turin.", id="mole")]) == ["mole"]
    assert graph.add([graphret.Document("The Po is long.", id="po")]) == ["po"]
    core = graphret.SageGraph(graph.state, graph.settings, chunker=None, metadata=HeuristicMetadata())
    with pytest.raises(InvalidInput, match=r"langchain_core.*graphret.read"):
        core.add(documents)
    with pytest.raises(InvalidInput, match=r"LangChain Document is expected, not builtins\.str"):
        SageGraph.from_documents(["text"], None)  # type: ignore[list-item]
