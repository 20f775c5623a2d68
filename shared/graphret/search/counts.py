"""How often each term occurs in each field of each node, and in each part of a divided field."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterable
from functools import reduce
from itertools import repeat
from operator import add
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from graphret.search.analysis import Analyzer
from graphret.search.fields import FieldText
from graphret.storage import Bundle, Parts, Strings


class Vocabulary:
    """Terms and their positions."""

    def __init__(self, terms: Iterable[str] = ()) -> None:
        self._terms = terms
        self._positions = terms if isinstance(terms, dict) else None

    def __len__(self) -> int:
        return len(self.positions)

    @property
    def positions(self) -> dict[str, int]:
        """Term to position; read when first asked for, since an index may be opened and not searched."""
        if self._positions is None:
            self._positions = {term: i for i, term in enumerate(self._terms)}
        return self._positions


class FieldCounts:
    """Counts of terms by field, as sparse matrices whose columns are the terms.

    Parameters
    ----------
    vocabulary
        The terms.
    whole
        For each field that is one text, its counts, ``(n_nodes, terms)``.
    divided
        For each field that has parts, the counts of each part, ``(n_parts, terms)``.
    part_indptr
        Where the parts of each node begin, ``(n_nodes + 1,)``.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        whole: dict[str, sp.csr_matrix],
        divided: dict[str, sp.csr_matrix],
        part_indptr: NDArray[np.int64],
    ) -> None:
        self.vocabulary = vocabulary
        self.whole = whole
        self.divided = divided
        self.part_indptr = part_indptr

    @property
    def n_nodes(self) -> int:
        """How many nodes there are."""
        return len(self.part_indptr) - 1

    @property
    def n_parts(self) -> int:
        """How many parts the nodes have together."""
        return int(self.part_indptr[-1])

    @property
    def fields(self) -> list[str]:
        """The names of the fields."""
        return sorted({*self.whole, *self.divided})

    @classmethod
    def of(
        cls,
        nodes: Iterable[dict[str, FieldText]],
        analyzer: Analyzer,
        vocabulary: Vocabulary | None = None,
    ) -> FieldCounts:
        """Count the terms of nodes given by their fields; the terms of `vocabulary` keep their positions."""
        terms = dict(vocabulary.positions) if vocabulary is not None else {}
        found: dict[tuple[bool, str], tuple[Any, Any]] = defaultdict(lambda: (array("i"), array("i")))
        part_indptr = array("q", [0])
        for node, fields in enumerate(nodes):
            first, n_parts = part_indptr[-1], 0
            for name, value in fields.items():
                divided = not isinstance(value, str)
                rows, columns = found[divided, name]
                texts = value if isinstance(value, list) else [value]
                for row, text in enumerate(texts, first if divided else node):
                    counted = [terms.setdefault(term, len(terms)) for term in analyzer(text)]
                    columns.extend(counted)
                    rows.extend(repeat(row, len(counted)))
                n_parts = max(n_parts, len(texts)) if divided else n_parts
            part_indptr.append(first + n_parts)
        heights = len(part_indptr) - 1, part_indptr[-1]
        matrices: tuple[dict[str, sp.csr_matrix], dict[str, sp.csr_matrix]] = {}, {}
        for (divided, name), (rows, columns) in found.items():
            ones = np.ones(len(rows), dtype=np.float32)
            at = np.asarray(rows, dtype=np.int32), np.asarray(columns, dtype=np.int32)
            matrices[divided][name] = sp.csr_matrix((ones, at), shape=(heights[divided], len(terms)))
            matrices[divided][name].sum_duplicates()
        return cls(Vocabulary(terms), *matrices, np.asarray(part_indptr, dtype=np.int64))

    def matrix(self, field: str, *, of_parts: bool = False) -> sp.csr_matrix:
        """Return the counts of a field by node, or by part, where a part has the whole fields of its node."""
        found = []
        if field in self.whole:
            owners = np.repeat(np.arange(self.n_nodes), np.diff(self.part_indptr))
            found.append(self.whole[field][owners] if of_parts else self.whole[field])
        if field in self.divided:
            ones = np.ones(self.n_parts, dtype=np.float32)
            of_node = sp.csr_matrix((ones, np.arange(self.n_parts), self.part_indptr), (self.n_nodes, self.n_parts))
            found.append(self.divided[field] if of_parts else (of_node @ self.divided[field]).tocsr())
        return reduce(add, found)

    def take(self, positions: NDArray[np.int64]) -> FieldCounts:
        """Return the counts of the nodes at `positions`."""
        lengths = np.diff(self.part_indptr)[positions]
        indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        parts = np.repeat(self.part_indptr[positions] - indptr[:-1], lengths) + np.arange(int(indptr[-1]))
        return FieldCounts(
            self.vocabulary,
            {name: matrix[positions] for name, matrix in self.whole.items()},
            {name: matrix[parts] for name, matrix in self.divided.items()},
            indptr,
        )

    def changed(self, old: NDArray[np.int64], fresh: Iterable[dict[str, FieldText]], analyzer: Analyzer) -> FieldCounts:
        """Return the counts of a new list of nodes.

        Parameters
        ----------
        old
            For each node of the new list its position here, -1 for those that `fresh` gives, in order.
        """
        added = FieldCounts.of(fresh, analyzer, self.vocabulary)
        indptr = np.concatenate([self.part_indptr, added.part_indptr[1:] + self.n_parts])
        width = len(added.vocabulary)
        joined = FieldCounts(
            added.vocabulary,
            _stacked(self.whole, added.whole, (self.n_nodes, added.n_nodes), width),
            _stacked(self.divided, added.divided, (self.n_parts, added.n_parts), width),
            indptr,
        )
        order = old.copy()
        order[old < 0] = self.n_nodes + np.arange(added.n_nodes)
        return joined.take(order)

    def parts(self) -> Parts:
        """The counts as they are saved."""
        parts = Parts(
            arrays={"part_indptr": self.part_indptr},
            strings={"vocabulary": Strings.of(self.vocabulary.positions)},
            meta={"terms": len(self.vocabulary), "whole": sorted(self.whole), "divided": sorted(self.divided)},
        )
        for kind in ("whole", "divided"):
            for name, matrix in getattr(self, kind).items():
                parts.arrays |= sparse_arrays(f"{kind}/{name}", matrix)
        return parts

    @classmethod
    def from_bundle(cls, bundle: Bundle) -> FieldCounts:
        """Open saved counts."""
        meta, indptr = bundle.meta, bundle.array("part_indptr")
        whole, divided = (
            {name: sparse_of(bundle, f"{kind}/{name}", sp.csr_matrix, (height, meta["terms"])) for name in meta[kind]}
            for kind, height in (("whole", len(indptr) - 1), ("divided", int(indptr[-1])))
        )
        return cls(Vocabulary(bundle.strings("vocabulary")), whole, divided, indptr)


