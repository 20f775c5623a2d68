"""One question to the indexes of a Neo4j: what is asked of them, and how their scores become one."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphret.errors import InvalidInput
from graphret.search import neo4j_documents as documents
from graphret.search.index import Matches
from graphret.search.neo4j_view import Scored, Seen, Statistics
from graphret.stores.neo4j.reads import Graph
from graphret.stores.neo4j.statements import Plan, Statement
from graphret.stores.neo4j.where import bears
from graphret.where import Where

TITLE_WEIGHT = 3.0
#: Hits that are asked of an index at first; where a filter leaves too few of them, all are.
FIRST = 1_000
#: For so many hits of the vector index a server takes as long as for comparing one stored vector.
HITS_A_COMPARISON = 8
#: So many vectors of a view are compared, as quickly as the index is asked.
ABOVE = 1_000
_COSINE = f"2 * vector.similarity.cosine(n.{documents.VECTOR}, $vector) - 1"


@dataclass(slots=True)
class Asking:
    """A question.

    Parameters
    ----------
    query
        The question.
    alpha
        Share of the full text.
    fulltext, vectors
        The names of the indexes.
    vector
        The question's embedding, `None` where it is not needed or has no direction.
    visible
        In a view: what scores the full text in Lucene's place.
    statistics
        In a view: what is known of it.
    above
        Number of nodes of a view with a vector above which the vector index is asked.
    """

    query: str
    alpha: float
    fulltext: str
    vectors: str | None
    vector: list[float] | None
    visible: Seen | None = None
    statistics: Statistics = field(default_factory=Statistics)
    above: int = ABOVE
    _places: dict[str, str] = field(default_factory=dict)

    @property
    def lucene(self) -> str | None:
        """The question as Lucene reads it, `None` where it has no words or they do not count."""
        return documents.lucene(self.query, TITLE_WEIGHT) if self.alpha > 0 else None

    def search(self, graph: Graph, k: int, labels: list[str] | None, where: Where | None) -> Plan[Matches]:
        """Find the `k` best nodes, those that nothing speaks for last and by id."""
        if self.alpha == 1:
            found = yield from self._lexical(graph, k, labels, where)
        elif self.alpha == 0:
            found = yield from self._near(graph, k, labels, where)
        else:
            pool = max(4 * k, 50)
            lexical = yield from self._lexical(graph, pool, labels, where)
            near = yield from self._near(graph, pool, labels, where)
            ids = sorted({node_id for node_id, _ in (*lexical, *near)})
            scores = yield from self._combined(graph, ids, dict(lexical), dict(near))
            found = sorted(zip(ids, scores.tolist(), strict=True), key=_best)[:k]
        if len(found) < k:
            found += yield from self._fill(graph, k - len(found), [node_id for node_id, _ in found], labels, where)
        return Matches([node_id for node_id, _ in found], np.asarray([score for _, score in found], dtype=np.float32))

    def hits(self, graph: Graph, n: int) -> Plan[Matches]:
        """Find the `n` best nodes by full text; which of those that score as the last one does is for Lucene to say."""
        if self.lucene is None:
            return Matches([], np.empty(0, dtype=np.float32))
        rows = yield Statement(
            f"{documents.hits(limit='$first')} "
            f"RETURN collect({graph.layout.id_of('n')}), collect(score), collect({documents.place(graph.layout)})",
            {"index": self.fulltext, "lucene": self.lucene, "first": n},
        )
        ((ids, scores, places),) = rows
        yield from self._apart(graph, zip(ids, places, strict=False))
        return Matches(ids, np.asarray(scores, dtype=np.float32))

    def score(self, graph: Graph, ids: Sequence[str]) -> Plan[NDArray[np.float32]]:
        """Score given nodes."""
        distinct = list(dict.fromkeys(ids))
        known = {node.id for node in (yield from graph.get(distinct)) if node is not None}
        for node_id in ids:
            if node_id not in known:
                raise InvalidInput(f"node {node_id!r}: there is no such node")
        scores = yield from self._combined(graph, distinct, {}, {})
        by_id = dict(zip(distinct, scores.tolist(), strict=True))
        return np.asarray([by_id[node_id] for node_id in ids], dtype=np.float32)

    # -- the two kinds of scores

    def _lexical(self, graph: Graph, k: int, labels: list[str] | None, where: Where | None) -> Plan[Scored]:
        """Find the best nodes by full text: those in which a word of the question occurs."""
        if self.lucene is None:
            return []
        if self.visible is not None:
            return (yield from self._told(graph, (yield from self.visible.search(graph, k, labels, where))))
        clause, parameters = graph.conditions(
            "n", documents.own(graph.layout), bears(graph.layout, "n", labels), where=where
        )
        parameters |= {"index": self.fulltext, "lucene": self.lucene, "k": k, "first": max(FIRST, 2 * k)}
        columns = f"{graph.layout.id_of('n')} AS id, score, {documents.place(graph.layout)} AS place"
        order = "ORDER BY score DESC, id LIMIT $k"
        first = documents.hits(limit="$first")
        rows = yield Statement(
            f"{first} WITH count(*) AS total, min(score) AS lowest "  # collected, each row would hold all of them
            f"{first} WITH n, score, total, lowest{clause} RETURN {columns}, total, lowest {order}",
            parameters,
        )
        everything = rows and rows[0][3] < parameters["first"]
        if not everything and (len(rows) < k or rows[-1][1] <= rows[-1][4]):
            text = f"{documents.hits()} WITH n, score{clause} RETURN {columns} {order}"
            rows = yield Statement(text, parameters)
        return (yield from self._told(graph, rows))

    def _near(self, graph: Graph, k: int, labels: list[str] | None, where: Where | None) -> Plan[Scored]:
        """Find the nearest nodes: by the index, or by comparing all that qualify where these are few.

        What is hidden is left out in the query itself, and the vectors of what is left are compared anew. Still, which
        nodes an approximate index finds depends on all that are in it, so that a view of few is always compared.
        """
        if self.vector is None:
            return []
        bearing = bears(graph.layout, "n", labels)
        tail = (
            f"WITH n, {_COSINE} AS score RETURN {graph.layout.id_of('n')} AS id, score, "
            f"{documents.place(graph.layout)} AS place ORDER BY score DESC, id LIMIT $k"
        )
        parameters = {"vector": self.vector, "k": k}
        if graph.scope is None or not (yield from self._is_small(graph)):
            clause, more = graph.conditions("n", documents.own(graph.layout), bearing, where=where)
            text = f"CALL db.index.vector.queryNodes($index, $first, $vector) YIELD node AS n WITH n{clause} {tail}"
            found = yield from self._by_index(graph, k, labels, where, text, parameters | more)
            if found is not None:
                return found
        clause, more = graph.conditions("n", f"n.{documents.VECTOR} IS NOT NULL", bearing, where=where)
        rows = yield Statement(f"MATCH {graph.layout.node('n')}{clause} {tail}", parameters | more)
        return (yield from self._told(graph, rows))

    def _is_small(self, graph: Graph) -> Plan[bool]:
        """Whether the nodes of a view are few enough to be compared, counted as far as that takes."""
        known = self.statistics
        if known.vectors is None:
            clause, parameters = graph.conditions("n", f"n.{documents.VECTOR} IS NOT NULL")
            text = f"MATCH {graph.layout.node('n')}{clause} WITH n LIMIT $most RETURN count(n)"
            ((known.vectors,),) = yield Statement(text, parameters | {"most": self.above + 1})
        return known.vectors <= self.above

    def _by_index(
        self,
        graph: Graph,
        k: int,
        labels: list[str] | None,
        where: Where | None,
        text: str,
        parameters: Mapping[str, Any],
    ) -> Plan[Scored | None]:
        """Find the nearest nodes among more and more hits, `None` where comparing all that qualify is less work."""
        narrowed = where is not None or labels is not None or graph.scope is not None
        first, most = max(FIRST // 2, 4 * k) if narrowed else max(100, k), 0
        while True:
            rows = yield Statement(text, {**parameters, "index": self.vectors, "first": first})
            if len(rows) == k:
                return (yield from self._told(graph, rows))
            if not narrowed:
                return None
            if not most:
                nodes, qualifying = yield from self._counts(graph, labels, where)
                most = min(nodes, HITS_A_COMPARISON * qualifying)
                first = max(first, math.ceil(k * nodes / max(qualifying, 1)) // 2)
            first *= 4
            if first > most:
                return None

    def _counts(self, graph: Graph, labels: list[str] | None, where: Where | None) -> Plan[tuple[int, int]]:
        """Count all nodes, and those that qualify."""
        clause, parameters = graph.conditions("n", bears(graph.layout, "n", labels), where=where)
        counted = f"MATCH {graph.layout.node('n')}%s RETURN count(n) AS nodes"
        rows = yield Statement(f"{counted % ''} UNION ALL {counted % clause}", parameters)
        return rows[0][0], rows[1][0]

    def _combined(
        self, graph: Graph, ids: Sequence[str], lexical: Mapping[str, float], near: Mapping[str, float]
    ) -> Plan[NDArray[np.float32]]:
        """Score nodes by both kinds, those that are at hand already and the others."""
        texts = np.zeros(len(ids), dtype=np.float32)
        if self.lucene is not None:
            texts = yield from self._known(graph, ids, lexical, self._lexical_of)
        if self.alpha == 1:
            return texts
        cosines = yield from self._known(graph, ids, near, self._cosines_of)
        if self.alpha == 0:
            return cosines
        best_text = (yield from self._lexical(graph, 1, None, None)) or [("", 0.0)]
        best_near = (yield from self._near(graph, 1, None, None)) or [("", 0.0)]
        share = texts / max(best_text[0][1], 1e-9)
        nearness = np.maximum(cosines, 0) / max(best_near[0][1], 1e-9)
        return np.asarray(self.alpha * share + (1 - self.alpha) * nearness, dtype=np.float32)

    def _known(
        self, graph: Graph, ids: Sequence[str], known: Mapping[str, float], ask: Any
    ) -> Plan[NDArray[np.float32]]:
        missing = [node_id for node_id in ids if node_id not in known]
        more = (yield from ask(graph, missing)) if missing else {}
        return np.asarray(
            [known.get(i, more.get(i, self._nothing if ask == self._cosines_of else 0.0)) for i in ids],
            dtype=np.float32,
        )

    def _lexical_of(self, graph: Graph, ids: Sequence[str]) -> Plan[dict[str, float]]:
        if self.visible is not None:
            return (yield from self.visible.score(graph, ids))
        parameters: dict[str, Any] = {"index": self.fulltext, "lucene": self.lucene}
        among = graph.layout.among("n", ids, parameters)
        clause, more = graph.conditions("n", among)
        text = f"{documents.hits()} WITH n, score{clause} RETURN {graph.layout.id_of('n')}, score"
        rows = yield Statement(text, parameters | more)
        return {row[0]: row[1] for row in rows}

    def _cosines_of(self, graph: Graph, ids: Sequence[str]) -> Plan[dict[str, float]]:
        if self.vector is None:
            return {}
        parameters: dict[str, Any] = {"vector": self.vector}
        among = graph.layout.among("n", ids, parameters)
        clause, more = graph.conditions("n", among, f"n.{documents.VECTOR} IS NOT NULL")
        text = f"MATCH {graph.layout.node('n')}{clause} RETURN {graph.layout.id_of('n')}, {_COSINE}"
        rows = yield Statement(text, parameters | more)
        return {row[0]: row[1] for row in rows}

    def _fill(
        self, graph: Graph, n: int, found: list[str], labels: list[str] | None, where: Where | None
    ) -> Plan[Scored]:
        """Find more nodes by id, which nothing speaks for."""
        there = ["n.id IS NOT NULL"] if graph.layout.own else []  # so that the database takes them from the index by id
        clause, parameters = graph.conditions("n", *there, bears(graph.layout, "n", labels), where=where)
        told, known = "id", found
        if graph.layout.may_share_ids:
            told, known = "elementId(n)", [self._places[node_id] for node_id in found]
        text = (
            f"MATCH {graph.layout.node('n')}{clause} WITH n, {graph.layout.id_of('n')} AS id "
            f"WHERE NOT {told} IN $known RETURN id, $score, {documents.place(graph.layout)} "
            f"ORDER BY {graph.layout.order_of('n')} LIMIT $n"
        )
        rows = yield Statement(text, parameters | {"known": known, "n": n, "score": self._nothing})
        return (yield from self._told(graph, rows))

    # -- ids of several nodes

    def _told(self, graph: Graph, rows: Sequence[Sequence[Any]]) -> Plan[Scored]:
        """Return ids and scores of rows that tell places too."""
        yield from self._apart(graph, ((row[0], row[2]) for row in rows))
        return [(row[0], row[1]) for row in rows]

    def _apart(self, graph: Graph, places: Iterable[tuple[str, str]]) -> Plan[None]:
        """Refuse an id that was found in several places."""
        if graph.layout.may_share_ids:
            yield from graph.refuse_shared({i for i, place in places if self._places.setdefault(i, place) != place})

    @property
    def _nothing(self) -> float:
        """The score of a node that nothing speaks for."""
        return 0.0 if self.alpha else -1.0


def _best(pair: tuple[str, float]) -> tuple[float, str]:
    return -pair[1], pair[0]
