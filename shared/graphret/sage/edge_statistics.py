"""What the similarity signals say of a graph's pairs, and how many edges come of them.

See SAGE, section 3.3, tables 3, 5 and 17 to 19, appendix B.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, Literal, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from graphret.errors import InvalidInput
from graphret.nodes import NodeTable
from graphret.numeric import unique
from graphret.sage.graph import SageGraph
from graphret.sage.neighbors import pair_numbers
from graphret.sage.signals import ROLES
from graphret.sage.similarity import (
    IS_SIMILAR,
    SHARES_ENTITY,
    CandidatePairs,
    SimilarityIndex,
)
from graphret.sage.state import SageState
from graphret.text import normalize_name

Logic: TypeAlias = Literal["or", "and"]
#: Values of a signal for each pair of nodes, ``(p,)``, NaN where it is not known.
Values: TypeAlias = "NDArray[np.float64]"

#: Classes of a histogram, and points of a scatter plot.
BINS, POINTS = 20, 400
#: The most entities or events of a node that are told apart in a histogram.
MOST = 10

_PAIRS = 100_000  # whose shared entities are counted at once


@dataclass(frozen=True, slots=True)
class EdgeCounts:
    """How many edges there are at one percentile and logic (SAGE, table 5).

    Parameters
    ----------
    edges
        Pairs of nodes that a similarity edge or a shared entity joins.
    kinds
        The same by kind of pair, such as ``document-table``.
    of_candidates
        `edges` as a share of the candidate pairs.
    degree, density
        Mean number of such neighbours of a node, and `edges` as a share of all pairs.
    components, isolated
        Connected components by these edges alone, and nodes with none.
    """

    edges: int
    kinds: dict[str, int]
    of_candidates: float
    degree: float
    density: float
    components: int
    isolated: int


@dataclass(frozen=True)
class Histogram:
    """How often values lie in each of several classes of one width."""

    low: float
    high: float
    counts: list[int]


@dataclass(frozen=True)
class PairStatistics:
    """What the signals say of the candidate pairs of one kind.

    See SAGE, table 3 and appendix B.2 to B.4.

    Parameters
    ----------
    kind
        Such as ``document-table``.
    pairs
        How many candidates there are.
    means
        The mean of each signal over the pairs of which it is known.
    correlations
        Pearson's, of every signal with every other in the order of `means`, over the
        pairs of which both are known; `None` where one of them does not vary.
    histograms
        Of each signal.
    points
        A sample of the pairs, as points of a scatter plot of two signals:
        ``{(signal, other): [(x, y), …]}``.
    """

    kind: str
    pairs: int
    means: dict[str, float]
    correlations: list[list[float | None]]
    histograms: dict[str, Histogram]
    points: dict[tuple[str, str], list[tuple[float, float]]]


def with_similarity(graph: SageGraph, percentile: float, logic: Logic) -> SageGraph:
    """Return the graph with similarity edges of another percentile and logic.

    They are as if it had been built with these; nothing is embedded again.
    """
    chosen = replace(graph.settings.similarity, percentile=percentile, logic=logic)
    connections = graph.state.connections
    similarity = replace(connections.similarity, settings=chosen)
    refitted = replace(connections, similarity=similarity).refitted()
    state = SageState.connected(graph.index, refitted, graph.state.explicit)
    settings = replace(graph.settings, similarity=chosen)
    return SageGraph(state, settings, chunker=graph.chunker, metadata=graph.metadata)


def similarity_of(graph: SageGraph) -> SimilarityIndex:
    """Return what the similarity edges of a graph come from.

    It raises `InvalidInput` where the graph has no embeddings.
    """
    if graph.index.dense is None:
        raise InvalidInput("encoder: the graph has none, and so no similarity edges")
    return graph.state.connections.similarity


def count_candidates(candidates: Sequence[CandidatePairs], n_nodes: int) -> int:
    """Return how many pairs of nodes are considered, by any relation."""
    return len(_distinct([(one.low, one.high) for one in candidates], n_nodes))


def edge_counts(graph: SageGraph, candidates: int) -> EdgeCounts:
    """Count the similarity edges and shared entities of a graph.

    `candidates` is how many candidate pairs there are.
    """
    similarity = similarity_of(graph)
    edges, n_nodes = graph.edges, len(graph)
    mask = edges.relation_mask((IS_SIMILAR, SHARES_ENTITY))
    if mask is not None:
        edges = edges.take(np.flatnonzero(mask[edges.relation]))
    pairs = _distinct([(edges.source, edges.target)], n_nodes)
    low, high = np.divmod(pairs, n_nodes)
    roles = np.sort(np.stack([similarity.role[low], similarity.role[high]]), axis=0)
    kinds = {
        f"{ROLES[one]}-{ROLES[other]}": int(
            ((roles[0] == one) & (roles[1] == other)).sum()
        )
        for one, other in sorted({*zip(*roles.tolist(), strict=True)})
    }
    joined = sp.coo_array((np.ones(len(low), bool), (low, high)), (n_nodes, n_nodes))
    degree = np.bincount(np.concatenate([low, high]), minlength=n_nodes)
    count, _ = connected_components(joined, directed=False)
    return EdgeCounts(
        edges=len(pairs),
        kinds=kinds,
        of_candidates=len(pairs) / candidates if candidates else 0.0,
        degree=float(degree.mean()),
        density=len(pairs) / (n_nodes * (n_nodes - 1) / 2) if n_nodes > 1 else 0.0,
        components=int(count),
        isolated=int((degree == 0).sum()),
    )


def pair_statistics(graph: SageGraph, seed: int = 0) -> list[PairStatistics]:
    """Return what the signals say of the candidate pairs of each kind.

    Beside the signals of the kind there are ``entity_count``, the entities that both
    nodes name, and, where metadata come from a model, ``event_count`` and
    ``entity_relationship_overlap``, the relationships that both state as a share of
    those that either states. The paper defines none of the three more closely.
    """
    similarity = similarity_of(graph)
    shared_entities = _entity_counter(similarity)
    events, relationships = (
        _parts(graph.nodes, name) for name in ("events", "relationships")
    )
    generator = np.random.default_rng(seed)
    found = []
    for group in similarity.candidates:
        if group.relation != IS_SIMILAR:
            continue
        values: dict[str, Values] = {
            # without the last digits, by which cosines of equal texts differ
            name: column.astype(np.float64).round(6)
            for name, column in group.values.items()
        }
        values["entity_count"] = shared_entities(group.low, group.high)
        pairs = list(zip(group.low.tolist(), group.high.tolist(), strict=True))
        if any(events):
            values["event_count"] = np.asarray(
                [len(events[low] & events[high]) for low, high in pairs], np.float64
            )
        if any(relationships):
            values["entity_relationship_overlap"] = np.asarray(
                [
                    _overlap(relationships[low], relationships[high])
                    for low, high in pairs
                ]
            )
        found.append(_statistics(group.kind, values, generator))
    return found


def counts_per_node(graph: SageGraph, name: str) -> dict[str, list[int]]:
    """Return, for each role, how many nodes have 0, 1, … entries of a property.

    The property is ``entities`` or ``events``; `MOST` and more count as one (SAGE,
    figures 5, 8 and 12).
    """
    role = similarity_of(graph).role
    lengths = np.asarray(
        [
            min(len(given), MOST) if isinstance(given, list) else 0
            for given in (own.get(name) for own in graph.nodes.properties)
        ]
    )
    return {
        ROLES[one]: np.bincount(lengths[role == one], minlength=MOST + 1).tolist()
        for one in sorted({*role.tolist()})
    }


def correlation(one: Values, other: Values) -> float | None:
    """Return Pearson's correlation over the pairs of which both signals are known.

    It is `None` where there are fewer than two such pairs, or one signal does not vary.
    """
    known = ~(np.isnan(one) | np.isnan(other))
    x, y = one[known], other[known]
    if len(x) < 2 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return None
    return round(float(np.corrcoef(x, y)[0, 1]), 3)


def _statistics(
    kind: str, values: Mapping[str, Values], generator: np.random.Generator
) -> PairStatistics:
    known = {
        name: column for name, column in values.items() if not np.isnan(column).all()
    }
    points = {}
    for one, other in combinations(known, 2):
        both = np.flatnonzero(~(np.isnan(known[one]) | np.isnan(known[other])))
        drawn = np.sort(generator.permutation(both)[:POINTS])
        x, y = known[one][drawn].round(3), known[other][drawn].round(3)
        points[one, other] = list(zip(x.tolist(), y.tolist(), strict=True))
    return PairStatistics(
        kind=kind,
        pairs=len(next(iter(values.values()))),
        means={name: float(np.nanmean(column)) for name, column in known.items()},
        correlations=[
            [correlation(one, other) for other in known.values()]
            for one in known.values()
        ],
        histograms={name: _histogram(column) for name, column in known.items()},
        points=points,
    )


def _histogram(values: Values) -> Histogram:
    counts, ends = np.histogram(values[~np.isnan(values)], bins=BINS)
    return Histogram(float(ends[0]), float(ends[-1]), counts.tolist())


def _distinct(
    pairs: Sequence[tuple[NDArray[Any], NDArray[Any]]], n_nodes: int
) -> NDArray[np.int64]:
    """Return a number for each distinct pair of nodes, in either direction."""
    numbers = (pair_numbers(one, other, n_nodes) for one, other in pairs)
    return unique(np.zeros(0, np.int64), *numbers)


def _entity_counter(
    similarity: SimilarityIndex,
) -> Callable[[NDArray[np.int64], NDArray[np.int64]], Values]:
    """Return a function that counts the entities each pair shares, common ones too."""
    n_nodes = len(similarity.nodes)
    borne = similarity.entities.bearers(n_nodes, np.arange(n_nodes)).incidence

    def count(low: NDArray[np.int64], high: NDArray[np.int64]) -> Values:
        counts = np.zeros(len(low))
        for start in range(0, len(low), _PAIRS):
            part = slice(start, start + _PAIRS)
            both = borne[low[part]].multiply(borne[high[part]])
            counts[part] = np.asarray(both.sum(axis=1)).ravel()
        return counts

    return count


def _parts(nodes: NodeTable, name: str) -> list[frozenset[str]]:
    """Return the entries of a property of each node as names that can be compared.

    The property is one such as ``events``.
    """
    return [
        frozenset(
            normalize_name(
                " ".join(map(str, one)) if isinstance(one, list) else str(one)
            )
            for one in own.get(name) or ()
        )
        for own in nodes.properties
    ]


def _overlap(one: frozenset[str], other: frozenset[str]) -> float:
    """Return what two sets share as a share of both; NaN where either is empty."""
    return len(one & other) / len(one | other) if one and other else float("nan")
