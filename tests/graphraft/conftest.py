from __future__ import annotations

from collections.abc import Iterator

import pytest
from spark_parts import EDGES, NODES

from graphret.stores import LadybugStore, MemoryStore, Neo4jStore
from graphret.stores.base import GraphStore


@pytest.fixture(scope="module", params=["memory", "ladybug", pytest.param("neo4j", marks=pytest.mark.neo4j)])
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[GraphStore]:
    """A small graph of papers, wherever it may live."""
    if request.param == "memory":
        yield MemoryStore.of(NODES, EDGES)
    elif request.param == "neo4j":
        made = Neo4jStore.from_driver(request.getfixturevalue("neo4j_module"))
        made.upsert(NODES, EDGES)
        yield made
    else:
        with LadybugStore(tmp_path_factory.mktemp("papers") / "papers.lbug") as ladybug:
            ladybug.upsert(NODES, EDGES)
            yield ladybug
