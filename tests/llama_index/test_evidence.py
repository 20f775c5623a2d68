"""Evidence and scores where LlamaIndex copies nodes, writes them, cites them, cuts them off and fuses them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from llama_index.core.query_engine import CitationQueryEngine
from llama_index.core.schema import MetadataMode, NodeWithScore, TextNode
from llama_support import FixedRetriever, World
from workflows.context import JsonSerializer

from graphret import Document, Table
from graphret.errors import InvalidInput
from llama_index_graphret import (
    GraphReranker,
    LlamaIndexSeeds,
    SageExpansion,
    SageGraph,
    SageNodeWithScore,
    SageRetriever,
    evidence_of,
    from_llama_node,
)

CORPUS = [
    Table(["Year", "Stadium"], [["1986", "Neckarstadion"], ["1990", "Stadion Poljud"]], id="venues", title="Venues"),
    Document("It opened in 1979. Its architect was Boris Magaš.", id="poljud", title="Stadion Poljud"),
    Document("It opened in 1933. Its architect was Paul Bonatz.", id="neckar", title="Neckarstadion"),
    Document("Eggs are boiled for six minutes.", id="eggs", title="Eggs"),
]
ASKED = "Who was the architect of the stadium of 1990?"
ELSEWHERE = "Which enzyme repairs DNA in mitochondria?"


@pytest.fixture(scope="module")
def graph() -> SageGraph:
    return SageGraph.build(CORPUS, encoder=None)


def serialised(value: Any) -> Any:
    return JsonSerializer().deserialize(JsonSerializer().serialize(value))


@pytest.mark.parametrize(
    "through",
    [
        lambda one: TextNode.model_validate_json(one.node.model_dump_json()),
        lambda one: SageNodeWithScore.model_validate_json(one.model_dump_json()),
        lambda one: serialised({"nodes": [one]})["nodes"][0],  # the context of a workflow
    ],
)
@pytest.mark.parametrize("expanded", [False, True])
def test_evidence_outlives_json(
    graph: SageGraph, expanded: bool, through: Callable[[SageNodeWithScore], NodeWithScore]
) -> None:
    found = SageRetriever(graph, k=3).retrieve(ASKED)
    if expanded:
        handed = [NodeWithScore(node=TextNode(id_="poljud#0", text="It opened."), score=0.5)]
        found = SageExpansion(graph, k=3).postprocess_nodes(handed, query_str=ASKED)
    assert any(evidence.kind == "neighbor" for one in found for evidence in evidence_of(one))
    for one in found:
        assert isinstance(one, SageNodeWithScore)
        again = through(one)
        assert evidence_of(again) == evidence_of(one) == list(one.evidence)
        node = again.node if isinstance(again, NodeWithScore) else again
        assert (node.node_id, node.hash) == (one.node.node_id, one.node.hash)
        if isinstance(again, SageNodeWithScore):
            assert (again.score, again.raw_score) == (one.score, one.raw_score)


def test_evidence_outlives_citations(world: World) -> None:
    retriever = SageRetriever(world.graph, similarity_top_k=6)
    found = retriever.retrieve(world.questions[0].question)
    cited = CitationQueryEngine(retriever).query(world.questions[0].question).source_nodes
    assert cited[0].text.startswith("Source 1:")
    said = [[str(evidence_of(one)) for one in nodes] for nodes in (found, cited)]  # a node may be cited in pieces
    assert list(dict.fromkeys(said[1])) == list(dict.fromkeys(said[0]))


def test_evidence_is_in_no_text_and_in_no_graph_made_of_the_nodes(graph: SageGraph) -> None:
    given = TextNode(id_="mine", text="Stadion Poljud stands in Split.", metadata={"page": 3})
    kept = given.model_copy(deep=True)
    handed = [NodeWithScore(node=given, score=0.5)]
    [found, *_] = SageExpansion(graph).postprocess_nodes(handed, query_str=ASKED)
    [found, *_] = GraphReranker(Always(), k=1).postprocess_nodes([found], query_str=ASKED)
    assert given == kept
    assert evidence_of(found)
    assert found.node.hash == given.hash
    for mode in MetadataMode:
        assert found.node.get_content(metadata_mode=mode) == given.get_content(metadata_mode=mode)
    [hit] = LlamaIndexSeeds(FixedRetriever([found])).retrieve(ASKED, 1).hits
    assert hit.node == from_llama_node(given)


class Always:
    """Likes every node alike."""

    name = "always"

    def scores(self, query: str, hits: Any) -> list[float]:
        return [1.0] * len(hits)


@pytest.mark.parametrize(
    ("make", "own"), [(SageRetriever, "similarity_top_k"), (SageExpansion, "top_n"), (GraphReranker, "top_n")]
)
def test_k_is_another_name(graph: SageGraph, make: Callable[..., Any], own: str) -> None:
    first = Always() if make is GraphReranker else graph
    assert [getattr(make(first, **given), own) for given in ({}, {"k": 3}, {own: 4})] == [10, 3, 4]
    for wrong, named in (({"k": 3, own: 3}, own), ({"k": 0}, "k")):
        with pytest.raises(InvalidInput, match=named):
            make(first, **wrong)
