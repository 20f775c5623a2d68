"""What the edges need to know of every node, in columns: role, source, and sets of names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from graphret.columns import to_json
from graphret.nodes import NodeTable
from graphret.sage.signals import SETS, role_of, set_of
from graphret.text import normalize_name

_CHUNK = 1 << 16


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
    bearers
        How many nodes bear each name, ``(v,)``, ascending.
    """

    incidence: Any
    sizes: NDArray[np.int64]
    names: Sequence[str]
    bearers: NDArray[np.int64]

    @property
    def rarity(self) -> NDArray[np.float64]:
        """How much a name says, ``(v,)``: its inverse document frequency, as a share of the highest there can be."""
        n = self.incidence.shape[0]
        return np.asarray(np.log1p(n / self.bearers) / np.log1p(n / 2)) if n else np.zeros(0)

    def shared_counts(self, i: NDArray[np.int64], j: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return how many names the nodes of each pair share, ``(p,)``."""
        out = np.zeros(len(i), np.float32)
        if self.incidence.nnz:
            for start in range(0, len(i), _CHUNK):
                part = slice(start, start + _CHUNK)
                out[part] = np.asarray(self.incidence[i[part]].multiply(self.incidence[j[part]]).sum(axis=1)).ravel()
        return out

    def shared_codes(self, i: NDArray[np.int64], j: NDArray[np.int64], most: int) -> Iterator[list[int]]:
        """Yield the positions of the names that the nodes of each pair share, the rarest first, at most `most`."""
        for start in range(0, len(i), _CHUNK):
            part = slice(start, start + _CHUNK)
            both = sp.csr_array(self.incidence[i[part]].multiply(self.incidence[j[part]]))
            both.sort_indices()
            columns, bounds = both.indices.tolist(), both.indptr.tolist()
            for first, last in pairwise(bounds):
                yield columns[first : min(last, first + most)]

    @cached_property
    def json(self) -> list[str]:
        """The names as JSON strings, ``(v,)``."""
        return [to_json(name) for name in self.names]


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
        collected = {name: _Collector() for name in SETS}
        for position, given in enumerate(nodes.properties):
            if given.get("source_id") is not None:
                source[position] = sources.setdefault(str(given["source_id"]), len(sources))
                place = given.get("chunk_index")
                order[position] = place if isinstance(place, int) else position
            for name, collector in collected.items():
                if given.get(name):
                    collector.add(position, set_of(given, name))
        caps = {"entities": cap}
        sets = {name: c.bearers(len(nodes), caps.get(name, len(nodes))) for name, c in collected.items()}
        return cls(role, source, order, sets)

    def same_source(self, i: NDArray[np.int64], j: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Tell which pairs are of nodes made from one item, ``(p,)``."""
        return np.asarray((self.source[i] >= 0) & (self.source[i] == self.source[j]))


class _Collector:
    def __init__(self) -> None:
        self._codes: dict[str, int] = {}
        self._keys: dict[str, str] = {}
        self._names: list[str] = []
        self._rows: list[int] = []
        self._columns: list[int] = []

    def add(self, position: int, names: Sequence[str]) -> None:
        codes = set()
        for name in names:
            key = self._keys.get(name)
            if key is None:
                key = self._keys[name] = normalize_name(name)
            if key:
                code = self._codes.setdefault(key, len(self._codes))
                if code == len(self._names):
                    self._names.append(name)
                codes.add(code)
        self._rows += [position] * len(codes)
        self._columns += sorted(codes)

    def bearers(self, n: int, cap: int) -> Bearers:
        rows, columns = np.asarray(self._rows, dtype=np.int64), np.asarray(self._columns, dtype=np.int64)
        count = np.bincount(columns, minlength=len(self._names))
        shared = np.flatnonzero((count >= 2) & (count <= cap))
        keys = list(self._codes)
        ranked = np.asarray(sorted(shared.tolist(), key=lambda c: (count[c], keys[c])), dtype=np.int64)
        new = np.full(len(self._names), -1, np.int64)
        new[ranked] = np.arange(len(ranked))
        kept = new[columns] >= 0 if len(columns) else np.zeros(0, bool)
        incidence = sp.csr_array(
            (np.ones(int(kept.sum()), np.float32), (rows[kept], new[columns[kept]] if len(columns) else columns)),
            shape=(n, len(ranked)),
        )
        return Bearers(incidence, np.bincount(rows, minlength=n), [self._names[int(c)] for c in ranked], count[ranked])
