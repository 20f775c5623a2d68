"""What a ranking sees of a question: its seeds, the graph around them, and how well
each node answers by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from graphret.edges import NO_ROW
from graphret.search.hybrid import HybridIndex
from graphret.stores.memory import Graph
from graphret.types import Evidence

#: No edge.
NONE = -1
#: The relation of chunks or segments made from one item; stored once, from the lower
#: position to the higher.
SAME_SOURCE = "SAME_SOURCE"
#: The relation from a source, or a row, to the source whose name it says.
MENTIONS = "MENTIONS"
#: The relation of texts that say the same name, which no node bears.
SHARES_NAME = "SHARES_NAME"

#: Factors on relations that join nodes which say the same, or which merely stand in one
#: source: such a pair answers no more of a question than its better half, so little or
#: nothing is passed along these by default. A link by a shared name is named here as it
#: joins the two chunks that say the name, and no others of their sources.
STRENGTH: Mapping[str, float] = {
    "IS_SIMILAR": 0.0,
    "SHARES_ENTITY": 0.0,
    "SAME_SOURCE": 0.0,
    "NEXT": 0.7,
    SHARES_NAME: 1.0,
}


@dataclass(frozen=True)
class Frontier:
    """A question at the nodes where it begins.

    Parameters
    ----------
    query
        The question.
    graph
        The nodes and edges that can be reached; positions below are those of its
        tables.
    index
        Text index over the same nodes.
    seeds
        Where the question begins, best first, ``(s,)``.
    seed_scores
        What the seed retriever says of them, scaled to 0 … 1, ``(s,)``; `None` when
        that is `index` itself.
    scores
        What the index of the whole graph says of every node here, scaled to 0 … 1,
        ``(n,)``; `None` when that is `index` itself.
    """

    query: str
    graph: Graph
    index: HybridIndex
    seeds: NDArray[np.int64]
    seed_scores: NDArray[np.float32] | None = None
    scores: NDArray[np.float32] | None = None

    def node_scores(self, positions: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return how well nodes answer by themselves: the hybrid score, 0 … 1, or the
        seed retriever's if higher.
        """
        own = (
            self.index.score_at(self.query, positions)
            if self.scores is None
            else self.scores[positions]
        )
        if self.seed_scores is None:
            return own
        return np.asarray(
            np.maximum(own, spread(positions, self.seeds, self.seed_scores)),
            dtype=np.float32,
        )

    def incident(
        self,
        positions: NDArray[np.int64],
        strength: Mapping[str, float],
        *,
        by_source: bool = False,
    ) -> Links:
        """Return the edges that touch nodes, without those whose strength is 0.

        Parameters
        ----------
        strength
            Factor on the weight of edges by relation; one that is not named counts 1.
        by_source
            Whether an edge of a relation that `strength` does not name joins all nodes
            of a source, at an end that is not about a part of its node: who names a
            source means the chunk that answers the question.
        """
        edges = self.graph.edges
        found = edges.incident(positions)
        links = self._links(found, edges.source[found], edges.target[found], strength)
        if not by_source or SAME_SOURCE not in edges.relations:
            return links
        of_source = np.asarray(
            [name not in strength for name in edges.relations], dtype=bool
        )
        near, beside = self._beside(positions)
        found = edges.incident(np.unique(beside))
        around = self._links(found, edges.source[found], edges.target[found], strength)
        around = around.take(of_source[edges.relation[around.edges]])
        links = links.joined(
            around.moved("source", beside, near), around.moved("target", beside, near)
        )
        for this, that in (("source", "target"), ("target", "source")):
            seeded = links.take(
                of_source[edges.relation[links.edges]]
                & np.isin(getattr(links, this), positions)
            )
            links = links.joined(
                seeded.moved(that, *self._beside(np.unique(getattr(seeded, that))))
            )
        return links

    def same_source(
        self, positions: NDArray[np.int64], ends: NDArray[Any]
    ) -> NDArray[np.bool_]:
        """Tell which nodes are the given ends of edges, or are of the same source as
        these.
        """
        same = positions == ends
        if SAME_SOURCE in self.graph.edges.relations:
            near, beside = self._beside(np.unique(positions))
            width = len(self.graph.nodes)
            same |= np.isin(positions * width + ends, near * width + beside)
        return np.asarray(same)

    def weights(
        self, found: NDArray[np.int64], strength: Mapping[str, float]
    ) -> NDArray[np.float32]:
        """Return the weights of edges, times the factors on their relations,
        ``(m,)``.
        """
        edges = self.graph.edges
        factors = np.asarray(
            [strength.get(name, 1.0) for name in edges.relations], dtype=np.float32
        )
        return np.asarray(edges.weight[found] * factors[edges.relation[found]])

    def _links(
        self,
        found: NDArray[np.int64],
        source: NDArray[Any],
        target: NDArray[Any],
        strength: Mapping[str, float],
    ) -> Links:
        edges, weights = self.graph.edges, self.weights(found, strength)
        ends = source.astype(np.int64), target.astype(np.int64)
        links = Links(
            self,
            found,
            weights,
            *ends,
            edges.source_row[found],
            edges.target_row[found],
        )
        return links.take((weights > 0) & (source != target))

    def _beside(
        self, positions: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return pairs of a node among `positions` and another one of its source."""
        edges = self.graph.edges
        found, which = edges.incident_each(positions)
        same = edges.relation[found] == edges.relations.index(SAME_SOURCE)
        found, near = found[same], positions[which[same]]
        return near, np.where(
            edges.source[found] == near, edges.target[found], edges.source[found]
        ).astype(np.int64)


@dataclass(frozen=True)
class Links:
    """Edges of a frontier's graph, in columns, ``(m,)`` each.

    Parameters
    ----------
    edges, strength
        The edges by position, and their weights by the ranking's factors.
    source, target
        The nodes that each joins: its ends, or other nodes of their sources.
    source_row, target_row
        The parts of them that each is about.
    """

    frontier: Frontier
    edges: NDArray[np.int64]
    strength: NDArray[np.float32]
    source: NDArray[np.int64]
    target: NDArray[np.int64]
    source_row: NDArray[np.int32]
    target_row: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.edges)

    def take(self, chosen: NDArray[np.int64] | NDArray[np.bool_]) -> Links:
        """Return some of the links."""
        return Links(self.frontier, *(getattr(self, name)[chosen] for name in _COLUMNS))

    def joined(self, *others: Links) -> Links:
        """Return these links and others."""
        columns = (
            np.concatenate([getattr(one, name) for one in (self, *others)])
            for name in _COLUMNS
        )
        return Links(self.frontier, *columns)

    def moved(
        self, end: str, near: NDArray[np.int64], beside: NDArray[np.int64]
    ) -> Links:
        """Return the links to the whole of nodes `near`, with the nodes `beside` these
        at that `end`.
        """
        whole = self.take(getattr(self, f"{end}_row") == NO_ROW)
        i, j = matches(getattr(whole, end), near)
        ends: dict[str, Any] = {end: beside[j]}
        moved = replace(whole.take(i), **ends)
        return moved.take(moved.source != moved.target)

    def joint_term_weights(self, phrases: float) -> NDArray[np.float32]:
        """Return the weights of the question's terms on the side that says each best,
        ``(m, t)``; see `term_weights`.
        """
        ends, parts = (
            np.append(self.source, self.target),
            np.append(self.source_row, self.target_row),
        )
        values, place = term_weights(self.frontier, ends, parts, phrases)
        return np.maximum(values[place[: len(self)]], values[place[len(self) :]])


_COLUMNS = ("edges", "strength", "source", "target", "source_row", "target_row")


def matches(
    keys: NDArray[np.int64], among: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return every pair of a place in `keys` and one in `among` that hold the same."""
    order = np.argsort(among, kind="stable")
    first, last = (
        np.searchsorted(among, keys, side, sorter=order) for side in ("left", "right")
    )
    which = np.repeat(np.arange(len(keys)), last - first)
    return (
        which,
        order[np.arange(len(which)) - np.searchsorted(which, which) + first[which]],
    )


def term_weights(
    frontier: Frontier,
    positions: NDArray[np.int64],
    parts: NDArray[np.int32],
    phrases: float,
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Return the term weights of the distinct places, and which place each pair of node
    and part is.

    A place is a node or, where there is one, a part of it. Behind the terms stand the
    question's phrases, as terms that count `phrases`.
    """
    width = int(parts.max(initial=0)) + 2
    places, inverse = np.unique(positions * width + parts + 1, return_inverse=True)
    nodes, part = places // width, places % width - 1
    lexical = frontier.index.lexical
    first = (
        lexical.terms.part_indptr
    )  # an edge that someone else wrote may name a row that its node does not have
    whole = (part == NO_ROW) | (part >= first[nodes + 1] - first[nodes])
    weights = np.empty(
        (len(places), len(lexical.term_ids(frontier.query))), dtype=np.float32
    )
    weights[whole] = lexical.term_weights(frontier.query, nodes[whole])
    weights[~whole] = lexical.row_term_weights(
        frontier.query, nodes[~whole], part[~whole].astype(np.int32)
    )
    if phrases:
        found = lexical.phrase_weights(
            frontier.query, nodes, np.where(whole, NO_ROW, part), weights
        )
        weights = np.hstack([weights, np.float32(phrases) * found])
    return weights, inverse


@dataclass(frozen=True)
class Ranked:
    """Nodes, best first, with the edge that brought each, `NONE` for those that stand
    by themselves.

    `told` says of given nodes why they stand where they do, where a ranking has more to
    say than its edges.
    """

    positions: NDArray[np.int64]
    scores: NDArray[np.float32]
    via: NDArray[np.int64]
    details: dict[str, float] = field(default_factory=dict)
    explain: Callable[[NDArray[np.int64]], Sequence[Evidence | None]] | None = None


@runtime_checkable
class Ranking(Protocol):
    """Ranks seeds and what the graph connects them to."""

    @property
    def name(self) -> str:
        """What traces call it."""
        ...

    def n_seeds(self, k: int) -> int:
        """How many seeds are needed for `k` hits."""
        ...

    def rank(self, frontier: Frontier, k: int) -> Ranked:
        """Return the candidates, best first, ties by position: any number of them, the
        first `k` are the answer.
        """
        ...


def best_of(
    positions: NDArray[np.int64],
    scores: NDArray[np.float32],
    via: NDArray[np.int64],
    **details: float,
) -> Ranked:
    """Rank candidates, each by the best of the scores it comes with, of equal ones the
    first; ties by position.
    """
    order = np.argsort(_falling(positions, scores), kind="stable")
    ordered = positions[order]
    first = np.ones(len(order), dtype=bool)
    first[1:] = ordered[1:] != ordered[:-1]
    kept = order[first]
    kept = kept[np.argsort(-scores[kept], kind="stable")]
    return Ranked(positions[kept], scores[kept], via[kept], details)


def _falling(
    positions: NDArray[np.int64], scores: NDArray[np.float32]
) -> NDArray[np.int64]:
    """Return one key each that rises with the position and, within it, as the score
    falls: one sort in place of two.
    """
    bits = (
        (np.asarray(scores, dtype=np.float32) + np.float32(0))
        .view(np.int32)
        .astype(np.int64)
    )
    rising = np.where(
        bits < 0, bits ^ 0x7FFFFFFF, bits
    )  # floats in the order of integers
    return np.asarray((positions.astype(np.int64) << 32) | (0x7FFFFFFF - rising))


def spread(
    positions: NDArray[np.int64], at: NDArray[np.int64], values: NDArray[Any]
) -> NDArray[Any]:
    """Return for each position the value that is given `at` it, 0 where none is; `at`
    are distinct, in any order.
    """
    out = np.zeros(len(positions), dtype=values.dtype)
    if len(at):
        order = np.argsort(at, kind="stable")
        place = order[
            np.minimum(np.searchsorted(at, positions, sorter=order), len(at) - 1)
        ]
        here = at[place] == positions
        out[here] = values[place[here]]
    return out
