"""The terms of each field of each node, and of each part of a divided field, in their
order.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from functools import cached_property
from itertools import repeat
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import scipy.sparse as sp
from numpy.typing import NDArray

from graphret.columns import Strings
from graphret.edges import NO_ROW, ranges, row_starts
from graphret.search.analysis import Analyzer
from graphret.search.fields import FieldText
from graphret.storage import Bundle, Parts

#: Ends the name of a field that has parts: ``rows[]``.
PARTS = "[]"

#: Where the terms of each node or part begin, ``(n + 1,)``, and the terms, as positions
#: in the vocabulary.
Terms: TypeAlias = tuple[NDArray[np.int64], NDArray[np.int32]]


class FieldTerms:
    """Nodes as the terms of their fields, in the order in which the fields say them.

    `fields` has those of one that has parts (``rows[]``) by part and of others by node;
    `part_indptr` says where the parts of each node begin, ``(n_nodes + 1,)``.
    """

    def __init__(
        self,
        vocabulary: Collection[str],
        fields: Mapping[str, Terms],
        part_indptr: NDArray[np.int64],
    ) -> None:
        self.vocabulary = vocabulary
        self.fields = dict(sorted(fields.items()))
        self.part_indptr = part_indptr
        self.n_nodes, self.n_parts = len(part_indptr) - 1, int(part_indptr[-1])

    @cached_property
    def positions(self) -> dict[str, int]:
        """Term to position; made when first asked for, since an index may be opened and
        not searched.
        """
        return {term: i for i, term in enumerate(self.vocabulary)}

    @classmethod
    def of(
        cls,
        nodes: Iterable[dict[str, FieldText]],
        analyzer: Analyzer,
        vocabulary: Mapping[str, int] | None = None,
    ) -> FieldTerms:
        """Analyze nodes given by their fields; the terms of `vocabulary` keep their
        positions.
        """
        positions = dict(vocabulary or {})
        found: dict[str, tuple[Any, Any]] = defaultdict(
            lambda: (array("i"), array("i"))
        )
        part_indptr = array("q", [0])
        for node, fields in enumerate(nodes):
            first, n_parts = part_indptr[-1], 0
            for name, value in fields.items():
                divided = isinstance(value, list)
                rows, terms = found[name.removesuffix(PARTS) + divided * PARTS]
                texts = value if isinstance(value, list) else [value]
                n_parts = max(n_parts, divided * len(texts))
                for row, text in enumerate(texts, first if divided else node):
                    said = [
                        positions.setdefault(term, len(positions))
                        for term in analyzer(text)
                    ]
                    terms.extend(said)
                    rows.extend(repeat(row, len(said)))
            part_indptr.append(first + n_parts)
        fields_of = {}
        for name, (rows, terms) in found.items():
            height = part_indptr[-1] if name.endswith(PARTS) else len(part_indptr) - 1
            indptr = row_starts(np.asarray(rows, dtype=np.int32), height)
            fields_of[name] = indptr, np.asarray(terms, dtype=np.int32)
        return cls(positions, fields_of, np.asarray(part_indptr, dtype=np.int64))

    def counts(self, field: str, *, of_rows: bool = False) -> sp.csr_matrix:
        """Return how often a field of each node says each term; or of each part, with
        the whole fields of its node.
        """
        indptr, terms = self.fields[field]
        shape = len(indptr) - 1, len(self.vocabulary)
        found = sp.csr_matrix(
            (np.ones(len(terms), np.float32), terms, indptr), shape=shape
        )
        if field.endswith(PARTS) == of_rows:
            return found
        if of_rows:
            return found[np.repeat(np.arange(self.n_nodes), np.diff(self.part_indptr))]
        ones, parts = np.ones(self.n_parts, dtype=np.float32), np.arange(self.n_parts)
        return (
            sp.csr_matrix(
                (ones, parts, self.part_indptr), shape=(self.n_nodes, self.n_parts)
            )
            @ found
        ).tocsr()

    def followed(
        self,
        pairs: NDArray[np.int64],
        nodes: NDArray[np.int64],
        parts: NDArray[np.int32],
    ) -> NDArray[np.bool_]:
        """Tell where the first term of each pair, ``(b, 2)``, is followed by the
        second, ``(p, b)``.

        A place is a node, where its part is `NO_ROW`, or a part of one with the whole
        fields of the node.
        """
        n, out = len(self.vocabulary), np.zeros((len(nodes), len(pairs)), dtype=bool)
        asked = np.zeros(n, dtype=bool)
        asked[pairs] = True
        keys = pairs[:, 0] * n + pairs[:, 1]
        order = np.argsort(keys)
        whole = parts == NO_ROW
        rows = np.concatenate(
            [
                ranges(self.part_indptr, nodes[whole]),
                (self.part_indptr[nodes] + parts)[~whole],
            ]
        )
        n_parts = self.part_indptr[nodes + 1] - self.part_indptr[nodes]
        of_row = np.concatenate(
            [np.repeat(np.flatnonzero(whole), n_parts[whole]), np.flatnonzero(~whole)]
        )
        for name, (indptr, terms) in self.fields.items():
            at, place = (
                (rows, of_row)
                if name.endswith(PARTS)
                else (nodes, np.arange(len(nodes)))
            )
            said = terms[ranges(indptr, at)]
            text = np.repeat(np.arange(len(at)), indptr[at + 1] - indptr[at])
            near = np.flatnonzero(
                asked[said[:-1]] & asked[said[1:]] & (text[:-1] == text[1:])
            )
            key = said[near].astype(np.int64) * n + said[near + 1]
            pair = order[
                np.minimum(np.searchsorted(keys, key, sorter=order), len(keys) - 1)
            ]
            found = keys[pair] == key
            out[place[text[near[found]]], pair[found]] = True
        return out

    def take(self, positions: NDArray[np.int64]) -> FieldTerms:
        """Return the terms of the nodes at `positions`."""
        parts, taken = ranges(self.part_indptr, positions), {}
        for name, (indptr, terms) in self.fields.items():
            at = parts if name.endswith(PARTS) else positions
            taken[name] = _ends(np.diff(indptr)[at]), terms[ranges(indptr, at)]
        return FieldTerms(
            self.vocabulary, taken, _ends(np.diff(self.part_indptr)[positions])
        )

    def changed(
        self,
        old: NDArray[np.int64],
        fresh: Iterable[dict[str, FieldText]],
        analyzer: Analyzer,
    ) -> FieldTerms:
        """Return the terms of a new list of nodes, of which `old` has the positions
        here, -1 for those in `fresh`.
        """
        added = FieldTerms.of(fresh, analyzer, self.positions)
        joined = {}
        for name in {*self.fields, *added.fields}:
            (first, before), (second, after) = (
                one._field(name) for one in (self, added)
            )
            joined[name] = (
                np.concatenate([first, second[1:] + first[-1]]),
                np.concatenate([before, after]),
            )
        indptr = np.concatenate(
            [self.part_indptr, added.part_indptr[1:] + self.n_parts]
        )
        order = old.copy()
        order[old < 0] = self.n_nodes + np.arange(added.n_nodes)
        return FieldTerms(added.vocabulary, joined, indptr).take(order)

    def _field(self, name: str) -> Terms:
        height = self.n_parts if name.endswith(PARTS) else self.n_nodes
        return self.fields.get(
            name, (np.zeros(height + 1, dtype=np.int64), np.empty(0, dtype=np.int32))
        )

    def parts(self) -> Parts:
        """The terms as they are saved."""
        parts = Parts(
            arrays={"part_indptr": self.part_indptr},
            tables={"terms": pa.table({"term": Strings.of(self.vocabulary).array})},
            meta={"n_terms": len(self.vocabulary), "fields": list(self.fields)},
        )
        for name, (indptr, said) in self.fields.items():
            parts.arrays |= {
                f"fields/{name}/indptr": indptr,
                f"fields/{name}/terms": said,
            }
        return parts

    @classmethod
    def from_bundle(cls, bundle: Bundle) -> FieldTerms:
        """Open saved terms; those of the fields stay on disk until they are read."""
        fields = {
            name: (
                bundle.arrays[f"fields/{name}/indptr"],
                bundle.arrays[f"fields/{name}/terms"],
            )
            for name in bundle.meta["fields"]
        }
        return cls(
            Strings(bundle.columns("terms")["term"]),
            fields,
            bundle.arrays["part_indptr"],
        )


def _ends(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def sparse_arrays(name: str, matrix: Any) -> dict[str, NDArray[Any]]:
    """The arrays of a compressed matrix, as they are saved under a name."""
    return {
        f"{name}/{array}": getattr(matrix, array)
        for array in ("data", "indices", "indptr")
    }


def sparse_of(bundle: Bundle, name: str, kind: Any, shape: tuple[int, int]) -> Any:
    """Open a compressed matrix that `sparse_arrays` saved; its arrays stay on disk
    until they are read.
    """
    arrays = tuple(
        np.asarray(bundle.arrays[f"{name}/{array}"])
        for array in ("data", "indices", "indptr")
    )
    return kind(arrays, shape=shape, copy=False)
