"""How often each term occurs in each field of each node, and in each part of a divided field."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from graphret.search.analysis import Analyzer, Vocabulary
from graphret.search.fields import FieldText
from graphret.storage import Bundle, Parts, Strings


class FieldCounts:
    """Counts of terms by field, as sparse matrices.

    Parameters
    ----------
    vocabulary
        The terms; they are the columns.
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
        cls, documents: Sequence[dict[str, FieldText]], analyzer: Analyzer, vocabulary: Vocabulary | None = None
    ) -> FieldCounts:
        """Count the terms of nodes given by their fields."""
        return cls.of_blocks([documents], analyzer, vocabulary)

    @classmethod
    def of_blocks(
        cls,
        blocks: Iterable[Sequence[dict[str, FieldText]]],
        analyzer: Analyzer,
        vocabulary: Vocabulary | None = None,
    ) -> FieldCounts:
        """Do as `of` with nodes that come in blocks; of each only the counts are kept."""
        counted = _Counted(vocabulary.copy() if vocabulary is not None else Vocabulary())
        for documents in blocks:
            counted.add(documents, analyzer)
        indptr = np.concatenate([[0], np.cumsum(np.concatenate([[], *counted.part_counts]))]).astype(np.int64)
        whole = counted.matrices("whole", len(indptr) - 1)
        return cls(counted.vocabulary, whole, counted.matrices("divided", int(indptr[-1])), indptr)

    def owners(self) -> NDArray[np.int64]:
        """The node of each part, ``(n_parts,)``."""
        return np.repeat(np.arange(self.n_nodes), np.diff(self.part_indptr))

    def matrix(self, field: str, *, of_parts: bool = False) -> sp.csr_matrix:
        """Return the counts of a field by node, or by part, where a part has the whole fields of its node."""
        found = []
        if field in self.whole:
            found.append(self.whole[field][self.owners()] if of_parts else self.whole[field])
        if field in self.divided:
            parts = self.divided[field]
            found.append(parts if of_parts else (_membership(self.part_indptr) @ parts).tocsr())
        return self._summed(found, self.n_parts if of_parts else self.n_nodes)

    def document_frequencies(self) -> NDArray[np.int64]:
        """In how many nodes each term occurs, ``(terms,)``."""
        seen = self._summed([self.matrix(name) for name in self.fields], self.n_nodes)
        return np.bincount(seen.indices, minlength=len(self.vocabulary))

    def _summed(self, matrices: Sequence[sp.csr_matrix], height: int) -> sp.csr_matrix:
        """The sum of matrices, itself the one where there is but one; all are as wide as the vocabulary."""
        if not matrices:
            return sp.csr_matrix((height, len(self.vocabulary)), dtype=np.float32)
        total, *rest = matrices
        for matrix in rest:
            total = total + matrix
        return total

    def take(self, positions: NDArray[np.int64]) -> FieldCounts:
        """Return the counts of the nodes at `positions`."""
        lengths = np.diff(self.part_indptr)[positions]
        indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        starts = np.repeat(self.part_indptr[positions] - indptr[:-1], lengths)
        part_rows = starts + np.arange(int(indptr[-1]))
        return FieldCounts(
            self.vocabulary,
            {name: matrix[positions] for name, matrix in self.whole.items()},
            {name: matrix[part_rows] for name, matrix in self.divided.items()},
            indptr,
        )

    def changed(self, old: NDArray[np.int64], fresh: Sequence[dict[str, FieldText]], analyzer: Analyzer) -> FieldCounts:
        """Return the counts of a new list of nodes.

        Parameters
        ----------
        old
            For each node of the new list its position here, -1 for those that `fresh` gives, in order.
        """
        added = FieldCounts.of(fresh, analyzer, self.vocabulary)
        joined = _stacked(self, added)
        order = old.copy()
        order[old < 0] = self.n_nodes + np.arange(int((old < 0).sum()))
        return joined.take(order)

    def parts(self) -> Parts:
        """The counts as they are saved."""
        parts = Parts(
            arrays={"part_indptr": self.part_indptr},
            strings={"vocabulary": Strings.of(self.vocabulary.terms())},
            meta={"whole": sorted(self.whole), "divided": sorted(self.divided)},
        )
        for kind in ("whole", "divided"):
            for name, matrix in getattr(self, kind).items():
                for array in ("data", "indices", "indptr"):
                    parts.arrays[f"{kind}/{name}/{array}"] = getattr(matrix, array)
        return parts

    @classmethod
    def from_bundle(cls, bundle: Bundle) -> FieldCounts:
        """Open saved counts."""
        vocabulary = Vocabulary(bundle.strings("vocabulary"))
        part_indptr = bundle.array("part_indptr")
        heights = {"whole": len(part_indptr) - 1, "divided": int(part_indptr[-1])}

        def matrices(kind: str) -> dict[str, sp.csr_matrix]:
            return {
                name: sp.csr_matrix(
                    tuple(
                        np.asarray(bundle.array(f"{kind}/{name}/{array}")) for array in ("data", "indices", "indptr")
                    ),
                    shape=(heights[kind], len(vocabulary)),
                    copy=False,
                )
                for name in bundle.meta[kind]
            }

        return cls(vocabulary, matrices("whole"), matrices("divided"), part_indptr)


