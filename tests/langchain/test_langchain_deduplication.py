"""A node that several questions or retrievers find is one document, and keeps its evidence."""

from __future__ import annotations

import pytest
from corpora import QUESTION
from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda
from langchain_parts import DOCUMENTS, ListRetriever, by_id

from langchain_graphret import KEY, SageExpansion, SageGraph, SageRetriever, evidence_of

CITY = "Which ballpark is in the city of Wisconsin on Lake Michigan?"


@pytest.fixture(scope="module")
def graph() -> SageGraph:
    return SageGraph.from_documents(DOCUMENTS, None)


def unique(documents: list[Document]) -> list[Document]:
    """What `MultiQueryRetriever` does with what its questions found."""
    return [one for i, one in enumerate(documents) if one not in documents[:i]]


def test_a_node_that_two_questions_find_is_one_document(graph: SageGraph) -> None:
    retriever = SageRetriever(graph, k=len(DOCUMENTS))
    first, second = (retriever.invoke(question) for question in (QUESTION, CITY))
    assert [one.metadata[KEY]["score"] for one in first] != [one.metadata[KEY]["score"] for one in second]
    assert unique([*first, *second]) == first
    other = first[0].model_copy(deep=True)
    assert other == first[0]
    other.metadata[KEY]["name"] = "another node"
    assert other != first[0]
    assert other.metadata[KEY] != first[0].metadata[KEY]
    expanded = [one for q in (QUESTION, CITY) for one in SageExpansion(graph, k=5).compress_documents(DOCUMENTS[:2], q)]
    assert len(unique(expanded)) == 5


async def test_the_multi_query_retriever_takes_it_for_one(graph: SageGraph) -> None:
    retrievers = pytest.importorskip("langchain_classic.retrievers")
    questions = RunnableLambda(lambda _: [QUESTION, CITY])
    several = retrievers.MultiQueryRetriever(retriever=SageRetriever(graph, k=5), llm_chain=questions)
    for found in (several.invoke(QUESTION), await several.ainvoke(QUESTION)):
        assert len({one.id for one in found}) == len(found)
        assert all(map(evidence_of, found))


async def test_the_ensemble_retriever_keeps_the_evidence_of_its_first(graph: SageGraph) -> None:
    retrievers = pytest.importorskip("langchain_classic.retrievers")
    flat = ListRetriever(documents=by_id("opera", "milwaukee"))
    ensemble = retrievers.EnsembleRetriever(retrievers=[SageRetriever(graph, k=5), flat], weights=[0.3, 0.7])
    for found in (ensemble.invoke(QUESTION), await ensemble.ainvoke(QUESTION)):
        assert len({one.page_content for one in found}) == len(found) == 5
        assert all(map(evidence_of, found))
