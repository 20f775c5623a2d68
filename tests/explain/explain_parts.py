"""Small graphs and runs of agents whose texts try to break out of a page, and a page
taken apart.
"""

from __future__ import annotations

from html.parser import HTMLParser

from ark_support import Follows, call, turns

from graphret import Document, IndexRetriever, Retrieval, SageGraph, Table
from graphret.ark import Ark, ArkRun, ArkSettings
from graphret.llm.chat import ChatError, Reply, Usage
from graphret.search import BM25Index
from graphret.stores import MemoryStore
from graphret.types import Edge, Node

EVIL = (
    '</script><script>alert(1)</script><img src=x onerror=alert(2)> "quoted" &'
    " 'single' \x1b[31mred\x07"
)

ITEMS = [
    Document(
        "Ann Ames is a film director born in Ohio. " + EVIL, id="ann", title="Ann Ames"
    ),
    Document(
        "Bob Bale wrote plays.",
        id="bob",
        title="Bob Bale <b>& Sons</b>",
        metadata={"aliases": ["Bob Bale"]},
    ),
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


def asked(k: int = 3) -> tuple[SageGraph, Retrieval, Retrieval]:
    """The graph, what it answers, and what flat search answers."""
    made = SageGraph.build(ITEMS, encoder=None, chunker=None)
    return (
        made,
        made.retriever().retrieve(QUESTION, k),
        IndexRetriever(made.index).retrieve(QUESTION, k),
    )


WHO = "who directed <em>Dawn</em>?"
RELATION = 'directed <i>"by"'
FILMS = [
    Node("dawn", ("Film",), "Dawn", EVIL),
    Node("dusk", ("Film",), "Dusk"),
    Node("ann", ("Person",), "Ann <b>Ames</b>", "She directs."),
    Node(EVIL, ("Person",), "Bob"),
]


def _failing(messages: object) -> Reply:
    raise ChatError(f"gone {EVIL}", model="dead <s>", reason="server")


def explored() -> tuple[MemoryStore, Retrieval, ArkRun]:
    """A graph, what three agents found in it, and their run: the second finds less, the
    third has no model.
    """
    ends = (("dawn", "ann"), ("dusk", "ann"), ("dawn", EVIL))
    store, runs = (
        MemoryStore.of(FILMS, [Edge(one, RELATION, other) for one, other in ends]),
        list[ArkRun](),
    )
    search, walk = (
        call("global_search", query="Dawn"),
        call("explore_neighborhood", node="dawn"),
    )
    first = turns(
        Reply(f"I look. {EVIL}", (search,), Usage(100, 10)),
        [walk, call("explore_neighborhood", node="nobody <u>")],
        [call("explore_neighborhood", node="ann"), search],
        [call("select", nodes=["ann", EVIL]), call("finish")],
    )
    second = turns(
        [search],
        [walk],
        [call("select", nodes=["ann"]), call("nonsense <hr>", x=EVIL), call("finish")],
    )
    models = [
        Follows(first, "one"),
        Follows(second, "two <s>"),
        Follows(_failing, "dead <s>"),
    ]
    index, settings = BM25Index.of_store(store), ArkSettings(early_stop=False)
    ark = Ark(models, store, index, settings=settings, on_run=runs.append)
    return store, ark.retrieve(WHO, 3), runs[0]


VOID = {"meta", "br", "img", "hr", "input", "link", "path"}


class Parsed(HTMLParser):
    """Elements with their attributes, and the text between them."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.script_texts: list[str] = []
        self.text = ""
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID or tag == "path":
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "script":
            self.script_texts.append(data)
        elif not self.open or self.open[-1] != "style":
            self.text += data

    def of(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]