def sparse_arrays(name: str, matrix: Any) -> dict[str, NDArray[Any]]:
    """The arrays of a compressed matrix, as they are saved under a name."""
    return {f"{name}/{array}": getattr(matrix, array) for array in ("data", "indices", "indptr")}


def sparse_of(bundle: Bundle, name: str, kind: Any, shape: tuple[int, int]) -> Any:
    """Open a compressed matrix that `sparse_arrays` saved; its arrays stay on disk until they are read."""
    arrays = tuple(np.asarray(bundle.array(f"{name}/{array}")) for array in ("data", "indices", "indptr"))
    return kind(arrays, shape=shape, copy=False)


def _stacked(
    first: dict[str, sp.csr_matrix], second: dict[str, sp.csr_matrix], heights: tuple[int, int], width: int
) -> dict[str, sp.csr_matrix]:
    """The counts of some nodes or parts followed by those of others, in which there are more terms."""
    out = {}
    for name in sorted({*first, *second}):
        blocks = []
        for matrix, height in zip((first.get(name), second.get(name)), heights, strict=True):
            given = (height, width) if matrix is None else (matrix.data, matrix.indices, matrix.indptr)
            blocks.append(sp.csr_matrix(given, shape=(height, width), dtype=np.float32))
        out[name] = sp.vstack(blocks, format="csr")
    return out
