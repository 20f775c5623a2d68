"""A server that is down, comes back, cuts the line, refuses or is too old: errors by name, nothing half done."""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
from neo4j_faults import CuttingProxy, OldServer

from graphret.cypher import arun_checked, run_checked
from graphret.errors import (
    AccessDenied,
    InvalidInput,
    QueryRefused,
    QueryTimeout,
    StoreMismatch,
    StoreUnavailable,
)
from graphret.search import Neo4jTextIndex
from graphret.stores.neo4j import AsyncNeo4jStore, Neo4jStore
from graphret.testing.neo4j_server import Neo4jServer
from graphret.types import Edge, Node

if TYPE_CHECKING:
    import neo4j

Auth = tuple[str, str] | None


def test_the_wrong_password(neo4j_spare: Neo4jServer) -> None:
    for auth in (("neo4j", "wrong"), None):
        with Neo4jStore(neo4j_spare.uri, auth=auth) as store, pytest.raises(AccessDenied):
            store.count()


async def test_the_asynchronous_store_says_the_same(neo4j_spare: Neo4jServer) -> None:
    async with AsyncNeo4jStore(neo4j_spare.uri, auth=("neo4j", "wrong")) as store:
        with pytest.raises(AccessDenied):
            await store.count()
    async with AsyncNeo4jStore("bolt://127.0.0.1:1", retry_time=0.1) as store:
        with pytest.raises(StoreUnavailable):
            await store.get(["a"])


@pytest.mark.parametrize("asked", [True, False])
async def test_a_closed_store_answers_no_more(
    neo4j_empty: neo4j.Driver, neo4j_uri: str, neo4j_auth: Auth, asked: bool
) -> None:
    given = Neo4jStore.from_driver(neo4j_empty)
    given.upsert([Node("a")])
    store, other = Neo4jStore(neo4j_uri, auth=neo4j_auth), AsyncNeo4jStore(neo4j_uri, auth=neo4j_auth)
    if asked:
        assert store.count() == await other.count() == (1, 0)
    view = store.view({"id": "a"})
    store.close()
    await other.close()
    for call in (store.count, lambda: store.get(["a"]), lambda: list(store.nodes()), view.count):
        with pytest.raises(StoreUnavailable, match="the store was closed"):
            call()
    with pytest.raises(StoreUnavailable, match="the store was closed"):
        await other.count()
    with pytest.raises(StoreUnavailable, match="the store was closed"):
        await other.upsert([Node("b")])
    given.close()  # a driver that is its maker's stays
    assert given.count() == (1, 0)


def test_a_server_that_is_down_and_comes_back(neo4j_spare: Neo4jServer) -> None:
    uri = neo4j_spare.uri
    with Neo4jStore(uri, auth=neo4j_spare.auth, retry_time=0.2, layout="graphret") as store:
        store.upsert([Node("kept")])
        neo4j_spare.kill()
        assert not neo4j_spare.running
        for call in (lambda: store.get(["kept"]), lambda: store.upsert([Node("lost")]), lambda: list(store.nodes())):
            with pytest.raises(StoreUnavailable, match=r"127\.0\.0\.1"):
                call()
        assert neo4j_spare.start().uri == uri
        assert store.get(["kept", "lost"]) == [Node("kept"), None]
        store.upsert([Node("after")])
        assert store.count()[0] >= 2
        store.delete(["kept", "after"])
    neo4j_spare.stop()
    assert not neo4j_spare.running


def test_no_server_at_all() -> None:
    with Neo4jStore("bolt://127.0.0.1:1", retry_time=0.1) as store, warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(StoreUnavailable, match=r"127\.0\.0\.1:1.*[Cc]onnect") as caught:
            store.schema()
    assert "50N42" not in str(caught.value)


@pytest.mark.parametrize("scheme", ["bolt", "neo4j"])
async def test_a_host_that_there_is_not(scheme: str) -> None:
    uri = f"{scheme}://no.such.host.invalid"
    with Neo4jStore(uri, retry_time=0.1) as store:
        for call in (store.count, lambda: store.query("RETURN 1"), lambda: store.upsert([Node("a")])):
            with pytest.raises(StoreUnavailable, match=r"no\.such\.host\.invalid"):
                call()
    async with AsyncNeo4jStore(uri, retry_time=0.1) as other:
        with pytest.raises(StoreUnavailable, match=r"no\.such\.host\.invalid"):
            await other.count()


