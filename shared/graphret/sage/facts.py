"""What the edges need to know of every node, in columns: role, source, and sets of names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from graphret.nodes import NodeTable
from graphret.sage.signals import SETS, role_of, set_of
from graphret.text import normalize_name

_CHUNK = 1 << 16  # pairs at once


@dataclass(frozen=True, eq=False)
class Bearers:
    """Which nodes bear which names, for the names that 2 nodes or more bear, and not too many.

    Parameters
    ----------
    incidence
        ``(n, v)`` ones, compressed by rows; the rarest names come first.
    sizes
        How many different names each node bears in all, ``(n,)``.
    names
        The names as the first bearer spells them, ``(v,)``.
    counts
        How many nodes bear each name, ``(v,)``, ascending.
    """

    incidence: Any
    sizes: NDArray[np.int64]
    names: Sequence[str]
    counts: NDArray[np.int64]

    @classmethod
    def of(cls, sets: Sequence[Sequence[str]], cap: int) -> Bearers:
        """Read the names of each node, spelled in any way; a name that more than `cap` nodes bear is left out."""
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
        keys, shared = list(codes), np.flatnonzero((counts >= 2) & (counts <= cap)).tolist()
        ranked = np.asarray(sorted(shared, key=lambda code: (counts[code], keys[code])), dtype=np.int64)
        whole = sp.csr_array((np.ones(len(columns), np.float32), columns, indptr), shape=(len(sets), len(names)))
        return cls(sp.csr_array(whole[:, ranked]), np.diff(indptr), [names[i] for i in ranked.tolist()], counts[ranked])

    @property
    def rarity(self) -> NDArray[np.float64]:
        """How much a name says, ``(v,)``: its inverse document frequency, as a share of the highest there can be."""
        n = max(1, self.incidence.shape[0])
        return np.asarray(np.log1p(n / self.counts) / np.log1p(n / 2))

    def shared_counts(self, i: NDArray[np.int64], j: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return how many names the nodes of each pair share, ``(p,)``."""
        counts = [np.diff(both.indptr) for both in self._shared(i, j)]
        return np.concatenate([np.zeros(0), *counts]).astype(np.float32)

    def shared_codes(self, i: NDArray[np.int64], j: NDArray[np.int64], most: int) -> Iterator[list[int]]:
        """Yield the positions of the names that the nodes of each pair share, the rarest first, at most `most`."""
        for both in self._shared(i, j):
            both.sort_indices()
            columns = both.indices.tolist()
            for first, last in pairwise(both.indptr.tolist()):
                yield columns[first : min(last, first + most)]

    def _shared(self, i: NDArray[np.int64], j: NDArray[np.int64]) -> Iterator[Any]:
        for start in range(0, len(i), _CHUNK):
            part = slice(start, start + _CHUNK)
            yield sp.csr_array(self.incidence[i[part]].multiply(self.incidence[j[part]]))


@dataclass(frozen=True, eq=False)
class Facts:
    """Columns over nodes.

    Parameters
    ----------
    role
        The role of each node, ``(n,)``.
    source
        A number for the item that each node was made from, -1 where that is not known, ``(n,)``.
    order
        The place of each node in its source, ``(n,)``.
    sets
        The bearers of entities, events and relationships.
    """

    role: NDArray[np.int8]
    source: NDArray[np.int32]
    order: NDArray[np.int64]
    sets: dict[str, Bearers]

    @classmethod
    def of(cls, nodes: NodeTable, cap: int) -> Facts:
        """Read the facts of nodes; an entity that more than `cap` nodes bear is as if nobody did."""
        role = np.asarray([role_of(labels) for labels in nodes.label_sets], np.int8)[nodes.labels]
        source = np.full(len(nodes), -1, np.int32)
        order = np.zeros(len(nodes), np.int64)
        sources: dict[str, int] = {}
        sets: dict[str, list[list[str]]] = {name: [] for name in SETS}
        for position, given in enumerate(nodes.properties):
            if given.get("source_id") is not None:
                source[position] = sources.setdefault(str(given["source_id"]), len(sources))
                place = given.get("chunk_index")
                order[position] = place if isinstance(place, int) else position
            for name, members in sets.items():
                members.append(set_of(given, name))
        caps = {**dict.fromkeys(SETS, len(nodes)), "entities": cap}
        return cls(role, source, order, {name: Bearers.of(own, caps[name]) for name, own in sets.items()})

    def same_source(self, i: NDArray[np.int64], j: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Tell which pairs are of nodes made from one item, ``(p,)``."""
        return np.asarray((self.source[i] >= 0) & (self.source[i] == self.source[j]))
