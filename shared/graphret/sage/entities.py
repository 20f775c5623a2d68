"""Nodes that name the same entities: who bears which names, and which pairs share the
rarest. Never all pairs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from graphret.text import normalize_name

_CHUNK = 1 << 16  # pairs at once
_PRODUCTS = 1 << 22  # that are in memory at once
_DECIMALS = 5


@dataclass(frozen=True, eq=False)
class EntityIncidence:
    """Which nodes bear which names, for the names that 2 nodes or more bear, and not
    too many.

    Parameters
    ----------
    incidence
        ``(n, v)`` ones, compressed by rows; the rarest names come first.
    names
        The names as the first bearer spells them, ``(v,)``.
    counts
        How many nodes bear each name, ``(v,)``, ascending.
    """

    incidence: Any
    names: Sequence[str]
    counts: NDArray[np.int64]

    @classmethod
    def of(cls, sets: Sequence[Sequence[str]], cap: int) -> EntityIncidence:
        """Read the names of each node, spelled in any way; a name that more than `cap`
        nodes bear is left out.
        """
        normalized = lru_cache(maxsize=None)(normalize_name)
        codes: dict[str, int] = {}
        names: list[str] = []
        indptr, columns = [0], []
        for own in sets:
            found = set()
            for name in own:
                if key := normalized(name):
                    found.add(code := codes.setdefault(key, len(codes)))
                    names += [name] * (code == len(names))
            columns += sorted(found)
            indptr.append(len(columns))
        counts = np.bincount(np.asarray(columns, dtype=np.int64), minlength=len(names))
        keys, shared = (
            list(codes),
            np.flatnonzero((counts >= 2) & (counts <= cap)).tolist(),
        )
        ranked = np.asarray(
            sorted(shared, key=lambda code: (counts[code], keys[code])), dtype=np.int64
        )
        whole = sp.csr_array(
            (np.ones(len(columns), np.float32), columns, indptr),
            shape=(len(sets), len(names)),
        )
        return cls(
            sp.csr_array(whole[:, ranked]),
            [names[i] for i in ranked.tolist()],
            counts[ranked],
        )

    def shared_names(
        self, i: NDArray[np.int64], j: NDArray[np.int64]
    ) -> Iterator[list[str]]:
        """Yield the names that the nodes of each pair share, the rarest first."""
        for start in range(0, len(i), _CHUNK):
            part = slice(start, start + _CHUNK)
            both = sp.csr_array(
                self.incidence[i[part]].multiply(self.incidence[j[part]])
            )
            both.sort_indices()
            names = [self.names[code] for code in both.indices.tolist()]
            yield from (
                names[first:last] for first, last in pairwise(both.indptr.tolist())
            )


def overlapping_pairs(
    entities: EntityIncidence,
    role: NDArray[np.int8],
    source: NDArray[np.int32],
    most: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32]]:
    """Return the pairs of nodes that share entities, the lower position first,
    ascending, and how rare these are.

    The rarity of a pair is Σ over the shared entities of ``ln(1 + n / bearers) / ln(1 +
    n / 2)``, their inverse document frequency as a share of the highest possible. Each
    node proposes the `most` best of each `role`, ``(n,)``. Pairs of nodes from one
    `source`, ``(n,)``, are left out: they share its title, and structure joins them.
    """
    n, roles = len(role), int(role.max(initial=0)) + 1
    rarity = np.log1p(n / entities.counts) / np.log1p(n / 2)
    weighted = sp.csr_array(entities.incidence.multiply(rarity[None, :])).astype(
        np.float32
    )
    transposed = sp.csr_array(entities.incidence.T)
    cost = np.concatenate(
        [[0], np.cumsum(entities.incidence @ entities.counts.astype(np.float64))]
    )
    keys, values = [np.zeros(0, np.int64)], [np.zeros(0, np.float32)]
    start = 0
    while start < n:
        stop = max(
            start + 1,
            int(np.searchsorted(cost, cost[start] + _PRODUCTS, side="right")) - 1,
        )
        product = sp.coo_array(weighted[start:stop] @ transposed)
        own, other = product.row + np.int64(start), product.col.astype(np.int64)
        kept = source[own] != source[other]
        own, other, value = (
            own[kept],
            other[kept],
            np.round(product.data[kept], _DECIMALS),
        )
        group = own * roles + role[other]
        order = np.lexsort((other, -value, group))
        group = group[order]
        order = order[np.arange(len(group)) - np.searchsorted(group, group) < most]
        own, other = own[order], other[order]
        keys.append(np.minimum(own, other) * n + np.maximum(own, other))
        values.append(value[order])
        start = stop
    key, first = np.unique(np.concatenate(keys), return_index=True)
    low, high = np.divmod(key, max(n, 1))
    return low, high, np.concatenate(values)[first]
