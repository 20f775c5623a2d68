"""What a node says in a view, as Cypher: by itself, or with the names of its neighbours in the view."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from graphret.search import neo4j_documents as documents
from graphret.search.fields import NEIGHBORS, NodeText
from graphret.stores.neo4j.reads import WEIGHT, Graph
from graphret.stores.neo4j.where import bears, relation_types
from graphret.where import Where

#: Cypher, and its parameters.
Written = tuple[str, dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Alone:
    """Nodes that say what is stored beside them."""

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields as which the parts of a node are weighed."""
        return "title", "body"

    def lucene(self, words: str) -> list[str | None]:
        """Return what the index is asked for nodes in which one of some words occurs."""
        return [documents.lucene(words, 1)]

    def found(self, graph: Graph, labels: list[str] | None = None, where: Where | None = None) -> Written:
        """Return what gives nodes ``n`` in which words of ``one[1]`` may occur, each once for each ``one``."""
        clause, parameters = graph.conditions(
            "n", documents.own(graph.layout), bears(graph.layout, "n", labels), where=where
        )
        return f"{documents.hits(lucene='one[1]')} WITH n, one{clause}", parameters

    def said(self, graph: Graph, kept: str = "n") -> Written:
        """Return what adds to nodes ``n`` the terms of their parts, ``said``, and how many they are, ``lengths``."""
        return f"WITH {kept}, n.{documents.TERMS} AS said, n.{documents.LENGTHS} AS lengths", {}


@dataclass(frozen=True, slots=True)
class Around(Alone):
    """Nodes that say the names of their neighbours too, as far as these are in the view.

    Parameters
    ----------
    text
        Which neighbours.
    """

    text: NodeText

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields as which the parts of a node are weighed."""
        return "title", "body", NEIGHBORS

    def lucene(self, words: str) -> list[str | None]:
        """Return what the index is asked for nodes in which one of some words occurs, and for those with such names."""
        return [documents.lucene(words, 1), documents.lucene_title(words)]

    def found(self, graph: Graph, labels: list[str] | None = None, where: Where | None = None) -> Written:
        """Return what gives nodes ``n`` in which words of ``one[1]`` may occur, or of ``one[2]`` in neighbours' names.

        Documents in the database name the heaviest neighbours, some of which may be hidden. So a node is not only
        looked for by its document: which nodes are found depends on nothing but the view.
        """
        alone, parameters = Alone().found(graph, labels, where)
        types = self._types
        if types is None:
            return alone, parameters
        clause, _ = graph.conditions("n", bears(graph.layout, "n", labels), where=where)
        named, more = graph.conditions("b", documents.own(graph.layout, "b"))
        left, right = {"out": ("<-", "-"), "in": ("-", "->")}.get(self.text.direction, ("-", "-"))
        return (
            f"CALL {{ WITH one {alone} RETURN n UNION WITH one {documents.hits(lucene='one[2]', node='b')} "
            f"WITH b{named} MATCH (b){left}[{types}]{right}{graph.layout.node('n')}{clause} RETURN n }} WITH n, one",
            parameters | more,
        )

    def said(self, graph: Graph, kept: str = "n") -> Written:
        """Return what adds to nodes ``n`` the terms of their parts, ``said``, and how many they are, ``lengths``."""
        seen, parameters = graph.conditions("b", documents.own(graph.layout, "b"))
        types, ways = self._types, {"out": ["->"], "in": ["<-"]}.get(self.text.direction, ["->", "<-"])
        near, own_id = graph.layout.node("b"), graph.layout.id_of("b")
        lists = []
        for way in ways if types is not None else ():
            path = f"(n)-[r{types}]->{near}" if way == "->" else f"(n)<-[r{types}]-{near}"
            once = " AND b <> n" if way == "<-" and len(ways) > 1 else ""  # an edge to itself leaves a node
            lists.append(
                f"COLLECT {{ MATCH {path}{seen or ' WHERE true'}{once} WITH type(r) AS relation, b, "
                f"max({WEIGHT}) AS weight ORDER BY weight DESC, {own_id} "
                f"WITH relation, collect(b)[..{self.text.neighbors}] AS near UNWIND near AS b "
                f"RETURN [b.{documents.TERMS}[2], b.{documents.LENGTHS}[2]] }}"
            )
        said, lengths = f"n.{documents.TERMS}", f"n.{documents.LENGTHS}"
        names = "reduce(all = '', name IN names | all + coalesce(name[0], ''))"
        length = "reduce(all = 0, name IN names | all + coalesce(name[1], 0))"
        return (
            f"WITH {kept}, {' + '.join(lists) or '[]'} AS names WITH {kept}, "
            f"[{said}[0], {said}[1], {names}] AS said, [{lengths}[0], {lengths}[1], {length}] AS lengths",
            parameters,
        )

    @property
    def _types(self) -> str | None:
        return relation_types(None if self.text.relations is None else list(self.text.relations))
