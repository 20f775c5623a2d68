"""The ranking of the SAGE paper: seeds, then the best of their neighbours."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphret.edges import NO_ROW
from graphret.expansion.frontier import (
    NO_EDGE,
    SHARES_NAME,
    Frontier,
    Links,
    RankedNodes,
    spread,
)
from graphret.search.hybrid import DEFAULT_ALPHA
from graphret.search.index import min_max

# The properties of edges that say what links their nodes.
_LINK_PROPERTIES = frozenset(("name", "column", "entities", "shared_entities"))

_CHECKED = 50


@dataclass(frozen=True)
class SageRanking:
    """The union of the k seeds and the k′ best of their one-hop neighbours.

    This is section 2.2 B and listing 1 of the SAGE paper. Neighbours are ranked by BM25
    and cosine, scaled over the neighbours alone. Of the best 50, or 5 k′ if that is
    more, those come first whose edge agrees with the question (section 2.1 B): the
    question says a shared entity, its name, its column or a cell of its row. Shared
    names, which the paper does not link by, do not count.

    Parameters
    ----------
    seed_share
        The share of the total that goes to seeds, rounded up; the paper gives totals
        only.
    alpha
        The share of BM25 in the scores of seeds and neighbours; `None` for that of the
        index.
    """

    seed_share: float = 0.7
    alpha: float | None = None
    name: str = "paper"

    @classmethod
    def paper(cls) -> SageRanking:
        """Return the ranking with the paper's share of BM25, 0.6 (appendix E)."""
        return cls(alpha=DEFAULT_ALPHA)

    def n_seeds(self, k: int) -> int:
        """How many seeds are needed for `k` hits."""
        return max(1, math.ceil(self.seed_share * k))

    def rank(self, frontier: Frontier, k: int) -> RankedNodes:
        """Rank the seeds, below them their neighbours."""
        seeds = frontier.seeds[: self.n_seeds(k)]
        links = frontier.incident(seeds, {SHARES_NAME: 0.0})
        neighbor_ends = np.concatenate([links.target, links.source])
        edges = np.concatenate([links.edges, links.edges])
        outside = (
            spread(neighbor_ends, seeds, np.ones(len(seeds), dtype=np.float32)) == 0
        )
        neighbors, first = np.unique(neighbor_ends[outside], return_index=True)
        via = edges[outside][first]
        index, query = frontier.index, frontier.query
        words = index.share_of_words(query)
        lexical = min_max(index.lexical.score_at(query, neighbors))
        dense = min_max(index.dense.score_at(query, neighbors)) if index.dense else 0.0
        scores = np.asarray(words * lexical + (1 - words) * dense, dtype=np.float32)
        order = np.lexsort((neighbors, -scores))
        near = order[: max(_CHECKED, 5 * (k - len(seeds)))]
        agrees = _agreement(links.take(np.searchsorted(links.edges, via[near])), query)
        order[: len(near)] = near[np.argsort(-agrees, kind="stable")]
        floor = frontier.node_scores(seeds).min(initial=0)
        ladder = floor * (
            1 - np.arange(1, len(order) + 1) / (len(order) + 1)
        )  # below every seed, in their order
        return RankedNodes(
            np.concatenate([seeds, neighbors[order]]),
            np.concatenate(
                [np.maximum.accumulate(frontier.node_scores(seeds)[::-1])[::-1], ladder]
            ).astype(np.float32),
            np.concatenate([np.full(len(seeds), NO_EDGE), via[order]]),
            {"links": len(links), "candidates": len(neighbors)},
        )


def _agreement(links: Links, query: str) -> NDArray[np.int64]:
    """Tell which edges are about something that the question says, ``(m,)``.

    That is an entity, a name, a column or a cell of the edge's row.
    """
    graph, analyzer = links.frontier.graph, links.frontier.index.lexical.analyzer
    question_terms = frozenset(analyzer(query))

    @cache
    def in_question(phrase: str) -> bool:
        terms = analyzer(phrase)
        return bool(terms) and question_terms.issuperset(terms)

    @cache
    def rows(position: int) -> list[list[str]]:
        return graph.nodes.properties[position].get("table_rows") or []

    def row_agrees(position: int, row: int) -> bool:
        return row != NO_ROW and any(
            in_question(cell)
            for cells in rows(position)[row : row + 1]
            for cell in cells
        )

    def edge_agrees(properties: Mapping[str, Any]) -> bool:
        listed = (
            value if isinstance(value, list) else [value]
            for key, value in properties.items()
            if key in _LINK_PROPERTIES
        )
        return any(
            in_question(phrase)
            for phrases in listed
            for phrase in phrases
            if isinstance(phrase, str)
        )

    columns = (links.source, links.source_row, links.target, links.target_row)
    edges = zip(
        graph.edges.properties.take(links.edges),
        *(column.tolist() for column in columns),
        strict=True,
    )
    return np.asarray(
        [
            edge_agrees(properties)
            or row_agrees(source, source_row)
            or row_agrees(target, target_row)
            for properties, source, source_row, target, target_row in edges
        ],
        dtype=np.int64,
    )
