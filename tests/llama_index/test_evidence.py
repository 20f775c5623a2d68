"""Evidence where LlamaIndex copies nodes, writes them and cites them; and what an expansion makes of given nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from llama_index.core.query_engine import CitationQueryEngine
from llama_index.core.schema import MetadataMode, NodeWithScore, TextNode
from llama_support import FixedRetriever, World, ids
from workflows.context import JsonSerializer

from graphret import Paper
from graphret.errors import InvalidInput
from llama_index_graphret import (
    GraphReranker,
    LlamaIndexSeeds,
    SageExpansion,
    SageNodeWithScore,
    SageRetriever,
    evidence_of,
    from_llama_node,
)


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
    world: World, question: str, expanded: bool, through: Callable[[SageNodeWithScore], NodeWithScore]
) -> None:
    found = SageRetriever(world.graph, k=6).retrieve(question)
    if expanded:
        found = SageExpansion(world.graph, k=6).postprocess_nodes(
            [NodeWithScore(node=found[0].node)], query_str=question
        )
    assert any(evidence.kind == "neighbor" for one in found for evidence in evidence_of(one))
    for one in found:
        assert isinstance(one, SageNodeWithScore)
        again = through(one)
        assert evidence_of(again) == evidence_of(one)
        node = again.node if isinstance(again, NodeWithScore) else again
        assert (node.node_id, node.hash) == (one.node.node_id, one.node.hash)
        if isinstance(again, SageNodeWithScore):
            assert (again.score, again.raw_score) == (one.score, one.raw_score)


def test_evidence_outlives_citations(world: World, question: str) -> None:
    retriever = SageRetriever(world.graph, similarity_top_k=6)
    found = retriever.retrieve(question)
    cited = CitationQueryEngine(retriever).query(question).source_nodes
    assert cited[0].text.startswith("Source 1:")
    said = [[str(evidence_of(one)) for one in nodes] for nodes in (found, cited)]  # a node may be cited in pieces
    assert list(dict.fromkeys(said[1])) == list(dict.fromkeys(said[0]))


def test_evidence_is_in_no_text_and_in_no_graph_made_of_the_nodes(world: World, question: str) -> None:
    given = TextNode(id_="mine", text="Stadion Poljud stands in Split.", metadata={"page": 3})
    kept = given.model_copy(deep=True)
    handed = [NodeWithScore(node=given, score=0.5)]
    [found, *_] = SageExpansion(world.graph).postprocess_nodes(handed, query_str=question)
    [found, *_] = GraphReranker(Always(), k=1).postprocess_nodes([found], query_str=question)
    assert given == kept
    assert evidence_of(found)
    assert found.node.hash == given.hash
    for mode in MetadataMode:
        assert found.node.get_content(metadata_mode=mode) == given.get_content(metadata_mode=mode)
    [hit] = LlamaIndexSeeds(FixedRetriever([found])).retrieve(question, 1).hits
    assert hit.node == from_llama_node(given)


class Always:
    """Likes every node alike."""

    name = "always"

    def scores(self, query: str, hits: Any) -> list[float]:
        return [1.0] * len(hits)


@pytest.mark.parametrize(
    ("make", "own"), [(SageRetriever, "similarity_top_k"), (SageExpansion, "top_n"), (GraphReranker, "top_n")]
)
def test_k_is_another_name(world: World, make: Callable[..., Any], own: str) -> None:
    first = Always() if make is GraphReranker else world.graph
    assert [getattr(make(first, **given), own) for given in ({}, {"k": 3}, {own: 4})] == [10, 3, 4]
    for wrong in ({"k": 3, own: 3}, {"k": 0}):
        with pytest.raises(InvalidInput, match="k"):
            make(first, **wrong)


# -- expansion


@pytest.fixture
def handed(world: World, question: str) -> list[NodeWithScore]:
    return world.index.as_retriever(similarity_top_k=4).retrieve(question)


def test_the_total_is_returned_and_what_was_handed_in_is_the_same(
    world: World, question: str, handed: list[NodeWithScore]
) -> None:
    before = [(one.node.hash, one.node.get_content(metadata_mode=MetadataMode.LLM), one.score) for one in handed]
    found = SageExpansion(world.graph, top_n=12).postprocess_nodes(handed, query_str=question)
    assert len(found) == 12
    assert set(ids(handed)) <= set(ids(found))
    originals = {node.node_id: node for node in world.nodes}
    assert all(one.node.hash == originals[one.node.node_id].hash for one in found)
    assert all(evidence_of(one) for one in found)
    assert [(n.node.hash, n.node.get_content(metadata_mode=MetadataMode.LLM), n.score) for n in handed] == before


def test_a_node_that_the_graph_lacks_keeps_its_place(world: World, question: str, handed: list[NodeWithScore]) -> None:
    first, last = (NodeWithScore(node=TextNode(id_=i, text=i), score=s) for i, s in (("new-1", 9.0), ("new-2", 0.0)))
    given = [first, *handed, last]
    found = SageExpansion(world.graph, top_n=30, ranking=Paper()).postprocess_nodes(given, query_str=question)
    assert ids(found)[:6] == ids(given)
    assert (found[0].node.hash, found[0].node.get_content()) == (first.node.hash, "new-1")
    scores = [one.score for one in found]
    assert scores == sorted(scores, reverse=True)  # type: ignore[type-var]
