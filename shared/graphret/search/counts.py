"""How often each term occurs in each field of each node, and in each part of a divided field."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from functools import cached_property
from itertools import repeat
from typing import Any

import numpy as np
import pyarrow as pa
import scipy.sparse as sp
from numpy.typing import NDArray

from graphret.columns import Strings
from graphret.search.analysis import Analyzer
from graphret.search.fields import FieldText
from graphret.storage import Bundle, Parts

#: Ends the name of a field that has parts: ``rows[]``.
PARTS = "[]"


class FieldCounts:
    """Counts of terms by field, as sparse matrices whose columns are the `terms`.

    `fields` has those of one that has parts (``rows[]``) by part, ``(n_parts, terms)``, and of others by node,
    ``(n_nodes, terms)``; `part_indptr` where the parts of each node begin, ``(n_nodes + 1,)``.
    """

    def __init__(
        self, terms: Collection[str], fields: Mapping[str, sp.csr_matrix], part_indptr: NDArray[np.int64]
    ) -> None:
        self.terms = terms
        self.fields = dict(sorted(fields.items()))
        self.part_indptr = part_indptr
        self.n_nodes, self.n_parts = len(part_indptr) - 1, int(part_indptr[-1])

    @cached_property
    def positions(self) -> dict[str, int]:
        """Term to position; made when first asked for, since an index may be opened and not searched."""
        return {term: i for i, term in enumerate(self.terms)}

    @classmethod
    def of(
        cls, nodes: Iterable[dict[str, FieldText]], analyzer: Analyzer, terms: Mapping[str, int] | None = None
    ) -> FieldCounts:
        """Count the terms of nodes given by their fields; `terms` keep their positions."""
        positions = dict(terms or {})
        found: dict[str, tuple[Any, Any]] = defaultdict(lambda: (array("i"), array("i")))
        part_indptr = array("q", [0])
        for node, fields in enumerate(nodes):
            first, n_parts = part_indptr[-1], 0
            for name, value in fields.items():
                divided = isinstance(value, list)
                rows, columns = found[name.removesuffix(PARTS) + divided * PARTS]
                texts = value if isinstance(value, list) else [value]
                n_parts = max(n_parts, divided * len(texts))
                for row, text in enumerate(texts, first if divided else node):
                    counted = [positions.setdefault(term, len(positions)) for term in analyzer(text)]
                    columns.extend(counted)
                    rows.extend(repeat(row, len(counted)))
            part_indptr.append(first + n_parts)
        counts = {}
        for name, (rows, columns) in found.items():
            height = part_indptr[-1] if name.endswith(PARTS) else len(part_indptr) - 1
            at = np.asarray(rows, dtype=np.int32), np.asarray(columns, dtype=np.int32)
            counts[name] = sp.csr_matrix((np.ones(len(rows), np.float32), at), shape=(height, len(positions)))
            counts[name].sum_duplicates()
        return cls(positions, counts, np.asarray(part_indptr, dtype=np.int64))

    def matrix(self, field: str, *, of_parts: bool = False) -> sp.csr_matrix:
        """Return the counts of a field by node, or by part, where a part has the whole fields of its node."""
        found, parts = self.fields[field], np.arange(self.n_parts)
        if field.endswith(PARTS) == of_parts:
            return found
        if of_parts:
            return found[np.repeat(np.arange(self.n_nodes), np.diff(self.part_indptr))]
        ones = np.ones(self.n_parts, dtype=np.float32)
        return (sp.csr_matrix((ones, parts, self.part_indptr), shape=(self.n_nodes, self.n_parts)) @ found).tocsr()

    def take(self, positions: NDArray[np.int64]) -> FieldCounts:
        """Return the counts of the nodes at `positions`."""
        lengths = np.diff(self.part_indptr)[positions]
        indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        parts = np.repeat(self.part_indptr[positions] - indptr[:-1], lengths) + np.arange(int(indptr[-1]))
        taken = {name: matrix[parts if name.endswith(PARTS) else positions] for name, matrix in self.fields.items()}
        return FieldCounts(self.terms, taken, indptr)

    def changed(self, old: NDArray[np.int64], fresh: Iterable[dict[str, FieldText]], analyzer: Analyzer) -> FieldCounts:
        """Return the counts of a new list of nodes, of which `old` has the positions here, -1 for those in `fresh`."""
        added = FieldCounts.of(fresh, analyzer, self.positions)
        joined = {}
        for name in {*self.fields, *added.fields}:
            blocks = []
            for counts in (self, added):
                shape = (counts.n_parts if name.endswith(PARTS) else counts.n_nodes), len(added.terms)
                held = counts.fields.get(name)
                given = shape if held is None else (held.data, held.indices, held.indptr)
                blocks.append(sp.csr_matrix(given, shape=shape, dtype=np.float32))
            joined[name] = sp.vstack(blocks, format="csr")
        indptr = np.concatenate([self.part_indptr, added.part_indptr[1:] + self.n_parts])
        order = old.copy()
        order[old < 0] = self.n_nodes + np.arange(added.n_nodes)
        return FieldCounts(added.terms, joined, indptr).take(order)

    def parts(self) -> Parts:
        """The counts as they are saved."""
        terms = self.terms if isinstance(self.terms, Strings) else Strings.of(self.terms)
        parts = Parts(
            arrays={"part_indptr": self.part_indptr},
            tables={"terms": pa.table({"term": terms.array})},
            meta={"n_terms": len(self.terms), "fields": list(self.fields)},
        )
        for name, matrix in self.fields.items():
            parts.arrays |= sparse_arrays(f"fields/{name}", matrix)
        return parts

    @classmethod
    def from_bundle(cls, bundle: Bundle) -> FieldCounts:
        """Open saved counts."""
        meta, indptr = bundle.meta, bundle.arrays["part_indptr"]
        heights = {name: int(indptr[-1]) if name.endswith(PARTS) else len(indptr) - 1 for name in meta["fields"]}
        fields = {
            name: sparse_of(bundle, f"fields/{name}", sp.csr_matrix, (height, meta["n_terms"]))
            for name, height in heights.items()
        }
        return cls(Strings(bundle.columns("terms")["term"]), fields, indptr)


def sparse_arrays(name: str, matrix: Any) -> dict[str, NDArray[Any]]:
    """The arrays of a compressed matrix, as they are saved under a name."""
    return {f"{name}/{array}": getattr(matrix, array) for array in ("data", "indices", "indptr")}


def sparse_of(bundle: Bundle, name: str, kind: Any, shape: tuple[int, int]) -> Any:
    """Open a compressed matrix that `sparse_arrays` saved; its arrays stay on disk until they are read."""
    arrays = tuple(np.asarray(bundle.arrays[f"{name}/{array}"]) for array in ("data", "indices", "indptr"))
    return kind(arrays, shape=shape, copy=False)