class _Counted:
    """What was counted so far: for each field the row and the term of every occurrence."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self.part_counts: list[NDArray[np.int64]] = []
        self.n_nodes = self.n_parts = 0
        self._found: dict[tuple[str, str], list[tuple[NDArray[np.int32], NDArray[np.int32]]]] = {}

    def add(self, documents: Sequence[dict[str, FieldText]], analyzer: Analyzer) -> None:
        """Count the nodes that come next."""
        whole: dict[str, tuple[list[int], list[str]]] = {}
        divided: dict[str, tuple[list[int], list[str]]] = {}
        part_counts = np.zeros(len(documents), dtype=np.int64)
        for node, fields in enumerate(documents):
            lists = {name: value for name, value in fields.items() if isinstance(value, list)}
            for name, value in fields.items():
                if isinstance(value, str):
                    rows, texts = whole.setdefault(name, ([], []))
                    rows.append(self.n_nodes + node)
                    texts.append(value)
            for name, parts in lists.items():
                rows, texts = divided.setdefault(name, ([], []))
                rows.extend(range(self.n_parts, self.n_parts + len(parts)))
                texts.extend(parts)
            part_counts[node] = max((len(parts) for parts in lists.values()), default=0)
            self.n_parts += int(part_counts[node])
        self.n_nodes += len(documents)
        self.part_counts.append(part_counts)
        for kind, columns in (("whole", whole), ("divided", divided)):
            for name, (rows, texts) in columns.items():
                terms, indptr = self.vocabulary.grow([analyzer(text) for text in texts])
                owners = np.repeat(np.asarray(rows, dtype=np.int32), np.diff(indptr))
                self._found.setdefault((kind, name), []).append((owners, terms))

    def matrices(self, kind: str, height: int) -> dict[str, sp.csr_matrix]:
        """The counts of each field of a kind, ``(height, terms)``."""
        shape = height, len(self.vocabulary)
        found = {name: list(zip(*blocks, strict=True)) for (of, name), blocks in self._found.items() if of == kind}
        return {
            name: _counted(np.concatenate(rows), np.concatenate(terms), shape) for name, (rows, terms) in found.items()
        }


def _counted(rows: NDArray[np.int32], terms: NDArray[np.int32], shape: tuple[int, int]) -> sp.csr_matrix:
    matrix = sp.csr_matrix((np.ones(len(rows), dtype=np.float32), (rows, terms)), shape=shape)
    matrix.sum_duplicates()
    return matrix


def _membership(indptr: NDArray[np.int64]) -> sp.csr_matrix:
    """The matrix that adds parts up to nodes, ``(n_nodes, n_parts)``."""
    total = int(indptr[-1])
    return sp.csr_matrix((np.ones(total, dtype=np.float32), np.arange(total), indptr), shape=(len(indptr) - 1, total))


def _stacked(first: FieldCounts, second: FieldCounts) -> FieldCounts:
    width = len(second.vocabulary)

    def stack(kind: str, heights: tuple[int, int]) -> dict[str, sp.csr_matrix]:
        out = {}
        one, two = getattr(first, kind), getattr(second, kind)
        for name in sorted({*one, *two}):
            blocks = []
            for matrix, height in ((one.get(name), heights[0]), (two.get(name), heights[1])):
                block = sp.csr_matrix((height, width), dtype=np.float32) if matrix is None else matrix
                blocks.append(sp.csr_matrix((block.data, block.indices, block.indptr), shape=(height, width)))
            out[name] = sp.vstack(blocks, format="csr")
        return out

    indptr = np.concatenate([first.part_indptr, second.part_indptr[1:] + first.n_parts])
    return FieldCounts(
        second.vocabulary,
        stack("whole", (first.n_nodes, second.n_nodes)),
        stack("divided", (first.n_parts, second.n_parts)),
        indptr,
    )
