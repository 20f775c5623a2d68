"""Which indexes a store in Neo4j follows: those of its own database, whatever the address."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from graphret.errors import InvalidInput
from graphret.search import Neo4jTextIndex
from graphret.stores.neo4j import AsyncNeo4jStore, Neo4jStore
from graphret.testing.neo4j_server import Neo4jServer
from graphret.types import Edge, Node

if TYPE_CHECKING:
    import neo4j

Auth = tuple[str, str] | None
KEPT = "MATCH (n) WHERE n.graphret_text IS NOT NULL OR n.graphret_title IS NOT NULL RETURN count(n)"


async def test_an_index_of_another_server_is_refused_at_the_first_write(
    neo4j_empty: neo4j.Driver, neo4j_uri: str, neo4j_spare: Neo4jServer
) -> None:
    Neo4jStore.from_driver(neo4j_empty).upsert([Node("a", name="King Kong")])
    own: dict[str, Any] = {"auth": neo4j_spare.auth, "layout": "graphret"}
    here = Neo4jStore(neo4j_uri, auth=neo4j_empty.graphret_address[1])  # type: ignore[attr-defined]
    index = Neo4jTextIndex.create(here)
    both = rf"{neo4j_spare.uri}.*{neo4j_uri}"
    with here, Neo4jStore(neo4j_spare.uri, **own) as store:
        store.upsert([Node("a"), Node("b")], [Edge("a", "R", "b")])
        store.attach(index)
        for write in (
            lambda: store.upsert([Node("c", name="Peter Jackson")]),
            lambda: store.delete(["a"]),
            lambda: store.delete_edges([Edge("a", "R", "b")]),
        ):
            with pytest.raises(InvalidInput, match=both):
                write()
        assert store.count() == (2, 1)
        assert store.query(KEPT).rows == [(0,)]
        async with AsyncNeo4jStore(neo4j_spare.uri, **own) as other:
            other.attach(index)
            with pytest.raises(InvalidInput, match=both):
                await other.upsert([Node("c")])
        store.detach(index)
        store.delete(["a", "b"])
        assert index.search("king kong", 2).ids == ["a"]


async def test_another_address_of_the_same_database_is_followed(
    neo4j_empty: neo4j.Driver, neo4j_uri: str, neo4j_auth: Auth
) -> None:
    index = Neo4jTextIndex.create(Neo4jStore.from_driver(neo4j_empty))
    renamed = neo4j_uri.replace("127.0.0.1", "localhost")
    with Neo4jStore(renamed, auth=neo4j_auth) as store:
        store.attach(index)
        store.upsert([Node("a", name="King Kong"), Node("b", name="Kong's son")])
        assert index.search("king", 1).ids == ["a"]
        store.delete(["a"])
    async with AsyncNeo4jStore(renamed.replace("bolt", "neo4j", 1), auth=neo4j_auth, database="neo4j") as other:
        other.attach(index)
        await other.upsert([Node("c", name="King Lear")])
        assert index.search("king", 1).ids == ["c"]


def test_nothing_is_asked_when_an_index_is_attached(neo4j_empty: neo4j.Driver) -> None:
    index = Neo4jTextIndex.create(Neo4jStore.from_driver(neo4j_empty))
    with Neo4jStore("bolt://no.such.host.invalid") as store:
        store.attach(index)
        store.detach(index)
