"""Nodes that name the same entities, by an inverted index: never all pairs."""

from __future__ import annotations

from itertools import combinations_with_replacement

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from graphret.sage.facts import Facts
from graphret.sage.signals import ROLES
from graphret.sage.thresholds import ENTITY_RARITY, Candidates

#: The relation of nodes that share entities.
SHARES_ENTITY = "SHARES_ENTITY"

_PRODUCTS = 1 << 22  # that are in memory at once
_DECIMALS = 5


def overlap_pairs(facts: Facts, neighbors: int) -> list[Candidates]:
    """Return the pairs of nodes that share entities, by kind: for each node its `neighbors` best of each role.

    Their value, `ENTITY_RARITY`, is Σ over the shared entities of their inverse document frequency, as a share of the
    highest possible. Pairs of nodes from one item are left out: they share its title, and structure joins them.
    """
    bearers, n = facts.sets["entities"], len(facts.role)
    weighted = sp.csr_array(bearers.incidence.multiply(bearers.rarity[None, :])).astype(np.float32)
    transposed = sp.csr_array(bearers.incidence.T)
    cost = np.concatenate([[0], np.cumsum(bearers.incidence @ bearers.counts.astype(np.float64))])
    found = [(np.zeros(0, np.int64), np.zeros(0, np.float32))]
    start = 0
    while start < n:
        stop = int(np.searchsorted(cost, cost[start] + _PRODUCTS, side="right")) - 1
        stop = max(stop, start + 1)
        product = sp.coo_array(weighted[start:stop] @ transposed)
        found.append(_best(facts, product.row + np.int64(start), product.col.astype(np.int64), product.data, neighbors))
        start = stop
    keys, rarities = (np.concatenate(column) for column in zip(*found, strict=True))
    keys, first = np.unique(keys, return_index=True)
    low, high = np.divmod(keys, max(n, 1))
    rarity, roles = rarities[first], np.sort(np.stack([facts.role[low], facts.role[high]]), axis=0)
    candidates = []
    for one, other in combinations_with_replacement(range(len(ROLES)), 2):
        at = np.flatnonzero((roles[0] == one) & (roles[1] == other))
        if len(at):
            kind, values = f"{ROLES[one]}-{ROLES[other]}", {ENTITY_RARITY: rarity[at]}
            candidates.append(Candidates(kind, low[at], high[at], values))
    return candidates


def _best(
    facts: Facts, own: NDArray[np.int64], other: NDArray[np.int64], rarity: NDArray[np.float32], neighbors: int
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Return the best pairs of each node with each role, as ``low * n + high``, and their rarities."""
    kept = (own != other) & ~facts.same_source(own, other)
    own, other, rarity = own[kept], other[kept], np.round(rarity[kept], _DECIMALS)
    group = own * len(ROLES) + facts.role[other]
    order = np.lexsort((other, -rarity, group))
    group = group[order]
    order = order[np.arange(len(group)) - np.searchsorted(group, group) < neighbors]
    own, other = own[order], other[order]
    return np.minimum(own, other) * len(facts.role) + np.maximum(own, other), rarity[order]
