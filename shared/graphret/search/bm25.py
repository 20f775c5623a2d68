"""BM25 over fields, with the weight of each term in each node and in each part of a node."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from copy import copy
from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from graphret.errors import InvalidInput
from graphret.nodes import NodeTable
from graphret.search.analysis import Analyzer
from graphret.search.counts import FieldCounts
from graphret.search.fields import NodeText
from graphret.search.index import ArrayIndex, table_of
from graphret.search.neighborhood import NodeSource
from graphret.search.scorers import Bm25sScorer, RankBm25Scorer, Scorer
from graphret.search.sparse_rows import sparse_rows
from graphret.search.weighing import Scaled, SoonAfterWrite, rarity, scaled_counts, weighed
from graphret.storage import Bundle, Parts
from graphret.types import Node

#: How strongly the length of a field damps its counts, by field.
FIELD_B: Mapping[str, float] = {"title": 0.3, "aliases": 0.3, "section": 0.3, "header": 0.3, "rows": 0.5}
BACKENDS = ("bm25s", "rank_bm25")

_FEW = 64
_BLOCK = 10_000


@dataclass(frozen=True)
class BM25Settings:
    """Parameters of BM25F (Robertson and Zaragoza 2009, section 3.6).

    Parameters
    ----------
    k1
        Saturation of a term's count.
    b
        Length normalisation of fields that `field_b` does not name.
    field_b
        Length normalisation by field.
    backend
        What scores: ``bm25s``, or ``rank_bm25``, the slower reference.
    """

    k1: float = 1.5
    b: float = 0.75
    field_b: Mapping[str, float] = field(default_factory=lambda: dict(FIELD_B))
    backend: str = "bm25s"

    def __post_init__(self) -> None:
        if self.backend not in BACKENDS:
            raise InvalidInput(f"backend: one of {', '.join(BACKENDS)} is expected, not {self.backend!r}")
        if self.k1 <= 0 or not all(0 <= b <= 1 for b in (self.b, *self.field_b.values())):
            raise InvalidInput("BM25: k1 must be positive, and every b between 0 and 1")


class BM25Index(ArrayIndex):
    """Lexical search over weighted fields.

    The weight of term t in a document is ``idf(t) · tf / (k1 + tf)``, where
    ``tf = Σ_f weight_f · count_f / (1 − b_f + b_f · length_f / mean length_f)`` runs over the fields in which the
    document has text, and ``idf(t) = ln(1 + (N − df + ½) / (df + ½))``, as Lucene has it. With one field of weight 1
    this is plain BM25. Each distinct term of a query counts once.

    The parts of a node (the rows of a table) have weights of their own: a part is the node with only that part of its
    divided field.

    Parameters
    ----------
    table
        The nodes.
    counts
        The counts of their terms.
    text, analyzer, settings
        How nodes become fields, fields terms and terms scores.
    """

    def __init__(
        self,
        table: NodeTable,
        counts: FieldCounts,
        text: NodeText,
        analyzer: Analyzer,
        settings: BM25Settings,
        *,
        weights: tuple[sp.csr_matrix, sp.csr_matrix] | None = None,
    ) -> None:
        super().__init__(table)
        self.counts = counts
        self.text = text
        self.analyzer = analyzer
        self.settings = settings
        self._known_idf: list[NDArray[np.float64]] = []
        self._known_weights = [weights] if weights else []
        self._scorers: dict[str, Scorer] = {}  # shared by the copies that searches take, as are weights and columns
        self._build_lock = threading.RLock()  # building the scorer builds the columns, and they the weights
        self._by_term: dict[bool, sp.csc_matrix] = {}
        self._soon: SoonAfterWrite | None = None
        self._asked: tuple[str, NDArray[np.int64]] = "", np.empty(0, dtype=np.int64)
        self._local = threading.local()

    @classmethod
    def build(
        cls,
        nodes: NodeTable | Iterable[Node],
        *,
        text: NodeText | None = None,
        analyzer: Analyzer | None = None,
        settings: BM25Settings | None = None,
    ) -> BM25Index:
        """Index nodes."""
        table = nodes if isinstance(nodes, NodeTable) else NodeTable.of(nodes)
        text, analyzer = text or NodeText(), analyzer or Analyzer()
        blocks = (text.all_fields(table[start : start + _BLOCK]) for start in range(0, len(table), _BLOCK))
        return cls(table, FieldCounts.of_blocks(blocks, analyzer), text, analyzer, settings or BM25Settings())

    @classmethod
    def of_store(
        cls,
        store: NodeSource,
        *,
        text: NodeText | None = None,
        labels: Collection[str] | None = None,
        analyzer: Analyzer | None = None,
        settings: BM25Settings | None = None,
    ) -> BM25Index:
        """Index the nodes of a store, or those that bear one of `labels`.

        ``store.attach(index)`` then keeps it in step with the store.

        Parameters
        ----------
        text
            What is read of a node, such as ``NodeText.names()`` or ``NodeText.documents()``.
        """
        text = (text or NodeText()).bound(store)
        index = cls.build(table_of(store, labels), text=text, analyzer=analyzer, settings=settings)
        index.scope = None if labels is None else frozenset(labels)
        return index

    def texts(self) -> list[NodeText]:
        """The way in which this index reads nodes."""
        return [self.text]

    def with_texts(self, change: Callable[[NodeText], NodeText]) -> BM25Index:
        """Return this index, nothing of it read anew, with the way in which it reads nodes changed."""
        state = copy(self)
        state.text = change(self.text)
        return state

    @property
    def node_weights(self) -> sp.csr_matrix:
        """The weight of each term in each node, ``(n_nodes, terms)``."""
        return self._weights()[0]

    @property
    def part_weights(self) -> sp.csr_matrix:
        """The weight of each term in each part of a node, ``(n_parts, terms)``."""
        return self._weights()[1]

    def _weights(self) -> tuple[sp.csr_matrix, sp.csr_matrix]:
        if not self._known_weights:  # when they are first asked for: several writes may come before a search
            with self._build_lock:
                if not self._known_weights:
                    self._known_weights.append(self._weigh())
        return self._known_weights[0]

    def _weigh(self) -> tuple[sp.csr_matrix, sp.csr_matrix]:
        idf, k1 = self.idf(), self.settings.k1
        by_node = weighed(self._scaled(False), idf, k1, self.counts.n_nodes)
        return by_node, weighed(self._scaled(True), idf, k1, self.counts.n_parts)

    def _scaled(self, of_parts: bool) -> list[Scaled]:
        fields, known = self.counts.fields, self.settings
        b = {name: known.field_b.get(name, known.b) for name in fields}
        counts = {name: self.counts.matrix(name, of_parts=of_parts) for name in fields}
        return scaled_counts(counts, b, self.text.weights)

    def idf(self) -> NDArray[np.float64]:
        """The rarity of each term, by its position in the vocabulary, ``(terms,)``."""
        if not self._known_idf:
            self._known_idf.append(rarity(self.counts.n_nodes, self.counts.document_frequencies()))
        return self._known_idf[0]

    def ceiling(self, query: str) -> float:
        """The score that no node can exceed: the sum of the rarities of the query's terms, unknown ones included."""
        terms, known = set(self.analyzer(query)), self.term_ids(query)
        unknown = (len(terms) - len(known)) * float(np.log1p((self.counts.n_nodes + 0.5) / 0.5))
        return float(self.idf()[known].sum()) + unknown

    def confidence(self, query: str, positions: NDArray[np.int64]) -> float:
        """Return the share of a query's terms that nodes say together, by rarity, unknown terms included."""
        terms, n = self.term_ids(query), self.counts.n_nodes
        if self._by_counts:  # as long as the weights are still to be made
            there = sum((counts[:, terms] for counts in self.counts.whole.values()), sp.csr_matrix((n, len(terms))))
            df, said = there.getnnz(axis=0), there[positions].getnnz(axis=0) > 0
        else:
            starts = self._columns(False).indptr
            df, said = starts[terms + 1] - starts[terms], (self.term_weights(query, positions) > 0).any(axis=0)
        idf = rarity(n, df.astype(np.int64))
        unknown = (len(set(self.analyzer(query))) - len(terms)) * float(rarity(n, np.asarray(0)))
        return float(idf[said].sum()) / max(float(idf.sum()) + unknown, 1e-9)

    # -- search

    def term_ids(self, query: str) -> NDArray[np.int64]:
        """Return the positions in the vocabulary of the query's distinct terms that occur here, in its order."""
        asked, known_ids = self._asked
        if asked == query:
            return known_ids
        positions = self.counts.vocabulary.positions
        known = (positions.get(term) for term in dict.fromkeys(self.analyzer(query)))
        ids = np.asarray([i for i in known if i is not None], dtype=np.int64)
        self._asked = query, ids  # one assignment, so that other threads see both or neither
        return ids

    def _scores(self, query: str) -> NDArray[np.float32]:
        terms = self.term_ids(query)
        if not len(terms) or not len(self.table):
            return np.zeros(len(self.table), dtype=np.float32)
        if self._soon is not None and self._by_counts and len(terms) <= _FEW:
            return self._soon.scores(terms, self._scorer)
        return self._scorer()(terms)

    @property
    def _by_counts(self) -> bool:
        """Whether a write was so lately that what searches by weights is not there yet."""
        return self._soon is not None and self.settings.backend not in self._scorers

    def make_ready(self) -> None:
        """Make what the first search makes, or after a write one of those that come soon."""
        self._scorer()

    def _scorer(self) -> Scorer:
        backend = self.settings.backend
        if backend not in self._scorers:
            with self._build_lock:
                if backend not in self._scorers:
                    self._scorers[backend] = self._new_scorer()
        return self._scorers[backend]

    def _new_scorer(self) -> Scorer:
        k1, b = self.settings.k1, self.settings.b
        if self.settings.backend == "rank_bm25":
            return RankBm25Scorer(self.node_weights, self.idf(), k1)
        return Bm25sScorer(self._columns(False), k1, b)

    def score_at(self, query: str, positions: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the scores of the nodes at `positions`, ``(p,)``, reading those nodes alone where they are few.

        They are the same to the last bit as in the scores of all: each adds up the same weights in the order of the
        query's terms, which no numbering of the vocabulary changes.
        """
        if self.settings.backend != "bm25s" or self.remembers_scores(query) or self._by_counts:
            return super().score_at(query, positions)
        weights, terms, by_term = self.node_weights, self.term_ids(query), self._columns(False)
        first, last = weights.indptr[positions], weights.indptr[np.asarray(positions) + 1]
        if (last - first).sum() > len(self.table) + (by_term.indptr[terms + 1] - by_term.indptr[terms]).sum():
            return super().score_at(query, positions)
        asked, place = np.zeros(weights.shape[1], dtype=bool), np.empty(weights.shape[1], dtype=np.int32)
        asked[terms], place[terms] = True, np.arange(len(terms))
        columns, values, ends = sparse_rows(weights, positions)
        hits = np.flatnonzero(asked.take(columns))
        found = np.zeros((len(terms), len(positions)), dtype=np.float32)
        found[place[columns[hits]], np.searchsorted(ends, hits, side="right")] = values[hits]
        total = np.zeros(len(positions), dtype=np.float32)
        for of_term in found:
            total += of_term
        return total

    def term_weights(self, query: str, positions: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the weight of each of the query's terms (see `term_ids`) in the nodes at `positions`, ``(p, t)``."""
        return self._gather(False, self.term_ids(query), np.asarray(positions))

    def part_term_weights(
        self, query: str, positions: NDArray[np.int64], parts: NDArray[np.int32]
    ) -> NDArray[np.float32]:
        """Return the weights of the query's terms in one part of each node, ``(p, t)``.

        Parameters
        ----------
        positions, parts
            The nodes, and the part of each, counted from 0 within it, ``(p,)``.
        """
        starts = self.counts.part_indptr[positions]
        if ((parts < 0) | (starts + parts >= self.counts.part_indptr[np.asarray(positions) + 1])).any():
            raise InvalidInput("parts: a node has no such part")
        return self._gather(True, self.term_ids(query), starts + parts)

    def has_parts(self, positions: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which nodes are divided into parts."""
        indptr = self.counts.part_indptr
        return np.asarray(indptr[np.asarray(positions) + 1] > indptr[positions])

    def _gather(self, of_parts: bool, terms: NDArray[np.int64], rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the weights of terms in nodes or parts, read by row or by term, whichever has fewer entries."""
        if not len(rows) or not len(terms):
            return np.zeros((len(rows), len(terms)), dtype=np.float32)
        matrix, by_term = self.part_weights if of_parts else self.node_weights, self._columns(of_parts)
        by_row = int((matrix.indptr[rows + 1] - matrix.indptr[rows]).sum())
        if by_row <= int((by_term.indptr[terms + 1] - by_term.indptr[terms]).sum()):
            return self._cross(matrix, rows, terms)
        distinct, place = np.unique(rows, return_inverse=True)
        return np.ascontiguousarray(self._cross(by_term, terms, distinct).T)[place]

    def _columns(self, of_parts: bool) -> sp.csc_matrix:
        if of_parts not in self._by_term:
            with self._build_lock:
                if of_parts not in self._by_term:
                    self._by_term[of_parts] = (self.part_weights if of_parts else self.node_weights).tocsc()
        return self._by_term[of_parts]

    def _cross(
        self, matrix: sp.csr_matrix | sp.csc_matrix, major: NDArray[np.int64], minor: NDArray[np.int64]
    ) -> NDArray[np.float32]:
        """Return a compressed matrix at some of its major rows and minor columns, each distinct, ``(major, minor)``."""
        out = np.zeros((len(major), len(minor)), dtype=np.float32)
        # A slot for each minor column, zero but for the asked: one lookup an entry, no sort.
        width = matrix.shape[1] if matrix.format == "csr" else matrix.shape[0]
        slots = getattr(self._local, "slots", None)
        if slots is None or len(slots) < width:
            slots = self._local.slots = np.zeros(width, dtype=np.int32)
        slots[minor] = np.arange(1, len(minor) + 1)
        try:
            starts = matrix.indptr[major].astype(np.int64)
            lengths = matrix.indptr[major + 1] - starts
            ends = np.cumsum(lengths)
            if len(major) <= _FEW:
                indices = np.concatenate([matrix.indices[a : a + n] for a, n in zip(starts, lengths, strict=True)])
                data = np.concatenate([matrix.data[a : a + n] for a, n in zip(starts, lengths, strict=True)])
            else:
                entries = np.repeat(starts - (ends - lengths), lengths) + np.arange(ends[-1])
                indices, data = matrix.indices[entries], matrix.data[entries]
            found = slots[indices]
            hit = np.flatnonzero(found)
            out[np.searchsorted(ends, hit, side="right"), found[hit] - 1] = data[hit]
        finally:
            slots[minor] = 0
        return out

    # -- change

    def changed(self, table: NodeTable, fresh: Collection[str]) -> BM25Index:
        """Return the index of another table, analysing only the nodes that are new or in `fresh`."""
        old = table.places_in(self.table, fresh)
        new = self.text.all_fields(table.at(np.flatnonzero(old < 0)))
        counts = self.counts.changed(old, new, self.analyzer)
        index = BM25Index(table, counts, self.text, self.analyzer, self.settings)
        if self.settings.backend == "bm25s" and not counts.divided:
            index._soon = SoonAfterWrite(index._scaled(False), counts.n_nodes, self.settings.k1)
        return index

    def induced(self, table: NodeTable, positions: NDArray[np.int64]) -> BM25Index:
        """Return the index of the nodes at `positions`, with the statistics of those nodes alone."""
        return BM25Index(table, self.counts.take(positions), self.text, self.analyzer, self.settings)

    # -- on disk

    def parts(self) -> Parts:
        """The index as it is saved, without its table."""
        parts = Parts(
            meta={
                "text": self.text.to_dict(),
                "analyzer": self.analyzer.to_dict(),
                "settings": {
                    "k1": self.settings.k1,
                    "b": self.settings.b,
                    "field_b": dict(self.settings.field_b),
                    "backend": self.settings.backend,
                },
            }
        )
        parts.add("counts", self.counts.parts())
        for name, matrix in (("nodes", self.node_weights), ("parts", self.part_weights)):
            for array in ("data", "indices", "indptr"):
                parts.arrays[f"{name}_{array}"] = getattr(matrix, array)
        return parts

    @classmethod
    def from_bundle(cls, bundle: Bundle, table: NodeTable) -> BM25Index:
        """Open a saved index; its arrays stay on disk until they are read."""
        counts = FieldCounts.from_bundle(bundle.sub("counts"))
        width = len(counts.vocabulary)

        def matrix(name: str, rows: int) -> sp.csr_matrix:
            arrays = tuple(np.asarray(bundle.array(f"{name}_{array}")) for array in ("data", "indices", "indptr"))
            return sp.csr_matrix(arrays, shape=(rows, width), copy=False)

        meta = bundle.meta
        text = NodeText.from_dict(meta["text"])
        weights = matrix("nodes", counts.n_nodes), matrix("parts", counts.n_parts)
        settings = BM25Settings(**meta["settings"])
        return cls(table, counts, text, Analyzer(**meta["analyzer"]), settings, weights=weights)
