"""Rank by a rule of your own: a node counts more, the more good seeds link to it."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from graphret import SageGraph, read
from graphret.expansion import Frontier, RankedNodes
from graphret.expansion.frontier import best_of


@dataclass(frozen=True)
class Votes:
    """The score of a node, and a vote from each of the seeds that it is linked to."""

    vote: float = 0.3
    name: str = "votes"

    def n_seeds(self, k: int) -> int:
        return max(k, 20)

    def rank(self, frontier: Frontier, k: int) -> RankedNodes:
        links = frontier.incident(frontier.seeds[:20], {"SAME_SOURCE": 0.0})
        ends = np.concatenate([links.source, links.target])
        candidates = np.concatenate([frontier.seeds, ends])
        # The edge that brought a candidate is its evidence; a seed was brought by none.
        no_edge = np.full(len(frontier.seeds), -1)
        via = np.concatenate([no_edge, links.edges, links.edges])
        votes = np.concatenate([np.zeros(len(frontier.seeds)), np.bincount(ends)[ends]])
        scores = frontier.node_scores(candidates) + self.vote * votes
        return best_of(candidates, scores.astype(np.float32), via)


graph = SageGraph.build(read(Path(__file__).parent / "handbook"), encoder=None)
retriever = graph.retriever(Votes())
for hit in retriever.retrieve("backups of the database of Checkout", k=2):
    print(f"{hit.score:.2f}", hit.node.name, *hit.evidence, sep=" · ")
