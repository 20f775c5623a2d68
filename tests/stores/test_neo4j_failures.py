"""A server that is down, comes back, cuts the line, refuses or is too old: errors by name, nothing half done."""

from __future__ import annotations

import re
import threading
import time
import warnings
from collections.abc import Iterator
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from neo4j_faults import CuttingProxy

from graphret.cypher import arun_checked
from graphret.errors import (
    AccessDenied,
    InvalidInput,
    QueryRefused,
    QueryTimeout,
    StoreMismatch,
    StoreUnavailable,
)
from graphret.stores.neo4j import AsyncNeo4jStore, Neo4jStore, quote
from graphret.testing.graphs import HOSTILE
from graphret.testing.neo4j_server import Neo4jServer
from graphret.types import Edge, Node

if TYPE_CHECKING:
    import neo4j

Auth = tuple[str, str] | None


def test_a_server_that_refuses_is_down_and_comes_back(neo4j_spare: Neo4jServer) -> None:
    uri = neo4j_spare.uri
    for auth in (("neo4j", "wrong"), None):
        with Neo4jStore(uri, auth=auth) as store, pytest.raises(AccessDenied):
            store.count()
    with Neo4jStore(uri, auth=neo4j_spare.auth, retry_time=0.2) as store:
        store.upsert([Node("kept")])
        neo4j_spare.kill()
        for call in (lambda: store.get(["kept"]), lambda: store.upsert([Node("lost")]), lambda: list(store.nodes())):
            with pytest.raises(StoreUnavailable, match=r"127\.0\.0\.1"):
                call()
        assert neo4j_spare.start().uri == uri
        assert store.get(["kept", "lost"]) == [Node("kept"), None]
        store.upsert([Node("after")])
        assert store.count() == (2, 0)


async def test_a_closed_store_answers_no_more(neo4j_empty: neo4j.Driver, neo4j_uri: str, neo4j_auth: Auth) -> None:
    given = Neo4jStore.from_driver(neo4j_empty)
    given.upsert([Node("a")])
    store, other = Neo4jStore(neo4j_uri, auth=neo4j_auth), AsyncNeo4jStore(neo4j_uri, auth=neo4j_auth)
    assert store.count() == (1, 0)
    view = store.view({"id": "a"})
    store.close()
    await other.close()
    for call in (store.count, lambda: store.get(["a"]), lambda: list(store.nodes()), view.count):
        with pytest.raises(StoreUnavailable, match="the store was closed"):
            call()
    with pytest.raises(StoreUnavailable, match="the store was closed"):
        await other.upsert([Node("b")])
    given.close()  # a driver that is its maker's stays
    assert given.count() == (1, 0)


@pytest.mark.parametrize("uri", ["bolt://127.0.0.1:1", "bolt://no.such.host.invalid", "neo4j://no.such.host.invalid"])
async def test_no_server_at_all(uri: str) -> None:
    host = uri.partition("://")[2]
    with Neo4jStore(uri, retry_time=0.1) as store, warnings.catch_warnings():
        warnings.simplefilter("error")
        for call in (store.count, lambda: store.query("RETURN 1"), lambda: store.upsert([Node("a")])):
            with pytest.raises(StoreUnavailable, match=re.escape(host)):
                call()
    async with AsyncNeo4jStore(uri, retry_time=0.1) as other:
        with pytest.raises(StoreUnavailable, match=re.escape(host)):
            await other.count()


@pytest.mark.parametrize("agent", ["Neo4j/4.4.9", "Neo4j/4.3.0-drop02", "Neo4j/5.3.0"])
def test_an_older_server_is_refused_by_its_name(
    neo4j_empty: neo4j.Driver, monkeypatch: pytest.MonkeyPatch, agent: str
) -> None:
    monkeypatch.setattr(neo4j_empty, "get_server_info", lambda: SimpleNamespace(agent=agent))
    with pytest.raises(StoreMismatch, match=agent):
        Neo4jStore.from_driver(neo4j_empty).count()


