"""Builds on a Ray cluster of two workers: the same graph, resumed where it broke off,
whatever fails.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli_helpers import graphret, refused, write_corpus
from neo4j_faults import CuttingProxy
from numpy.typing import NDArray
from tests_support import BALLPARKS, HashingEncoder

from graphret import Document, SageGraph, open_store
from graphret.errors import (
    ClusterError,
    InvalidInput,
    MissingDependency,
    StorageError,
    StoreUnavailable,
)
from graphret.executors import LOCAL, Progress, RayExecutor, blocks
from graphret.graphs import import_graph
from graphret.search import nearest
from graphret.search.nearest import nearest_rows
from graphret.storage import read_current

ray = pytest.importorskip("ray")
CORPUS = [
    *BALLPARKS,
    *(
        Document(f"The Pilots played game {i}. Milwaukee won it.", title=f"G{i}")
        for i in range(30)
    ),
]


@pytest.fixture(scope="module")
def executor() -> Iterator[Callable[..., RayExecutor]]:
    """Makes executors on one cluster with two processors, what it takes for a GPU, and
    the smallest memory.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
        RayExecutor(
            num_cpus=2,
            num_gpus=1,
            object_store_memory=80 << 20,
            _system_config={"oom_grace_period_s": 0.1},
        )
    assert len(set(RayExecutor().map(lambda _: os.getpid(), range(20)))) == 2
    yield RayExecutor
    ray.shutdown()


