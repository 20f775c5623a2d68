"""Search by the cosine of embeddings: exact, or by an HNSW graph."""

from __future__ import annotations

import zlib
from collections.abc import Collection, Iterable, Sequence
from copy import copy
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from graphret.change import Change
from graphret.errors import InvalidInput, MissingDependency
from graphret.nodes import NodeTable
from graphret.search.arrays import ArrayIndex, table_of
from graphret.search.encoder import Encoder, as_encoder
from graphret.search.fields import NodeText
from graphret.search.index import remember, top_k
from graphret.search.vectors import Floats, check_vectors, normalize
from graphret.storage import Bundle, Parts
from graphret.stores.base import GraphStore
from graphret.types import Node

_QUERIES_KEPT = 4096  # embeddings, a few megabytes
# The most vectors of a graph that one thread builds, in under half a second.
_SINGLE_THREADED = 1_000
_SPARE = 16  # additional results from the graph, which may tie with the last

#: Number of nodes above which the search is approximate; for fewer, exact search is as
#: fast.
HNSW_ABOVE = 200_000
#: Connections a node (SAGE, appendix E), and the breadth of the search when building
#: and when searching.
HNSW_M, EXPANSION_ADD, EXPANSION_SEARCH = 64, 128, 256


def hnsw_graph(width: int, vectors: Floats | None = None, threads: int = 0) -> Any:
    """Return usearch's HNSW graph of unit rows, ``(n, width)``, or an empty one.

    See Malkov and Yashunin 2018. One thread builds the same graph each time; a small
    graph is built by one, as rows that several threads add at once are not linked with
    each other. The graph holds 16-bit vectors, which takes half the time; its results
    are scored with all 32 bits.
    """
    try:
        from usearch.index import Index
    except ImportError as error:
        raise MissingDependency(
            "usearch", "hnsw", "HNSW", without="exact search: DenseIndex.hnsw_above"
        ) from error
    breadth: dict[str, Any] = {
        "expansion_add": EXPANSION_ADD,
        "expansion_search": EXPANSION_SEARCH,
    }
    graph = Index(ndim=width, metric="ip", dtype="bf16", connectivity=HNSW_M, **breadth)
    if vectors is not None:
        threads = threads if len(vectors) > _SINGLE_THREADED else 1
        graph.add(np.arange(len(vectors)), np.asarray(vectors), threads=threads)
    return graph


