"""The second half of the demo: scripted agents explore a graph of films."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graphret.ark import Ark, ScriptedExplorer
from graphret.graphs import import_graph
from graphret.graphs.example import ALIASES, KB
from graphret.search import BM25Index
from graphret.stores import open_store
from graphret.stores.base import GraphStore
from graphret.types import Retrieval

QUESTION = "which films did the director of Touch of Evil make"
FOUND = 8


@dataclass(frozen=True, slots=True)
class DemoExploration:
    """The graph of films and the retrieval of the agents."""

    store: GraphStore
    retrieval: Retrieval

    def to_dict(self) -> dict[str, Any]:
        stage = next(
            stage for stage in self.retrieval.trace.stages if stage.name == "explore"
        )
        return {
            "question": QUESTION,
            "hits": [hit.to_dict() for hit in self.retrieval],
            **{key: stage.details[key] for key in ("agents", "steps", "calls")},
            "seconds": round(stage.seconds, 6),
        }


def explore(folder: Path) -> DemoExploration:
    """Write the graph of films to a folder and let three agents explore it."""
    import_graph(KB, folder)
    store = open_store(str(folder))
    agents = Ark(
        [ScriptedExplorer(i, ALIASES) for i in range(3)],
        store,
        BM25Index.of_store(store),
    )
    return DemoExploration(store, agents.retrieve(QUESTION, FOUND))


def about(explored: DemoExploration) -> str:
    nodes, edges = explored.store.count()
    return (
        f"The films of five directors, from MetaQA: {nodes:,} nodes and {edges:,}"
        " edges. Three agents look for an answer that lies hops away, with two tools,"
        " search and neighbourhood, and vote. A fixed policy drives them here, which"
        " reads only what the tools return; any chat model takes its place. To make a"
        " film may be to direct it, to act in it or to write it: each agent follows"
        " one of these, and films on which they agree come first."
    )
