"""Pytest fixtures of a real Neo4j, which each test process starts when needed.

Where none can be started, the tests that ask for it are skipped, and say why; with
``GRAPHRET_REQUIRE_NEO4J`` set they fail. With ``NEO4J_URI`` set (and
``NEO4J_USERNAME``, ``NEO4J_PASSWORD``) they run on that server instead, if its database
is empty.

For ``--dist loadgroup`` of pytest-xdist the tests that use a server are in two groups,
file by file, so that two servers are started at most. A test that asks for a fixture
only while it runs has the mark ``neo4j``.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from graphret.stores.neo4j.layout import CONSTRAINT
from graphret.testing.neo4j_server import CannotStart, Neo4jServer

if TYPE_CHECKING:
    import neo4j


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "neo4j: uses a Neo4j")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> Iterator[None]:
    servers = 1 if os.environ.get("NEO4J_URI") else 2
    asking = [
        item
        for item in items
        if item.get_closest_marker("neo4j")
        or "neo4j_driver" in getattr(item, "fixturenames", ())
    ]
    files = [path for path, _ in Counter(item.path for item in asking).most_common()]
    for item in asking if config.pluginmanager.hasplugin("xdist") else ():
        item.add_marker(
            pytest.mark.xdist_group(f"neo4j-{files.index(item.path) % servers}")
        )
    yield
    # What pytest-xdist 3.8 means to do: it writes a test's group where pytest 9.2 no
    # longer reads it.
    for item in items:
        grouped = getattr(item, "_nodeid", item.nodeid)
        if grouped != item.nodeid and hasattr(item, "_id"):
            item._id = type(item._id).parse(grouped)


@pytest.fixture(scope="session")
def _neo4j_address(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[str, tuple[str, str] | None]]:
    environment = os.environ
    if uri := environment.get("NEO4J_URI"):
        password = environment.get("NEO4J_PASSWORD")
        yield (
            uri,
            (environment.get("NEO4J_USERNAME", "neo4j"), password)
            if password
            else None,
        )
        return
    server = Neo4jServer(tmp_path_factory.mktemp("neo4j"), owner=os.getpid())
    try:
        server.start()
    except CannotStart as error:
        say = pytest.fail if environment.get("GRAPHRET_REQUIRE_NEO4J") else pytest.skip
        say(f"no Neo4j: {error}")
    yield server.uri, None
    server.stop(0)  # its data go too


@pytest.fixture(scope="session")
def neo4j_driver(
    _neo4j_address: tuple[str, tuple[str, str] | None],
) -> Iterator[neo4j.Driver]:
    """The official driver on the server for tests."""
    import neo4j

    uri, auth = _neo4j_address
    with neo4j.GraphDatabase.driver(uri, auth=auth) as driver:
        n_nodes = driver.execute_query("MATCH (n) RETURN count(n) AS n").records[0]["n"]
        if n_nodes:  # only a database that was given can hold anything
            pytest.fail(
                f"NEO4J_URI is {uri}, which holds {n_nodes} nodes; the tests empty the"
                " database they run on"
            )
        yield driver


@pytest.fixture(scope="session")
def neo4j_uri(_neo4j_address: tuple[str, Any], neo4j_driver: neo4j.Driver) -> str:
    """The address of the server for tests, whatever its database holds."""
    return _neo4j_address[0]


@pytest.fixture(scope="session")
def neo4j_auth(_neo4j_address: tuple[str, Any]) -> Any:
    """The user and password of the test server; `None` if it needs none."""
    return _neo4j_address[1]


def _emptied(neo4j_driver: neo4j.Driver) -> neo4j.Driver:
    """Empty the database, but keep the constraint that every store creates.

    Without it, all queries are planned anew.
    """
    run = neo4j_driver.execute_query
    for name, kind, owner in run(
        "SHOW INDEXES YIELD name, type, owningConstraint"
    ).records:
        if kind != "LOOKUP" and CONSTRAINT not in (name, owner):
            what = "CONSTRAINT" if owner else "INDEX"
            run(f"DROP {what} `{(owner or name).replace('`', '``')}` IF EXISTS")
    with neo4j_driver.session() as session:
        session.run(
            "MATCH (n) CALL (n) { DETACH DELETE n } IN TRANSACTIONS OF 10000 ROWS"
        ).consume()
    return neo4j_driver


#: The driver, with the database emptied for this test, this class or this module, whose
#: tests share what it holds.
neo4j_empty = pytest.fixture(_emptied, name="neo4j_empty")
neo4j_class = pytest.fixture(_emptied, scope="class", name="neo4j_class")
neo4j_module = pytest.fixture(_emptied, scope="module", name="neo4j_module")
