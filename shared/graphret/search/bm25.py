"""BM25 over fields, with the weight of each term in each node and in each row of it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from itertools import chain, pairwise
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from graphret.change import Change
from graphret.errors import InvalidInput
from graphret.executors.blocks import batched
from graphret.nodes import NodeTable
from graphret.search.analysis import Analyzer
from graphret.search.arrays import ArrayIndex, table_of
from graphret.search.fields import NodeText
from graphret.search.terms import ROWS, FieldTerms, sparse_arrays, sparse_of
from graphret.storage import Bundle, Parts
from graphret.stores.base import GraphStore
from graphret.types import Node

#: How strongly the length of a field damps its counts, by field.
FIELD_B: Mapping[str, float] = {
    "title": 0.3,
    "aliases": 0.3,
    "section": 0.3,
    "header": 0.3,
    "rows": 0.5,
}


@dataclass(frozen=True)
class BM25Settings:
    """Parameters of BM25F (Robertson and Zaragoza 2009, section 3.6).

    Parameters
    ----------
    k1
        Saturation of a term's count.
    b, field_b
        Length normalisation, and that of fields by name.
    """

    k1: float = 1.5
    b: float = 0.75
    field_b: Mapping[str, float] = field(default_factory=lambda: dict(FIELD_B))

    def __post_init__(self) -> None:
        if self.k1 <= 0 or not all(
            0 <= b <= 1 for b in (self.b, *self.field_b.values())
        ):
            raise InvalidInput("BM25: k1 must be positive, and every b between 0 and 1")


class TermWeights:
    """The weight of each term in each node and in each row of a node (see `BM25Index`).

    The weights are made when they are first asked for.

    Parameters
    ----------
    terms
        The terms.
    field_weights, settings
        What they weigh by.
    only, whole
        Where these are the weights of a few terms: their positions in the vocabulary,
        and the weights of all, which know how long each field is.
    """

    def __init__(
        self,
        terms: FieldTerms,
        field_weights: Mapping[str, float],
        settings: BM25Settings,
        only: NDArray[np.int64] | None = None,
        whole: TermWeights | None = None,
    ) -> None:
        self.terms, self.field_weights, self.settings = terms, field_weights, settings
        self._only, self._whole = only, whole
        self._scales: dict[tuple[str, bool], NDArray[np.float64]] = {}
        self._said: dict[str, sp.csc_matrix] = {}  # how often, by field
        # Of terms that very many nodes have: a weight for each node, added up several
        # times as fast, in at most twice the room of their places and weights.
        self._columns: dict[int, NDArray[np.float32]] = {}
        # Of queries, until all weights are made, and how many they are.
        self._of_query: dict[str, TermWeights] = {}
        self._n_weighed = 0

    def of_query(self, query: str, terms: NDArray[np.int64]) -> TermWeights | None:
        """Return the weights of a query's terms alone, in their order: sooner made.

        `None` says that all weights are made, or that it is time to make them: queries
        have weighed as many as there are.
        """
        known = self._of_query.get(query)
        if self.made or (known is None and self._n_weighed > self.terms.n_said):
            self._of_query.clear()
            return None
        if known is None:
            settings = self.terms, self.field_weights, self.settings
            known = TermWeights(*settings, only=terms, whole=self)
            self._of_query[query] = known
            self._n_weighed += known.of_nodes.nnz
        return known

    @property
    def made(self) -> bool:
        """Whether the weights in nodes are made."""
        return "of_nodes" in self.__dict__

    @cached_property
    def of_nodes(self) -> sp.csc_matrix:
        """``(n_nodes, terms)``."""
        return self._weighed(of_rows=False)

    @cached_property
    def of_rows(self) -> sp.csc_matrix:
        """``(n_rows, terms)``."""
        weighed = self._weighed(of_rows=True)
        self._said.clear()  # for rows it is asked last
        return weighed

    @cached_property
    def idf(self) -> NDArray[np.float64]:
        """The rarity of each term, by its position in the vocabulary, ``(terms,)``."""
        return _rarity(self.terms.n_nodes, np.diff(self.of_nodes.indptr))

    def add_to(self, scores: NDArray[np.float32], term: int) -> None:
        """Add a term's weight in each node to the scores of all, ``(n_nodes,)``."""
        by_term = self.of_nodes
        held = slice(by_term.indptr[term], by_term.indptr[term + 1])
        is_common = (held.stop - held.start) * _COMMON > len(scores)
        if not is_common or self._only is not None:
            # twice as fast as += of int32 places
            np.add.at(scores, by_term.indices[held], by_term.data[held])
            return
        if (column := self._columns.get(term)) is None:
            column = np.zeros(len(scores), dtype=np.float32)
            column[by_term.indices[held]] = by_term.data[held]
            self._columns[term] = column
        scores += column

    def in_nodes(
        self, nodes: NDArray[Any], terms: NDArray[np.int64]
    ) -> NDArray[np.float32]:
        """Return the weights of some terms in some nodes, ``(nodes, terms)``."""
        return _entries(self.of_nodes, nodes, terms, self._columns)

    def in_rows(
        self, rows: NDArray[Any], terms: NDArray[np.int64]
    ) -> NDArray[np.float32]:
        """Return the weights of some terms in some rows, ``(rows, terms)``."""
        return _entries(self.of_rows, rows, terms, {})

    def _weighed(self, of_rows: bool) -> sp.csc_matrix:
        terms, whole = self.terms, self._whole or self
        n_terms = len(terms.vocabulary) if self._only is None else len(self._only)
        n_texts = terms.n_rows if of_rows else terms.n_nodes
        by_term = sp.csc_matrix((n_texts, n_terms))
        for key in terms.fields:
            found = terms.counts_of(key, self._counts(key), of_rows=of_rows)
            if not found.nnz:
                continue
            scale = whole._scale(key, of_rows)
            by_term = by_term + sp.csc_matrix(
                (found.data * scale[found.indices], found.indices, found.indptr),
                shape=found.shape,
            )
        idf = self.idf if of_rows else _rarity(terms.n_nodes, np.diff(by_term.indptr))
        tf = by_term.data
        by_term.data = (
            np.repeat(idf, np.diff(by_term.indptr)) * tf / (self.settings.k1 + tf)
        ).astype(np.float32)
        return by_term

    def _counts(self, key: str) -> sp.csc_matrix:
        """Return how often a field says the terms; kept where these are few."""
        if self._only is None:
            return self.terms.counts(key, None)
        if key not in self._said:
            self._said[key] = self.terms.counts(key, self._only)
        return self._said[key]

    def _scale(self, key: str, of_rows: bool) -> NDArray[np.float64]:
        """Return what one occurrence in a field counts, for each node or each row.

        It depends on the length of the field there, and is computed once.
        """
        if (known := self._scales.get((key, of_rows))) is not None:
            return known
        name, settings = key.removesuffix(ROWS), self.settings
        b = settings.field_b.get(name, settings.b)
        lengths = self.terms.lengths(key, of_rows=of_rows)
        norm = 1.0 - b + b * lengths / lengths.mean(where=lengths > 0)
        weight = self.field_weights.get(name, 1.0)
        scale = np.divide(weight, norm, out=np.zeros_like(norm), where=norm > 0)
        return self._scales.setdefault((key, of_rows), scale)