@pytest.mark.parametrize("agent", ["Neo4j/4.4.9", "Neo4j/4.3.0-drop02", "Neo4j/5.3.0"])
def test_an_older_server_is_refused_by_its_name(agent: str) -> None:
    with (
        OldServer(agent) as server,
        Neo4jStore(server.uri, retry_time=0.1) as store,
        pytest.raises(StoreMismatch, match=agent),
    ):
        store.count()


def test_no_such_database(neo4j_uri: str, neo4j_auth: Auth) -> None:
    with (
        Neo4jStore(neo4j_uri, auth=neo4j_auth, database="nowhere") as store,
        pytest.raises(StoreMismatch, match="nowhere"),
    ):
        store.count()


@pytest.mark.parametrize("scheme", ["neo4j", "bolt"])
def test_every_scheme_and_the_options_of_the_driver(neo4j_uri: str, neo4j_auth: Auth, scheme: str) -> None:
    uri = neo4j_uri.replace("bolt", scheme, 1)
    with Neo4jStore(uri, auth=neo4j_auth, database="neo4j", pool_size=2, user_agent="test/1", timeout=30.0) as store:
        assert store.query("RETURN 1 AS one").to_dicts() == [{"one": 1}]
        assert store.driver.encrypted is False


def test_an_address_says_no_more_than_where_the_server_is() -> None:
    with pytest.raises(InvalidInput, match="database='films'"):  # the driver would take the user's own
        Neo4jStore("neo4j://host/films")
    with pytest.raises(InvalidInput, match="auth=") as caught:
        Neo4jStore("neo4j://me:secret@host:port")
    assert "secret" not in str(caught.value)


def test_a_community_server_impersonates_nobody(neo4j_spare: Neo4jServer) -> None:
    for user in ("neo4j", "somebody"):
        with (
            Neo4jStore(neo4j_spare.uri, auth=neo4j_spare.auth, impersonated_user=user) as store,
            pytest.raises(AccessDenied, match="Impersonation is not supported in community edition"),
        ):
            store.count()


async def test_everything_runs_as_the_user_who_is_impersonated(
    neo4j_empty: neo4j.Driver, neo4j_uri: str, neo4j_auth: Auth
) -> None:
    """A server without users, as a community one, refuses that: that it does in each call is what can be seen."""
    Neo4jTextIndex.create(Neo4jStore.from_driver(neo4j_empty))
    options: dict[str, Any] = {"layout": "graphret", "impersonated_user": "neo4j"}
    refused = "[Ii]mpersonat"
    with Neo4jStore(neo4j_uri, auth=neo4j_auth, **options) as store:
        index = Neo4jTextIndex(store)
        for call in (
            lambda: store.get(["a"]),
            lambda: list(store.nodes()),
            store.schema,
            lambda: store.query("RETURN 1"),
            lambda: store.explain("RETURN 1"),
            lambda: store.upsert([Node("a")]),
            lambda: store.delete(["a"]),
            lambda: Neo4jTextIndex.create(store),
            lambda: index.search("a", 1),
            lambda: index.view({"a": 1}).search("a", 1),
        ):
            with pytest.raises(AccessDenied, match=refused):
                call()
    async with AsyncNeo4jStore(neo4j_uri, auth=neo4j_auth, **options) as other:
        awaited = (
            other.get(["a"]),
            anext(other.nodes()),
            other.schema(),
            other.query("RETURN 1"),
            other.explain("RETURN 1"),
            other.upsert([Node("a")]),
            other.delete(["a"]),
        )
        for one in awaited:
            with pytest.raises(AccessDenied, match=refused):
                await one
    assert Neo4jStore.from_driver(neo4j_empty).count() == (0, 0)


@pytest.fixture
def proxy(neo4j_empty: neo4j.Driver, neo4j_uri: str) -> Iterator[CuttingProxy]:
    with CuttingProxy(neo4j_uri) as proxy:
        yield proxy


@pytest.mark.parametrize("budget", [2_000, 120_000, 380_000])
def test_a_line_that_is_cut_in_a_batch_leaves_nothing_half_written(
    proxy: CuttingProxy, neo4j_auth: Auth, budget: int
) -> None:
    nodes = [Node(f"n{i}", ("A",), f"name {i}", "t" * 20) for i in range(5_600)]
    edges = [Edge(f"n{i}", "R", f"n{i + 1}") for i in range(5_599)]
    with Neo4jStore(proxy.uri, auth=neo4j_auth, retry_time=0.5) as store:
        store.upsert([Node("first", ("B",))])
        proxy.budget = budget
        with pytest.raises(StoreUnavailable):
            store.upsert(nodes, edges)
        assert proxy.cuts
        proxy.budget = None
        assert store.count() == (1, 0)
        store.upsert(nodes[:3], edges[:2])  # the same store works on
        assert store.count() == (4, 2)


