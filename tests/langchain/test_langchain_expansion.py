"""`SageExpansion` around retrievers that are not graphret's."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.runnables import RunnablePassthrough
from langchain_parts import DOCUMENTS, ListRetriever, by_id

from graphret.errors import InvalidInput, ModelError, RetrievalFailed
from langchain_graphret import KEY, SageExpansion, SageGraph, evidence_of

CITY = "Which ballpark is in the city of Wisconsin on Lake Michigan?"


@pytest.fixture(scope="module")
def graph() -> SageGraph:
    return SageGraph.from_documents(DOCUMENTS, None)


def ids(documents: Any) -> list[str | None]:
    return [document.id for document in documents]


def test_documents_keep_id_text_and_metadata(graph: SageGraph) -> None:
    given = by_id("milwaukee", "opera")
    given[0].metadata.update(score=0.7, tags={"mine"})  # not JSON, and the user's own business
    before = [document.model_copy(deep=True) for document in given]
    found = {document.id: document for document in SageExpansion(graph=graph, k=5).compress_documents(given, CITY)}
    assert given == before
    for document in before:
        metadata = dict(found[document.id].metadata)
        assert metadata.pop(KEY)["evidence"][0] == {"kind": "seed", "rank": ids(before).index(document.id) + 1}
        assert metadata == document.metadata
        assert found[document.id].page_content == document.page_content


def test_documents_that_the_graph_does_not_know_keep_their_place(graph: SageGraph) -> None:
    stranger, other = Document("A stranger.", id="s"), Document("Another.", metadata={"when": {1}})
    expansion = SageExpansion(graph=graph, k=4)
    found = expansion.compress_documents([stranger, *by_id("milwaukee"), other], CITY)
    assert len(found) == 4
    assert found[0].page_content == "A stranger."
    assert found[2].page_content == "Another."
    assert found[2].metadata["when"] == {1}
    (evidence,) = evidence_of(found[0])
    assert (evidence.kind, evidence.rank, evidence.properties) == ("seed", 1, {"known": False})
    scores = [document.metadata[KEY]["score"] for document in found]
    assert scores == sorted(scores, reverse=True)


def test_a_graph_of_other_documents_is_told(graph: SageGraph, caplog: pytest.LogCaptureFixture) -> None:
    strangers = [Document(f"Stranger {i}.", id=f"s{i}") for i in range(3)]
    found = SageExpansion(graph=graph, k=2).compress_documents(strangers, CITY)
    assert ids(found) == ["s0", "s1"]
    assert "knows none of the documents" in caplog.text
    with pytest.raises(RetrievalFailed, match="knows none of the documents"):
        SageExpansion(graph=graph, on_failure="raise").compress_documents(strangers, CITY)


def test_a_filter_holds_for_documents_and_neighbours(graph: SageGraph) -> None:
    stranger = Document("A stranger.", id="s", metadata={"tenant": "a"})
    given = [*by_id("milwaukee", "sicks"), stranger, Document("None of ours.", id="t")]
    expansion = SageExpansion(graph=graph, where={"tenant": "a"})
    assert set(ids(expansion.compress_documents(given, CITY))) == {"milwaukee", "pilots", "opera", "s"}
    narrower = expansion.compress_documents(given, CITY, where={"year": {"$exists": True}})
    assert set(ids(narrower)) == {"pilots", "opera"}


async def test_it_is_a_runnable_after_any_retriever(graph: SageGraph) -> None:
    retriever = ListRetriever(documents=by_id("milwaukee"))
    expansion = SageExpansion(graph=graph, k=2)
    expected = expansion.compress_documents(by_id("milwaukee"), CITY)
    piped = {"query": RunnablePassthrough(), "documents": retriever} | expansion
    for chain in (piped, expansion.after(retriever)):
        assert chain.invoke(CITY) == expected
        assert chain.batch([CITY, CITY]) == [expected, expected]
        assert await chain.ainvoke(CITY) == expected
        assert await chain.abatch([CITY]) == [expected]
    assert set(retriever.asked) == {"invoke", "ainvoke"}
    given = {"query": CITY, "documents": by_id("milwaukee")}
    assert ids(await SageExpansion(graph=graph).ainvoke(given, where={"year": 1953})) == ["county"]
    assert SageExpansion(graph=graph, on_failure="raise").invoke({"query": CITY, "documents": []}, k=3) == []
    with pytest.raises(InvalidInput, match="'top_k'"):
        expansion.invoke(given, top_k=3)
    assert await expansion.acompress_documents(by_id("milwaukee"), CITY) == expected


class Broken:
    """A ranking that fails."""

    name = "broken"

    def n_seeds(self, k: int) -> int:
        return k

    def rank(self, frontier: Any, k: int) -> Any:
        raise ArithmeticError("the ranking broke")


async def test_an_expansion_that_fails_returns_the_documents_or_raises(
    graph: SageGraph, caplog: pytest.LogCaptureFixture
) -> None:
    given = [Document("A stranger.", id="s"), *by_id("milwaukee", "opera")]
    falling = SageExpansion(graph=graph, k=2, ranking=Broken())
    assert ids(falling.compress_documents(given, CITY)) == ["s", "milwaukee"]
    assert ids(await falling.acompress_documents(given, CITY)) == ["s", "milwaukee"]
    assert "the ranking broke" in caplog.text
    raising = SageExpansion(graph=graph, ranking=Broken(), on_failure="raise")
    with pytest.raises(RetrievalFailed, match="the ranking broke"):
        await raising.acompress_documents(given, CITY)


async def test_a_question_that_cannot_be_embedded_is_answered_by_its_words(
    encoder: Any, caplog: pytest.LogCaptureFixture
) -> None:
    class Failing(type(encoder)):  # type: ignore[misc]
        def encode_documents(self, texts: list[str], **options: Any) -> Any:
            return super().encode_queries(texts)

        def encode_queries(self, texts: list[str]) -> Any:
            raise ModelError("the encoder is gone")

    graph = SageGraph.from_documents(DOCUMENTS, Failing())
    found = await SageExpansion(graph, k=2).acompress_documents(by_id("milwaukee"), CITY)
    assert set(ids(found)) == {"milwaukee", "county"}
    assert len(graph.as_retriever(k=3).invoke(CITY)) == 3
    assert "the encoder is gone" in caplog.text
    after = SageExpansion(graph, on_failure="raise").after(ListRetriever(documents=DOCUMENTS))
    for raising in (after, graph.as_retriever(on_failure="raise")):
        with pytest.raises(RetrievalFailed, match="the encoder is gone"):
            await raising.ainvoke(CITY)