class BM25Index(ArrayIndex):
    """Lexical search over weighted fields.

    The weight of term t in a document is ``idf(t) · tf / (k1 + tf)``, where
    ``tf = Σ_f weight_f · count_f / (1 − b_f + b_f · length_f / mean length_f)`` runs
    over the fields in which the document has text, and ``idf(t) = ln(1 + (N − df + ½) /
    (df + ½))``, as Lucene has it. With one field of weight 1 this is plain BM25. Each
    distinct term of a query counts once.

    The rows of a table have weights of their own: a row is the node with only that row
    of its divided field. Weights are made when they are asked for, after a write too:
    those of each query's terms alone, and all once as many have been made.

    Parameters
    ----------
    table, terms
        The nodes, and their terms.
    text, analyzer, settings
        How nodes become fields, fields terms and terms scores.
    """

    least = 0.0

    def __init__(
        self,
        table: NodeTable,
        terms: FieldTerms,
        text: NodeText,
        analyzer: Analyzer,
        settings: BM25Settings,
    ) -> None:
        super().__init__(table)
        self.terms = terms
        self.text = text
        self.analyzer = analyzer
        self.settings = settings
        self.weights = TermWeights(terms, text.weights, settings)

    @classmethod
    def build(
        cls,
        nodes: NodeTable | Iterable[Node],
        *,
        text: NodeText | None = None,
        analyzer: Analyzer | None = None,
        settings: BM25Settings | None = None,
        source: GraphStore | None = None,
    ) -> Self:
        """Index nodes, read as `text` says.

        `text` may be ``NodeText.names()`` or ``NodeText.documents()``, for example;
        `source` is the store in which neighbours are looked up.
        """
        table = nodes if isinstance(nodes, NodeTable) else NodeTable.of(nodes)
        text, analyzer = (text or NodeText()).bound(source), analyzer or Analyzer()
        blocks = map(text.all_fields, batched(table))
        terms = FieldTerms.of(chain.from_iterable(blocks), analyzer)
        return cls(table, terms, text, analyzer, settings or BM25Settings())

    @classmethod
    def of_store(
        cls,
        store: GraphStore,
        *,
        labels: Collection[str] | None = None,
        text: NodeText | None = None,
        analyzer: Analyzer | None = None,
        settings: BM25Settings | None = None,
    ) -> Self:
        """Make it of a store's nodes, or those that bear one of `labels`.

        ``store.attach(index)`` keeps it in step; the rest is as for `build`.
        """
        index = cls.build(
            table_of(store, labels),
            text=text,
            analyzer=analyzer,
            settings=settings,
            source=store,
        )
        return index.limited_to(labels)

    # -- scoring

    def term_ids(self, query: str) -> NDArray[np.int64]:
        """Return the positions in the vocabulary of the query's distinct terms.

        They are in the order of the query, without terms that occur in no node.
        """
        positions = self.terms.positions
        terms = dict.fromkeys(self.analyzer.of_query(query))
        return np.asarray(
            [positions[term] for term in terms if term in positions], dtype=np.int64
        )

    def _weights(self, query: str) -> tuple[TermWeights, NDArray[np.int64]]:
        """Return weights that those of a query's terms are among, and where."""
        terms = self.term_ids(query)
        few = self.weights.of_query(query, terms)
        return (self.weights, terms) if few is None else (few, np.arange(len(terms)))

    def _scores(self, query: str) -> NDArray[np.float32]:
        made, terms = self._weights(query)
        scores = np.zeros(len(self.table), dtype=np.float32)
        for term in terms.tolist():
            made.add_to(scores, term)
        return scores

    def score_at(self, query: str, positions: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the scores of the nodes at `positions`, ``(p,)``.

        The scores of a few nodes are summed from their weights alone.
        """
        if len(positions) * _FEW >= len(self.table) or query in self._recent:
            return super().score_at(query, positions)
        by_term = np.ascontiguousarray(self.term_weights(query, positions).T)
        return np.asarray(
            by_term.sum(axis=0), dtype=np.float32
        )  # term after term, as in `_scores`

    def term_weights(
        self, query: str, positions: NDArray[np.int64]
    ) -> NDArray[np.float32]:
        """Return the weights of the query's terms in nodes, ``(p, t)``.

        The terms are those of `term_ids`, the nodes those at `positions`.
        """
        weights, terms = self._weights(query)
        return weights.in_nodes(np.asarray(positions), terms)

    def row_term_weights(
        self, query: str, positions: NDArray[np.int64], rows: NDArray[np.int32]
    ) -> NDArray[np.float32]:
        """Return the weights of the query's terms in a row of each node, ``(p, t)``.

        Rows are counted from 0 within their node.
        """
        weights, terms = self._weights(query)
        return weights.in_rows(self.terms.row_indptr[positions] + rows, terms)

    def phrase_weights(
        self,
        query: str,
        positions: NDArray[np.int64],
        rows: NDArray[np.int32],
        said: NDArray[np.float32],
    ) -> NDArray[np.float32]:
        """Return the weights of the query's phrases, ``(p, b)``.

        A phrase is two terms that are next to each other in the query once stop words
        are left out. A node, or a row of one, that also says them next to each other
        gets the mean of their rarities. `said` are the weights of the terms in the same
        places; a row of `NO_ROW` is the whole node.
        """
        terms = [
            self.terms.positions.get(term, -1) for term in self.analyzer.of_query(query)
        ]
        pairs = np.asarray(
            [two for two in dict.fromkeys(pairwise(terms)) if min(two) >= 0], np.int64
        ).reshape(-1, 2)
        column = {term: at for at, term in enumerate(self.term_ids(query).tolist())}
        first, second = (
            np.asarray([column[term] for term in side], np.int64)
            for side in pairs.T.tolist()
        )
        both = np.flatnonzero(
            ((said[:, first] > 0) & (said[:, second] > 0)).any(axis=1)
        )
        weights = np.zeros((len(positions), len(pairs)), dtype=np.float32)
        weights[both] = self.terms.followed(
            pairs, positions[both], rows[both]
        ) * self._rarities(query)[np.stack([first, second], axis=1)].mean(axis=1)
        return weights

    def ceiling(self, query: str) -> float:
        """The score that no node can exceed.

        It is the sum of the rarities of the query's terms, unknown ones included.
        """
        rarities = self._rarities(query)
        unknown = len(set(self.analyzer.of_query(query))) - len(rarities)
        return float(rarities.sum()) + unknown * float(
            _rarity(self.terms.n_nodes, np.asarray(0))
        )

    def confidence(self, query: str, positions: NDArray[np.int64]) -> float:
        """Return the share of a query's terms that nodes say together.

        Each term counts by its rarity, and unknown terms are included.
        """
        said = (self.term_weights(query, positions) > 0).any(axis=0)
        rarities = self._rarities(query)[said]
        return float(rarities.sum()) / max(self.ceiling(query), 1e-9)

    def _rarities(self, query: str) -> NDArray[np.float64]:
        """Return how rare each of the query's terms is (see `term_ids`), ``(t,)``."""
        weights, terms = self._weights(query)
        return weights.idf[terms]

    # -- change

    def changed(self, change: Change, source: GraphStore | None = None) -> Self:
        fresh = self.text.bound(source).all_fields(change.nodes)
        terms = self.terms.changed(change, fresh, self.analyzer)
        return type(self)(change.after, terms, self.text, self.analyzer, self.settings)

    def induced(self, table: NodeTable, positions: NDArray[np.int64]) -> Self:
        return type(self)(
            table, self.terms.take(positions), self.text, self.analyzer, self.settings
        )

    # -- on disk

    def parts(self) -> Parts:
        """The index as it is saved, without its table."""
        settings = {
            "text": self.text.to_dict(),
            "analyzer": asdict(self.analyzer),
            "settings": asdict(self.settings),
        }
        parts = Parts(meta=settings)
        parts.add("terms", self.terms.parts())
        parts.arrays |= sparse_arrays("nodes", self.weights.of_nodes) | sparse_arrays(
            "rows", self.weights.of_rows
        )
        return parts

    @classmethod
    def from_bundle(cls, bundle: Bundle, table: NodeTable) -> BM25Index:
        """Open a saved index; its arrays stay on disk until they are read."""
        meta, terms = bundle.meta, FieldTerms.from_bundle(bundle.sub("terms"))
        settings, text = BM25Settings(**meta["settings"]), NodeText(**meta["text"])
        index, width = (
            cls(table, terms, text, Analyzer(**meta["analyzer"]), settings),
            meta["terms"]["n_terms"],
        )
        index.weights.of_nodes = sparse_of(
            bundle, "nodes", sp.csc_matrix, (terms.n_nodes, width)
        )
        index.weights.of_rows = sparse_of(
            bundle, "rows", sp.csc_matrix, (terms.n_rows, width)
        )
        return index


_COMMON = 4  # terms that more nodes have than one in so many
_FEW = 256  # fewer nodes than one in so many are scored by themselves


def _rarity(n_nodes: int, df: NDArray[Any]) -> NDArray[np.float64]:
    """Return the idf of terms that occur in so many nodes, as Lucene has it."""
    return np.asarray(np.log1p((n_nodes - df + 0.5) / (df + 0.5)))


def _entries(
    by_term: sp.csc_matrix,
    rows: NDArray[Any],
    terms: NDArray[np.int64],
    columns: Mapping[int, NDArray[np.float32]],
) -> NDArray[np.float32]:
    """Return the entries of a matrix at some rows and terms, ``(rows, terms)``.

    `columns` may have those of some terms for every row.
    """
    # sought in ascending order, and as the same type, they are found far sooner
    order = np.argsort(rows)
    sought = rows[order].astype(by_term.indices.dtype)
    found = np.zeros((len(terms), len(rows)), dtype=np.float32)
    for of_term, term in zip(found, terms.tolist(), strict=True):
        if (column := columns.get(term)) is not None:
            of_term[:] = column[sought]
            continue
        held = slice(by_term.indptr[term], by_term.indptr[term + 1])
        indices = by_term.indices[held]  # ascending
        if len(indices):
            at = np.minimum(indices.searchsorted(sought), len(indices) - 1)
            of_term[:] = by_term.data[held].take(at)
            of_term *= indices.take(at) == sought
    out = np.empty((len(rows), len(terms)), dtype=np.float32)
    out[order] = found.T
    return out
