"""Documents and nodes in both directions, evidence, loaders and stores."""

from __future__ import annotations

import json
import random
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import chromadb
import numpy as np
import pytest
from chromadb.config import Settings
from faiss import IndexFlatL2
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_chroma import Chroma
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.indexing import InMemoryRecordManager, index
from langchain_core.stores import BaseStore, InMemoryStore
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore
from langchain_text_splitters import (
    MarkdownHeaderTextSplitter,
    RecursiveCharacterTextSplitter,
)
from tests_support import VENUE_QUESTION, mentions

import graphret
from graphret.corpus import HeuristicMetadata
from graphret.errors import InvalidInput
from graphret.types import Evidence, Hit, Node
from langchain_graphret import (
    KEY,
    SageGraph,
    SageRetriever,
    evidence_of,
    from_document,
    to_document,
)
from langchain_graphret.graph import documents_of

TEXT = st.text(st.characters(codec="utf-8"), max_size=12)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**40), 2**40)
    | st.floats(allow_nan=False, allow_infinity=False)
)
JSON = st.recursive(
    SCALARS | TEXT,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3)
    ),
)
PROPERTY = (
    st.sampled_from(
        [
            "title",
            "name",
            "source_id",
            "chunk_index",
            "table_rows",
            "extracted",
            "topic",
            "id",
        ]
    )
    | TEXT
)
PROPERTIES = st.dictionaries(PROPERTY.filter(lambda key: key != KEY), JSON, max_size=5)
NODES = st.builds(
    Node,
    id=TEXT.filter(bool),
    labels=st.lists(TEXT.filter(bool), max_size=3).map(tuple),
    name=TEXT,
    text=TEXT,
    properties=PROPERTIES,
)
EVIDENCE = st.builds(
    Evidence,
    kind=st.sampled_from(["seed", "neighbor", "rank", "fill"]),
    source=st.none() | TEXT,
    relation=st.none() | TEXT,
    weight=st.none() | st.floats(0, 1),
    rank=st.none() | st.integers(1, 99),
    retriever=st.none() | TEXT,
    properties=st.dictionaries(TEXT, JSON, max_size=2),
)


@settings(max_examples=20)
@given(NODES, st.floats(-10, 10), st.lists(EVIDENCE, max_size=2))
def test_a_node_and_a_hit_come_back_from_their_documents(
    node: Node, score: float, evidence: list[Evidence]
) -> None:
    hit = Hit(node, score, tuple(evidence))
    document = to_document(hit)
    assert (document.id, document.page_content) == (node.id, node.text or node.name)
    assert from_document(document) == from_document(to_document(node)) == node
    assert evidence_of(document) == evidence


@settings(max_examples=20)
@given(TEXT.filter(bool), TEXT.filter(bool), PROPERTIES)
def test_a_document_comes_back_from_its_node(
    text: str, id_: str, metadata: dict[str, Any]
) -> None:
    if "source_id" in metadata or "extracted" in metadata:
        return  # what graphret's own corpora add, and take away again
    back = to_document(from_document(Document(text, id=id_, metadata=metadata)))
    assert back.metadata.pop(KEY)
    assert back == Document(text, id=id_, metadata=metadata)


def test_what_is_not_plain_json_becomes_so() -> None:
    evidence = Evidence(
        "neighbor",
        weight=np.float32(0.5),
        properties={"rows": (1, np.int64(2)), "at": np.arange(2)},
    )
    document = to_document(
        Hit(
            Node("a", properties={"size": np.float32(2.0), "tags": ("x",)}),
            np.float32(1.5),
            (evidence,),
        )
    )
    assert document.metadata["size"] == 2.0
    assert document.metadata["tags"] == ["x"]
    block = document.metadata[KEY]
    assert block["score"] == 1.5
    assert block["evidence"] == [
        {
            "kind": "neighbor",
            "weight": 0.5,
            "properties": {"rows": [1, 2], "at": [0, 1]},
        }
    ]
    json.dumps(document.metadata)


def test_a_users_own_entry_of_the_reserved_name_is_refused() -> None:
    document = Document("x", id="a", metadata={KEY: {"mine": 1}})
    for read in (
        from_document,
        evidence_of,
        lambda evidence: SageGraph.from_documents([evidence], None),
    ):
        with pytest.raises(InvalidInput, match="reserved for graphret"):
            read(document)


def test_metadata_that_is_not_json_is_refused_by_name() -> None:
    with pytest.raises(InvalidInput, match=r"document 'a'.*'when'|document 'a'.*when"):
        from_document(Document("x", id="a", metadata={"when": object()}))
    assert from_document(
        Document("x", id="a", metadata={"when": {1}}), strict=False
    ).properties == {"when": [1]}


with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    from langchain_community.docstore.in_memory import InMemoryDocstore
    from langchain_community.document_loaders import (
        CSVLoader,
        DirectoryLoader,
        TextLoader,
    )
    from langchain_community.vectorstores import FAISS


@pytest.fixture
def documents(venues: Path) -> list[Document]:
    rows = DirectoryLoader(str(venues), glob="*.csv", loader_cls=CSVLoader).load()
    return [
        *rows,
        *DirectoryLoader(str(venues), glob="*.md", loader_cls=TextLoader).load(),
    ]


def characters(documents: list[Document], *, shuffled: bool = False) -> list[Document]:
    made = RecursiveCharacterTextSplitter(
        chunk_size=300, chunk_overlap=40, add_start_index=shuffled
    ).split_documents(documents)
    if shuffled:
        random.Random(3).shuffle(made)
    return made


