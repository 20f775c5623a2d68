"""A `SageGraph` lives in a real Neo4j."""

from __future__ import annotations

import neo4j
import pytest
from living_suite import LivingSuite

from graphret.stores.neo4j import Neo4jStore


@pytest.mark.timeout(300)
class TestInNeo4j(LivingSuite):
    @pytest.fixture
    def store(self, neo4j_empty: neo4j.Driver) -> Neo4jStore:
        return Neo4jStore.from_driver(neo4j_empty)