class DenseIndex(ArrayIndex):
    """Search by cosine similarity.

    Parameters
    ----------
    table, vectors
        The nodes, and their embeddings, unit rows, ``(n, d)`` float32.
    encoder
        Embeds queries; without one, only queries given to `remember` can be searched.
    text
        How nodes become text.
    """

    #: Number of nodes above which the search is approximate. The HNSW graph is built on
    #: the first search, and saved with the index; after a write the search is exact
    #: until the index is opened or built again.
    hnsw_above = HNSW_ABOVE

    def __init__(
        self,
        table: NodeTable,
        vectors: Floats,
        encoder: Encoder | None,
        *,
        text: NodeText | None = None,
    ) -> None:
        super().__init__(table)
        self.vectors = vectors
        self.encoder = encoder
        self.text = text or NodeText()
        self._queries: dict[str, Floats] = {}
        # The HNSW graph once it is built, shared by the copies that searches take.
        self._graphs: list[Any] = []
        self._written = False

    def dense_part(self) -> DenseIndex | None:
        return self

    @classmethod
    def build(
        cls,
        nodes: NodeTable | Iterable[Node],
        encoder: Any,
        *,
        vectors: NDArray[Any] | None = None,
        text: NodeText | None = None,
        source: GraphStore | None = None,
    ) -> Self:
        """Index nodes by their texts' embeddings, or by given vectors in their order.

        `source` is the store in which neighbours are looked up. `InvalidInput` names an
        unusable vector.
        """
        listed = nodes if isinstance(nodes, NodeTable) else list(nodes)
        table = listed if isinstance(listed, NodeTable) else NodeTable.of(listed)
        encoder, text = as_encoder(encoder), (text or NodeText()).bound(source)
        embeddings = check_vectors(
            _embedded(table, text, encoder) if vectors is None else vectors,
            len(table),
            what="embedding",
        )
        if vectors is not None and table is not listed:
            order = np.argsort(table.positions(node.id for node in listed))
            embeddings = embeddings[order]
        return cls(table, normalize(embeddings), encoder, text=text)

    @classmethod
    def of_store(
        cls,
        store: GraphStore,
        encoder: Any,
        *,
        labels: Collection[str] | None = None,
        text: NodeText | None = None,
    ) -> Self:
        """Index a store's nodes, or those with one of `labels`.

        ``store.attach(index)`` keeps it in step; the other parameters are as for
        `build`.
        """
        index = cls.build(
            table_of(store, labels),
            encoder,
            text=text,
            source=store,
        )
        return index.limited_to(labels)

    # -- embeddings of queries

    def remember(self, query: str, vector: Any) -> None:
        """Use a given embedding for a query instead of the encoder's."""
        unit: Floats = normalize(
            check_vectors([vector], 1, self.vectors.shape[1], what="query embedding")
        )[0]
        with self._lock:
            remember(self._queries, query, unit, _QUERIES_KEPT)
            self._recent.pop(query, None)

    def remembers(self, query: str) -> bool:
        """Whether the embedding of a query is known."""
        return query in self._queries

    def with_query(self, query: str, vector: Any) -> Self:
        """Return a copy of the index that knows the embedding of a query."""
        other = copy(self)
        other._queries = {}
        other.forget()
        other.remember(query, vector)
        return other

    def prepare(self, queries: Sequence[str]) -> None:
        """Embed the unknown ones of the queries at once."""
        unknown = [
            query for query in dict.fromkeys(queries) if not self.remembers(query)
        ]
        if self.encoder is not None and unknown and len(self.table):
            for query, vector in zip(
                unknown, self.encoder.encode_queries(unknown), strict=True
            ):
                self.remember(query, vector)

    def query_vector(self, query: str) -> Floats:
        """Return the embedding of a query, ``(d,)``."""
        self.prepare([query])
        if (vector := self._queries.get(query)) is None:
            raise InvalidInput(
                "encoder: the index has none, and the query's embedding was not given"
            )
        return vector

    # -- scoring

    def _scores(self, query: str) -> Floats:
        return (
            self._cosines(query, slice(None))
            if len(self.table)
            else np.zeros(0, dtype=np.float32)
        )

    def _cosines(self, query: str, rows: Any) -> Floats:
        """Return the cosines of rows, each computed by itself.

        So equal vectors tie, which with BLAS they may not.
        """
        return np.asarray(
            np.einsum("ij,j->i", self.vectors[rows], self.query_vector(query)),
            dtype=np.float32,
        )

    def ranked(
        self, query: str, k: int, mask: NDArray[np.bool_] | None = None
    ) -> tuple[NDArray[np.int64], Floats]:
        """Do as `ArrayIndex.ranked`; filtered searches and large ones are exact."""
        if not self.approximate or mask is not None or k + _SPARE > EXPANSION_SEARCH:
            return super().ranked(query, k, mask)
        near = self._reached(query, k + _SPARE)
        scores = self._cosines(query, near)
        best = top_k(scores, k)
        return near[best], scores[best]

    def score_at(self, query: str, positions: NDArray[np.int64]) -> Floats:
        return (
            self._cosines(query, positions)
            if self.approximate
            else super().score_at(query, positions)
        )

    def confidence(self, query: str, positions: NDArray[np.int64]) -> float:
        """Return the best cosine of nodes, 0 where it is negative."""
        return min(1.0, float(self._cosines(query, positions).max(initial=0.0)))

    @property
    def approximate(self) -> bool:
        """Whether the search goes through HNSW."""
        return len(self.table) > self.hnsw_above and not self._written

    def _reached(self, query: str, k: int) -> NDArray[np.int64]:
        """Return the nodes that HNSW finds near a query, ascending."""
        with self._lock:
            if not self._graphs:
                self._graphs.append(hnsw_graph(self.vectors.shape[1], self.vectors))
        matches = self._graphs[0].search(
            self.query_vector(query), min(k, len(self.table)), threads=1
        )
        return np.sort(np.asarray(matches.keys, dtype=np.int64))

    # -- change

    def changed(self, change: Change, source: GraphStore | None = None) -> Self:
        if not len(change.fresh):
            return self.spliced(change, self.vectors[:0])
        vectors = _embedded(change.nodes, self.text.bound(source), self.encoder)
        n_fresh, width = len(change.fresh), self.vectors.shape[1]
        checked = check_vectors(vectors, n_fresh, width, what="embedding")
        return self.spliced(change, normalize(checked))

    def spliced(self, change: Change, fresh_vectors: Floats) -> Self:
        """Return the index after a change, given its fresh nodes' unit vectors."""
        before = self.vectors
        if not len(before):  # an index of nothing does not know its width
            before = before.reshape(0, fresh_vectors.shape[1])
        vectors = change.column(before, fresh_vectors)
        other = type(self)(change.after, vectors, self.encoder, text=self.text)
        other._written = True
        return other

    def induced(self, table: NodeTable, positions: NDArray[np.int64]) -> Self:
        return type(self)(
            table, np.asarray(self.vectors[positions]), self.encoder, text=self.text
        )

    # -- on disk

    def parts(self) -> Parts:
        """Return the index for saving, without its table."""
        name = self.encoder.name if self.encoder else None
        parts = Parts(arrays={"vectors": self.vectors}, meta={"encoder": name})
        if self._graphs:
            parts.arrays["graph"] = saved = np.frombuffer(
                self._graphs[0].save(), dtype=np.uint8
            )
            parts.meta["crc32"] = zlib.crc32(saved.data)
        return parts

    @classmethod
    def from_bundle(
        cls,
        bundle: Bundle,
        table: NodeTable,
        encoder: Encoder | None,
        text: NodeText | None = None,
    ) -> DenseIndex:
        """Open a saved index; `InvalidInput` for another encoder than the saved one."""
        made_by = bundle.meta["encoder"]
        if encoder is not None and made_by is not None and encoder.name != made_by:
            raise InvalidInput(
                f"encoder: expected {made_by!r}, by which the index was built, got"
                f" {encoder.name!r}"
            )
        index = cls(table, bundle.arrays["vectors"], encoder, text=text)
        # Opening does not verify large files, and an altered graph would not be safe to
        # read.
        if (
            "crc32" in bundle.meta
            and zlib.crc32(bundle.arrays["graph"].data) == bundle.meta["crc32"]
        ):
            index._graphs.append(hnsw_graph(index.vectors.shape[1]))
            index._graphs[0].load(bundle.arrays["graph"].tobytes())
        return index


def _embedded(nodes: Sequence[Node], text: NodeText, encoder: Encoder | None) -> Floats:
    """Embed nodes, ``(n, d)``; one with an empty chosen field has the zero vector."""
    if encoder is None:
        raise InvalidInput("encoder: the index has none to embed nodes with")
    texts = text.all_texts(nodes)
    rows = [row for row, value in enumerate(texts) if value or text.only is None]
    if not rows:
        return np.zeros((len(texts), encoder.dimension), dtype=np.float32)
    embeddings = check_vectors(
        encoder.encode_documents([texts[row] for row in rows]),
        len(rows),
        what="embedding",
    )
    vectors = np.zeros((len(texts), embeddings.shape[1]), dtype=np.float32)
    vectors[rows] = embeddings
    return vectors