def headers(documents: list[Document]) -> list[Document]:
    splitter = MarkdownHeaderTextSplitter([("#", "Header 1"), ("##", "Header 2")])
    pages = [
        document
        for document in documents
        if document.metadata["source"].endswith(".md")
    ]
    parts = [
        (part, page)
        for page in pages
        for part in splitter.split_text(page.page_content)
    ]
    for part, page in parts:
        part.metadata |= page.metadata
    return [
        *(document for document in documents if document not in pages),
        *(part for part, _ in parts),
    ]


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
    retrieved = SageRetriever(graph, k=2).invoke(VENUE_QUESTION)
    assert any(
        "row 12 -MENTIONS→ Stadion Poljud" in str(evidence)
        for document in retrieved
        for evidence in evidence_of(document)
    )
    metadata_by_text = {document.page_content: document.metadata for document in chunks}
    for document in retrieved:
        assert {
            k: v for k, v in document.metadata.items() if k != "graphret"
        } == metadata_by_text[document.page_content]


def documents_store(documents: list[Document]) -> InMemoryStore:
    store = InMemoryStore()
    store.mset([(f"id-{n}", document) for n, document in enumerate(documents)])
    return store


def memory(documents: list[Document]) -> VectorStore:
    return InMemoryVectorStore.from_documents(
        documents, DeterministicFakeEmbedding(size=8)
    )


def chroma(documents: list[Document]) -> VectorStore:
    client = chromadb.EphemeralClient(Settings(anonymized_telemetry=False))
    options = {"client": client, "collection_name": f"venues-{random.random()}"}
    return Chroma.from_documents(
        documents, DeterministicFakeEmbedding(size=8), **options
    )


def faiss(documents: list[Document]) -> VectorStore:
    store = FAISS(
        DeterministicFakeEmbedding(size=8), IndexFlatL2(8), InMemoryDocstore(), {}
    )
    store.add_documents(documents)
    return store


@pytest.mark.parametrize(
    "kind",
    [documents_store, memory, chroma, faiss],
    ids=["docstore", "memory", "chroma", "faiss"],
)
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
    assert not graph.refresh(documents_of(store))

    gone = sorted(node.id for node in graph.nodes if node.name == "Stadion Poljud")
    new = Document(
        "# Stadion Poljud\n\nRebuilt. Its architect was Ada Lovelace.",
        metadata={"source": "poljud.md"},
    )
    if isinstance(store, BaseStore):
        store.mdelete(gone)
        store.mset([("new", new)])
    else:
        store.delete(gone)
        store.add_documents([new], ids=["new"])
    done = graph.refresh_from_store(store)
    assert (done.added, done.changed, sorted(done.deleted)) == (("new",), (), gone)
    assert "new" in [
        document.id for document in SageRetriever(graph, k=2).invoke(VENUE_QUESTION)
    ]


@pytest.mark.parametrize("start_index", [True, False])
def test_a_graph_follows_the_indexing_api(start_index: bool) -> None:
    cut = RecursiveCharacterTextSplitter(
        chunk_size=60, chunk_overlap=10, add_start_index=start_index
    )
    hall = Document("The hall of Gripe has ten courts.", metadata={"source": "hall.md"})

    def chunks(state: str, times: int) -> list[Document]:
        text = f"The pool is {state}. " + "It has ten lanes and a tower. " * times
        pool = Document(text, metadata={"source": "pool.md"})
        return cut.split_documents([pool, hall])

    store = InMemoryVectorStore(DeterministicFakeEmbedding(size=8))
    manager = InMemoryRecordManager("graph")
    manager.create_schema()
    options = {"cleanup": "incremental", "source_id_key": "source"}
    index(chunks("open", 6), manager, store, **options, key_encoder="sha256")
    followed = SageGraph.from_documents(store.get_by_ids(list(store.store)), None)
    added = SageGraph.from_documents(chunks("open", 6), None)
    index(chunks("closed", 3), manager, store, **options, key_encoder="sha256")
    followed.refresh_from_store(store)
    added.add(chunks("closed", 3))
    expected = sorted(chunk.page_content for chunk in chunks("closed", 3))
    for graph in (followed, added):
        assert sorted(node.text for node in graph.nodes) == expected
    [first, *_] = added.as_retriever(k=3).invoke("is the pool open or closed")
    assert "closed" in first.page_content
    added.add(chunks("open", 3), replace_documents=False)
    assert {"closed", "open"} <= {
        word for node in added.nodes for word in re.findall(r"\w+", node.text)
    }


def test_further_rows_and_pages_of_a_file_leave_the_others() -> None:
    def page(number: int, text: str) -> Document:
        return Document(text, metadata={"source": "report.pdf", "page": number})

    graph = SageGraph.from_documents([page(0, "first"), page(1, "second")], None)
    graph.add([page(2, "third")])
    assert len(graph) == 3
    graph.add([page(0, "new first"), page(1, "new second")])
    assert sorted(node.text for node in graph.nodes) == ["new first", "new second"]


def test_a_graph_takes_what_its_class_took(documents: list[Document]) -> None:
    graph = SageGraph.from_documents(documents, None)
    assert graph.add([Document("The Mole is a tower in Turin.", id="mole")]) == ["mole"]
    assert graph.add([graphret.Document("The Po is long.", id="po")]) == ["po"]
    core = graphret.SageGraph(
        graph.state, graph.settings, chunker=None, metadata=HeuristicMetadata()
    )
    with pytest.raises(InvalidInput, match=r"graphret.read.*langchain_core"):
        core.add(documents)
    with pytest.raises(
        InvalidInput, match=r"expected a LangChain Document, got builtins\.str"
    ):
        SageGraph.from_documents(["text"], None)  # type: ignore[list-item]
