"""What a ranking sees of a question: seeds, the graph around them, own scores."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graphret.edges import NO_ROW
from graphret.numeric import unique
from graphret.search.hybrid import HybridIndex
from graphret.stores.memory import Graph
from graphret.types import Evidence

Positions: TypeAlias = NDArray[np.int64]
Rows: TypeAlias = NDArray[np.int32]
Floats: TypeAlias = NDArray[np.float32]
Mask: TypeAlias = NDArray[np.bool_]

#: No edge.
NO_EDGE = -1
#: The relation of chunks or segments made from one item; stored once, from the lower
#: position to the higher.
SAME_SOURCE = "SAME_SOURCE"
#: The relation from a source, or a row, to the source whose name it says.
MENTIONS = "MENTIONS"
#: The relation of texts that share a name which is the name of no node.
SHARES_NAME = "SHARES_NAME"

#: Factors on relations that join similar nodes, or nodes of one source: such a pair
#: answers no more of a question than its better half, so little or nothing is passed
#: along them by default. `SHARES_NAME` is listed because it joins just the two chunks
#: that say the name, not all chunks of their sources.
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
    seeds: Positions
    seed_scores: Floats | None = None
    scores: Floats | None = None

    def node_scores(self, positions: Positions) -> Floats:
        """Return the higher of each node's hybrid and seed score, 0 … 1."""
        scores = (
            self.index.score_at(self.query, positions)
            if self.scores is None
            else self.scores[positions]
        )
        if self.seed_scores is None:
            return scores
        return np.asarray(
            np.maximum(scores, spread(positions, self.seeds, self.seed_scores)),
            dtype=np.float32,
        )

    def incident(
        self,
        positions: Positions,
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
            of a source, at an end that is not about a row of its node: a text that
            names a source refers to whichever chunk answers the question.
        """
        edges = self.graph.edges
        touching = edges.incident(positions)
        links = self._links(
            touching, edges.source[touching], edges.target[touching], strength
        )
        if not by_source or SAME_SOURCE not in edges.relations:
            return links
        of_source = np.asarray(
            [name not in strength for name in edges.relations], dtype=bool
        )
        return self._with_far_ends(
            self._with_near_ends(links, positions, strength, of_source),
            positions,
            of_source,
        )

    def _with_near_ends(
        self,
        links: Links,
        positions: Positions,
        strength: Mapping[str, float],
        of_source: Mask,
    ) -> Links:
        """Return the links, and those of the other nodes of the same sources.

        `of_source` says which relations join all nodes of a source.
        """
        edges = self.graph.edges
        near, beside = self._beside(positions)
        touching = edges.incident(unique(beside))
        around = self._links(
            touching, edges.source[touching], edges.target[touching], strength
        )
        around = around.take(of_source[edges.relation[around.edges]])
        return links.joined(
            around.moved("source", beside, near), around.moved("target", beside, near)
        )

    def _with_far_ends(
        self, links: Links, positions: Positions, of_source: Mask
    ) -> Links:
        """Return the links, and links to other nodes of the sources they lead to."""
        relation = self.graph.edges.relation
        for this, that in (("source", "target"), ("target", "source")):
            leads_on = of_source[relation[links.edges]]
            leads_on &= np.isin(getattr(links, this), positions)
            leading = links.take(leads_on)
            near, beside = self._beside(unique(getattr(leading, that)))
            links = links.joined(leading.moved(that, near, beside))
        return links

    def same_source(self, positions: Positions, edge_ends: NDArray[Any]) -> Mask:
        """Tell which nodes are the given edge ends, or share a source with them."""
        same = positions == edge_ends
        if SAME_SOURCE in self.graph.edges.relations:
            near, beside = self._beside(unique(positions))
            width = len(self.graph.nodes)
            same |= np.isin(positions * width + edge_ends, near * width + beside)
        return np.asarray(same)

    def weights(self, chosen: Positions, strength: Mapping[str, float]) -> Floats:
        """Return the weights of edges times their relations' factors, ``(m,)``."""
        edges = self.graph.edges
        factors = np.asarray(
            [strength.get(name, 1.0) for name in edges.relations], dtype=np.float32
        )
        return np.asarray(edges.weight[chosen] * factors[edges.relation[chosen]])

    def _links(
        self,
        chosen: Positions,
        source: NDArray[np.int32],
        target: NDArray[np.int32],
        strength: Mapping[str, float],
    ) -> Links:
        """Return chosen edges between given nodes, without those whose weight is 0."""
        edges, weights = self.graph.edges, self.weights(chosen, strength)
        links = Links(
            self,
            chosen,
            weights,
            source.astype(np.int64),
            target.astype(np.int64),
            edges.source_row[chosen],
            edges.target_row[chosen],
        )
        return links.take((weights > 0) & (source != target))

    def _beside(self, positions: Positions) -> tuple[Positions, Positions]:
        """Return pairs of a node among `positions` and another one of its source."""
        edges = self.graph.edges
        touching, which = edges.incident_each(positions)
        same = edges.relation[touching] == edges.relations.index(SAME_SOURCE)
        touching, near = touching[same], positions[which[same]]
        source, target = edges.source[touching], edges.target[touching]
        beside = np.where(source == near, target, source)
        return near, beside.astype(np.int64)


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
        The rows of them that each is about.
    """

    frontier: Frontier
    edges: Positions
    strength: Floats
    source: Positions
    target: Positions
    source_row: Rows
    target_row: Rows

    def __len__(self) -> int:
        return len(self.edges)

    @property
    def ends(self) -> Positions:
        """The nodes that the links join, ``(2 m,)``: all sources, then all targets."""
        return np.concatenate([self.source, self.target])

    def take(self, chosen: Positions | Mask) -> Links:
        """Return some of the links."""
        return Links(self.frontier, *(getattr(self, name)[chosen] for name in _COLUMNS))

    def joined(self, *others: Links) -> Links:
        """Return these links and others."""
        columns = (
            np.concatenate([getattr(links, name) for links in (self, *others)])
            for name in _COLUMNS
        )
        return Links(self.frontier, *columns)

    def moved(self, end: str, near: Positions, beside: Positions) -> Links:
        """Return the links about whole nodes `near`, with `end` moved to `beside`."""
        about_nodes = self.take(getattr(self, f"{end}_row") == NO_ROW)
        i, j = matches(getattr(about_nodes, end), near)
        moved_end: dict[str, Any] = {end: beside[j]}
        moved = replace(about_nodes.take(i), **moved_end)
        return moved.take(moved.source != moved.target)

    def joint_term_weights(self, phrases: float) -> Floats:
        """Return each term's weight on the side that covers it best, ``(m, t)``.

        The terms are the question's; see `term_weights`.
        """
        rows = np.append(self.source_row, self.target_row)
        weights = term_weights(self.frontier, self.ends, rows, phrases)
        return np.maximum(weights[: len(self)], weights[len(self) :])


_COLUMNS = ("edges", "strength", "source", "target", "source_row", "target_row")


def matches(keys: Positions, among: Positions) -> tuple[Positions, Positions]:
    """Return every pair of a place in `keys` and one in `among` with equal values."""
    order = np.argsort(among, kind="stable")
    first = np.searchsorted(among, keys, "left", sorter=order)
    last = np.searchsorted(among, keys, "right", sorter=order)
    which = np.repeat(np.arange(len(keys)), last - first)
    nth = np.arange(len(which)) - np.searchsorted(which, which)
    return which, order[nth + first[which]]


def term_weights(
    frontier: Frontier, positions: Positions, rows: Rows, phrases: float
) -> Floats:
    """Return the BM25F weight of each of the question's terms in nodes, ``(m, t)``.

    A row other than `NO_ROW` limits a node to that row. Columns for the question's
    phrases, weighted by `phrases`, follow those of the terms.
    """
    width = int(rows.max(initial=0)) + 2
    places, which = np.unique(positions * width + rows + 1, return_inverse=True)
    nodes, row = places // width, places % width - 1
    lexical, query = frontier.index.lexical, frontier.query
    # A user's own edge may name a row that its node does not have.
    row_indptr = lexical.terms.row_indptr
    n_rows = row_indptr[nodes + 1] - row_indptr[nodes]
    of_node = (row == NO_ROW) | (row >= n_rows)
    n_terms = len(lexical.term_ids(query))
    weights = np.empty((len(places), n_terms), dtype=np.float32)
    weights[of_node] = lexical.term_weights(query, nodes[of_node])
    weights[~of_node] = lexical.row_term_weights(
        query, nodes[~of_node], row[~of_node].astype(np.int32)
    )
    if phrases:
        row = np.where(of_node, NO_ROW, row)
        of_phrases = lexical.phrase_weights(query, nodes, row, weights)
        weights = np.hstack([weights, np.float32(phrases) * of_phrases])
    return weights[which]


@dataclass(frozen=True)
class RankedNodes:
    """Nodes, best first, with the edge that brought each.

    `RankedNodes.of` makes one from scores and links.

    Parameters
    ----------
    positions, scores
        The nodes and their scores, ``(n,)``.
    via
        The edge that brought each node, `NO_EDGE` for one that stands by itself.
    details
        What traces say about the ranking.
    explain
        Returns why given nodes rank where they do, for a ranking that has more to say
        than its edges.
    """

    positions: Positions
    scores: Floats
    via: Positions
    details: dict[str, float] = field(default_factory=dict)
    explain: Callable[[Positions], Sequence[Evidence | None]] | None = None

    @classmethod
    def of(cls, positions: ArrayLike, scores: ArrayLike, links: Links) -> RankedNodes:
        """Rank nodes by their scores, each with its strongest link as the reason.

        A node that comes twice counts by its better score; ties break by position.

        Parameters
        ----------
        positions, scores
            Nodes in any order and what each scores, ``(n,)``.
        links
            What the ranking followed. A node that none of them touches stands by
            itself.
        """
        nodes = np.asarray(positions, dtype=np.int64)
        strongest = best_of(
            links.ends, np.tile(links.strength, 2), np.tile(links.edges, 2)
        )
        via = spread(nodes, strongest.positions, strongest.via - NO_EDGE) + NO_EDGE
        return best_of(nodes, np.asarray(scores, np.float32), via, links=len(links))


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

    def rank(self, frontier: Frontier, k: int) -> RankedNodes:
        """Return any number of candidates, best first, ties by position.

        The first `k` are the answer.
        """
        ...


def best_of(
    positions: Positions,
    scores: Floats,
    via: Positions,
    **details: float,
) -> RankedNodes:
    """Rank candidates, each by its best score; ties by position.

    Of equal scores of a candidate the first counts.
    """
    order = np.argsort(_falling(positions, scores), kind="stable")
    ordered = positions[order]
    first = np.ones(len(order), dtype=bool)
    first[1:] = ordered[1:] != ordered[:-1]
    best = order[first]
    best = best[np.argsort(-scores[best], kind="stable")]
    return RankedNodes(positions[best], scores[best], via[best], details)


def _falling(positions: Positions, scores: Floats) -> Positions:
    """Return sort keys that rise with the position, then as the score falls.

    One sort by them replaces two.
    """
    # Adding 0 makes -0 the same as 0. Floats of one sign are in the order of their
    # bits, the negative ones in the reverse of it.
    bits = (scores.astype(np.float32) + np.float32(0)).view(np.int32).astype(np.int64)
    rising = np.where(bits < 0, bits ^ 0x7FFFFFFF, bits)
    keys: Positions = (positions.astype(np.int64) << 32) | (0x7FFFFFFF - rising)
    return keys


def spread(positions: Positions, at: Positions, values: NDArray[Any]) -> NDArray[Any]:
    """Return for each position the value given `at` it, or 0.

    `at` are distinct, in any order.
    """
    out = np.zeros(len(positions), dtype=values.dtype)
    if len(at):
        order = np.argsort(at, kind="stable")
        place = np.searchsorted(at, positions, sorter=order)
        nearest = order[np.minimum(place, len(at) - 1)]
        is_given = at[nearest] == positions
        out[is_given] = values[nearest[is_given]]
    return out
