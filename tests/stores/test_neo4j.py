"""`Neo4jStore` and its asynchronous twin, on a real server, keep the contract of stores."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from neo4j_waiting import Waiting

from graphret.stores.neo4j import AsyncNeo4jStore, Neo4jStore
from graphret.testing.stores import CypherStoreSuite

if TYPE_CHECKING:
    import neo4j

Auth = tuple[str, str] | None


class TestNeo4jStore(CypherStoreSuite):
    @pytest.fixture
    def store(self, neo4j_empty: neo4j.Driver, neo4j_uri: str, neo4j_auth: Auth) -> Iterator[Neo4jStore]:
        with Neo4jStore(neo4j_uri, auth=neo4j_auth) as store:
            yield store


class TestAsyncNeo4jStore(CypherStoreSuite):
    @pytest.fixture
    def store(self, neo4j_empty: neo4j.Driver, neo4j_uri: str, neo4j_auth: Auth) -> Iterator[Waiting]:
        with Waiting(AsyncNeo4jStore(neo4j_uri, auth=neo4j_auth)) as store:
            yield store
