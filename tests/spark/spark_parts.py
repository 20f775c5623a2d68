"""A small graph of papers on both databases, and a server that replies with plans."""

from __future__ import annotations

import json
from typing import Any

from graphret.llm import OpenAIChat
from graphret.search import BM25Index
from graphret.spark import Spark, SparkSettings
from graphret.stores import CypherStore
from graphret.testing.openai_server import OpenAIServer
from graphret.types import Edge, Node

FIELDS = ["Graph Retrieval", "Speech Synthesis", "Protein Folding"]
AUTHORS = ["Ada Ames", "Bo Björk", "Cy O'Hara"]
PAPERS = [
    Node(
        f"p{i}",
        ("Paper",),
        f"{FIELDS[i % 3]} {i}",
        f"We study {FIELDS[i % 3].lower()}.",
        {"year": 2010 + i, "cited": i * 7 % 5},
    )
    for i in range(9)
]
NODES = [
    *PAPERS,
    *(Node(f"a{i}", ("Author",), name) for i, name in enumerate(AUTHORS)),
    *(Node(f"f{i}", ("Field",), name) for i, name in enumerate(FIELDS)),
]
EDGES = [
    *(Edge(f"a{i % 3}", "WROTE", paper.id) for i, paper in enumerate(PAPERS)),
    *(Edge(paper.id, "ABOUT", f"f{i % 3}") for i, paper in enumerate(PAPERS)),
    *(Edge(f"p{i}", "CITES", "p0") for i in (1, 2)),
]


def plan(*steps: str | dict[str, Any]) -> str:
    """The JSON of a plan: a text is a query."""
    return json.dumps(
        {
            "steps": [
                {"cypher": step} if isinstance(step, str) else step for step in steps
            ]
        }
    )


def spark_of(store: CypherStore, server: OpenAIServer, **options: Any) -> Spark:
    model = OpenAIChat("planner", server.base_url, max_retries=0, timeout=5)
    settings = {
        name: options.pop(name) for name in SparkSettings.__slots__ if name in options
    }
    return Spark(
        model,
        store,
        BM25Index.of_store(store),
        settings=SparkSettings(**settings),
        **options,
    )
