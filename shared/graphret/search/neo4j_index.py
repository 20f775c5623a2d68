"""`Neo4jTextIndex`: the full-text and vector indexes of a Neo4j as a `TextIndex`."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from copy import copy
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphret.errors import InvalidInput
from graphret.search import neo4j_documents as documents
from graphret.search.encoder import Encoder, as_encoder
from graphret.search.fields import NodeText, require_texts
from graphret.search.index import BatchIndex, Matches
from graphret.stores.attached import require_whole
from graphret.stores.base import require_ids
from graphret.stores.database import condition
from graphret.stores.neo4j import Neo4jStore
from graphret.stores.neo4j.graph import Graph
from graphret.types import Node
from graphret.where import Where, WhereLike

#: Up to so many qualifying vectors are all compared, as quickly as HNSW is searched.
FEW = 1_000
#: How many hits are requested from an index at first, and then from the vector index,
#: where not all of them qualify.
_FIRST, _MOST = 500, 10_000
_COSINE = f"2 * vector.similarity.cosine(n.{documents.VECTOR}, $vector) - 1"
_FULLTEXT = (
    "CALL db.index.fulltext.queryNodes($index, $lucene%s) YIELD node AS n, score"
)

Scores = dict[str, float]


class Neo4jTextIndex(BatchIndex):
    """A `TextIndex` in Neo4j: full text by Lucene, vectors by HNSW with cosine.

    `create` or `open` makes one. The database has the document of each node as
    properties (``graphret_title``, ``graphret_text``, ``graphret_names``) and, with an
    encoder, the vector of its own text (``graphret_embedding``). A write to the index's
    store writes these in the same transaction; `refresh` makes up for other writes.

    The score is Lucene's BM25 without an encoder. With one it is ``alpha · BM25 + (1 −
    alpha) · cosine``, each divided by the best of its kind for the question, so that a
    few nodes can be scored without reading all; with ``alpha=0`` it is the cosine
    alone. Filters are conditions of the query, so that k nodes are returned if k
    qualify. Lucene's English analyser differs from `Analyzer`, and its scores depend on
    all documents, including deleted ones until it merges its files.

    A view finds only visible nodes, by their own texts: names of neighbours are not
    searched, since some may be hidden. Lucene's scores would reveal hidden documents,
    so the node of rank r in a view has the full-text score 1 / log2(1 + r). The ranking
    itself, and the vectors that HNSW finds, may still depend on hidden nodes: up to
    1,000 nodes of a view are therefore all compared.

    Parameters
    ----------
    store
        The graph. If its nodes have no common label, each gets the label
        ``__GraphretText__``.
    text
        How a node becomes text. Pass `open` the same as `create`: later writes are
        indexed by it.
    encoder
        Embeds nodes and questions; `None` for full text alone.
    alpha
        The share of full text.
    """

    #: The indexes are ``graphret_fulltext`` and ``graphret_vector``; a database has one
    #: such pair for a graph.
    prefix = "graphret"

    def __init__(
        self,
        store: Neo4jStore,
        *,
        text: NodeText | None = None,
        encoder: Any = None,
        alpha: float = 0.6,
    ) -> None:
        if not isinstance(store, Neo4jStore):
            raise InvalidInput(
                f"store: expected a Neo4jStore, got {type(store).__name__}"
            )
        require_whole(store.restriction is not None)
        if not 0 <= alpha <= 1:
            raise InvalidInput(f"alpha: expected a number from 0 to 1, got {alpha!r}")
        self.store = store
        self.restriction: Where | None = None
        self.text = text or NodeText()
        self.reads_neighbors = self.text.reads_neighbors
        self.encoder: Encoder | None = as_encoder(encoder)
        self.alpha = alpha if self.encoder is not None else 1.0
        self.fulltext = f"{self.prefix}_fulltext"
        self.vector = f"{self.prefix}_vector" if self.encoder is not None else None
        self._indexes = (
            self.fulltext,
            self.vector,
            self.encoder.dimension if self.encoder is not None else None,
        )

    @classmethod
    def create(
        cls,
        store: Neo4jStore,
        *,
        text: NodeText | None = None,
        encoder: Any = None,
        alpha: float = 0.6,
        timeout: float = 600.0,
    ) -> Neo4jTextIndex:
        """Create missing indexes, write all nodes' documents, and wait until ready.

        Raises
        ------
        StoreMismatch
            When an existing index has another dimension, is over other nodes or has
            failed.
        InvalidInput
            When most nodes have no text; the message lists their properties.
        """
        index = cls(store, text=text, encoder=encoder, alpha=alpha)
        require_texts([index.text], next(iter(store.nodes()), [])[:FEW])
        store.write(lambda graph: documents.create_indexes(graph, *index._indexes))
        documents.require_indexes(store.graph(), *index._indexes)
        index.refresh()
        store.graph().run(
            "CALL db.awaitIndexes($seconds)",
            {"seconds": int(timeout)},
            timeout=timeout + 10,
        )
        store.attach(index)
        return index

    @classmethod
    def open(
        cls,
        store: Neo4jStore,
        *,
        text: NodeText | None = None,
        encoder: Any = None,
        alpha: float = 0.6,
    ) -> Neo4jTextIndex:
        """Open the indexes of `create`, with the same text and encoder.

        `StoreMismatch` is raised if one is missing.
        """
        index = cls(store, text=text, encoder=encoder, alpha=alpha)
        documents.require_indexes(store.graph(), *index._indexes)
        store.attach(index)
        return index

    # -- change

    def bind(self, store: Any) -> None:
        """Accept only the store that the index was made with, which has neighbours."""
        if store is not self.store:
            raise InvalidInput(
                "index: expected the store that the Neo4jTextIndex was made with, got"
                " another"
            )

    def staged(
        self, upserts: Sequence[Node], deletes: Collection[str], source: Any = None
    ) -> Callable[[], None]:
        """Write the documents of nodes in the transaction of the store `source`."""
        self._document(source, upserts)
        return lambda: None

    def refresh(self) -> None:
        """Rewrite the documents and vectors of all nodes, as after others' writes."""
        for block in self.store.nodes():
            self._document(self.store, block)

    def _document(self, store: Neo4jStore, nodes: Sequence[Node]) -> None:
        if nodes:
            rows = documents.rows_of(
                store.graph(), nodes, self.text.bound(store), self.encoder
            )
            store.write(lambda graph: documents.write_documents(graph, rows))

    def upsert(self, nodes: Iterable[Node]) -> None:
        """Write nodes to the store, and their documents with them."""
        self.store.upsert(nodes)

    def delete(self, ids: Iterable[str]) -> None:
        """Delete nodes from the store; unknown ids are ignored."""
        self.store.delete(ids)

    def view(self, where: WhereLike) -> Neo4jTextIndex:
        """Return a view of the nodes that satisfy `where`; no others can be read."""
        view = copy(self)
        if (condition := Where.parse(where)) is not None:
            view.store = self.store.view(condition)
            view.restriction = view.store.restriction
        return view

    # -- asking

    def node_texts(self) -> list[NodeText]:
        """Return how it reads a node."""
        return [self.text]

    def _search(
        self,
        queries: list[str],
        k: int,
        labels: Collection[str] | None,
        where: Where | None,
    ) -> list[Matches]:
        qualifying = condition(labels, where)
        return [
            Matches(list(scores), np.asarray(list(scores.values()), dtype=np.float32))
            for scores in (
                query.search(k, qualifying) for query in self._combined_queries(queries)
            )
        ]

    def _score(
        self, queries: list[str], ids: Sequence[str]
    ) -> list[NDArray[np.float32]]:
        node_ids = require_ids(ids)
        return [
            np.asarray([scores[node_id] for node_id in node_ids], dtype=np.float32)
            for scores in (
                query.score(node_ids) for query in self._combined_queries(queries)
            )
        ]

    def _combined_queries(self, queries: list[str]) -> list[_CombinedQuery]:
        graph, vectors = (
            self.store.graph(),
            list[list[float] | None]([None] * len(queries)),
        )
        if self.encoder is not None and queries:
            vectors = documents.vectors_of(
                self.encoder.encode_queries(queries), len(queries), self.encoder
            )
        return [
            _CombinedQuery(self, graph, query, vector)
            for query, vector in zip(queries, vectors, strict=True)
        ]


