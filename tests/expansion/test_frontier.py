"""`RankedNodes.of`: a ranking from scores and links alone."""

from __future__ import annotations

import numpy as np
import pytest

from graphret import Document, SageGraph
from graphret.expansion import Frontier, RankedNodes
from graphret.expansion.frontier import NO_EDGE
from graphret.types import Edge


@pytest.fixture
def frontier() -> Frontier:
    documents = [Document(f"It says {name}.", id=name, title=name) for name in "abcd"]
    edges = [
        Edge("a", "NEAR", "b", weight=0.2),
        Edge("b", "NEAR", "c", weight=0.9),
    ]
    graph = SageGraph.build(documents, encoder=None, edges=edges)
    return Frontier("who is near", graph.store.graph, graph.index, np.arange(4))


def test_the_strongest_link_is_the_reason_and_the_best_score_counts(
    frontier: Frontier,
) -> None:
    links = frontier.incident(frontier.seeds, {})
    ranked = RankedNodes.of([0, 1, 2, 3, 0], [0.1, 0.5, 0.5, 0.7, 0.9], links)
    assert ranked.positions.tolist() == [0, 3, 1, 2]
    assert ranked.scores.tolist() == pytest.approx([0.9, 0.7, 0.5, 0.5])
    weights = frontier.graph.edges.weight
    reasons = [None if v == NO_EDGE else float(weights[v]) for v in ranked.via]
    assert reasons == pytest.approx([0.2, None, 0.9, 0.9])


def test_without_links_every_node_stands_by_itself(frontier: Frontier) -> None:
    links = frontier.incident(frontier.seeds, {"NEAR": 0.0})
    ranked = RankedNodes.of(frontier.seeds, np.ones(4), links)
    assert len(links) == 0
    assert (ranked.via == NO_EDGE).all()