def test_a_passing_fault_is_tried_again(proxy: CuttingProxy, neo4j_auth: Auth) -> None:
    with Neo4jStore(proxy.uri, auth=neo4j_auth, retry_time=30.0) as store:
        store.upsert([Node("a")])
        proxy.budget = 0

        def heal() -> None:
            while not proxy.cuts:
                time.sleep(0.01)
            proxy.budget = None

        healer = threading.Thread(target=heal)
        healer.start()
        store.upsert([Node("b")])
        healer.join()
        assert proxy.cuts
        assert store.count() == (2, 0)


def test_what_a_read_only_query_may_not_do(neo4j_empty: neo4j.Driver) -> None:
    store = Neo4jStore.from_driver(neo4j_empty)
    for text in ("CREATE INDEX FOR (n:A) ON (n.b)", "MERGE (n:A)", "CALL apoc.create.node(['A'], {})"):
        with pytest.raises(QueryRefused):
            store.query(text)
    assert store.count() == (0, 0)


def test_a_time_out_of_the_store(neo4j_driver: neo4j.Driver) -> None:
    store = Neo4jStore.from_driver(neo4j_driver, timeout=0.3)
    with pytest.raises(QueryTimeout):
        store.query("UNWIND range(1, 1000000) AS a UNWIND range(1, 1000000) AS b WITH a * b AS c RETURN count(c)")


async def test_a_plan_that_takes_long_is_stopped(neo4j_driver: neo4j.Driver, neo4j_uri: str, neo4j_auth: Auth) -> None:
    tangled = ", ".join(f"(a{i})--(a{i + step})" for i in range(20) for step in (1, 3))
    with pytest.raises(QueryTimeout):
        Neo4jStore.from_driver(neo4j_driver).explain(f"MATCH {tangled} RETURN count(*)", timeout=0.1)
    async with AsyncNeo4jStore(neo4j_uri, auth=neo4j_auth) as store:
        with pytest.raises(QueryTimeout):
            await arun_checked(store, f"MATCH {tangled} RETURN count(*)", timeout=0.1)


NESTED = "RETURN reduce(a = [], x IN range(1, 6000) | [a]) AS a LIMIT 1"


@pytest.mark.parametrize("query", [NESTED, "RETURN " + "+".join("1" * 5_000) + " AS a"], ids=["values", "a sum"])
def test_an_answer_that_never_comes_is_not_waited_for(neo4j_uri: str, neo4j_auth: Auth, query: str) -> None:
    with Neo4jStore(neo4j_uri, auth=neo4j_auth, pool_size=1) as store:
        with pytest.raises(QueryTimeout):
            run_checked(store, query, timeout=1.0)
        assert store.query("RETURN 1 AS one").rows == [(1,)]  # the one connection of the pool is not lost


async def test_an_answer_that_never_comes_is_not_awaited(neo4j_uri: str, neo4j_auth: Auth) -> None:
    async with AsyncNeo4jStore(neo4j_uri, auth=neo4j_auth, pool_size=1) as store:
        with pytest.raises(QueryTimeout):
            await arun_checked(store, NESTED, timeout=1.0)
        assert (await store.query("RETURN 1 AS one")).rows == [(1,)]


@pytest.mark.parametrize(
    "value", [2**70, object(), {1: 2}, "\ud800"], ids=["too large", "an object", "a map", "half a pair"]
)
def test_a_parameter_that_cannot_be_sent(neo4j_driver: neo4j.Driver, value: Any) -> None:
    store = Neo4jStore.from_driver(neo4j_driver)
    with pytest.raises(InvalidInput):
        store.query("RETURN $value", {"value": value})
    assert store.query("RETURN 1").rows == [(1,)]


def test_texts_with_half_of_a_surrogate_pair_are_refused(neo4j_empty: neo4j.Driver) -> None:
    store = Neo4jStore.from_driver(neo4j_empty)
    for node in (Node("a", text="\ud800"), Node("\ud800"), Node("a", properties={"\ud800": 1})):
        with pytest.raises(InvalidInput):
            store.upsert([Node("fine"), node])
    assert store.count() == (0, 0)
