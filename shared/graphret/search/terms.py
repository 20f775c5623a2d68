"""The terms of each field of a node, and of each row of a divided field, in order."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from functools import cached_property
from itertools import count
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from graphret.change import Change
from graphret.columns import Strings
from graphret.edges import NO_ROW, row_starts
from graphret.lists import Lists, ends_of
from graphret.numeric import ranges, spans
from graphret.search.analysis import Analyzer
from graphret.search.fields import FieldText
from graphret.search.postings import Postings
from graphret.splice import Splice
from graphret.storage import Bundle, Parts

#: Ends the name of a field that has rows: ``rows[]``.
ROWS = "[]"

#: The terms of each node or row, as positions in the vocabulary.
Terms: TypeAlias = Lists[np.int32]


class FieldTerms:
    """Nodes as the terms of their fields, in the order in which the fields say them.

    `fields` has those of one that has rows (``rows[]``) by row and of others by node;
    `row_indptr` says where the rows of each node begin, ``(n_nodes + 1,)``.
    """

    def __init__(
        self,
        vocabulary: Collection[Any],
        fields: Mapping[str, Terms],
        row_indptr: NDArray[np.int64],
    ) -> None:
        self.vocabulary = vocabulary
        self.fields = dict(sorted(fields.items()))
        self.row_indptr = row_indptr
        self.n_nodes, self.n_rows = len(row_indptr) - 1, int(row_indptr[-1])
        # Of fields, made when asked for.
        self._postings: dict[str, Postings] = {}
        self._lengths: dict[str, NDArray[np.int64]] = {}

    @cached_property
    def positions(self) -> dict[str, int]:
        """The position of each term in the vocabulary.

        It is made when first asked for, since an index may be opened and never
        searched.
        """
        if isinstance(self.vocabulary, dict):  # that of `of`, which has them
            return self.vocabulary
        return {term: i for i, term in enumerate(self.vocabulary)}

    @classmethod
    def of(
        cls,
        nodes: Iterable[dict[str, FieldText]],
        analyzer: Analyzer,
        vocabulary: Mapping[str, int] | None = None,
    ) -> FieldTerms:
        """Analyze nodes given by their fields.

        The terms of `vocabulary` keep their positions.
        """
        known = vocabulary or {}
        positions = defaultdict(count(len(known)).__next__, known)
        # By field the texts' nodes or rows, how many terms each has, and the terms.
        found: dict[str, tuple[Any, Any, Any]] = defaultdict(
            lambda: (array("i"), array("i"), array("i"))
        )
        row_indptr = array("q", [0])
        for node, fields in enumerate(nodes):
            first, n_rows = row_indptr[-1], 0
            for name, value in fields.items():
                divided = isinstance(value, list)
                key = name.removesuffix(ROWS) + divided * ROWS
                owners, lengths, terms = found[key]
                texts = value if isinstance(value, list) else [value]
                n_rows = max(n_rows, divided * len(texts))
                for row, text in enumerate(texts, first if divided else node):
                    said = [*map(positions.__getitem__, analyzer(text))]
                    owners.append(row)
                    lengths.append(len(said))
                    terms.fromlist(said)
            row_indptr.append(first + n_rows)
        positions.default_factory = None  # it has every term now
        fields_of = {}
        for name, (owners, lengths, terms) in found.items():
            height = row_indptr[-1] if name.endswith(ROWS) else len(row_indptr) - 1
            indptr = row_starts(np.repeat(owners, lengths), height)
            fields_of[name] = Terms.packed(np.asarray(terms, np.int32), indptr)
        return cls(positions, fields_of, np.asarray(row_indptr, dtype=np.int64))

    def counts(self, field: str, only: NDArray[np.int64] | None) -> sp.csc_matrix:
        """Return how often a field says each term: of each row if divided, or node.

        With `only`, the terms are those at some positions of the vocabulary, in that
        order.
        """
        said = self.fields[field]
        if only is None:
            terms, indptr = said.pack()
            ones, width = np.ones(len(terms), np.float32), len(self.vocabulary)
            by_text = sp.csr_matrix((ones, terms, indptr), shape=(len(said), width))
            found = by_text.tocsc()
            found.sum_duplicates()
            return found
        if field not in self._postings:
            self._postings[field] = Postings.of(said)
        held = self._postings[field].occurrences(only, said)
        times, shape = held.times.astype(np.float32), (len(said), len(only))
        return sp.csc_matrix((times, held.owners, held.starts), shape=shape)

    def counts_of(
        self, field: str, found: sp.csc_matrix, *, of_rows: bool
    ) -> sp.csc_matrix:
        """Return what `counts` found in a field for each row, or for each node.

        A row counts with the whole fields of its node.
        """
        if field.endswith(ROWS) == of_rows:
            return found
        if of_rows:
            of_row = np.repeat(np.arange(self.n_nodes), np.diff(self.row_indptr))
            return found.tocsr()[of_row].tocsc()
        ones, rows = np.ones(self.n_rows, dtype=np.float32), np.arange(self.n_rows)
        shape = self.n_nodes, self.n_rows
        rows_of = sp.csr_matrix((ones, rows, self.row_indptr), shape=shape)
        return (rows_of @ found).tocsc()

    @cached_property
    def n_said(self) -> int:
        """How many terms all fields say."""
        return sum(int(self._lengths_of(field).sum()) for field in self.fields)

    def lengths(self, field: str, *, of_rows: bool = False) -> NDArray[np.float64]:
        """Return how many terms a field of each node has, or of each row.

        Rows are taken as in `counts_of`.
        """
        lengths = self._lengths_of(field)
        if field.endswith(ROWS) != of_rows:
            if of_rows:
                lengths = np.repeat(lengths, np.diff(self.row_indptr))
            else:
                lengths = np.diff(ends_of(lengths)[self.row_indptr])
        return lengths.astype(np.float64)

    def _lengths_of(self, field: str) -> NDArray[np.int64]:
        """Return how many terms a field has of each row if divided, or node."""
        if field not in self._lengths:
            self._lengths[field] = self.fields[field].lengths
        return self._lengths[field]

    def followed(
        self,
        pairs: NDArray[np.int64],
        nodes: NDArray[np.int64],
        rows: NDArray[np.int32],
    ) -> NDArray[np.bool_]:
        """Tell where each pair's second term follows its first, ``(p, b)``.

        The pairs are ``(b, 2)``.

        A place is a node, where its row is `NO_ROW`, or a row of one with the whole
        fields of the node.
        """
        n, out = len(self.vocabulary), np.zeros((len(nodes), len(pairs)), dtype=bool)
        asked = np.zeros(n, dtype=bool)
        asked[pairs] = True
        keys = pairs[:, 0] * n + pairs[:, 1]
        order = np.argsort(keys)
        whole = rows == NO_ROW
        rows_read = np.concatenate(
            [
                ranges(self.row_indptr, nodes[whole]),
                (self.row_indptr[nodes] + rows)[~whole],
            ]
        )
        n_rows = self.row_indptr[nodes + 1] - self.row_indptr[nodes]
        of_row = np.concatenate(
            [np.repeat(np.flatnonzero(whole), n_rows[whole]), np.flatnonzero(~whole)]
        )
        for name, terms in self.fields.items():
            at, place = (
                (rows_read, of_row)
                if name.endswith(ROWS)
                else (nodes, np.arange(len(nodes)))
            )
            said, starts = terms.take(at).pack()
            text = np.repeat(np.arange(len(at)), np.diff(starts))
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
        rows = ranges(self.row_indptr, positions)
        taken = {
            name: said.take(rows if name.endswith(ROWS) else positions)
            for name, said in self.fields.items()
        }
        return FieldTerms(
            self.vocabulary, taken, ends_of(np.diff(self.row_indptr)[positions])
        )

    def changed(
        self, change: Change, fresh: Iterable[dict[str, FieldText]], analyzer: Analyzer
    ) -> FieldTerms:
        """Return the terms after a change, given the fields of its fresh nodes."""
        added = FieldTerms.of(fresh, analyzer, self.positions)
        nodes, (firsts, new_firsts) = change.splice, (self.row_indptr, added.row_indptr)
        n_rows = nodes.of(np.diff(firsts), np.diff(new_firsts))
        first_rows = nodes.of(firsts[:-1], new_firsts[:-1] + self.n_rows)
        of_rows = Splice((self.n_rows, added.n_rows), spans(first_rows, n_rows))
        fields = {}
        for name in {*self.fields, *added.fields}:
            splice = of_rows if name.endswith(ROWS) else nodes
            fields[name] = splice.of_lists(self._field(name), added._field(name))
        after = FieldTerms(added.vocabulary, fields, ends_of(n_rows))
        for name, postings in self._postings.copy().items():  # readers add some
            splice = of_rows if name.endswith(ROWS) else nodes
            if (known := postings.changed(splice)) is not None:
                after._postings[name] = known
        return after

    def _field(self, name: str) -> Terms:
        height = self.n_rows if name.endswith(ROWS) else self.n_nodes
        nothing = np.empty(0, np.int32), np.zeros(height + 1, np.int64)
        return self.fields.get(name) or Terms.packed(*nothing)

    def parts(self) -> Parts:
        """The terms as they are saved."""
        parts = Parts(
            arrays={"row_indptr": self.row_indptr},
            meta={"n_terms": len(self.vocabulary), "fields": list(self.fields)},
        )
        parts.add_texts("terms", Strings.of(self.vocabulary).array)
        for name, terms in self.fields.items():
            said, indptr = terms.pack()
            parts.arrays |= {
                f"fields/{name}/indptr": indptr,
                f"fields/{name}/terms": said,
            }
        return parts

    @classmethod
    def from_bundle(cls, bundle: Bundle) -> FieldTerms:
        """Open saved terms; those of the fields stay on disk until they are read."""
        fields = {
            name: Terms.packed(
                bundle.arrays[f"fields/{name}/terms"],
                bundle.arrays[f"fields/{name}/indptr"],
            )
            for name in bundle.meta["fields"]
        }
        return cls(
            Strings(bundle.texts("terms")),
            fields,
            bundle.arrays["row_indptr"],
        )


def sparse_arrays(name: str, matrix: Any) -> dict[str, NDArray[Any]]:
    """The arrays of a compressed matrix, as they are saved under a name."""
    return {
        f"{name}/{array}": getattr(matrix, array)
        for array in ("data", "indices", "indptr")
    }


def sparse_of(bundle: Bundle, name: str, kind: Any, shape: tuple[int, int]) -> Any:
    """Open a compressed matrix that `sparse_arrays` saved.

    Its arrays stay on disk until they are read.
    """
    arrays = tuple(
        np.asarray(bundle.arrays[f"{name}/{array}"])
        for array in ("data", "indices", "indptr")
    )
    return kind(arrays, shape=shape, copy=False)
