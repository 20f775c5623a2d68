"""Search by the cosine of embeddings: exact, or by a hierarchical navigable small world graph."""

from __future__ import annotations

import zlib
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Sequence
from copy import copy
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphret.errors import InvalidInput
from graphret.nodes import NodeTable
from graphret.search.encoder import Encoder, as_encoder
from graphret.search.fields import NodeSource, NodeText
from graphret.search.index import ArrayIndex, table_of, top_k
from graphret.search.vectors import check_vectors, normalize
from graphret.storage import Bundle, Parts
from graphret.types import Node

_QUERIES_KEPT = 256
_NONE = np.empty(0, dtype=np.int64)
_SPARE = 16  # so many more are read from the graph, for those that tie with the last
_MOST_CHANGED = 0.2  # a graph of which more than this share of the rows has changed is built anew


@dataclass(frozen=True)
class HnswSettings:
    """Parameters of the approximate search (Malkov and Yashunin 2018); M = 64 as in SAGE, appendix E.

    Parameters
    ----------
    above
        Number of nodes above which the search is approximate; exact search of fewer is as fast.
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
    if hnsw is not None and not isinstance(hnsw, HnswSettings):
        raise InvalidInput(
            f"hnsw: HnswSettings are expected, not {hnsw!r}; of more nodes than `above` the search is approximate"
        )
    return hnsw or HnswSettings()


class Hnsw:
    """usearch's graph over the rows of an array as they were when it was built, never changed.

    Rows that came since are compared one by one. The graph holds vectors of 16 bits, which are read and compared in
    half the time; what it finds is scored with all 32.

    Parameters
    ----------
    graph
        The library's index.
    row
        Where each row of then is now, -1 for one that is gone, ``(n_then,)``.
    fresh
        The rows of now that the graph does not know, ``(f,)``.
    """

    def __init__(self, graph: Any, row: NDArray[np.int64], fresh: NDArray[np.int64]) -> None:
        self.graph = graph
        self.row = row
        self.fresh = fresh

    @classmethod
    def build(cls, vectors: NDArray[np.float32], settings: HnswSettings, threads: int = 0) -> Hnsw:
        """Build the graph of unit rows, ``(n, d)``; with one thread it is the same each time."""
        graph, every = _empty_graph(vectors.shape[1], settings), np.arange(len(vectors))
        graph.add(every, np.asarray(vectors), threads=threads)
        return cls(graph, every, every[:0])

    def nearest(self, queries: NDArray[np.float32], k: int, threads: int = 1) -> NDArray[np.int64]:
        """Return about the `k` rows nearest to each unit vector, and all fresh ones, padded with -1, ``(q, m)``."""
        found = self.graph.search(queries, min(k, len(self.row)), threads=threads)
        keys = np.atleast_2d(np.asarray(found.keys, dtype=np.int64))  # a single query has no more than it found
        counts = np.reshape(getattr(found, "counts", keys.shape[1]), (-1, 1))
        known = np.where(np.arange(keys.shape[1]) < counts, self.row.take(keys, mode="clip"), -1)
        return np.concatenate([known, np.broadcast_to(self.fresh, (len(known), len(self.fresh)))], axis=1)

    def changed(self, old: NDArray[np.int64], n_before: int) -> Hnsw | None:
        """Return what finds other rows, `old` being which of the rows of now each is, -1 for a new one, ``(n,)``.

        `None` where so many have changed that it is better built anew.
        """
        place = np.full(n_before, -1, dtype=np.int64)
        place[old[old >= 0]] = np.flatnonzero(old >= 0)
        row = np.where(self.row >= 0, place[self.row], -1)
        fresh = np.setdiff1d(np.arange(len(old)), row)
        changes = len(fresh) + int((row < 0).sum())
        return None if changes > _MOST_CHANGED * len(old) else Hnsw(self.graph, row, fresh)

    def parts(self) -> Parts:
        """The graph as it is saved."""
        saved = np.frombuffer(self.graph.save(), dtype=np.uint8)
        return Parts(arrays={"graph": saved, "row": self.row, "fresh": self.fresh}, meta={"crc32": zlib.crc32(saved)})

    @classmethod
    def from_bundle(cls, bundle: Bundle, width: int, settings: HnswSettings) -> Hnsw | None:
        """Open a saved graph; `None` where it was altered or the library reads it no more."""
        saved = bundle.array("graph")
        if zlib.crc32(saved.data) != bundle.meta["crc32"]:  # a large file may not have been compared when it was opened
            return None
        graph = _empty_graph(width, settings)
        try:
            graph.load(saved.tobytes())
        except (RuntimeError, ValueError):
            return None
        graph.expansion_search = settings.expansion_search
        return cls(graph, np.asarray(bundle.array("row")), np.asarray(bundle.array("fresh")))


def _empty_graph(width: int, settings: HnswSettings) -> Any:
    from usearch.index import Index

    return Index(
        ndim=width,
        metric="ip",  # the rows have length 1, or 0 where a node says nothing
        dtype="bf16",
        connectivity=settings.m,
        expansion_add=settings.expansion_add,
        expansion_search=settings.expansion_search,
    )


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
        When and how the search is approximate. The graph is made when it is first asked for, kept through writes, and
        saved with the index.
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
        self._graphs: list[Hnsw] = []  # the one, once it is made; shared by the copies that searches take

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

    # -- embeddings of queries

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
        return query in self._queries

    def with_query(self, query: str, vector: Any) -> DenseIndex:
        """Return this index with an embedding given for a query; the index itself does not learn of it."""
        other = DenseIndex(self.table, self.vectors, self.encoder, text=self.text, hnsw=self.hnsw)
        other._graphs = self._graphs
        other.remember(query, vector)
        return other

    def prepare(self, queries: Sequence[str]) -> None:
        """Embed a batch of queries at once; those that are known stay."""
        unknown = [query for query in dict.fromkeys(queries) if not self.remembers(query)]
        if self.encoder is not None and len(self.table) and len(unknown) > 1:
            for query, vector in zip(unknown, self.encoder.encode_queries(unknown), strict=True):
                self.remember(query, vector)

    def query_vector(self, query: str) -> NDArray[np.float32]:
        """Return the embedding of a query, ``(d,)``."""
        known = self._queries.get(query)
        if known is not None:
            return known
        if self.encoder is None:
            raise InvalidInput("encoder: the index has none, and the query's embedding was not given")
        self.remember(query, self.encoder.encode_queries([query])[0])
        return self._queries[query]

    # -- scoring

    def _scores(self, query: str) -> NDArray[np.float32]:
        """Score every node; in approximate mode those that the search does not reach get the lowest score it saw."""
        if not len(self.table):
            return np.zeros(0, dtype=np.float32)
        if not self.approximate:
            return self._cosines(query, slice(None))
        reached = self._reached(query, self.hnsw.expansion_search)
        values = self._cosines(query, reached)
        scores = np.full(len(self.table), values.min(initial=1.0), dtype=np.float32)
        scores[reached] = values
        return scores

    def _cosines(self, query: str, rows: Any) -> NDArray[np.float32]:
        """The cosines of some rows, each computed by itself, so that equal vectors tie, which in BLAS they may not."""
        return np.asarray(np.einsum("ij,j->i", self.vectors[rows], self.query_vector(query)), dtype=np.float32)

    def ranked(
        self, query: str, k: int, mask: NDArray[np.bool_] | None = None
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Do as `ArrayIndex.ranked`; the search of a filtered part, or for very many, is exact."""
        if not self.approximate:
            return super().ranked(query, k, mask)
        near = self._reached(query, k + _SPARE) if mask is None and k <= self.hnsw.expansion_search else _NONE
        if len(near) < k:
            near = np.arange(len(self.table)) if mask is None else np.flatnonzero(mask)
        scores = self._cosines(query, near)
        best = top_k(scores, k)
        return near[best], scores[best]

    def score_at(self, query: str, positions: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the cosines of the nodes at `positions`, ``(p,)``."""
        return self._cosines(query, positions) if self.approximate else super().score_at(query, positions)

    def confidence(self, query: str, positions: NDArray[np.int64]) -> float:
        """Return the best cosine of nodes, 0 where it is negative."""
        return min(1.0, float(self._cosines(query, positions).max(initial=0.0)))

    @property
    def approximate(self) -> bool:
        """Whether the search goes through HNSW."""
        return len(self.table) > self.hnsw.above

    def _reached(self, query: str, k: int) -> NDArray[np.int64]:
        """The nodes that HNSW finds near a query, ascending."""
        found = self._graph().nearest(self.query_vector(query), k)[0]
        return np.unique(found[found >= 0])

    def _graph(self) -> Hnsw:
        with self._lock:
            if not self._graphs:
                self._graphs.append(Hnsw.build(self.vectors, self.hnsw))
            return self._graphs[0]

    # -- change

    def texts(self) -> list[NodeText]:
        """The way in which this index reads nodes."""
        return [self.text]

    def with_texts(self, change: Callable[[NodeText], NodeText]) -> DenseIndex:
        """Return this index, nothing of it read anew, with the way in which it reads nodes changed."""
        state = copy(self)
        state.text = change(self.text)
        return state

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
        graph = self._graphs[0].changed(old, len(self.vectors)) if self._graphs else None
        other._graphs = [graph] if graph else []
        return other

    def induced(self, table: NodeTable, positions: NDArray[np.int64]) -> DenseIndex:
        """Return the index of the nodes at `positions` alone."""
        return DenseIndex(table, np.asarray(self.vectors[positions]), self.encoder, text=self.text, hnsw=self.hnsw)

    # -- on disk

    def parts(self) -> Parts:
        """The index as it is saved, without its table; with the graph of HNSW where one was built."""
        meta = {"encoder": self.encoder.name if self.encoder else None, "hnsw": asdict(self.hnsw)}
        parts = Parts(arrays={"vectors": self.vectors}, meta=meta)
        if self._graphs:
            parts.add("graph", self._graphs[0].parts())
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
        if "graph" in bundle.meta:
            graph = Hnsw.from_bundle(bundle.sub("graph"), index.vectors.shape[1], hnsw)
            index._graphs = [graph] if graph else []
        return index


def _embedded(nodes: Sequence[Node], text: NodeText, encoder: Encoder) -> NDArray[np.float32]:
    """Embed nodes, ``(n, d)``; one of which a chosen field says nothing has the zero vector."""
    texts = text.all_texts(nodes)
    told = [row for row, one in enumerate(texts) if one or text.only is None]
    if len(told) == len(texts):
        return encoder.encode_documents(texts)
    vectors = np.zeros((len(texts), encoder.dimension), dtype=np.float32)
    if told:
        vectors[told] = check_vectors(encoder.encode_documents([texts[row] for row in told]), len(told))
    return vectors
