"""What every test can use."""

from __future__ import annotations

import gc
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from tests_support import HashingEncoder, mentions, write_venues

from graphret import SageGraph, read
from graphret.stores.base import GraphStore

pytest_plugins = ["graphret.testing.neo4j_server.fixtures"]

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

# A shell starts what it runs in the background with interrupts ignored, which processes
# that tests interrupt inherit.
if (
    signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    and threading.current_thread() is threading.main_thread()
):
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Looking for cycles among the many objects that are imported and collected, which stay,
# took a seventh of the time.
gc.disable()


def pytest_collection_finish() -> None:
    gc.enable()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that share a fixture of their module run in one worker of several, so that
    it is made once.
    """
    for item in items:
        fixtures = item._fixtureinfo.name2fixturedefs.values()  # type: ignore[attr-defined]
        if any(
            one[-1].scope == "module" for one in fixtures
        ) and not item.get_closest_marker("xdist_group"):
            item.add_marker(
                pytest.mark.xdist_group(f"{item.path.parent.name} {item.path.stem}")
            )


settings.register_profile(
    "graphret",
    deadline=None,
    max_examples=30,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=True,
)
settings.load_profile("graphret")


@pytest.fixture
def encoder() -> HashingEncoder:
    return HashingEncoder()


@pytest.fixture(params=["ladybug", pytest.param("neo4j", marks=pytest.mark.neo4j)])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    """An empty store in each database."""
    from graphret.stores import LadybugStore, Neo4jStore

    if request.param == "neo4j":
        yield Neo4jStore.from_driver(request.getfixturevalue("neo4j_empty"))
    else:
        with LadybugStore(tmp_path / "graph.lbug") as store:
            yield store


@pytest.fixture(
    scope="module",
    params=["memory", "ladybug", pytest.param("neo4j", marks=pytest.mark.neo4j)],
)
def papers(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[GraphStore]:
    """A small graph of papers, wherever it may live."""
    from spark_parts import EDGES, NODES

    from graphret.stores import LadybugStore, MemoryStore, Neo4jStore

    if request.param == "memory":
        yield MemoryStore.of(NODES, EDGES)
    elif request.param == "neo4j":
        made = Neo4jStore.from_driver(request.getfixturevalue("neo4j_module"))
        made.upsert(NODES, EDGES)
        yield made
    else:
        with LadybugStore(tmp_path_factory.mktemp("papers") / "papers.lbug") as ladybug:
            ladybug.upsert(NODES, EDGES)
            yield ladybug


@pytest.fixture
def neo4j_address(
    neo4j_empty: Any, neo4j_uri: str, neo4j_auth: Any, monkeypatch: pytest.MonkeyPatch
) -> str:
    """The address of an empty Neo4j, with its user and password in the environment."""
    for name, value in zip(
        ("NEO4J_USERNAME", "NEO4J_PASSWORD"), neo4j_auth or (None, None), strict=True
    ):
        (
            monkeypatch.delenv(name, raising=False)
            if value is None
            else monkeypatch.setenv(name, value)
        )
    return neo4j_uri


@pytest.fixture(scope="session")
def venues(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of files as people have them."""
    folder = tmp_path_factory.mktemp("venues")
    write_venues(folder)
    return folder


@pytest.fixture(scope="session")
def venue_links(venues: Path) -> set[tuple[str, int, str]]:
    """The links of these files."""
    return mentions(SageGraph.build(read(venues), encoder=None))
