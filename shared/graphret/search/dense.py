"""Search by the cosine of embeddings: exact, or by a hierarchical navigable small world
graph.
"""

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
_BUILT_BY_ONE = 1_000  # vectors, under half a second
_SPARE = 16  # so many more are read from the graph, for those that tie with the last

#: Number of nodes above which the search is approximate; exact search of fewer is as
#: fast.
HNSW_ABOVE = 200_000
#: Connections a node (SAGE, appendix E), and the breadth of the search when building
#: and when asked.
HNSW_M, EXPANSION_ADD, EXPANSION_SEARCH = 64, 128, 256


def hnsw_graph(width: int, vectors: Floats | None = None, threads: int = 0) -> Any:
    """Return usearch's graph of unit rows, ``(n, width)``, empty without (Malkov and
    Yashunin 2018).

    With one thread it is the same each time, and a small graph is built by one: rows
    that several add at the same time are not linked with one another. It holds vectors
    of 16 bits, in half the time; what it finds is scored with all 32.
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
        threads = threads if len(vectors) > _BUILT_BY_ONE else 1
        graph.add(np.arange(len(vectors)), np.asarray(vectors), threads=threads)
    return graph


class DenseIndex(ArrayIndex):
    """Search by cosine similarity.

    Parameters
    ----------
    table, vectors
        The nodes, and their embeddings, unit rows, ``(n, d)`` float32.
    encoder
        What embeds queries; without one only queries given to `remember` can be asked.
    text
        How nodes become text.
    """

    #: Number of nodes above which the search is approximate. The graph of HNSW is made
    #: when it is first asked for, and saved with the index; after a write the search is
    #: exact until the index is opened or built again.
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
        self._graphs: list[
            Any
        ] = []  # the one, once it is made; shared by the copies that searches take
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
        """Index nodes, embedding their texts unless their vectors are given, in the
        order of the nodes.

        `source` is the store in which neighbours are looked up. An `InvalidInput` says
        which vector cannot be used.
        """
        given = nodes if isinstance(nodes, NodeTable) else list(nodes)
        table = given if isinstance(given, NodeTable) else NodeTable.of(given)
        encoder, text = as_encoder(encoder), (text or NodeText()).bound(source)
        made = check_vectors(
            _embedded(table, text, encoder) if vectors is None else vectors,
            len(table),
            what="embedding",
        )
        if vectors is not None and table is not given:
            made = made[np.argsort(table.positions(node.id for node in given))]
        return cls(table, normalize(made), encoder, text=text)

    @classmethod
    def of_store(
        cls,
        store: GraphStore,
        encoder: Any,
        *,
        labels: Collection[str] | None = None,
        text: NodeText | None = None,
    ) -> Self:
        """Make it of a store's nodes, or those that bear one of `labels`.

        ``store.attach(index)`` keeps it in step; the rest is as for `build`.
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
        """Whether the embedding of a query is at hand."""
        return query in self._queries

    def with_query(self, query: str, vector: Any) -> Self:
        """Return this index with an embedding given for a query; the index itself does
        not learn of it.
        """
        other = copy(self)
        other._queries = {}
        other.forget()
        other.remember(query, vector)
        return other

    def prepare(self, queries: Sequence[str]) -> None:
        """Embed those of the queries at once that are not known."""
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
        if (known := self._queries.get(query)) is None:
            raise InvalidInput(
                "encoder: the index has none, and the query's embedding was not given"
            )
        return known

    # -- scoring

    def _scores(self, query: str) -> Floats:
        return (
            self._cosines(query, slice(None))
            if len(self.table)
            else np.zeros(0, dtype=np.float32)
        )

    def _cosines(self, query: str, rows: Any) -> Floats:
        """The cosines of some rows, each computed by itself, so that equal vectors tie,
        which in BLAS they may not.
        """
        return np.asarray(
            np.einsum("ij,j->i", self.vectors[rows], self.query_vector(query)),
            dtype=np.float32,
        )

    def ranked(
        self, query: str, k: int, mask: NDArray[np.bool_] | None = None
    ) -> tuple[NDArray[np.int64], Floats]:
        """Do as `ArrayIndex.ranked`; the search of a filtered part, or for very many,
        is exact.
        """
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
        """The nodes that HNSW finds near a query, ascending."""
        with self._lock:
            if not self._graphs:
                self._graphs.append(hnsw_graph(self.vectors.shape[1], self.vectors))
        found = self._graphs[0].search(
            self.query_vector(query), min(k, len(self.table)), threads=1
        )
        return np.sort(np.asarray(found.keys, dtype=np.int64))

    # -- change

    def changed(self, change: Change, source: GraphStore | None = None) -> Self:
        vectors = self.vectors
        if n_fresh := len(change.fresh):
            made = _embedded(change.nodes, self.text.bound(source), self.encoder)
            width = vectors.shape[1]
            made = normalize(check_vectors(made, n_fresh, width, what="embedding"))
            vectors = vectors.reshape(-1, made.shape[1])
        else:
            made = vectors[:0]
        vectors = change.column(vectors, made)
        other = type(self)(change.after, vectors, self.encoder, text=self.text)
        other._written = True
        return other

    def induced(self, table: NodeTable, positions: NDArray[np.int64]) -> Self:
        return type(self)(
            table, np.asarray(self.vectors[positions]), self.encoder, text=self.text
        )

    # -- on disk

    def parts(self) -> Parts:
        """The index as it is saved, without its table; with the graph of HNSW where one
        was built.
        """
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
        """Open a saved index; an `InvalidInput` says that the encoder is not the one
        that the vectors are from.
        """
        made_by = bundle.meta["encoder"]
        if encoder is not None and made_by is not None and encoder.name != made_by:
            raise InvalidInput(
                f"encoder: the index was built with {made_by!r}, not with"
                f" {encoder.name!r}"
            )
        index = cls(table, bundle.arrays["vectors"], encoder, text=text)
        # A large file may not have been compared when it was opened, and what was
        # altered would not be safe to read.
        if (
            "crc32" in bundle.meta
            and zlib.crc32(bundle.arrays["graph"].data) == bundle.meta["crc32"]
        ):
            index._graphs.append(hnsw_graph(index.vectors.shape[1]))
            index._graphs[0].load(bundle.arrays["graph"].tobytes())
        return index


def _embedded(nodes: Sequence[Node], text: NodeText, encoder: Encoder | None) -> Floats:
    """Embed nodes, ``(n, d)``; one of which a chosen field says nothing has the zero
    vector.
    """
    if encoder is None:
        raise InvalidInput("encoder: the index has none to embed nodes with")
    texts = text.all_texts(nodes)
    rows = [row for row, one in enumerate(texts) if one or text.only is None]
    if not rows:
        return np.zeros((len(texts), encoder.dimension), dtype=np.float32)
    made = check_vectors(
        encoder.encode_documents([texts[row] for row in rows]),
        len(rows),
        what="embedding",
    )
    vectors = np.zeros((len(texts), made.shape[1]), dtype=np.float32)
    vectors[rows] = made
    return vectors
