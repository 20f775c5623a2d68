"""A small graph of nodes whose texts try to break out of the page."""

from __future__ import annotations

from graphret import Document, IndexRetriever, Retrieval, SageGraph, Table

EVIL = "</script><script>alert(1)</script><img src=x onerror=alert(2)> \"quoted\" & 'single' \x1b[31mred\x07"

ITEMS = [
    Document("Ann Ames is a film director born in Ohio. " + EVIL, id="ann", title="Ann Ames"),
    Document("Bob Bale wrote plays.", id="bob", title="Bob Bale <b>& Sons</b>", metadata={"aliases": ["Bob Bale"]}),
    Document("A river in Kent.", id="stour", title="Stour"),
    Table(
        ["Film", "Director <i>"],
        [["Dawn", "Ann Ames"], ["Dusk", "Bob Bale"], ["<script>x</script>", EVIL]],
        id="films",
        title="Films of 1999",
        section='List "A" <hr>',
    ),
]
QUESTION = "Where was the director of <em>Dawn</em> born?"


def graph() -> SageGraph:
    return SageGraph.build(ITEMS, encoder=None, chunker=None)


def asked(k: int = 3) -> tuple[SageGraph, Retrieval, Retrieval]:
    """The graph, what it answers, and what flat search answers."""
    made = graph()
    return made, made.retriever().retrieve(QUESTION, k), IndexRetriever(made.index).retrieve(QUESTION, k)
