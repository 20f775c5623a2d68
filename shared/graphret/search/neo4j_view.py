"""The full text of a view: BM25 over what may be seen, and nothing else.

Lucene's scores tell of all documents. So it is only asked which nodes of the view have a word of the question, the
server counts what BM25 needs over the view, and scores them by the terms that are stored beside them. What travels is
counts and the best nodes' ids. A text that reads the names of neighbours is another one in each view: there the nodes
that match are read, and scored in this process.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from graphret.nodes import NodeTable
from graphret.search import neo4j_documents as documents
from graphret.search.bm25 import FIELD_B, BM25Index, BM25Settings
from graphret.search.counts import FieldCounts
from graphret.search.fields import FIELD_WEIGHTS, NodeText
from graphret.stores.neo4j.reads import Graph
from graphret.stores.neo4j.statements import Plan, Statement
from graphret.stores.neo4j.values import node_from
from graphret.stores.neo4j.where import bears, relation_types
from graphret.text import words
from graphret.types import Node
from graphret.where import Where

Scored = list[tuple[str, float]]

#: The most views, and terms of each, that are remembered between writes.
VIEWS, KEPT = 256, 10_000
_SETTINGS = BM25Settings()


class Seen(Protocol):
    """The full text of a view, for one question."""

    def search(self, graph: Graph, k: int, labels: list[str] | None, where: Where | None) -> Plan[Scored]:
        """Find the `k` best nodes in which a term of the question occurs."""
        ...

    def score(self, graph: Graph, ids: Sequence[str]) -> Plan[dict[str, float]]:
        """Score given nodes; those in which no term occurs may be left out."""
        ...


@dataclass(slots=True)
class Statistics:
    """What BM25 has to know of the nodes of a view, as far as it was asked for.

    Parameters
    ----------
    nodes
        How many there are, `None` while that is not known.
    means
        The mean number of terms in titles and in the rest, each over the nodes that have any.
    frequencies
        In how many nodes a term occurs.
    """

    nodes: int | None = None
    means: tuple[float, float] = 1.0, 1.0
    frequencies: dict[str, int] = field(default_factory=dict)


class Remembered:
    """The statistics of views, as long as no write is known of.

    The state of a database is the bookmarks of a driver: they change with what it writes itself, and with any read
    after somebody else wrote.
    """

    def __init__(self) -> None:
        self._known: tuple[frozenset[str], dict[Where, Statistics]] = frozenset(), {}

    def at(self, bookmarks: frozenset[str], scope: Where) -> Statistics:
        """Return what is known of the nodes that satisfy `scope`."""
        known = self._known
        if known[0] != bookmarks or len(known[1]) > VIEWS:
            known = self._known = bookmarks, {}
        return known[1].setdefault(scope, Statistics())


@dataclass(slots=True)
class Counted:
    """A view whose nodes are scored in the database.

    Parameters
    ----------
    question
        The question.
    fulltext
        The name of the index.
    statistics
        What is known of the view; what is missing is added.
    """

    question: str
    fulltext: str
    statistics: Statistics

    def search(self, graph: Graph, k: int, labels: list[str] | None, where: Where | None) -> Plan[Scored]:
        """Find the `k` best nodes in which a term of the question occurs."""
        parameters = yield from self._weights(graph)
        if not parameters["terms"]:
            return []
        found = documents.hits()
        clause, more = graph.conditions("n", documents.own(graph.layout), bears(graph.layout, "n", labels), where=where)
        parameters |= more | {"index": self.fulltext, "lucene": self._lucene(list(self._terms().values())), "k": k}
        rows = yield Statement(
            f"{found} WITH n{clause} {_SCORE} RETURN {graph.layout.id_of('n')} AS id, score "
            "ORDER BY score DESC, id LIMIT $k",
            parameters,
        )
        return [(row[0], row[1]) for row in rows]

    def score(self, graph: Graph, ids: Sequence[str]) -> Plan[dict[str, float]]:
        """Score given nodes; those in which no term occurs are left out."""
        parameters = yield from self._weights(graph)
        among = graph.layout.among("n", ids, parameters)
        clause, more = graph.conditions("n", among)
        rows = yield Statement(
            f"MATCH {graph.layout.node('n')}{clause} {_SCORE} RETURN {graph.layout.id_of('n')}, score",
            parameters | more,
        )
        return {row[0]: row[1] for row in rows}

    def _terms(self) -> dict[str, list[str]]:
        """The terms of the question, each with its words."""
        terms: dict[str, list[str]] = {}
        for word in list(dict.fromkeys(words(self.question)))[: documents.WORDS]:
            for term in documents.TERMED(word):
                terms.setdefault(term, []).append(word)
        return terms

    def _lucene(self, asked: Sequence[Sequence[str]]) -> str | None:
        return documents.lucene(" ".join(word for of_term in asked for word in of_term), 1)

    def _weights(self, graph: Graph) -> Plan[dict[str, Any]]:
        """Return the parameters of `_SCORE`: each term as it is stored with its rarity, and the mean lengths."""
        terms = self._terms()
        nodes, means = yield from self._totals(graph)
        frequencies = yield from self._frequencies(graph, terms)
        rarity = {t: math.log1p((max(nodes, n) - n + 0.5) / (n + 0.5)) for t, n in frequencies.items()}
        return {"terms": [[documents.barred(term), rarity[term]] for term in terms], "means": list(means)}

    def _totals(self, graph: Graph) -> Plan[tuple[int, tuple[float, float]]]:
        known = self.statistics
        if known.nodes is None:
            clause, parameters = graph.conditions("n")
            means = ", ".join(
                f"avg(CASE WHEN n.{documents.LENGTHS}[{i}] > 0 THEN n.{documents.LENGTHS}[{i}] END)" for i in (0, 1)
            )
            text = f"MATCH {graph.layout.node('n')}{clause} RETURN count(n), {means}"
            ((nodes, title, rest),) = yield Statement(text, parameters)
            known.means = title or 1.0, rest or 1.0
            known.nodes = nodes
            return nodes, known.means
        return known.nodes, known.means

    def _frequencies(self, graph: Graph, terms: Mapping[str, list[str]]) -> Plan[dict[str, int]]:
        """In how many nodes of the view each term occurs: one look into the index for each that is not known."""
        known = self.statistics.frequencies
        found = {term: known[term] for term in terms if term in known}
        unknown = [term for term in terms if term not in found]
        if unknown:
            said = f"n.{documents.TERMS}"
            occurs = f"({said}[0] CONTAINS one[0] OR {said}[1] CONTAINS one[0])"
            clause, parameters = graph.conditions("n", documents.own(graph.layout), occurs)
            asked = [[documents.barred(term), self._lucene([terms[term]])] for term in unknown]
            rows = yield Statement(
                f"UNWIND $asked AS one {documents.hits(lucene='one[1]')} WITH n, one{clause} RETURN one[0], count(n)",
                parameters | {"asked": asked, "index": self.fulltext},
            )
            counts = dict(map(tuple, rows))
            found |= {term: counts.get(documents.barred(term), 0) for term in unknown}
            if len(known) + len(unknown) > KEPT:
                known.clear()
            known |= {term: found[term] for term in unknown}
        return found


def _share(name: str, part: int) -> str:
    """The weight of an occurrence in a part of ``n``, damped by the length of that part (BM25F)."""
    b = FIELD_B.get(name, _SETTINGS.b)
    length = f"n.{documents.LENGTHS}[{part}] / $means[{part}]"
    return f"{FIELD_WEIGHTS.get(name, 1.0)} / ({1 - b} + {b} * {length})"


def _occurrences(part: int) -> str:
    return f"(size(split(said[{part}], one[0])) - 1)"


#: Scores ``n``, of which those stay in which a term occurs: the sum of idf · tf / (k1 + tf), as `BM25Index` has it.
_SCORE = (
    f"WITH n, n.{documents.TERMS} AS said, {_share('title', 0)} AS title, {_share('body', 1)} AS rest "
    f"WITH n, reduce(sum = 0.0, one IN $terms | sum + one[1] * (1 - {_SETTINGS.k1} / ({_SETTINGS.k1} + "
    f"title * {_occurrences(0)} + rest * {_occurrences(1)}))) AS score WITH n, score WHERE score > 0"
)


@dataclass(slots=True)
class Here:
    """A view whose nodes that match were read, to be scored in this process."""

    question: str
    index: BM25Index

    @classmethod
    def of(cls, question: str, nodes: Sequence[Node], text: NodeText) -> Here:
        """Index the nodes in which a term of the question occurs, as `text` sees them, bound to a view."""
        asked, fields = set(documents.TERMED(question)), text.all_fields(nodes)
        at = [i for i, one in enumerate(fields) if not asked.isdisjoint(_terms_of(one))]
        counts = FieldCounts.of([fields[i] for i in at], documents.TERMED)
        return cls(question, BM25Index(NodeTable.of(nodes[i] for i in at), counts, text, documents.TERMED, _SETTINGS))

    def search(self, graph: Graph, k: int, labels: list[str] | None, where: Where | None) -> Plan[Scored]:
        """Find the `k` best nodes in which a term of the question occurs."""
        yield from ()
        found = self.index.search(self.question, k, labels=labels, where=where)
        return [(i, s) for i, s in zip(found.ids, found.scores.tolist(), strict=True) if s > 0]

    def score(self, graph: Graph, ids: Sequence[str]) -> Plan[dict[str, float]]:
        """Score given nodes; those in which no term occurs may be left out."""
        yield from ()
        at = self.index.table.find(ids)
        here = [node_id for node_id, position in zip(ids, at.tolist(), strict=True) if position >= 0]
        return dict(zip(here, self.index.score(self.question, here).tolist(), strict=True))


def matching(graph: Graph, fulltext: str, question: str, text: NodeText) -> Plan[list[Node]]:
    """Read the nodes of a view in whose text, or in the name of whose neighbours in the view, a word occurs.

    The documents in the database name the heaviest neighbours, some of which may be hidden. So a node is not only
    looked for by its document: which nodes are found depends on nothing but the view.
    """
    layout = graph.layout
    asked = " ".join(dict.fromkeys(words(question)[: documents.WORDS]))
    columns = f"{layout.id_of('n')}, labels(n), {layout.values_of('n')}"
    clause, parameters = graph.conditions("n", documents.own(layout))
    lucene = {"index": fulltext, "lucene": documents.lucene(asked, 1)}
    rows = list((yield Statement(f"{documents.hits()} WITH n{clause} RETURN {columns}", parameters | lucene)))
    types = relation_types(None if text.relations is None else list(text.relations))
    if types is not None:
        left, right = {"out": ("<-", "-"), "in": ("-", "->")}.get(text.direction, ("-", "-"))
        named, more = graph.conditions("b", documents.own(layout, "b"))
        rows += yield Statement(
            f"{documents.hits()} WITH n AS b{named} MATCH (b){left}[r{types}]{right}{layout.node('n')}{clause} "
            f"WITH DISTINCT n RETURN {columns}",
            parameters | more | {"index": fulltext, "lucene": f"{documents.TITLE}:({asked})"},
        )
    return list({row[0]: node_from(layout, *row) for row in rows}.values())


def _terms_of(fields: Mapping[str, Any]) -> set[str]:
    return {term for part in documents.document(dict(fields)) for term in documents.TERMED(part)}
