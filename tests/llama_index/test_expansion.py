"""`SageExpansion`: what another retriever found, expanded."""

from __future__ import annotations

import asyncio

import pytest
from llama_index.core.schema import MetadataMode, NodeWithScore, TextNode
from llama_support import World, ids

from graphret import Paper
from graphret.errors import RetrievalFailed
from graphret.expansion.frontier import Frontier, Ranked
from llama_index_graphret import SageExpansion, evidence_of, retrieval_of


@pytest.fixture
def question(world: World) -> str:
    return world.questions[0].question


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


class Broken:
    """A ranking that fails."""

    name = "broken"

    def n_seeds(self, k: int) -> int:
        return k

    def rank(self, frontier: Frontier, k: int) -> Ranked:
        raise RuntimeError("no ranking today")


@pytest.mark.parametrize("awaited", [False, True])
def test_a_failing_expansion_hands_on_what_came_and_notes_it(
    world: World, question: str, handed: list[NodeWithScore], awaited: bool
) -> None:
    def run(expansion: SageExpansion) -> list[NodeWithScore]:
        if awaited:
            return asyncio.run(expansion.apostprocess_nodes(handed, query_str=question))
        return expansion.postprocess_nodes(handed, query_str=question)

    found = run(SageExpansion(world.graph, ranking=Broken(), top_n=3))
    assert [one.node.hash for one in found] == [one.node.hash for one in handed[:3]]
    retrieval = retrieval_of(found)
    assert retrieval is not None
    assert "no ranking today" in retrieval.trace.fallbacks[0].details["error"]
    with pytest.raises(RetrievalFailed, match="no ranking today"):
        run(SageExpansion(world.graph, ranking=Broken(), on_failure="raise"))
