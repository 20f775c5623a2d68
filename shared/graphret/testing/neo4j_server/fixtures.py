"""Pytest fixtures that share a Neo4j among all tests of a run, and two among those of pytest-xdist's workers.

A server is started when the first test asks for one of them, and stopped at the end. Where it
cannot be, the tests that ask for it are skipped and the summary says why; with ``GRAPHRET_REQUIRE_NEO4J`` set they
fail. With ``NEO4J_URI`` (and ``NEO4J_USERNAME``, ``NEO4J_PASSWORD``) set they run on that server instead, if its
database is empty.

A community server has one database for nodes, so that tests which use it run one after another: a file lock keeps
others out while one runs. For ``--dist loadgroup`` there are as many groups of them as servers, so that no worker waits
for a server; the tests of a file are in one group, since some share data. A test that asks for a fixture only while it
runs has the mark ``neo4j``; one that takes long says with ``neo4j(weight=…)`` how many others take as long.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from graphret.stores.neo4j.layout import CONSTRAINT
from graphret.testing.neo4j_server.errors import CannotStart
from graphret.testing.neo4j_server.server import Neo4jServer
from graphret.testing.neo4j_server.shared import REQUIRED, SERVERS, URI, SharedServer, empty

if TYPE_CHECKING:
    import neo4j

_SKIPPED = "no Neo4j: "
_shared = pytest.StashKey[SharedServer]()


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "neo4j(weight=1): uses the shared Neo4j, as long as so many others do")
    known = getattr(config, "workerinput", {}).get("graphret_neo4j")
    folder, owner = known or (tempfile.mkdtemp(prefix="graphret-neo4j-"), os.getpid())
    config.stash[_shared] = SharedServer(Path(folder), owner)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    shared = node.config.stash[_shared]
    node.workerinput["graphret_neo4j"] = (str(shared.folder), shared.owner)


def pytest_unconfigure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput") and _shared in config.stash:
        config.stash[_shared].stop()
        shutil.rmtree(config.stash[_shared].folder, ignore_errors=True)


def _uses_server(item: pytest.Item) -> bool:
    asked = item.get_closest_marker("neo4j") is not None
    return asked or any(name in FIXTURES for name in getattr(item, "fixturenames", ()))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Iterator[None]:
    if config.pluginmanager.hasplugin("xdist"):
        _group([item for item in items if _uses_server(item)])
    yield
    # What pytest-xdist 3.8 means to do: it writes a test's group where pytest 9.2 no longer reads it.
    for item in items:
        grouped = getattr(item, "_nodeid", item.nodeid)
        if grouped != item.nodeid and hasattr(item, "_id"):
            item._id = type(item._id).parse(grouped)


def _group(items: list[pytest.Item]) -> None:
    """Give each server's share of the tests a group, of about as much work as the others, file by file."""
    work: Counter[Path] = Counter()
    for item in items:
        mark = item.get_closest_marker("neo4j")
        work[item.path] += mark.kwargs.get("weight", 1) if mark else 1
    shares = [0] * (1 if os.environ.get(URI) else SERVERS)
    group: dict[Path, int] = {}
    for path, weight in work.most_common():
        group[path] = shares.index(min(shares))
        shares[group[path]] += weight
    for item in items:
        item.add_marker(pytest.mark.xdist_group(f"neo4j-{group[item.path]}"))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    reasons = [report.longrepr[2] for report in terminalreporter.stats.get("skipped", ()) if report.longrepr]
    missing = [reason.partition(_SKIPPED)[2] for reason in reasons if _SKIPPED in reason]
    if missing:
        terminalreporter.section("Neo4j", yellow=True)
        terminalreporter.line(f"{len(missing)} tests were skipped because there is no Neo4j: {missing[0]}")


def _give_up(error: CannotStart) -> None:
    if os.environ.get(REQUIRED):
        pytest.fail(f"{_SKIPPED}{error} ({REQUIRED} is set)", pytrace=False)
    pytest.skip(f"{_SKIPPED}{error}")


@pytest.fixture(scope="session")
def neo4j_driver(request: pytest.FixtureRequest) -> Iterator[neo4j.Driver]:
    """The official driver on the server for tests."""
    import neo4j

    try:
        uri, auth = request.config.stash[_shared].address()
    except CannotStart as error:
        _give_up(error)
    with neo4j.GraphDatabase.driver(uri, auth=auth) as driver:
        driver.graphret_address = uri, auth  # type: ignore[attr-defined]
        yield driver


@pytest.fixture(scope="session")
def neo4j_uri(neo4j_driver: neo4j.Driver) -> str:
    """The address of the server for tests, whatever its database holds."""
    return str(neo4j_driver.graphret_address[0])  # type: ignore[attr-defined]


@pytest.fixture(scope="session")
def neo4j_auth(neo4j_driver: neo4j.Driver) -> tuple[str, str] | None:
    """The user and the password of the server for tests, `None` where it asks for none."""
    auth: tuple[str, str] | None = neo4j_driver.graphret_address[1]  # type: ignore[attr-defined]
    return auth


@pytest.fixture
def neo4j_certificate(request: pytest.FixtureRequest, neo4j_driver: neo4j.Driver) -> Path:
    """The file of the certificate of the server for tests, which nothing trusts; skips where it has none."""
    given = os.environ.get(URI)
    file = None if given else request.config.stash[_shared].local().certificate
    if file is None:
        pytest.skip("the server for tests is not one that made a certificate of its own")
    return file


def _emptied(request: pytest.FixtureRequest, driver: neo4j.Driver) -> Iterator[neo4j.Driver]:
    shared = request.config.stash[_shared]
    with shared.in_use:
        if not shared.emptied:
            with driver.session() as session:
                empty(session.run)
        shared.emptied = False
        yield driver
        with driver.session() as session:
            empty(session.run)
        shared.emptied = True


@pytest.fixture
def neo4j_empty(request: pytest.FixtureRequest, neo4j_driver: neo4j.Driver) -> Iterator[neo4j.Driver]:
    """The driver, with the database emptied for this test."""
    yield from _emptied(request, neo4j_driver)


@pytest.fixture
def neo4j_new(neo4j_empty: neo4j.Driver) -> neo4j.Driver:
    """The driver, with the database as a new one is: without the constraint that every store makes, too."""
    with neo4j_empty.session() as session:
        session.run(f"DROP CONSTRAINT {CONSTRAINT} IF EXISTS").consume()
    return neo4j_empty


@pytest.fixture(scope="class")
def neo4j_class(request: pytest.FixtureRequest, neo4j_driver: neo4j.Driver) -> Iterator[neo4j.Driver]:
    """The driver, with the database emptied for this class, whose tests then share what it holds."""
    yield from _emptied(request, neo4j_driver)


@pytest.fixture(scope="module")
def neo4j_module(request: pytest.FixtureRequest, neo4j_driver: neo4j.Driver) -> Iterator[neo4j.Driver]:
    """The driver, with the database emptied for this module, whose tests then share what it holds."""
    yield from _emptied(request, neo4j_driver)


@pytest.fixture
def neo4j_spare(request: pytest.FixtureRequest) -> Neo4jServer:
    """A second server, which asks for a password and may be stopped, killed and started again."""
    server = request.config.stash[_shared].local(password=True)
    try:
        return server.start()
    except CannotStart as error:
        _give_up(error)
        raise


FIXTURES = frozenset({"neo4j_driver", "neo4j_spare"})
