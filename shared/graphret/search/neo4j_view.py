"""The full text of a view: BM25 over what may be seen, and nothing else.

Lucene's scores tell of all documents. So it is only asked which nodes of the view have a word of the question, the
server counts what BM25 needs over the view, and scores them by the terms that are stored beside them. What travels is
counts and the best nodes' ids. A text that reads the names of neighbours is another one in each view: there the server
puts it together from the terms of the node and of the names that may be seen.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from graphret.search import neo4j_documents as documents
from graphret.search.bm25 import FIELD_B, BM25Settings
from graphret.search.fields import FIELD_WEIGHTS
from graphret.search.neo4j_around import Alone
from graphret.stores.neo4j.reads import Graph
from graphret.stores.neo4j.statements import Plan, Statement
from graphret.text import words
from graphret.where import Where

Scored = list[tuple[str, float]]

#: The most views, and terms of each, that are remembered between writes.
VIEWS, KEPT = 256, 10_000
_SETTINGS = BM25Settings()


class Seen(Protocol):
    """The full text of a view, for one question."""

    def search(self, graph: Graph, k: int, labels: list[str] | None, where: Where | None) -> Plan[list[list[Any]]]:
        """Find the `k` best nodes in which a term of the question occurs: ids, scores, and where they are."""
        ...

    def score(self, graph: Graph, ids: Sequence[str]) -> Plan[dict[str, float]]:
        """Score given nodes; those in which no term occurs may be left out."""
        ...


@dataclass(slots=True)
class Statistics:
    """What has to be known of the nodes of a view, as far as it was asked for.

    Parameters
    ----------
    nodes
        How many there are, `None` while that is not known.
    vectors
        How many have a vector, counted as far as decides whether all are compared; `None` while that is not known.
    means
        The mean number of terms in each part of a node, each over the nodes that have any.
    frequencies
        In how many nodes a term occurs.
    """

    nodes: int | None = None
    vectors: int | None = None
    means: tuple[float, ...] = ()
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
    says
        What its nodes say.
    """

    question: str
    fulltext: str
    statistics: Statistics
    says: Alone

    def search(self, graph: Graph, k: int, labels: list[str] | None, where: Where | None) -> Plan[list[list[Any]]]:
        """Find the `k` best nodes in which a term of the question occurs: ids, scores, and where they are."""
        parameters = yield from self._weights(graph)
        if not parameters["terms"]:
            return []
        found, more = self.says.found(graph, labels, where)
        said, seen = self.says.said(graph)
        asked = [["", *self._lucene(list(self._terms().values()))]]
        parameters |= more | seen | {"index": self.fulltext, "asked": asked, "k": k}
        return (
            yield Statement(
                f"UNWIND $asked AS one {found} {said} {self._score} RETURN {graph.layout.id_of('n')} AS id, score, "
                f"{documents.place(graph.layout)} AS place ORDER BY score DESC, id LIMIT $k",
                parameters,
            )
        )

    def score(self, graph: Graph, ids: Sequence[str]) -> Plan[dict[str, float]]:
        """Score given nodes; those in which no term occurs are left out."""
        parameters = yield from self._weights(graph)
        among = graph.layout.among("n", ids, parameters)
        clause, more = graph.conditions("n", among)
        said, seen = self.says.said(graph)
        rows = yield Statement(
            f"MATCH {graph.layout.node('n')}{clause} {said} {self._score} RETURN {graph.layout.id_of('n')}, score",
            parameters | more | seen,
        )
        return {row[0]: row[1] for row in rows}

    def _terms(self) -> dict[str, list[str]]:
        """The terms of the question, each with its words."""
        terms: dict[str, list[str]] = {}
        for word in list(dict.fromkeys(words(self.question)))[: documents.WORDS]:
            for term in documents.TERMED(word):
                terms.setdefault(term, []).append(word)
        return terms

    def _lucene(self, asked: Sequence[Sequence[str]]) -> list[str | None]:
        return self.says.lucene(" ".join(word for of_term in asked for word in of_term))

    def _weights(self, graph: Graph) -> Plan[dict[str, Any]]:
        """Return the parameters of `_SCORE`: each term as it is stored with its rarity, and the mean lengths."""
        terms = self._terms()
        nodes, means = yield from self._totals(graph)
        frequencies = yield from self._frequencies(graph, terms)
        rarity = {t: math.log1p((max(nodes, n) - n + 0.5) / (n + 0.5)) for t, n in frequencies.items()}
        return {"terms": [[documents.barred(term), rarity[term]] for term in terms], "means": list(means)}

    def _totals(self, graph: Graph) -> Plan[tuple[int, tuple[float, ...]]]:
        known = self.statistics
        if known.nodes is None:
            clause, parameters = graph.conditions("n")
            said, seen = self.says.said(graph)
            parts = range(len(self.says.fields))
            means = ", ".join(f"avg(CASE WHEN lengths[{i}] > 0 THEN lengths[{i}] END)" for i in parts)
            text = f"MATCH {graph.layout.node('n')}{clause} {said} RETURN count(n), {means}"
            ((nodes, *found),) = yield Statement(text, parameters | seen)
            known.means = tuple(mean or 1.0 for mean in found)
            known.nodes = nodes
            return nodes, known.means
        return known.nodes, known.means

    def _frequencies(self, graph: Graph, terms: Mapping[str, list[str]]) -> Plan[dict[str, int]]:
        """In how many nodes of the view each term occurs: one look into the index for each that is not known."""
        known = self.statistics.frequencies
        found = {term: known[term] for term in terms if term in known}
        unknown = [term for term in terms if term not in found]
        if unknown:
            found_in, parameters = self.says.found(graph)
            said, seen = self.says.said(graph, "n, one")
            occurs = " OR ".join(f"said[{i}] CONTAINS one[0]" for i in range(len(self.says.fields)))
            asked = [[documents.barred(term), *self._lucene([terms[term]])] for term in unknown]
            rows = yield Statement(
                f"UNWIND $asked AS one {found_in} {said} WITH n, one, said WHERE {occurs} RETURN one[0], count(n)",
                parameters | seen | {"asked": asked, "index": self.fulltext},
            )
            counts = dict(map(tuple, rows))
            found |= {term: counts.get(documents.barred(term), 0) for term in unknown}
            if len(known) + len(unknown) > KEPT:
                known.clear()
            known |= {term: found[term] for term in unknown}
        return found

    @property
    def _score(self) -> str:
        """Scores ``n``, of which those stay in which a term occurs: the sum of idf · tf / (k1 + tf), as `BM25Index`."""
        parts = [*enumerate(self.says.fields)]
        shares = ", ".join(f"{_share(name, part)} AS share{part}" for part, name in parts)
        occurrences = " + ".join(f"share{part} * (size(split(said[{part}], one[0])) - 1)" for part, _ in parts)
        return (
            f"WITH n, said, {shares} WITH n, reduce(sum = 0.0, one IN $terms | sum + one[1] * "
            f"(1 - {_SETTINGS.k1} / ({_SETTINGS.k1} + {occurrences}))) AS score WITH n, score WHERE score > 0"
        )


def _share(name: str, part: int) -> str:
    """The weight of an occurrence in a part of ``n``, damped by the length of that part (BM25F)."""
    b = FIELD_B.get(name, _SETTINGS.b)
    return f"{FIELD_WEIGHTS.get(name, 1.0)} / ({1 - b} + {b} * lengths[{part}] / $means[{part}])"
