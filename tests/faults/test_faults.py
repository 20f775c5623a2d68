from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from corpora import BALLPARKS, QUESTION
from tests_support import edges_of

from graphret.corpus import Document
from graphret.errors import CorruptIndex, NewerVersion, NotAnIndex
from graphret.sage import SageGraph


@pytest.mark.skipif(not hasattr(__import__("os"), "fork"), reason="the script forks")
def test_a_writer_killed_at_any_moment_leaves_the_previous_or_the_new_index(tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-m", "graphret.testing.kills", str(tmp_path / "graph"), "50"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    outcome = json.loads(run.stdout)
    assert outcome["neither"] == 0
    assert outcome["previous"] + outcome["new"] == 50
    assert outcome["previous"] > 0, "no writer was killed before it was done"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    SageGraph.build(BALLPARKS, encoder=None).save(tmp_path / "graph")
    return tmp_path / "graph"


def test_the_attack_that_users_can_repeat_gets_nowhere() -> None:
    command = [sys.executable, "-m", "graphret.testing.attacks"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    assert run.stdout.count(" 0 got through") == 4


def test_every_damaged_file_is_named(folder: Path) -> None:
    for file in sorted(folder.glob("gen-*/*")):
        content = file.read_bytes()
        for damaged in (content[: len(content) // 2], content[:-1] + bytes([content[-1] ^ 1])):
            file.write_bytes(damaged)
            with pytest.raises(CorruptIndex, match=file.name):
                SageGraph.load(folder)
        file.write_bytes(content)
    assert SageGraph.load(folder).retriever().retrieve(QUESTION, 3).ids


def test_folders_that_hold_no_graph_are_named(tmp_path: Path, folder: Path) -> None:
    with pytest.raises(NotAnIndex, match="nowhere"):
        SageGraph.load(tmp_path / "nowhere")
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "todo.txt").write_text("buy milk")
    with pytest.raises(NotAnIndex, match="notes"):
        SageGraph.load(tmp_path / "notes")
    with pytest.raises(NotAnIndex, match="notes"):
        SageGraph.build(BALLPARKS, encoder=None).save(tmp_path / "notes")
    assert (tmp_path / "notes" / "todo.txt").read_text() == "buy milk"
    SageGraph.load(folder).store.save(tmp_path / "store")
    with pytest.raises(NotAnIndex, match="graph"):
        SageGraph.load(tmp_path / "store")


def test_an_index_of_a_newer_graphret_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = SageGraph.load(folder)
    monkeypatch.setattr("graphret.sage.persistence.VERSION", 2)
    graph.save(folder)
    monkeypatch.undo()
    with pytest.raises(NewerVersion, match="2"):
        SageGraph.load(folder)


FULL = """
import resource, signal, sys
from graphret.corpus import Document
from graphret.errors import StorageError
from graphret.sage import SageGraph
graph = SageGraph.load(sys.argv[1])
graph.add([Document("A long text. " * 20000, id="long", title="Long")])
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    graph.save(sys.argv[1])
except StorageError as error:
    print(error)
"""


def test_a_disk_that_is_full_leaves_the_index_as_it_was(folder: Path) -> None:
    before = edges_of(SageGraph.load(folder))
    run = subprocess.run([sys.executable, "-c", FULL, str(folder)], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert str(folder) in run.stdout
    after = SageGraph.load(folder)
    assert edges_of(after) == before
    after.add([Document("A short text.", id="short")])
    after.save(folder)
    assert len(SageGraph.load(folder)) == len(BALLPARKS) + 1
    assert len(list(folder.glob("gen-*"))) == 1
