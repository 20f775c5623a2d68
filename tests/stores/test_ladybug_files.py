"""Files of Ladybug databases, and queries in a process of their own: whatever happens
there, the graph stays whole.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from graphret.errors import (
    GraphretError,
    InvalidInput,
    QueryRefused,
    StoreError,
    StoreMismatch,
    StoreUnavailable,
)
from graphret.stores.ladybug import LadybugStore
from graphret.testing.graphs import EDGES, NODES, all_edges, all_nodes, edge_key
from graphret.types import Edge, Node


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "graph.lbug"


def test_a_closed_database_opens_again_as_it_was(path: Path) -> None:
    with LadybugStore(path) as store:
        store.upsert(NODES, EDGES)
        schema = store.schema()
    store.close()
    for read_only in (False, True):
        with LadybugStore(path, read_only=read_only) as store:
            assert all_nodes(store) == sorted(NODES, key=lambda node: node.id)
            assert all_edges(store) == sorted(EDGES, key=edge_key)
            assert store.schema() == schema
    with LadybugStore(path, read_only=True) as store:
        for write in (
            lambda: store.upsert(NODES),
            lambda: store.delete(["ada"]),
            lambda: store.query("MATCH (n) DELETE n"),
        ):
            with pytest.raises(StoreError):
                write()


def test_one_store_has_a_database_open(path: Path) -> None:
    with LadybugStore(path) as store:
        store.upsert(NODES)
        for read_only in (False, True):
            with pytest.raises(StoreUnavailable, match=r"graph\.lbug"):
                LadybugStore(path, read_only=read_only)
        store.upsert([Node("still", ("Writable",))])
    with LadybugStore(path) as store:
        assert store.count()[0] == len(NODES) + 1


_READER = """
import sys
from graphret.cli import main
from graphret.errors import StoreUnavailable
from graphret.stores.ladybug import LadybugStore
try:
    LadybugStore(sys.argv[1])
except StoreUnavailable as error:
    print(error)
sys.argv = ["graphret", "schema", "--graph", sys.argv[1]]
main()
"""


def test_another_process_reads_an_open_file(path: Path) -> None:
    with LadybugStore(path) as store:
        store.upsert([Node("new", ("Unseen",))])
        command = [sys.executable, "-c", _READER, str(path)]
        read = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "read_only=True" in read.stdout
    assert "(:Unseen) 1" in read.stdout


_WRITER = """
import sys
from graphret.stores.ladybug import LadybugStore
from graphret.types import Edge, Node
store = LadybugStore(sys.argv[1])
print("open", flush=True)
for k in range(10_000):
    n = (50, 3000)[k % 2]
    nodes = [Node(f"{k}-{i}", ("Item", f"L{k}"), properties={f"p{k % 5}": i}) for i in range(n)]
    store.upsert(nodes, [Edge(f"{k}-{i}", "NEXT", f"{k}-{(i * 3) % n}") for i in range(n)])
    print(k, flush=True)