class _CombinedQuery:
    """A question to both indexes of a graph, with their scores combined."""

    def __init__(
        self,
        index: Neo4jTextIndex,
        graph: Graph,
        query: str,
        vector: list[float] | None,
    ) -> None:
        self.graph, self.alpha = graph, index.alpha
        self.in_view = graph.scope is not None
        lucene = (
            documents.lucene(query, names=not self.in_view) if self.alpha > 0 else None
        )
        self.words = (
            None if lucene is None else {"index": index.fulltext, "lucene": lucene}
        )
        self.vector = (
            None
            if vector is None or self.alpha == 1
            else {"index": index.vector, "vector": vector}
        )
        #: The score of a node without any match.
        self.no_match = 0.0 if self.alpha else -1.0

    def search(self, k: int, where: Where | None) -> Scores:
        """Return the `k` best nodes, those without any match last and by id."""
        *_, local_condition = self.graph.conditions("n", where=where)
        n = k
        while True:
            scores = self._ranked(n, where)
            if local_condition is None:
                return scores
            nodes = self.graph.get(list(scores))
            fits = [
                node_id
                for node_id in scores
                if node_id in nodes and local_condition.matches(nodes[node_id])
            ]
            if len(fits) >= k or len(scores) < n:
                return {node_id: scores[node_id] for node_id in fits[:k]}
            n *= 4

    def _ranked(self, k: int, where: Where | None) -> Scores:
        if self.alpha in (0, 1):
            best = (self._lexical if self.alpha else self._near)(k, where)
        else:
            pool = max(4 * k, 50)
            lexical, near = self._lexical(pool, where), self._near(pool, where)
            scores = self._combined(list({**lexical, **near}), lexical, near)
            ranked = sorted(scores.items(), key=lambda item: (-item[1], item[0]))
            best = dict(ranked[:k])
        if len(best) >= k:
            return best
        return best | self._fill(k - len(best), list(best), where)

    def score(self, ids: Sequence[str]) -> Scores:
        """Score given nodes."""
        places = self.graph.places(ids)
        if missing := [node_id for node_id in ids if node_id not in places]:
            raise InvalidInput(f"node {missing[0]!r}: there is no such node")
        return self._combined(list(places), {}, {})

    def _combined(self, ids: Sequence[str], lexical: Scores, near: Scores) -> Scores:
        """Score nodes by both indexes, given some of the scores of each."""
        if self.words and (more := [id_ for id_ in ids if id_ not in lexical]):
            lexical = lexical | self._lexical_of(more)
        if self.alpha == 1:
            return {id_: lexical.get(id_, 0.0) for id_ in ids}
        if self.vector and (more := [id_ for id_ in ids if id_ not in near]):
            near = near | self._cosines_of(more)
        if self.alpha == 0:
            return {id_: near.get(id_, -1.0) for id_ in ids}
        by_text = self.alpha / (
            max(self._lexical(1, None).values(), default=0.0) or 1.0
        )
        by_near = (1 - self.alpha) / max([1e-9, *self._near(1, None).values()])
        return {
            id_: (
                by_text * lexical.get(id_, 0.0) + by_near * max(near.get(id_, 0.0), 0.0)
            )
            for id_ in ids
        }

    # full text

    def _lexical(self, k: int, where: Where | None) -> Scores:
        """Return the best nodes by full text, from the first hits if these suffice."""
        if self.words is None:
            return {}
        clause, parameters = self._conditions(where)
        id_if_qualified = (
            f"CASE WHEN {clause.removeprefix(' WHERE ') or 'true'} THEN {self._id} END"
        )
        parameters |= self.words | {"k": k, "first": max(_FIRST, 2 * k)}
        rows = self.graph.run(
            f"{_FULLTEXT % ', {limit: $first}'} RETURN {id_if_qualified}, score",
            parameters,
        )
        best = sorted(
            ([node_id, score] for node_id, score in rows if node_id is not None),
            key=lambda row: (-row[1], row[0]),
        )
        if len(rows) == parameters["first"] and (
            len(best) < k or best[k - 1][1] <= rows[-1][1]
        ):
            ranked = f"RETURN {self._id} AS id, score ORDER BY score DESC, id LIMIT $k"
            best = self.graph.run(
                f"{_FULLTEXT % ''} WITH n, score{clause} {ranked}", parameters
            )
        groups = [
            (score, [node_id for node_id, _ in group])
            for score, group in groupby(best[:k], key=lambda row: row[1])
        ]
        return self._visible_scores((score, len(ids), ids) for score, ids in groups)

    def _lexical_of(self, ids: Sequence[str]) -> Scores:
        """Score given nodes by full text, leaving out those without any word."""
        clause, parameters, _ = self.graph.conditions("n")
        rows = self.graph.run(
            f"{_FULLTEXT % ''} WITH n, score{clause} WITH {self._id} AS id, score WITH"
            " score, count(*) AS nodes, [one IN collect(id) WHERE one IN $wanted] AS"
            " found RETURN score, nodes, found ORDER BY score DESC",
            (self.words or {}) | parameters | {"wanted": list(ids)},
        )
        return self._visible_scores(rows)

    def _visible_scores(self, groups: Iterable[Any]) -> Scores:
        """Return the scores of nodes, in a view by rank.

        A group is a score, the number of nodes with it, and some of these.
        """
        scores: Scores = {}
        rank = 1
        for score, n, ids in groups:
            visible = 1 / math.log2(1 + rank) if self.in_view else score
            scores |= dict.fromkeys(ids, visible)
            rank += n
        return scores

    # vectors

    def _near(self, k: int, where: Where | None) -> Scores:
        """Return the nearest nodes, by the index or, if few qualify, comparing all."""
        if self.vector is None:
            return {}
        clause, parameters = self._conditions(
            where, f"n.{documents.VECTOR} IS NOT NULL"
        )
        match = f"MATCH {self.graph.layout.node('n')}{clause}"
        best = (
            f"RETURN {self._id} AS id, {_COSINE} AS score ORDER BY score DESC, id"
            " LIMIT $k"
        )
        parameters |= self.vector | {"k": k, "most": FEW + 1}
        narrowed = self.in_view or where is not None
        if (
            not narrowed
            or self.graph.run(
                f"{match} WITH n LIMIT $most RETURN count(n)", parameters
            )[0][0]
            > FEW
        ):
            call = (
                "CALL db.index.vector.queryNodes($index, $first, $vector) YIELD node"
                f" AS n WITH n{clause} {best}"
            )
            for first in (
                (max(_FIRST, 4 * k), max(_MOST, 4 * k)) if narrowed else (max(100, k),)
            ):
                rows = self.graph.run(call, parameters | {"first": first})
                if len(rows) == k:
                    return dict(map(tuple, rows))
        return dict(map(tuple, self.graph.run(f"{match} {best}", parameters)))

    def _cosines_of(self, ids: Sequence[str]) -> Scores:
        parameters: dict[str, Any] = dict(self.vector or {})
        among = self.graph.layout.among("n", ids, parameters)
        match, more, _ = self.graph.matching(among, f"n.{documents.VECTOR} IS NOT NULL")
        return dict(
            map(
                tuple,
                self.graph.run(
                    f"{match} RETURN {self._id}, {_COSINE}", parameters | more
                ),
            )
        )

    # what both need

    @property
    def _id(self) -> str:
        return self.graph.layout.id_of("n")

    def _conditions(
        self, where: Where | None, *more: str
    ) -> tuple[str, dict[str, Any]]:
        return self.graph.conditions(
            "n", self.graph.layout.in_graph("n"), *more, where=where
        )[:2]

    def _fill(self, n: int, excluded: list[str], where: Where | None) -> Scores:
        """Return more nodes by id, without any match."""
        # With this condition the database takes them from the index by id.
        has_id = ["n.id IS NOT NULL"] if self.graph.layout.own else []
        match, parameters, _ = self.graph.matching(*has_id, where=where)
        rows = self.graph.run(
            f"{match} WITH {self._id} AS id WHERE NOT id IN $excluded RETURN id ORDER"
            " BY id LIMIT $n",
            parameters | {"excluded": excluded, "n": n},
        )
        return {node_id: self.no_match for (node_id,) in rows}
