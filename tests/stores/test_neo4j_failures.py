"""A server that is not there, cuts the line or refuses: errors by name, and nothing half done."""

from __future__ import annotations

import re
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import neo4j
import pytest
from neo4j import exceptions
from neo4j_faults import CuttingProxy

from graphret.errors import (
    AccessDenied,
    GraphretError,
    InvalidInput,
    QueryRefused,
    QueryTimeout,
    StoreError,
    StoreMismatch,
    StoreUnavailable,
)
from graphret.stores.neo4j import Neo4jStore, quote
from graphret.types import Edge, Node

Auth = tuple[str, str] | None
ENDLESS = "UNWIND range(1, 1000000) AS a UNWIND range(1, 1000000) AS b WITH a * b AS c RETURN count(c)"


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (exceptions.AuthError("wrong password"), AccessDenied),
        (exceptions.Forbidden("not yours"), AccessDenied),
        (exceptions.ConfigurationError("no such setting"), InvalidInput),
        (exceptions.SessionExpired("the leader has changed"), StoreUnavailable),
        (exceptions.TransientError("locked by another"), StoreUnavailable),
    ],
    ids=lambda one: type(one).__name__ if isinstance(one, Exception) else "",
)
def test_what_the_driver_raises_has_a_type_and_says_why(error: Exception, kind: type[GraphretError]) -> None:
    def refuse(**_: Any) -> Any:
        raise error

    store = Neo4jStore.from_driver(SimpleNamespace(session=refuse, execute_query_bookmark_manager=None))
    with pytest.raises(kind, match=str(error)):
        store.count()


class OutOfMemory(exceptions.TransientError):
    code = "Neo.TransientError.General.MemoryPoolOutOfMemoryError"


def test_what_the_server_lacks_the_memory_for_is_asked_once() -> None:
    asked: list[str] = []

    class Session:
        """Tries again what fails for a passing reason, as the driver's own does."""

        def __enter__(self) -> Session:
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def run(self, statement: Any, _: Any) -> None:
            asked.append(statement)
            raise OutOfMemory("too much")

        def execute_read(self, work: Any, *arguments: Any) -> None:
            for _ in range(3):
                try:
                    work(self, *arguments)
                except exceptions.TransientError:
                    continue

        execute_write = execute_read

    driver = SimpleNamespace(session=lambda **_: Session(), execute_query_bookmark_manager=None)
    store = Neo4jStore.from_driver(driver)
    for call in (store.count, lambda: store.write(lambda graph: graph.run("CREATE ()"))):
        asked.clear()
        with pytest.raises(StoreError, match="memory"):
            call()
        assert len(asked) == 1


@pytest.mark.parametrize("uri", ["bolt://127.0.0.1:1", "neo4j://no.such.host.invalid"])
def test_no_server_at_all(uri: str) -> None:
    with Neo4jStore(uri, options={"max_transaction_retry_time": 0.1}) as store:
        for call in (store.count, lambda: store.query("RETURN 1"), lambda: store.upsert([Node("a")])):
            with pytest.raises(StoreUnavailable, match=re.escape(uri.partition("://")[2])):
                call()


def test_a_database_that_is_not_there(neo4j_uri: str, neo4j_auth: Auth) -> None:
    with (
        Neo4jStore(neo4j_uri.replace("bolt", "neo4j", 1), auth=neo4j_auth, database="nowhere") as store,
        pytest.raises(StoreMismatch, match="nowhere"),
    ):
        store.count()


@pytest.fixture
def proxy(neo4j_empty: neo4j.Driver, neo4j_uri: str) -> Iterator[CuttingProxy]:
    with CuttingProxy(neo4j_uri) as proxy:
        yield proxy


def test_a_line_that_is_cut_in_a_batch_leaves_nothing_half_written(proxy: CuttingProxy, neo4j_auth: Auth) -> None:
    nodes = [Node(f"n{i}", ("A",), f"name {i}", "t" * 20) for i in range(5_600)]
    edges = [Edge(f"n{i}", "R", f"n{i + 1}") for i in range(5_599)]
    with Neo4jStore(proxy.uri, auth=neo4j_auth, options={"max_transaction_retry_time": 0.5}) as store:
        store.upsert([Node("first", ("B",))])
        proxy.budget = 380_000
        with pytest.raises(StoreUnavailable):
            store.upsert(nodes, edges)
        for call in (store.count, lambda: store.get(["first"]), lambda: list(store.nodes())):
            with pytest.raises(StoreUnavailable, match=r"127\.0\.0\.1"):
                call()
        proxy.budget = None
        assert store.count() == (1, 0)
        store.upsert(nodes[:3], edges[:2])  # the same store works on
        assert store.count() == (4, 2)


def test_queries_only_read_and_end_in_time(neo4j_empty: neo4j.Driver) -> None:
    store = Neo4jStore.from_driver(neo4j_empty)
    for text in ("CREATE INDEX FOR (n:A) ON (n.b)", "CALL apoc.create.node(['A'], {})"):
        with pytest.raises(QueryRefused):
            store.query(text)
    assert store.count() == (0, 0)
    with pytest.raises(QueryTimeout):
        Neo4jStore.from_driver(neo4j_empty, timeout=0.3).query(ENDLESS)
    tangled = ", ".join(f"(a{i})--(a{i + step})" for i in range(20) for step in (1, 3))
    with pytest.raises(QueryTimeout):  # the plan alone takes long
        store.explain(f"MATCH {tangled} RETURN count(*)", timeout=0.1)
    texts = ["MATCH (n) RETURN n", "CREATE (n) RETURN n", "CREATE (n)", "CREATE INDEX FOR (n:X) ON (n.y)"]
    assert [store.explain(text) for text in texts] == ["r", "rw", "w", "s"]


@pytest.mark.parametrize("value", [2**70, object(), "\ud800"], ids=["too large", "an object", "half a pair"])
def test_a_parameter_that_cannot_be_sent(neo4j_driver: neo4j.Driver, value: Any) -> None:
    store = Neo4jStore.from_driver(neo4j_driver)
    with pytest.raises(InvalidInput):
        store.query("RETURN $value", {"value": value})
    assert store.query("RETURN 1").rows == [(1,)]


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"name_property": []}, "name_property"),
        ({"text_property": ["a", 3]}, "text_property"),
        ({"timeout": -1}, "timeout"),
        ({"uri": "127.0.0.1:7687"}, "uri"),
        ({"uri": "neo4j://host/films"}, "uri:.*database="),  # the driver would take the user's own
        ({"uri": "neo4j://me:secret@host"}, "uri:.*auth="),
        ({"options": {"no_such_option": 1}}, "uri.*no_such_option"),
    ],
    ids=str,
)
def test_malformed_options_are_refused(options: dict[str, Any], word: str) -> None:
    with pytest.raises(InvalidInput, match=rf"^{word}") as caught:
        Neo4jStore(**{"uri": "bolt://127.0.0.1:1", **options})
    assert "secret" not in str(caught.value)


def test_quoted_names_are_read_back_or_refused(neo4j_driver: neo4j.Driver) -> None:
    for name in ("a`" * 3, "\\u005c\\u0060", "\\\\u0060", "`\\u0060`"):
        found = neo4j_driver.execute_query(f"WITH {{{quote(name)}: 1}} AS it RETURN keys(it) AS names")
        assert found.records[0]["names"] == [name]
    for wrong in ("", "a\0b", None):
        with pytest.raises(InvalidInput):
            quote(wrong)  # type: ignore[arg-type]