"""


def test_a_killed_writer_leaves_whole_batches(path: Path) -> None:
    command = [sys.executable, "-c", _WRITER, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        done = 0
        while done < 2:
            done += process.stdout.readline().strip().isdigit()
        time.sleep(0.2)
        process.send_signal(signal.SIGKILL)
        done += sum(line.strip().isdigit() for line in process.stdout)
    with LadybugStore(path) as store:
        sizes: dict[str, int] = {}
        for node in all_nodes(store):
            sizes[node.id.split("-")[0]] = sizes.get(node.id.split("-")[0], 0) + 1
        assert {int(k): n for k, n in sizes.items()} == {
            k: (50, 3000)[k % 2] for k in range(len(sizes))
        }
        assert done <= len(sizes) <= done + 1
        assert store.count() == (sum(sizes.values()), sum(sizes.values()))
        store.upsert([Node("after", ("Item",))])


def test_a_database_that_something_else_wrote_is_refused_by_name(path: Path) -> None:
    import ladybug

    with (
        ladybug.Database(str(path)) as database,
        ladybug.Connection(database) as connection,
    ):
        connection.execute(
            "CREATE NODE TABLE City(code INT64 PRIMARY KEY, title STRING)"
        )
    with pytest.raises(StoreMismatch, match=r"graph\.lbug: .*'City'"):
        LadybugStore(path)


def test_what_is_no_database_is_refused_by_name(tmp_path: Path) -> None:
    with LadybugStore(tmp_path / "whole") as store:
        store.upsert([Node(f"n{i}") for i in range(5000)])
    content = (tmp_path / "whole").read_bytes()
    (tmp_path / "text").write_text("hello " * 1000)
    (tmp_path / "cut").write_bytes(content[: len(content) // 2])
    (tmp_path / "folder").mkdir()
    for name in ("text", "cut", "folder", "absent/x"):
        with pytest.raises((StoreMismatch, StoreUnavailable), match=name):
            LadybugStore(tmp_path / name)
    with pytest.raises(StoreUnavailable, match="nothing"):
        LadybugStore(tmp_path / "nothing", read_only=True)
    with LadybugStore(tmp_path / "whole") as store:
        assert store.count() == (5000, 0)


def test_a_temporary_database_is_gone_after_closing() -> None:
    store = LadybugStore(":memory:")
    store.upsert(NODES, EDGES)
    folder = store.path.parent
    store.view({"label": "Person"}).close()  # closes nothing
    assert folder.exists()
    store.close()
    assert not folder.exists()
    with pytest.raises(GraphretError):
        store.get(["ada"])


NAMES = "MATCH (p:Person) RETURN p.name ORDER BY p.name"
#: Seconds of work whose rows the database counts, and stops between two of them.
ROWS = "UNWIND range(1, 1000000) AS a UNWIND range(1, 1000000) AS b RETURN max(a * b)"


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LadybugStore]:
    with LadybugStore(tmp_path_factory.mktemp("apart") / "graph.lbug") as opened:
        opened.upsert(
            [Node("ann", ("Person",), "Ann"), Node("bob", ("Person",), "Bob")],
            [Edge("ann", "knows", "bob")],
        )
        yield opened


def _processes() -> list[psutil.Process]:
    return [
        one
        for one in psutil.Process().children()
        if "ladybug.queries" in " ".join(one.cmdline())
    ]


def test_a_process_that_breaks_down_is_told_and_replaced(shared: LadybugStore) -> None:
    others = _processes()
    shared.query_in_subprocess(NAMES, timeout=30.0)
    (process,) = {*_processes()} - {*others}
    threading.Timer(0.3, process.kill).start()
    with pytest.raises(QueryRefused, match=r"crashed on the query"):
        shared.query_in_subprocess(ROWS, timeout=30.0)
    assert len(shared.query_in_subprocess(NAMES, timeout=30.0)) == 2


def test_nodes_edges_parameters_and_a_row_cap_come_through(
    shared: LadybugStore,
) -> None:
    query = "MATCH (p:Person {id: $id})-[r]->(q) RETURN p, r, q.name"
    assert shared.query_in_subprocess(
        query, {"id": "ann"}, timeout=30.0
    ) == shared.query(query, {"id": "ann"})
    assert shared.query_in_subprocess(query, {"id": "ann"}, timeout=30.0).rows[0][
        1
    ] == Edge("ann", "knows", "bob")
    assert shared.query_in_subprocess(NAMES, timeout=30.0, max_rows=1).truncated
    with pytest.raises(InvalidInput, match=r"parameters: .*lambda"):
        shared.query_in_subprocess(query, {"id": lambda: "ann"}, timeout=30.0)
    with pytest.raises(QueryRefused, match="read-only"):
        shared.query_in_subprocess("CREATE (p:Person {id: 'eve'})", timeout=30.0)
    with pytest.raises(InvalidInput, match="timeout"):
        shared.query_in_subprocess(NAMES, timeout=0)


def test_what_was_written_is_read(tmp_path: Path) -> None:
    others = _processes()
    with LadybugStore(tmp_path / "graph.lbug") as store:
        for n in range(1, 3):
            store.upsert([Node(f"n{n}", (f"L{n}",), f"name {n}")])
            assert store.query_in_subprocess(
                "MATCH (n) RETURN count(n)", timeout=30.0
            ).rows == [(n,)]
        (first,) = {*_processes()} - {*others}
    assert not first.is_running()
    with pytest.raises(StoreUnavailable, match="closed"):
        store.query_in_subprocess(NAMES, timeout=30.0)


def test_many_at_once_take_turns_and_a_write_waits_for_them(
    shared: LadybugStore,
) -> None:
    query = "UNWIND range(1, 1000) AS a UNWIND range(1, 1000) AS b RETURN max(a * b)"
    others = len(_processes())
    with ThreadPoolExecutor(3) as pool:
        asked = [
            pool.submit(shared.query_in_subprocess, query, timeout=60.0)
            for _ in range(3)
        ]
        shared.upsert([Node("cid", ("Person",), "Cid")])
        assert [one.result().rows for one in asked] == [[(1_000_000,)]] * 3
    assert len(shared.query_in_subprocess(NAMES, timeout=30.0)) == 3
    assert len(_processes()) - others <= 1
