"""Search by the cosine of embeddings: exact, or by a navigable small world graph."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphret.errors import InvalidInput
from graphret.nodes import NodeTable
from graphret.search.encoder import Encoder, as_encoder
from graphret.search.fields import NodeText
from graphret.search.index import ArrayIndex, top_k
from graphret.search.vectors import check_vectors, normalize
from graphret.storage import Bundle, Parts
from graphret.types import Node

_QUERIES_KEPT = 256


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
        When and how the search is approximate.
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
        self.hnsw = hnsw or HnswSettings()
        self._queries: OrderedDict[str, NDArray[np.float32]] = OrderedDict()
        self._graph: Any = None
        self._build_lock = threading.Lock()

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
            When a vector is not finite or of another width.
        """
        table = nodes if isinstance(nodes, NodeTable) else NodeTable.of(nodes)
        encoder, text = as_encoder(encoder), text or NodeText()
        if vectors is None:
            if encoder is None:
                raise InvalidInput("encoder: one is needed where no vectors are given")
            vectors = encoder.encode_documents([text.text(node) for node in table])
        checked = normalize(check_vectors(vectors, len(table), what="embedding"))
        return cls(table, checked, encoder, text=text, hnsw=hnsw)

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
            other._graph = self._nearest_graph()
        other.remember(query, vector)
        return other

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

    def score_at(self, query: str, positions: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return exact scores by position."""
        return self.cosines(query, positions) if self.approximate else super().score_at(query, positions)

    def _nearest(self, vector: NDArray[np.float32], k: int) -> NDArray[np.int64]:
        found = self._nearest_graph().search(vector, k).keys
        return np.sort(np.asarray(found, dtype=np.int64))

    def _nearest_graph(self) -> Any:
        if self._graph is None:
            with self._build_lock:
                if self._graph is None:
                    self._graph = self._build_graph()
        return self._graph

    def _build_graph(self) -> Any:
        from usearch.index import Index

        graph = Index(
            ndim=self.vectors.shape[1],
            metric="cos",
            dtype="f32",
            connectivity=self.hnsw.m,
            expansion_add=self.hnsw.expansion_add,
            expansion_search=self.hnsw.expansion_search,
        )
        graph.add(np.arange(len(self.vectors)), np.asarray(self.vectors))
        return graph

    # -- change

    def changed(self, table: NodeTable, fresh: Collection[str]) -> DenseIndex:
        """Return the index of another table, embedding only the nodes that are new or in `fresh`."""
        again = set(fresh)
        old = self.table.find([i if i not in again else "" for i in table.ids])
        new = np.flatnonzero(old < 0)
        vectors = np.zeros((len(table), self.vectors.shape[1]), dtype=np.float32)
        vectors[old >= 0] = self.vectors[old[old >= 0]]
        if len(new):
            if self.encoder is None:
                raise InvalidInput("encoder: the index has none to embed new nodes with")
            embedded = self.encoder.encode_documents([self.text.text(table[int(i)]) for i in new])
            if not len(self.vectors):
                vectors = np.zeros((len(table), embedded.shape[1]), dtype=np.float32)
            vectors[new] = normalize(check_vectors(embedded, len(new), vectors.shape[1], what="embedding"))
        return DenseIndex(table, vectors, self.encoder, text=self.text, hnsw=self.hnsw)

    def induced(self, table: NodeTable, positions: NDArray[np.int64]) -> DenseIndex:
        """Return the index of the nodes at `positions` alone."""
        return DenseIndex(table, np.asarray(self.vectors[positions]), self.encoder, text=self.text, hnsw=self.hnsw)

    # -- on disk

    def parts(self) -> Parts:
        """The index as it is saved, without its table."""
        return Parts(
            arrays={"vectors": self.vectors},
            meta={
                "encoder": self.encoder.name if self.encoder else None,
                "hnsw": vars(self.hnsw),
            },
        )

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
        return cls(table, bundle.array("vectors"), encoder, text=text, hnsw=hnsw)
