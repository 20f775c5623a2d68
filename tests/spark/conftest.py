from __future__ import annotations

from collections.abc import Iterator

import neo4j
import pytest
from spark_parts import EDGES, NODES

from graphret.stores import CypherStore
from graphret.stores.ladybug import LadybugStore
from graphret.stores.neo4j import Neo4jStore


@pytest.fixture(scope="module")
def ladybug(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CypherStore]:
    with LadybugStore(tmp_path_factory.mktemp("papers") / "papers.lbug") as store:
        store.upsert(NODES, EDGES)
        yield store


@pytest.fixture(scope="module", params=["ladybug", "neo4j"])
def store(request: pytest.FixtureRequest) -> CypherStore:
    if request.param == "ladybug":
        return request.getfixturevalue("ladybug")
    driver: neo4j.Driver = request.getfixturevalue("neo4j_module")
    store = Neo4jStore.from_driver(driver)
    store.upsert(NODES, EDGES)
    return store