def test_no_such_database(neo4j_uri: str, neo4j_auth: Auth) -> None:
    with (
        Neo4jStore(neo4j_uri, auth=neo4j_auth, database="nowhere") as store,
        pytest.raises(StoreMismatch, match="nowhere"),
    ):
        store.count()


@pytest.mark.parametrize("scheme", ["neo4j", "bolt"])
def test_every_scheme_and_the_options_of_the_driver(neo4j_uri: str, neo4j_auth: Auth, scheme: str) -> None:
    uri = neo4j_uri.replace("bolt", scheme, 1)
    with Neo4jStore(uri, auth=neo4j_auth, database="neo4j", pool_size=2, timeout=30.0) as store:
        assert store.query("RETURN 1 AS one").to_dicts() == [{"one": 1}]
        assert store.driver.encrypted is False


@pytest.fixture
def proxy(neo4j_empty: neo4j.Driver, neo4j_uri: str) -> Iterator[CuttingProxy]:
    with CuttingProxy(neo4j_uri) as proxy:
        yield proxy


@pytest.mark.parametrize("budget", [2_000, 380_000])
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


@pytest.mark.parametrize("value", [2**70, object(), "\ud800"], ids=["too large", "an object", "half a pair"])
def test_a_parameter_that_cannot_be_sent(neo4j_driver: neo4j.Driver, value: Any) -> None:
    store = Neo4jStore.from_driver(neo4j_driver)
    with pytest.raises(InvalidInput):
        store.query("RETURN $value", {"value": value})
    assert store.query("RETURN 1").rows == [(1,)]


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"nested": "drop"}, "nested"),
        ({"id_property": ""}, "id_property"),
        ({"name_property": []}, "name_property"),
        ({"text_property": ["a", 3]}, "text_property"),
        ({"hidden": "embedding"}, "hidden"),
        ({"timeout": -1}, "timeout"),
        ({"uri": ""}, "uri"),
        ({"uri": "127.0.0.1:7687"}, "uri"),
        ({"uri": "http://127.0.0.1"}, "http"),
        ({"uri": "bolt://127.0.0.1:99999"}, "uri"),
        ({"uri": "neo4j://host/films"}, "uri:.*database="),  # the driver would take the user's own
        ({"uri": "neo4j://me:secret@host"}, "uri:.*auth="),
    ],
    ids=str,
)
def test_malformed_options_are_refused(options: dict[str, Any], word: str) -> None:
    with pytest.raises(InvalidInput, match=rf"^{word}") as caught:
        Neo4jStore(**{"uri": "bolt://127.0.0.1:1", **options})
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("scheme", ["bolt+s", "neo4j+ssc"])
def test_a_server_that_speaks_no_tls(neo4j_uri: str, scheme: str) -> None:
    with Neo4jStore(neo4j_uri.replace("bolt", scheme, 1), retry_time=0.1) as store, pytest.raises(StoreUnavailable):
        store.count()


def test_explain_names_the_kind(neo4j_driver: neo4j.Driver) -> None:
    store = Neo4jStore.from_driver(neo4j_driver)
    texts = ["MATCH (n) RETURN n", "CREATE (n) RETURN n", "CREATE (n)", "CREATE INDEX FOR (n:X) ON (n.y)"]
    assert [store.explain(text) for text in texts] == ["r", "rw", "w", "s"]
    with pytest.raises(QueryRefused):
        store.explain("MATCH (n) RETURN n; MATCH (m) RETURN m")


@pytest.mark.parametrize(
    "name", [*HOSTILE, "a`" * 3, "\\u005c\\u0060", "\\\\u0060", "`\\u0060`"], ids=lambda n: ascii(n[:20])
)
def test_quoted_names_are_read_back(neo4j_driver: neo4j.Driver, name: str) -> None:
    found = neo4j_driver.execute_query(f"WITH {{{quote(name)}: 1}} AS {quote(name)} RETURN *, keys({quote(name)}) AS k")
    assert found.records[0]["k"] == [name]


@pytest.mark.parametrize("name", ["", "a\0b", None])
def test_names_that_cannot_be_quoted_are_refused(name: Any) -> None:
    with pytest.raises(InvalidInput):
        quote(name)
