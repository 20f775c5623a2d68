"""Exit codes that scripts can use, each with one clear line on stderr and nothing on stdout."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from cli_helpers import built, graphret, refused, write_corpus

from graphret.cli import query
from graphret.errors import IndexLocked
from graphret.storage import writing
from graphret.testing.openai_server import Behaviour, OpenAIServer, status


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["query", "x"], "Missing option '--graph'"),
        (["nonsense"], "nonsense"),
        (["query", "x", "--graph", "GRAPH", "--method", "graph"], "Invalid value for '--method'"),
        (["query", "x", "--graph", "GRAPH", "-k", "0"], "k: a whole number of at least 1"),
        (["query", "x", "--graph", "GRAPH", "--where", "{"], "Invalid value for '--where'"),
        (["query", "x", "--graph", "GRAPH", "--where", "[]"], "where: a mapping of conditions is expected"),
        (["query", "x", "--graph", "GRAPH", "--where", '{"a": {"$x": 1}}'], "unknown operator, or none, in 'a'"),
        (["query", "x", "--graph", "GRAPH", "--explain", "GRAPH/CURRENT/x.html"], "cannot be written"),
        (["inspect", "GRAPH", "--plot", "plot.txt"], "a .pdf, .png or .svg file is expected"),
        (["remove", "GRAPH", "ann", "nobody"], "'nobody'"),
        (["remove", "GRAPH", "ann", "bob", "cafe", "films"], "is empty"),
        (["build", "missing.jsonl", "--out", "OUT", "--encoder", "none"], "missing.jsonl"),
        (["build", "CORPUS", "--out", "OUT", "--encoder", "none", "--percentile", "101"], "percentile"),
        (["build", "CORPUS", "--out", "OUT", "--encoder", "none", "--chunker", "semantic"], "needs an encoder"),
        (["build", "CORPUS", "--out", "OUT", "--encoder", "none", "--metadata", "llm"], "needs --model"),
        (["build", "CORPUS", "--out", "OUT", "--encoder", "none", "--model", "m"], "need --metadata llm"),
        (
            ["build", "CORPUS", "--out", "OUT", "--metadata", "llm", "--model", "m", "--base-url", "localhost:80/v1"],
            "base_url: 'localhost:80/v1' is no address",
        ),
        (["bench", "nonsense", "--data", "."], "known are ottqa, multihop, guard"),
        (["bench", "ottqa", "--data", "missing"], "does not exist"),
        (["bench", "metaqa", "--data", ".", "--train", "file"], "--train: a share of the questions is expected"),
        (["bench", "guard", "--data", "CORPUS"], "corpus.jsonl"),
    ],
)
def test_wrong_input_is_2(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], said: str) -> None:
    graph = built(tmp_path)
    monkeypatch.chdir(tmp_path)
    names = {"GRAPH": str(graph), "CORPUS": "corpus.jsonl", "OUT": "out"}
    given = [names.get(one, one.replace("GRAPH/", f"{graph}/")) for one in arguments]
    assert said in refused(2, *given)
    assert not (tmp_path / "out").exists()
    assert graphret("inspect", graph, "--json").json["nodes"] == 4  # the graph is as it was


def test_malformed_items_are_named(tmp_path: Path) -> None:
    corpus = tmp_path / "bad.jsonl"
    corpus.write_text('{"id": "a", "text": "fine"}\n{"id": "b", "header": ["x"], "rows": [["1", "2"]]}\n')
    line = refused(2, "build", corpus, "--out", tmp_path / "out", "--encoder", "none")
    assert "bad.jsonl" in line
    assert "'b'" in line
    empty = tmp_path / "empty.jsonl"
    empty.write_text("")
    assert "empty" in refused(2, "build", empty, "--out", tmp_path / "out", "--encoder", "none")


@pytest.mark.parametrize(
    "command",
    [
        ["query", "x", "--graph"],
        ["inspect"],
        ["schema", "--graph"],
        ["export", "--format", "parquet", "--out", "o", "--graph"],
    ],
)
def test_what_is_no_graph_is_3(tmp_path: Path, command: list[str]) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").write_text("x")
    assert "no such f" in refused(3, *command, tmp_path / "missing")
    sage = ("query", "x", "--method", "sage", "--graph", "bolt://localhost:7687")
    assert "bolt://localhost:7687: a database, and not a folder" in refused(3, *sage)
    assert "no graphret index" in refused(3, *command, tmp_path / "other")
    assert re.search("not a folder|neither a folder", refused(3, *command, tmp_path / "other" / "file"))


def test_an_altered_file_is_named(tmp_path: Path) -> None:
    graph = built(tmp_path)
    file = max(graph.glob("gen-*/*.npy"), key=lambda path: path.stat().st_size)
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)
    for command in (["inspect", graph], ["query", "x", "--graph", graph], ["remove", graph, "ann"]):
        assert file.name in refused(3, *command)


def test_a_missing_package_is_4(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)  # what Python does for a package that is not there
    line = refused(4, "inspect", built(tmp_path), "--plot", tmp_path / "x.png")
    assert "pip install 'graphret[plot]'" in line


def test_a_model_that_fails_is_fallen_back_from_and_told(tmp_path: Path) -> None:
    corpus, out = write_corpus(tmp_path), tmp_path / "out"
    with OpenAIServer(lambda _: status(401)) as server:
        ran = graphret(
            *("build", corpus, "--out", out, "--encoder", "none", "--metadata", "llm", "--model", "m"),
            *("--base-url", server.base_url, "--json"),
        )
        add = ("add", out, corpus, "--metadata", "llm", "--model", "m", "--base-url", server.base_url)
        added = graphret(*add)
    assert ran.code == added.code == 5
    assert ran.json["metadata"]["fell_back"] == 4
    assert "4 nodes have metadata from the rules" in ran.err
    assert ran.err.endswith("the model 'm' answered nothing\n")
    assert graphret("inspect", out, "--json").json["nodes"] == 4


def test_an_error_that_nobody_foresaw_is_1(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("two\nlines")

    monkeypatch.setattr(query.options, "open_graph", broken)
    asked = ("query", "x", "--method", "sage", "--graph", "g")
    assert "unexpected error: RuntimeError: two lines (--debug shows where)" in refused(1, *asked)
    debugged = graphret(*asked, "--debug")
    assert debugged.code == 1
    assert "Traceback" in debugged.err
    assert "in broken" in debugged.err


def test_the_real_command_answers_and_is_quick_to_help(tmp_path: Path) -> None:
    script = (
        "import sys, graphret.cli.app; print([m for m in ('numpy', 'scipy', 'torch', 'bm25s') if m in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout == "[]\n"
    failed = subprocess.run(
        [sys.executable, "-m", "graphret.cli", "inspect", str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert (failed.returncode, failed.stdout) == (3, "")
    assert "Traceback" not in failed.stderr
    help_ = graphret("--help").out
    for said in ("demo", "build", "query", "inspect", "add", "remove", "bench"):
        assert said in " ".join(help_.split())


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_an_interrupted_writer_leaves_the_graph(tmp_path: Path) -> None:
    graph = built(tmp_path)
    before = graphret("inspect", graph, "--json").json
    more = tmp_path / "cy.txt"
    more.write_text("Cy Cole played in the film Dawn.")
    arrived, released = threading.Event(), threading.Event()

    def answer(_: object) -> Behaviour:
        arrived.set()
        released.wait(60)
        return status(500)

    with OpenAIServer(answer) as server:
        options = ["--metadata", "llm", "--model", "m", "--base-url", server.base_url]
        line = [sys.executable, "-m", "graphret.cli", "add", str(graph), str(more), *options]
        process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert arrived.wait(100)  # the model is being asked
        with pytest.raises(IndexLocked), writing(graph, timeout=0.1):
            pass
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        released.set()
    assert (process.returncode, out, err) == (130, "", "")
    assert graphret("inspect", graph, "--json").json == before
    assert graphret("remove", graph, "ann").code == 0  # the lock is free
