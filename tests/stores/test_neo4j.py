"""`Neo4jStore` and its asynchronous twin, on a real server, keep the contract of stores."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
from neo4j_waiting import Waiting

from graphret.stores.base import GraphStore
from graphret.stores.neo4j import AsyncNeo4jStore, Neo4jStore
from graphret.testing.graphs import HOSTILE
from graphret.testing.stores import CypherStoreSuite

if TYPE_CHECKING:
    import neo4j

Auth = tuple[str, str] | None
#: Those that are as short as an id of a node in a database is.
SHORT = [name for name in HOSTILE if len(name) < 4_000]


class TestNeo4jStore(CypherStoreSuite):
    @pytest.fixture
    def store(self, neo4j_empty: neo4j.Driver, neo4j_uri: str, neo4j_auth: Auth) -> Iterator[Neo4jStore]:
        with Neo4jStore(neo4j_uri, auth=neo4j_auth) as store:
            yield store

    @pytest.mark.parametrize("names", [SHORT[i::3] for i in range(3)], ids=range(3))
    def test_hostile_names_are_only_names(self, store: GraphStore, names: list[str]) -> None:
        super().test_hostile_names_are_only_names(store, names)


class TestAsyncNeo4jStore(TestNeo4jStore):
    @pytest.fixture
    def store(self, neo4j_empty: neo4j.Driver, neo4j_uri: str, neo4j_auth: Auth) -> Iterator[Any]:
        with Waiting(AsyncNeo4jStore(neo4j_uri, auth=neo4j_auth)) as store:
            yield store
