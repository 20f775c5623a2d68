"""Search by the cosine of embeddings: exact, or by a navigable small world graph."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Sequence
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphret.errors import InvalidInput
from graphret.nodes import NodeTable
from graphret.search.encoder import Encoder, as_encoder
from graphret.search.fields import NodeText
from graphret.search.hnsw import Hnsw, require_settings
from graphret.search.hnsw import HnswSettings as HnswSettings
from graphret.search.index import ArrayIndex, table_of, top_k
from graphret.search.neighborhood import NodeSource
from graphret.search.vectors import check_vectors, normalize
from graphret.storage import Bundle, Parts
from graphret.types import Node

_GRAPH = "hnsw_graph"
_QUERIES_KEPT = 256
_TIED = 16  # so many more are read where HNSW searches, for those that tie with the last
_ROUNDING = 1e-5  # more than float32 products of unit vectors differ by the order of their sums


class DenseIndex(ArrayIndex):
    """Search by cosine similarity.

    Parameters
    ----------
    table
        The nodes.
    vectors
        Their embeddings, unit rows, ``(n, d)`` float32.
    encoder
        What embeds queries; without one only queries given to `remember` can be asked.
    text
        How nodes become text.
    hnsw
        When and how the search is approximate. The graph is made when it is first asked for, changed by writes rather
        than built again, and saved with the index.
    """

    def __init__(
        self,
        table: NodeTable,
        vectors: NDArray[np.float32],
        encoder: Encoder | None,
        *,
        text: NodeText | None = None,
        hnsw: HnswSettings | None = None,
    ) -> None:
        super().__init__(table)
        if vectors.ndim != 2 or len(vectors) != len(table):
            raise InvalidInput(f"vectors: {len(table)} rows are expected, not an array of shape {vectors.shape}")
        self.vectors = vectors
        self.encoder = encoder
        self.text = text or NodeText()
        self.hnsw = require_settings(hnsw)
        self._queries: OrderedDict[str, NDArray[np.float32]] = OrderedDict()
        self._graphs: list[Hnsw] = []  # the one graph, once built; shared by the copies that searches take
        self._origins: list[tuple[Hnsw, NDArray[np.int64]]] = []  # the graph to make it from, and its row of each node
        self._saved: list[Bundle] = []  # the graph on disk, until it is asked for
        self._build_lock = threading.RLock()

    @classmethod
    def build(
        cls,
        nodes: NodeTable | Iterable[Node],
        encoder: Any,
        *,
        vectors: NDArray[Any] | None = None,
        text: NodeText | None = None,
        hnsw: HnswSettings | None = None,
    ) -> DenseIndex:
        """Index nodes, embedding their texts unless their vectors are given in the order of the table.

        Raises
        ------
        InvalidInput
            When a vector is not finite or of another width, and when `hnsw` is none.
        """
        hnsw = require_settings(hnsw)  # before anything is embedded
        table = nodes if isinstance(nodes, NodeTable) else NodeTable.of(nodes)
        encoder, text = as_encoder(encoder), text or NodeText()
        if vectors is None:
            if encoder is None:
                raise InvalidInput("encoder: one is needed where no vectors are given")
            vectors = _embedded(table, text, encoder)
        checked = normalize(check_vectors(vectors, len(table), what="embedding"))
        return cls(table, checked, encoder, text=text, hnsw=hnsw)

    @classmethod
    def of_store(
        cls,
        store: NodeSource,
        encoder: Any,
        *,
        text: NodeText | None = None,
        labels: Collection[str] | None = None,
        hnsw: HnswSettings | None = None,
    ) -> DenseIndex:
        """Index the nodes of a store, or those that bear one of `labels`; see `build` and `BM25Index.of_store`."""
        hnsw = require_settings(hnsw)  # before anything is read
        text = (text or NodeText()).bound(store)
        index = cls.build(table_of(store, labels), encoder, text=text, hnsw=hnsw)
        index.scope = None if labels is None else frozenset(labels)
        return index

    def texts(self) -> list[NodeText]:
        """The way in which this index reads nodes."""
        return [self.text]

    def with_texts(self, change: Callable[[NodeText], NodeText]) -> DenseIndex:
        """Return this index, nothing of it read anew, with the way in which it reads nodes changed."""
        state = copy(self)
        state.text = change(self.text)
        return state

    def remember(self, query: str, vector: Any) -> None:
        """Use a given embedding for a query instead of the encoder's."""
        width = self.vectors.shape[1] if len(self.vectors) else None
        unit = normalize(check_vectors(np.asarray(vector)[None, :], 1, width, what="query embedding"))[0]
        with self._lock:
            self._queries[query] = unit
            self._recent.pop(query, None)
            while len(self._queries) > _QUERIES_KEPT:
                self._queries.popitem(last=False)

    def remembers(self, query: str) -> bool:
        """Whether the embedding of a query is at hand."""
        with self._lock:
            return query in self._queries

    def with_query(self, query: str, vector: Any) -> DenseIndex:
        """Return this index with an embedding given for a query; the index itself does not learn of it."""
        other = DenseIndex(self.table, self.vectors, self.encoder, text=self.text, hnsw=self.hnsw)
        if self.approximate:
            other._graphs = [self._nearest_graph()]
        other.remember(query, vector)
        return other

    def prepare(self, queries: Sequence[str]) -> None:
        """Embed a batch of queries at once; those that are known stay."""
        if self.encoder is None or not len(self.table):
            return
        unknown = [query for query in dict.fromkeys(queries) if not self.remembers(query)]
        if len(unknown) > 1:
            for query, vector in zip(unknown, self.encoder.encode_queries(unknown), strict=True):
                self.remember(query, vector)

    def query_vector(self, query: str) -> NDArray[np.float32]:
        """Return the embedding of a query, ``(d,)``."""
        with self._lock:
            known = self._queries.get(query)
        if known is not None:
            return known
        if self.encoder is None:
            raise InvalidInput("encoder: the index has none, and the query's embedding was not given")
        self.remember(query, self.encoder.encode_queries([query])[0])
        with self._lock:
            return self._queries[query]

    def cosines(self, query: str, positions: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the cosine of the query with the nodes at `positions`, ``(p,)``."""
        return np.asarray(self.vectors[positions] @ self.query_vector(query), dtype=np.float32)

    def confidence(self, query: str, positions: NDArray[np.int64]) -> float:
        """Return the best cosine of nodes, 0 where it is negative."""
        return min(1.0, float(self.cosines(query, positions).max(initial=0.0)))

    @property
    def approximate(self) -> bool:
        """Whether the search goes through HNSW."""
        return len(self.table) > self.hnsw.above

    def _scores(self, query: str) -> NDArray[np.float32]:
        """Score every node; in approximate mode those that the search does not reach get the lowest score it saw."""
        if not len(self.table):
            return np.zeros(0, dtype=np.float32)
        vector = self.query_vector(query)
        if not self.approximate:
            return np.asarray(self.vectors @ vector, dtype=np.float32)
        reached = self._nearest(vector, self.hnsw.expansion_search)
        values = np.asarray(self.vectors[reached] @ vector, dtype=np.float32)
        scores = np.full(len(self.table), values.min() if len(values) else 0.0, dtype=np.float32)
        scores[reached] = values
        return scores

    def top(self, query: str, k: int, mask: NDArray[np.bool_] | None = None) -> NDArray[np.int64]:
        """Return the positions of the `k` best nodes among those in `mask`, best first; filtered search is exact."""
        if not self.approximate:
            return super().top(query, k, mask)
        vector = self.query_vector(query)
        if mask is None and k <= self.hnsw.expansion_search:
            reached = self._nearest(vector, max(k, self.hnsw.expansion_search))
        else:
            reached = np.arange(len(self.table)) if mask is None else np.flatnonzero(mask)
        return np.asarray(reached[top_k(np.asarray(self.vectors[reached] @ vector, dtype=np.float32), k)])

    def ranked(
        self, query: str, k: int, mask: NDArray[np.bool_] | None = None
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Do as `ArrayIndex.ranked`; equal vectors tie, which they may not in a product of matrices."""
        if self.approximate and mask is None and k <= self.hnsw.expansion_search:
            near = self._nearest(self.query_vector(query), k + _TIED)
        elif self.approximate:
            near = np.sort(self.top(query, k, mask))
        else:
            scores = self.scores(query)
            near = np.arange(len(scores)) if mask is None else np.flatnonzero(mask)
            if k < len(near):
                values = scores[near]
                near = near[values >= np.partition(values, len(values) - k)[len(values) - k] - _ROUNDING]
        exact = self.scored(query, near)
        best = top_k(exact, k)
        return near[best], exact[best]

    def scored(self, query: str, positions: NDArray[np.int64]) -> NDArray[np.float32]:
        """Do as `ArrayIndex.scored`, each node by itself, so that its score does not depend on the others."""
        return np.asarray(np.einsum("ij,j->i", self.vectors[positions], self.query_vector(query)), dtype=np.float32)

    def score_at(self, query: str, positions: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return exact scores by position."""
        return self.cosines(query, positions) if self.approximate else super().score_at(query, positions)

    def _nearest(self, vector: NDArray[np.float32], k: int) -> NDArray[np.int64]:
        return self._nearest_graph().nearest(vector, k)

    def _nearest_graph(self) -> Hnsw:
        if not self._graphs:
            with self._build_lock:
                self._open_saved()
                if not self._graphs:
                    made = self._origins[0][0].changed(self.vectors, self._origins[0][1]) if self._origins else None
                    self._graphs.append(made or Hnsw.build(self.vectors, self.hnsw))
                    self._origins.clear()
        return self._graphs[0]

    def _open_saved(self) -> None:
        if self._saved:
            opened = Hnsw.from_bundle(self._saved.pop(), self.vectors.shape, self.hnsw)
            self._graphs += [opened] if opened else []

    def _origin(self, old: NDArray[np.int64]) -> list[tuple[Hnsw, NDArray[np.int64]]]:
        """What the graph of other nodes is made from, `old` their positions here: the last graph that was built."""
        with self._build_lock:
            self._open_saved()
            if self._graphs:
                return [(self._graphs[0], old)]
            return [(graph, np.where(old >= 0, rows[old], -1)) for graph, rows in self._origins]

    # -- change

    def changed(self, table: NodeTable, fresh: Collection[str]) -> DenseIndex:
        """Return the index of another table, embedding only the nodes that are new or in `fresh`."""
        old = table.places_in(self.table, fresh)
        new = np.flatnonzero(old < 0)
        vectors = np.zeros((len(table), self.vectors.shape[1]), dtype=np.float32)
        vectors[old >= 0] = self.vectors[old[old >= 0]]
        if len(new):
            if self.encoder is None:
                raise InvalidInput("encoder: the index has none to embed new nodes with")
            embedded = _embedded(table.at(new), self.text, self.encoder)
            if not len(self.vectors):
                vectors = np.zeros((len(table), embedded.shape[1]), dtype=np.float32)
            vectors[new] = normalize(check_vectors(embedded, len(new), vectors.shape[1], what="embedding"))
        other = DenseIndex(table, vectors, self.encoder, text=self.text, hnsw=self.hnsw)
        other._origins = self._origin(old)
        return other

    def induced(self, table: NodeTable, positions: NDArray[np.int64]) -> DenseIndex:
        """Return the index of the nodes at `positions` alone."""
        return DenseIndex(table, np.asarray(self.vectors[positions]), self.encoder, text=self.text, hnsw=self.hnsw)

    # -- on disk

    def parts(self) -> Parts:
        """The index as it is saved, without its table; with the graph of HNSW where one was built."""
        parts = Parts(
            arrays={"vectors": self.vectors},
            meta={
                "encoder": self.encoder.name if self.encoder else None,
                "hnsw": vars(self.hnsw),
            },
        )
        if self.approximate and (self._graphs or self._saved or self._origins):
            parts.add(_GRAPH, self._nearest_graph().parts())
        return parts

    @classmethod
    def from_bundle(
        cls, bundle: Bundle, table: NodeTable, encoder: Encoder | None, text: NodeText | None = None
    ) -> DenseIndex:
        """Open a saved index.

        Raises
        ------
        InvalidInput
            When the encoder is not the one that the vectors are from.
        """
        made_by = bundle.meta["encoder"]
        if encoder is not None and made_by is not None and encoder.name != made_by:
            raise InvalidInput(f"encoder: the index was built with {made_by!r}, not with {encoder.name!r}")
        hnsw = HnswSettings(**bundle.meta["hnsw"])
        index = cls(table, bundle.array("vectors"), encoder, text=text, hnsw=hnsw)
        if _GRAPH in bundle.meta:
            index._saved.append(bundle.sub(_GRAPH))
        return index


def _embedded(nodes: Sequence[Node], text: NodeText, encoder: Encoder) -> NDArray[np.float32]:
    """Embed nodes, ``(n, d)``; one of which a chosen field says nothing has the zero vector."""
    texts = text.all_texts(nodes)
    if text.only is None or all(texts):
        return encoder.encode_documents(texts)
    said = [row for row, told in enumerate(texts) if told]
    vectors = np.zeros((len(texts), encoder.dimension), dtype=np.float32)
    if said:
        vectors[said] = check_vectors(encoder.encode_documents([texts[row] for row in said]), len(said))
    return vectors
