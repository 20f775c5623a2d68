"""Queries that nobody vouches for run in another process: whatever they do there, this one goes on."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from graphret.errors import InvalidInput, QueryRefused, StoreUnavailable
from graphret.stores.ladybug import LadybugStore
from graphret.types import Edge, Node

NAMES = "MATCH (p:Person) RETURN p.name ORDER BY p.name"
#: Seconds of work whose rows the database counts, and stops between two of them.
ROWS = "UNWIND range(1, 1000000) AS a UNWIND range(1, 1000000) AS b RETURN max(a * b)"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LadybugStore]:
    with LadybugStore(tmp_path_factory.mktemp("apart") / "graph.lbug") as opened:
        opened.upsert([Node("ann", ("Person",), "Ann"), Node("bob", ("Person",), "Bob")], [Edge("ann", "knows", "bob")])
        yield opened


def _processes() -> list[psutil.Process]:
    return [one for one in psutil.Process().children() if "ladybug.queries" in " ".join(one.cmdline())]


def test_a_process_that_breaks_down_is_told_and_replaced(store: LadybugStore) -> None:
    others = _processes()
    store.query_apart(NAMES, timeout=30.0)
    (process,) = {*_processes()} - {*others}
    threading.Timer(0.3, process.kill).start()
    with pytest.raises(QueryRefused, match=r"broke down on the query"):
        store.query_apart(ROWS, timeout=30.0)
    assert len(store.query_apart(NAMES, timeout=30.0)) == 2


def test_nodes_edges_parameters_and_a_row_cap_come_through(store: LadybugStore) -> None:
    query = "MATCH (p:Person {id: $id})-[r]->(q) RETURN p, r, q.name"
    assert store.query_apart(query, {"id": "ann"}, timeout=30.0) == store.query(query, {"id": "ann"})
    assert store.query_apart(query, {"id": "ann"}, timeout=30.0).rows[0][1] == Edge("ann", "knows", "bob")
    assert store.query_apart(NAMES, timeout=30.0, max_rows=1).truncated
    with pytest.raises(InvalidInput, match=r"parameters: .*lambda"):
        store.query_apart(query, {"id": lambda: "ann"}, timeout=30.0)
    with pytest.raises(QueryRefused, match="read-only"):
        store.query_apart("CREATE (p:Person {id: 'eve'})", timeout=30.0)
    with pytest.raises(InvalidInput, match="timeout"):
        store.query_apart(NAMES, timeout=0)


def test_what_was_written_is_read(tmp_path: Path) -> None:
    others = _processes()
    with LadybugStore(tmp_path / "graph.lbug") as store:
        for n in range(1, 3):
            store.upsert([Node(f"n{n}", (f"L{n}",), f"name {n}")])
            assert store.query_apart("MATCH (n) RETURN count(n)", timeout=30.0).rows == [(n,)]
        (first,) = {*_processes()} - {*others}
    assert not first.is_running()
    with pytest.raises(StoreUnavailable, match="closed"):
        store.query_apart(NAMES, timeout=30.0)


def test_many_at_once_take_turns_and_a_write_waits_for_them(store: LadybugStore) -> None:
    query = "UNWIND range(1, 1000) AS a UNWIND range(1, 1000) AS b RETURN max(a * b)"
    others = len(_processes())
    with ThreadPoolExecutor(3) as pool:
        asked = [pool.submit(store.query_apart, query, timeout=60.0) for _ in range(3)]
        store.upsert([Node("cid", ("Person",), "Cid")])
        assert [one.result().rows for one in asked] == [[(1_000_000,)]] * 3
    assert len(store.query_apart(NAMES, timeout=30.0)) == 3
    assert len(_processes()) - others <= 1
