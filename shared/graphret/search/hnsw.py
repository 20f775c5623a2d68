"""Approximate nearest neighbours by a hierarchical navigable small world graph (Malkov and Yashunin 2018)."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphret.errors import InvalidInput
from graphret.storage import Bundle, Parts

#: A graph of which more than this share of the rows has changed since it was built is built anew.
_MOST_CHANGED = 0.3


@dataclass(frozen=True)
class HnswSettings:
    """Parameters of the approximate search (Malkov and Yashunin 2018); M = 64 as in SAGE, appendix E.

    Parameters
    ----------
    above
        Number of nodes above which the search is approximate; exact search of fewer is faster than it sounds.
    m
        Connections a node.
    expansion_add, expansion_search
        Breadth of the search when building and when asked.
    """

    above: int = 200_000
    m: int = 64
    expansion_add: int = 128
    expansion_search: int = 256


def require_settings(hnsw: HnswSettings | None) -> HnswSettings:
    """Return the settings, or the defaults where none are given; anything else is refused."""
    if hnsw is None:
        return HnswSettings()
    if not isinstance(hnsw, HnswSettings):
        raise InvalidInput(
            f"hnsw: HnswSettings are expected, not {hnsw!r}; of more nodes than `above` of them the search is "
            f"approximate, without them of more than {HnswSettings().above:,}"
        )
    return hnsw


@dataclass(frozen=True, eq=False)
class Hnsw:
    """A small world graph over the rows of an array, never changed once made.

    Parameters
    ----------
    index
        The library's index.
    keys
        What it calls each row, ``(n,)``.
    changes
        How many rows were added to it and taken from it since it was built.
    """

    index: Any
    keys: NDArray[np.int64]
    changes: int = 0

    @cached_property
    def _rows(self) -> NDArray[np.int64]:
        rows = np.full(int(self.keys.max(initial=-1)) + 1, -1, dtype=np.int64)
        rows[self.keys] = np.arange(len(self.keys))
        return rows

    @classmethod
    def build(cls, vectors: NDArray[np.float32], settings: HnswSettings) -> Hnsw:
        """Build the graph of unit rows, ``(n, d)``."""
        index = _empty(vectors.shape[1], settings)
        keys = np.arange(len(vectors))
        index.add(keys, np.asarray(vectors))
        return cls(index, keys)

    def nearest(self, vector: NDArray[np.float32], k: int) -> NDArray[np.int64]:
        """Return about the `k` rows nearest to a unit vector, ascending."""
        found = np.asarray(self.index.search(vector, k, threads=1).keys, dtype=np.int64)
        return np.sort(self._rows[found])

    def changed(self, vectors: NDArray[np.float32], old: NDArray[np.int64]) -> Hnsw | None:
        """Return the graph of other rows, made from this one; `None` where it is better built anew.

        Parameters
        ----------
        vectors
            The rows, ``(n, d)``.
        old
            Which of the rows of this graph each of them is, -1 for a new one, ``(n,)``.
        """
        gone = np.ones(len(self.keys), dtype=bool)
        gone[old[old >= 0]] = False
        new = np.flatnonzero(old < 0)
        changes = self.changes + len(new) + int(gone.sum())
        if changes > _MOST_CHANGED * len(old):
            return None
        keys = np.empty(len(old), dtype=np.int64)
        keys[old >= 0] = self.keys[old[old >= 0]]
        keys[new] = np.arange(len(new)) + int(self.keys.max(initial=-1)) + 1
        index = self.index.copy()  # a fraction of a second for a million rows: searches of the old graph go on
        if gone.any():
            index.remove(self.keys[gone])
        if len(new):
            index.add(keys[new], np.asarray(vectors[new]))
        return Hnsw(index, keys, changes)

    # -- on disk

    def parts(self) -> Parts:
        """The graph as it is saved."""
        saved = np.frombuffer(self.index.save(), dtype=np.uint8)
        return Parts(
            arrays={"graph": saved, "keys": self.keys}, meta={"changes": self.changes, "crc32": zlib.crc32(saved.data)}
        )

    @classmethod
    def from_bundle(cls, bundle: Bundle, shape: tuple[int, int], settings: HnswSettings) -> Hnsw | None:
        """Open a saved graph of rows of that shape; `None` where it was altered or the library reads it no more."""
        saved, keys = bundle.array("graph"), np.array(bundle.array("keys"))
        if zlib.crc32(saved.data) != bundle.meta["crc32"]:  # a large file may not have been compared when it was opened
            return None
        index = _empty(shape[1], settings)
        try:
            index.load(saved.tobytes())
        except (RuntimeError, ValueError):
            return None
        index.expansion_add, index.expansion_search = settings.expansion_add, settings.expansion_search
        if (len(index), index.ndim, len(keys)) != (shape[0], shape[1], shape[0]):
            return None
        return cls(index, keys, bundle.meta["changes"])


def _empty(width: int, settings: HnswSettings) -> Any:
    from usearch.index import Index

    return Index(
        ndim=width,
        metric="ip",  # the rows have length 1, or 0 where a node says nothing
        dtype="f32",
        connectivity=settings.m,
        expansion_add=settings.expansion_add,
        expansion_search=settings.expansion_search,
    )
