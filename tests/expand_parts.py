"""A small graph of documents for tests of expansion."""

from __future__ import annotations

from graphret.nodes import NodeTable
from graphret.search import BM25Index, HybridIndex
from graphret.stores import Graph, MemoryStore
from graphret.types import Edge, Node

NODES = [
    Node(
        "band",
        ("Band",),
        "The Quiet Band",
        "The band was formed in Leeds by three sisters.",
        {"tenant": "a"},
    ),
    Node(
        "leeds",
        ("City",),
        "Leeds",
        "Leeds is a city on the river Aire.",
        {"tenant": "a"},
    ),
    Node(
        "aire",
        ("River",),
        "River Aire",
        "It rises at Malham and is 148 kilometres long.",
        {"tenant": "b"},
    ),
    Node(
        "malham",
        ("City",),
        "Malham",
        "A village known for its limestone cove.",
        {"tenant": "b"},
    ),
    Node(
        "other",
        ("Band",),
        "Other band",
        "Another band from a city on a river.",
        {"tenant": "a"},
    ),
    *(
        Node(
            f"noise{i}",
            ("City",),
            f"Noise {i}",
            "band city river long " * (i % 3),
            {"tenant": "a"},
        )
        for i in range(9)
    ),
]
EDGES = [
    Edge("band", "MENTIONS", "leeds", 0.8, {"name": "Leeds"}),
    Edge("leeds", "MENTIONS", "aire", 0.8, {"name": "river Aire"}),
    Edge("aire", "MENTIONS", "malham", 0.8, {"name": "Malham"}),
    Edge("other", "IS_SIMILAR", "band", 0.9),
]
QUESTION = (
    "How long is the river in the city where the three sisters formed their band?"
)


def parts(
    nodes: list[Node] = NODES, edges: list[Edge] = EDGES
) -> tuple[MemoryStore, HybridIndex]:
    """A store and an index side by side."""
    table = NodeTable.of(nodes)
    store = MemoryStore.of(table, edges)
    return MemoryStore(Graph(table, store.graph.edges)), HybridIndex(
        BM25Index.build(table)
    )


def filler(n: int = 5) -> list[Node]:
    """Nodes that say nothing."""
    return [Node(f"n{i}", text="filler") for i in range(n)]
