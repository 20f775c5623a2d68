"""Runs of agents on a graph whose texts try to break out of the page."""

from __future__ import annotations

from ark_support import Follows, call, turns
from explain_helpers import EVIL

from graphret.ark import Ark, ArkSettings, Run
from graphret.llm.chat import ChatError, Reply, Usage
from graphret.search import BM25Index
from graphret.stores import MemoryStore
from graphret.types import Edge, Node, Retrieval

QUESTION = "who directed <em>Dawn</em>?"
RELATION = 'directed <i>"by"'


def graph() -> MemoryStore:
    store = MemoryStore()
    nodes = [
        Node("dawn", ("Film",), "Dawn", EVIL),
        Node("dusk", ("Film",), "Dusk"),
        Node("ann", ("Person",), "Ann <b>Ames</b>", "She directs."),
        Node(EVIL, ("Person",), "Bob"),
    ]
    store.upsert(nodes, [Edge("dawn", RELATION, "ann"), Edge("dusk", RELATION, "ann"), Edge("dawn", RELATION, EVIL)])
    return store


def _failing(messages: object) -> Reply:
    raise ChatError(f"gone {EVIL}", model="dead <s>", reason="server")


def explored() -> tuple[MemoryStore, Retrieval, Run]:
    """A graph, what three agents found in it, and their run: the second finds less, the third has no model."""
    store, runs = graph(), list[Run]()
    search, walk = call("global_search", query="Dawn"), call("explore_neighborhood", node="dawn")
    first = turns(
        Reply(f"I look. {EVIL}", (search,), Usage(100, 10)),
        [walk, call("explore_neighborhood", node="nobody <u>")],
        [call("explore_neighborhood", node="ann"), search],
        [call("select", nodes=["ann", EVIL]), call("finish")],
    )
    second = turns([search], [walk], [call("select", nodes=["ann"]), call("nonsense <hr>", x=EVIL), call("finish")])
    models = [Follows(first, "one"), Follows(second, "two <s>"), Follows(_failing, "dead <s>")]
    index, settings = BM25Index.of_store(store), ArkSettings(early_stop=False)
    ark = Ark(models, store, index, settings=settings, on_run=runs.append)
    return store, ark.retrieve(QUESTION, 3), runs[0]