class LoggingEncoder(HashingEncoder):
    """Writes into a file which texts it embeds, and fails where there is
    another file.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.log, self.broken = folder / "embedded", folder / "broken"

    def encode_documents(self, texts: list[str]) -> NDArray[np.float32]:
        if self.broken.exists() and any("game 20" in text for text in texts):
            raise InvalidInput("embedding: a text cannot be embedded")
        with self.log.open("a") as log:
            log.writelines(f"{text!r}\n" for text in texts)
        return super().encode_documents(texts)


def files_of(folder: Path) -> list[tuple[str, str]]:
    return [(entry["name"], entry["sha256"]) for entry in read_current(folder)["files"]]


def test_a_build_makes_the_same_graph_and_goes_on_from_where_it_failed(
    executor: Callable[..., RayExecutor],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(blocks, "BLOCK", 8)
    encoder, reports = LoggingEncoder(tmp_path), dict[str, list[tuple[str, int, int]]]()

    def build(name: str, on: Any) -> list[tuple[str, str]]:
        report = reports.setdefault(name, [])
        graph = SageGraph.build(
            CORPUS,
            encoder=encoder,
            executor=on,
            progress=lambda *news: report.append(news),
        )
        graph.save(tmp_path / name)
        return files_of(tmp_path / name)

    def embedded() -> list[str]:
        lines = encoder.log.read_text().splitlines()
        encoder.log.unlink()
        return lines

    expected = build("here", LOCAL)
    everything = embedded()
    keeping = executor(blocks=tmp_path / "blocks")
    encoder.broken.touch()
    with pytest.raises(InvalidInput, match=r"^embedding: a text cannot be embedded$"):
        build("cluster", keeping)
    encoder.broken.unlink()
    before = Counter(embedded())
    assert before
    assert build("cluster", keeping) == expected
    twice = (before + Counter(embedded())) - Counter(everything)
    assert twice.total() <= 2 * 8  # but for what the two workers were busy with
    assert reports["cluster"][-len(reports["here"]) :] == reports["here"]
    block_files = sorted(
        path for path in (tmp_path / "blocks").rglob("*") if path.is_file()
    )
    block_files[0].write_bytes(block_files[0].read_bytes()[:-1])
    block_files[1].write_bytes(b"")
    assert build("again", keeping) == expected  # what was altered is computed anew
    assert block_files == sorted(
        path for path in (tmp_path / "blocks").rglob("*") if path.is_file()
    )


def test_shards_of_hnsw_are_the_same_on_a_cluster(
    executor: Callable[..., RayExecutor], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("HNSW_ABOVE", 100), ("HNSW_SHARD", 250), ("_ROWS", 128)):
        monkeypatch.setattr(nearest, name, value)
    rows = np.random.default_rng(0).standard_normal((600, 12), dtype=np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    arrays = []
    for on in (LOCAL, executor()):
        shards = [list(shard) for shard in nearest_rows(rows, rows, 5, on)]
        assert [len(shard) for shard in shards] == [5, 5, 5]
        arrays.append(
            [column for shard in shards for pairs in shard for column in pairs]
        )
    for array, other in zip(*arrays, strict=True):
        np.testing.assert_array_equal(array, other)


def dying(marks: Path, always: bool) -> Callable[[int], int]:
    """A function whose process is killed in the middle of block 3, once or each
    time.
    """

    def work(block: int) -> int:
        with (marks / f"{block}").open("a") as mark:
            mark.write("begun\n")
        if block == 3 and (always or (marks / "3").read_text() == "begun\n"):
            os.kill(os.getpid(), signal.SIGKILL)
        return block * block

    return work


def test_a_worker_that_dies_in_the_middle_of_a_block(
    executor: Callable[..., RayExecutor], tmp_path: Path
) -> None:
    for always in (False, True):
        (marks := tmp_path / str(always)).mkdir()
        done = executor(blocks=tmp_path / "blocks", retries=1).map(
            dying(marks, always), range(6)
        )
        if always:
            assert [next(done) for _ in range(3)] == [0, 1, 4]
            with pytest.raises(
                ClusterError,
                match=r"failed at .*work.*goes on from the finished blocks.*Worker",
            ):
                next(done)
        else:
            assert list(done) == [0, 1, 4, 9, 16, 25]
        assert (marks / "3").read_text() == "begun\n" * 2


def test_a_full_object_store_goes_to_disk_and_one_without_disk_is_told(
    executor: Callable[..., RayExecutor],
) -> None:
    blocks = executor().map(
        lambda block: np.full(35 << 17, block), range(3)
    )  # of 35 MB each, and all are held
    held_blocks = list(blocks)
    assert [int(one[-1]) for one in held_blocks] == list(range(3))

    def full(block: int) -> int:
        raise ray.exceptions.OutOfDiskError("the disk is full")

    with pytest.raises(ClusterError, match=r"failed at .*full.*OutOfDiskError"):
        list(executor().map(full, [1]))


def test_blocks_that_a_gpu_helps_go_to_one_each_and_what_fails_there_is_raised_here(
    executor: Callable[..., RayExecutor], tmp_path: Path
) -> None:
    def where(block: int) -> tuple[int, str]:
        return os.getpid(), os.environ.get("CUDA_VISIBLE_DEVICES", "")

    assert (
        len(devices := set(executor().map(where, range(6), gpu=True))) == 1
    )  # the process stays
    assert {device for _, device in devices} == {"0"}

    def missing(block: int) -> int:
        raise MissingDependency("torch", "encoder", "Embedding")

    with pytest.raises(MissingDependency, match=r"graphret\[encoder\]"):
        list(executor().map(missing, [1]))
    (tmp_path / "blocks").write_text("no folder")
    with pytest.raises(StorageError, match="blocks"):
        list(executor(blocks=tmp_path / "blocks").map(sorted, [[2, 1]]))


def test_the_command_builds_on_a_cluster_and_a_load_that_breaks_off_is_done_again(
    executor: Callable[..., RayExecutor],
    neo4j_empty: Any,
    neo4j_uri: str,
    neo4j_address: str,
    tmp_path: Path,
) -> None:
    build = ["build", write_corpus(tmp_path), "--encoder", "none", "--out"]
    assert graphret(*build, tmp_path / "here").code == 0
    assert (
        graphret(*build, tmp_path / "graph", "--ray", "local", "--json").json["nodes"]
        == 4
    )
    assert files_of(tmp_path / "graph") == files_of(tmp_path / "here")
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "corpus.jsonl",
        "graph",
        "here",
    ]
    with CuttingProxy(neo4j_uri) as proxy:
        proxy.budget = 3_000
        with pytest.raises(StoreUnavailable, match=r"127\.0\.0\.1"):
            import_graph(
                tmp_path / "graph",
                neo4j_address.replace(neo4j_uri.partition("://")[2], proxy.uri[7:]),
            )
    counted = open_store(tmp_path / "graph").count()
    for _ in range(2):
        done = import_graph(tmp_path / "graph", neo4j_address)
        assert (done.nodes, done.edges) == counted


def counted(numbers: list[int], progress: Progress) -> tuple[int, int]:
    """Counts numbers in a task, and dies of an empty list."""
    if not numbers:
        os.kill(os.getpid(), signal.SIGKILL)
    for i, _ in enumerate(numbers, 1):
        progress("count", i, len(numbers))
    logging.getLogger("graphret.counted").warning("there are %d", len(numbers))
    return len(numbers), os.getpid()


def read_numbers(path: str) -> list[int]:
    return [int(number) for number in Path(path).read_text().split()]


def test_a_task_tells_its_progress_and_messages_where_it_was_begun(
    executor: Callable[..., RayExecutor],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.chdir(tmp_path)  # the path is read as it is here
    source, told = partial(read_numbers, "numbers"), list[tuple[str, int, int]]()

    def run() -> tuple[int, int]:
        return executor().run(counted, source, lambda *figures: told.append(figures))

    with pytest.raises(FileNotFoundError, match="numbers"):
        run()
    (tmp_path / "numbers").write_text("1 2 3")
    n, pid = run()
    assert n == 3
    assert pid != os.getpid()
    assert told == [("count", 1, 3), ("count", 2, 3), ("count", 3, 3)]
    assert caplog.messages == ["there are 3"]
    (tmp_path / "numbers").write_text("")
    with pytest.raises(ClusterError, match=r"failed at .*counted.*Worker"):
        run()


def test_the_command_builds_into_a_server_without_the_graph_in_its_process(
    executor: Callable[..., RayExecutor],
    neo4j_address: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    corpus = Path(write_corpus(tmp_path)).name
    (tmp_path / "broken.jsonl").write_text("{")
    monkeypatch.chdir(tmp_path)
    build = ["build", corpus, "broken.jsonl", "--encoder", "none", "--json", "--out"]
    here = graphret(*build, "here").json
    monkeypatch.setattr(SageGraph, "build", None)  # of this process
    server = graphret(*build, neo4j_address, "--ray", "local").json
    assert {**server, "folder": "", "seconds": 0} == {
        **here,
        "folder": "",
        "seconds": 0,
    }
    assert len(server["skipped"]) == 1
    assert open_store(neo4j_address).count() == open_store("here").count()
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "broken.jsonl",
        "corpus.jsonl",
        "here",
    ]
    message = refused(
        2, "build", "missing.md", "--out", neo4j_address, "--ray", "local"
    )
    assert "missing.md" in message


def test_a_cluster_that_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    message = refused(
        7,
        "build",
        write_corpus(tmp_path),
        "--encoder",
        "none",
        "--out",
        tmp_path / "g",
        "--ray",
        "127.0.0.1:9",
    )
    assert "127.0.0.1:9" in message
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingDependency, match=r"graphret\[ray\]"):
        RayExecutor()
