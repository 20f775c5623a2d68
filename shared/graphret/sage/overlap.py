"""Nodes that name the same entities, by an inverted index: never all pairs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from graphret.sage.facts import Facts
from graphret.sage.signals import ROLES

#: The relation of nodes that share entities.
SHARES_ENTITY = "SHARES_ENTITY"

_PRODUCTS = 1 << 22
_ROW_BITS, _ROLE_BITS, _WEIGHT_BITS, _POSITION_BITS = 12, 2, 24, 25
_WEIGHT_UNIT = 1 << 17  # weights below 128 in steps of 1/131072


@dataclass(frozen=True, eq=False)
class OverlapPairs:
    """Pairs of nodes that share entities.

    Parameters
    ----------
    low, high
        Positions, the lower first, ``(p,)``, in ascending order.
    kind
        The kind of each pair: ``3 * lower role + higher role``, ``(p,)``.
    rarity
        Σ over the shared entities of their inverse document frequency, as a share of the highest possible, ``(p,)``.
    """

    low: NDArray[np.int64]
    high: NDArray[np.int64]
    kind: NDArray[np.int8]
    rarity: NDArray[np.float32]

    @property
    def weight(self) -> NDArray[np.float32]:
        """The weight of an edge, between 0 and 1: ``1 - exp(-rarity)``."""
        return np.asarray(-np.expm1(-self.rarity), dtype=np.float32)

    def at(self, chosen: NDArray[np.bool_] | NDArray[np.int64]) -> OverlapPairs:
        """Return some of the pairs."""
        return OverlapPairs(self.low[chosen], self.high[chosen], self.kind[chosen], self.rarity[chosen])


def kind_name(code: int) -> str:
    """Return the name of a kind of pair: ``"document-table"``."""
    return f"{ROLES[code // 3]}-{ROLES[code % 3]}"


def overlap_pairs(facts: Facts, neighbors: int, *, within_source: bool = False) -> OverlapPairs:
    """Return the pairs of nodes that share entities: for each node its `neighbors` best of each role.

    Pairs of nodes from one item are left out unless `within_source`: they share its title, and structure joins them.
    """
    bearers = facts.sets["entities"]
    n = len(facts.role)
    ends: list[NDArray[np.int64]] = []
    rarities: list[NDArray[np.float32]] = []
    if bearers.incidence.nnz:
        weighted = sp.csr_array(bearers.incidence.multiply(bearers.rarity[None, :])).astype(np.float32)
        transposed = sp.csr_array(bearers.incidence.T)
        cost = np.concatenate([[0], np.cumsum(bearers.incidence @ bearers.bearers.astype(np.float64))])
        start = 0
        while start < n:
            stop = int(np.searchsorted(cost, cost[start] + _PRODUCTS, side="right")) - 1
            stop = min(max(stop, start + 1), start + (1 << _ROW_BITS), n)
            keys, rarity = _best_of_block(facts, weighted, transposed, start, stop, neighbors, within_source)
            ends.append(keys)
            rarities.append(rarity)
            start = stop
    keys, first = np.unique(np.concatenate(ends) if ends else np.zeros(0, np.int64), return_index=True)
    rarity = (np.concatenate(rarities) if rarities else np.zeros(0, np.float32))[first]
    low, high = np.divmod(keys, max(n, 1))
    roles = facts.role[low].astype(np.int8), facts.role[high].astype(np.int8)
    return OverlapPairs(low, high, np.minimum(*roles) * 3 + np.maximum(*roles), rarity)


def _best_of_block(
    facts: Facts,
    weighted: sp.csr_array,
    transposed: sp.csr_array,
    start: int,
    stop: int,
    neighbors: int,
    within_source: bool,
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Return the pairs, as ``low * n + high``, that are among the best of the rows from `start` to `stop`."""
    n = len(facts.role)
    product = sp.coo_array(weighted[start:stop] @ transposed)
    row, other, value = product.row.astype(np.int64), product.col.astype(np.int64), product.data
    own = row + start
    kept = own != other
    if not within_source:
        kept &= ~facts.same_source(own, other)
    row, other, value = row[kept], other[kept], value[kept]
    steps = np.minimum(np.rint(value.astype(np.float64) * _WEIGHT_UNIT), (1 << _WEIGHT_BITS) - 1).astype(np.int64)
    # One sort of one integer: row, role of the other, falling weight, position of the other.
    key = (row << _ROLE_BITS) | facts.role[other]
    key = (((key << _WEIGHT_BITS) | ((1 << _WEIGHT_BITS) - 1 - steps)) << _POSITION_BITS) | other
    key.sort()
    group = key >> (_WEIGHT_BITS + _POSITION_BITS)
    rank = np.arange(len(group)) - np.searchsorted(group, group)
    key = key[rank < neighbors]
    own = (key >> (_WEIGHT_BITS + _POSITION_BITS + _ROLE_BITS)) + start
    other = key & ((1 << _POSITION_BITS) - 1)
    steps = (1 << _WEIGHT_BITS) - 1 - ((key >> _POSITION_BITS) & ((1 << _WEIGHT_BITS) - 1))
    return np.minimum(own, other) * n + np.maximum(own, other), (steps / _WEIGHT_UNIT).astype(np.float32)
