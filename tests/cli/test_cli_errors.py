"""Commands on graphs of documents, and exit codes, each with one clear line on stderr
and nothing on stdout.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from cli_helpers import built, graphret, refused, write_corpus
from typer.testing import CliRunner

from graphret import SageGraph
from graphret.cli import query
from graphret.cli.app import app
from graphret.errors import IndexLocked
from graphret.sage import persistence
from graphret.storage import writing
from graphret.testing.openai_server import Behaviour, OpenAIServer, status

QUESTION = "Where was the director of Dawn born?"
COUNTS = {"nodes", "edges", "labels", "relations"}


def test_build_add_compact_remove_and_inspect_agree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(persistence, "ONE_IN", 1)  # a change of few nodes, too
    corpus, out = write_corpus(tmp_path), tmp_path / "graph"
    built = graphret("build", corpus, "--out", out, "--encoder", "none", "--json").json
    assert built.keys() == {"folder", "encoder", "seconds", "skipped", *COUNTS}
    assert (built["folder"], built["encoder"]) == (str(out), None)
    assert built["labels"] == {"Document": 3, "Table": 1}

    before = graphret("inspect", "--graph", out, "--json").json
    assert {key: before[key] for key in COUNTS} == {key: built[key] for key in COUNTS}
    assert sum(before["relations"].values()) == before["edges"]

    more = tmp_path / "cy.jsonl"
    more.write_text(
        '{"id": "cy", "title": "Cy Cole", "text": "Cy Cole played in the film Dawn by'
        ' Ann Ames."}'
    )
    added = graphret("add", "--graph", out, more, "--json").json
    assert added.keys() == {"folder", "added", "skipped", *COUNTS}
    assert added["added"] == ["cy#0"]
    assert added["nodes"] == built["nodes"] + 1
    assert (
        added["relations"]["MENTIONS"] == built["relations"]["MENTIONS"] + 1
    )  # its text says Ann Ames

    assert len([*out.glob("gen-*")]) == 2  # the change lies beside the graph
    written = graphret("inspect", "--graph", out, "--json").json["generation"]
    again = graphret("add", "--graph", out, more)
    assert again.out.startswith("added 0 nodes, changed 0;")
    same = graphret("inspect", "--graph", out, "--json").json
    assert same["generation"] == written
    compact = graphret("compact", "--graph", out, "--json").json
    assert len([*out.glob("gen-*")]) == 1
    assert compact == {"folder": str(out), **{key: added[key] for key in COUNTS}}

    removed = graphret("remove", "--graph", out, "cy", "--json").json
    assert removed.keys() == {"folder", "removed", *COUNTS}
    assert removed["removed"] == ["cy#0"]
    after = graphret("inspect", "--graph", out, "--json").json
    assert after["generation"] != before["generation"]
    assert {key: after[key] for key in COUNTS} == {key: before[key] for key in COUNTS}


def test_build_and_inspect_show_the_report_as_it_is_printed(tmp_path: Path) -> None:
    corpus, out = write_corpus(tmp_path), tmp_path / "graph"
    shown = graphret("build", corpus, "--out", out, "--encoder", "none").out
    report = str(SageGraph.load(out, encoder=None).report())
    assert "names that make links, the commonest" in report
    assert shown.startswith(report + "\n")
    assert graphret("inspect", "--graph", out).out.startswith(report + "\n")


def test_query_finds_the_director_by_the_row_that_names_her(tmp_path: Path) -> None:
    graph, page = built(tmp_path), tmp_path / "deep" / "why.html"
    answer = graphret(
        "query", QUESTION, "--graph", graph, "-k", 3, "--json", "--explain", page
    ).json
    assert answer.keys() == {"query", "k", "hits", "rows", "trace"}
    assert (answer["query"], answer["k"], len(answer["hits"])) == (QUESTION, 3, 3)
    fields = {"id", "name", "labels", "score", "relevance", "text", "evidence"}
    assert all(hit.keys() == fields for hit in answer["hits"])
    assert {hit["id"] for hit in answer["hits"][:2]} == {"ann#0", "films#0"}
    ann = next(hit for hit in answer["hits"] if hit["id"] == "ann#0")
    edge = next(
        evidence for evidence in ann["evidence"] if evidence["kind"] == "neighbor"
    )
    assert (edge["source"], edge["relation"]) == ("films#0", "MENTIONS")
    assert edge["properties"] == {
        "kind": "exact",
        "name": "Ann Ames",
        "column": "Director",
        "source_row": 1,
    }
    assert answer["trace"]["stages"]
    assert "Ann Ames" in page.read_text(encoding="utf-8")
    printed = graphret("query", QUESTION, "--graph", graph, "-k", 2).out
    for expected in (
        "Films of 1999 · List",
        "row 1",
        "Film: Dawn · Director: Ann Ames",
        "found by the question",
    ):
        assert expected in printed


def test_query_returns_only_what_the_condition_allows(tmp_path: Path) -> None:
    graph = built(tmp_path)
    answer = graphret(
        "query",
        QUESTION,
        "--graph",
        graph,
        "--where",
        '{"year": {"$gte": 1990}}',
        "--json",
    ).json
    assert [hit["id"] for hit in answer["hits"]] == ["bob#0"]
    nothing = graphret("query", QUESTION, "--graph", graph, "--where", '{"year": 2000}')
    assert (nothing.code, nothing.out) == (0, "nothing qualifies\n")


TABLE = "| Film | Director |\n|---|---|\n| {} | Ann Ames |\n"


def listed(graph: Path) -> dict[str, tuple[str, str, int]]:
    result = graphret("list", "--graph", graph, "--json").json
    assert result["folder"] == str(graph)
    return {
        item["id"]: (item["name"], item["kind"], item["chunks"])
        for item in result["items"]
    }


def test_a_file_that_is_added_again_takes_the_place_of_all_that_was_read_from_it(
    tmp_path: Path,
) -> None:
    notes, graph = tmp_path / "notes", tmp_path / "graph"
    notes.mkdir()
    page, other = notes / "a.md", notes / "b.txt"
    page.write_text(
        "# Films\n\nOld"
        f" words.\n\n{TABLE.format('Dawn')}\nMore.\n\n{TABLE.format('Dusk')}"
    )
    other.write_text("Bob Bale wrote plays in Kent.")
    assert graphret("build", notes, "--out", graph, "--encoder", "none").code == 0
    first = {"a.md": ("Films", "Document", 1), "b.txt": ("b", "Document", 1)}
    tables = {f"a.md/table-{i}": ("Films", "Table", 1) for i in range(2)}
    assert listed(graph) == first | tables

    page.write_text(
        f"# Films\n\nNew words.\n\n{TABLE.format('Dusk')}"
    )  # an edit that takes a table away
    ran = graphret("add", "--graph", graph, notes)
    assert (ran.code, ran.err) == (0, "")
    assert listed(graph) == first | {"a.md/table-0": tables["a.md/table-0"]}
    texts = " ".join(SageGraph.load(graph).nodes.texts)
    assert "New words" in texts
    assert "Old words" not in texts
    assert "Dawn" not in texts

    page.write_text(TABLE.format("Noon"))  # now the table alone
    assert graphret("add", "--graph", graph, page).code == 0
    assert set(listed(graph)) == {"a.md/table-0", "b.txt"}
    assert graphret("remove", "--graph", graph, "a.md", "--json").json["removed"] == [
        "a.md/table-0#0"
    ]
    assert set(listed(graph)) == {"b.txt"}


def test_list_shows_every_item_with_its_chunks(tmp_path: Path) -> None:
    long = {
        "id": "long",
        "title": "Long",
        "text": "A sentence that says something new. " * 400,
    }
    record = {"id": "g1", "labels": ["Gene"], "name": "Gata", "properties": {}}
    graph = built(tmp_path, [long, record])
    items = listed(graph)
    assert items["g1"] == ("Gata", "Gene", 1)
    assert items["long"] == ("Long", "Document", len(SageGraph.load(graph)) - 1)
    shown = [
        line.split() for line in graphret("list", "--graph", graph).out.splitlines()
    ]
    assert shown == [
        ["g1", "Gene", "1", "Gata"],
        ["long", "Document", str(items["long"][2]), "Long"],
    ]
    plain = tmp_path / "plain"
    assert graphret("import", graph, "--out", plain).code == 0
    ran = graphret("list", "--graph", plain)
    assert (ran.code, ran.out) == (3, "")
    assert "not a 'sage' index" in ran.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["query", "x"], "Missing option '--graph'"),
        (["nonsense"], "nonsense"),
        (
            ["query", "x", "--graph", "GRAPH", "--method", "graph"],
            "Invalid value for '--method'",
        ),
        (
            ["query", "x", "--graph", "GRAPH", "-k", "0"],
            "k: expected a whole number of at least 1",
        ),
        (
            ["query", "x", "--graph", "GRAPH", "--where", "{"],
            "Invalid value for '--where'",
        ),
        (
            ["query", "x", "--graph", "GRAPH", "--where", "[]"],
            "where: expected a mapping of conditions",
        ),
        (
            ["query", "x", "--graph", "GRAPH", "--where", '{"a": {"$x": 1}}'],
            "where: 'a': expected operators among",
        ),
        (
            ["query", "x", "--graph", "GRAPH", "--explain", "GRAPH/CURRENT/x.html"],
            "cannot be written",
        ),
        (
            ["inspect", "--graph", "GRAPH", "--plot", "plot.txt"],
            "expected a .pdf, .png or .svg file",
        ),
        (["remove", "--graph", "GRAPH", "ann", "nobody"], "'nobody'"),
        (["remove", "--graph", "GRAPH", "ann", "bob", "cafe", "films"], "is empty"),
        (
            ["build", "missing.jsonl", "--out", "OUT", "--encoder", "none"],
            "missing.jsonl",
        ),
        (
            [
                "build",
                "CORPUS",
                "--out",
                "OUT",
                "--encoder",
                "none",
                "--percentile",
                "101",
            ],
            "percentile",
        ),
        (
            [
                "build",
                "CORPUS",
                "--out",
                "OUT",
                "--encoder",
                "none",
                "--chunker",
                "semantic",
            ],
            "needs an encoder",
        ),
        (
            [
                "build",
                "CORPUS",
                "--out",
                "OUT",
                "--encoder",
                "none",
                "--metadata",
                "llm",
            ],
            "needs --model",
        ),
        (
            ["build", "CORPUS", "--out", "OUT", "--encoder", "none", "--model", "m"],
            "need --metadata llm",
        ),
        (
            [
                "build",
                "CORPUS",
                "--out",
                "OUT",
                "--metadata",
                "llm",
                "--model",
                "m",
                "--base-url",
                "localhost:80/v1",
            ],
            "v1, got 'localhost:80/v1'",
        ),
        (["bench", "nonsense", "--data", "."], "No such command 'nonsense'"),
        (["bench", "ottqa", "--data", "missing"], "does not exist"),
        (
            ["bench", "metaqa", "--data", ".", "--train", "file"],
            "Invalid value for '--train'",
        ),
        (["bench", "guard", "--data", "CORPUS"], "corpus.jsonl"),
    ],
)
def test_wrong_input_is_2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], said: str
) -> None:
    graph = built(tmp_path)
    monkeypatch.chdir(tmp_path)
    names = {"GRAPH": str(graph), "CORPUS": "corpus.jsonl", "OUT": "out"}
    command = [
        names.get(item, item.replace("GRAPH/", f"{graph}/")) for item in arguments
    ]
    assert said in refused(2, *command)
    assert not (tmp_path / "out").exists()
    assert (
        graphret("inspect", "--graph", graph, "--json").json["nodes"] == 4
    )  # the graph is as it was


def test_malformed_items_are_named(tmp_path: Path) -> None:
    corpus = tmp_path / "bad.jsonl"
    corpus.write_text(
        '{"id": "a", "text": "fine"}\n{"id": "b", "header": ["x"], "rows": [["1",'
        ' "2"]]}\n'
    )
    line = refused(2, "build", corpus, "--out", tmp_path / "out", "--encoder", "none")
    assert "bad.jsonl" in line
    assert "'b'" in line
    empty = tmp_path / "empty.jsonl"
    empty.write_text("")
    assert "empty" in refused(
        2, "build", empty, "--out", tmp_path / "out", "--encoder", "none"
    )


@pytest.mark.parametrize(
    "command",
    [
        ["query", "x", "--graph"],
        ["inspect", "--graph"],
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
    assert re.search(
        "not a folder|neither a folder",
        refused(3, *command, tmp_path / "other" / "file"),
    )


def test_an_altered_file_is_named(tmp_path: Path) -> None:
    graph = built(tmp_path)
    file = max(graph.glob("gen-*/*.npy"), key=lambda path: path.stat().st_size)
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)
    for command in (
        ["inspect", "--graph", graph],
        ["query", "x", "--graph", graph],
        ["remove", "--graph", graph, "ann"],
    ):
        assert file.name in refused(3, *command)


def test_a_missing_package_is_4(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(
        sys.modules, "matplotlib.figure", None
    )  # what Python does for a package that is not there
    line = refused(
        4, "inspect", "--graph", built(tmp_path), "--plot", tmp_path / "x.png"
    )
    assert "pip install 'graphret[plot]'" in line


def test_a_model_that_fails_is_fallen_back_from_and_told(tmp_path: Path) -> None:
    corpus, out = write_corpus(tmp_path), tmp_path / "out"
    with OpenAIServer(lambda _: status(401)) as server:
        ran = graphret(
            *(
                "build",
                corpus,
                "--out",
                out,
                "--encoder",
                "none",
                "--metadata",
                "llm",
                "--model",
                "m",
            ),
            *("--base-url", server.base_url, "--json"),
        )
        add = (
            "add",
            corpus,
            "--graph",
            out,
            "--metadata",
            "llm",
            "--model",
            "m",
            "--base-url",
            server.base_url,
        )
        added = graphret(*add)
    assert ran.code == added.code == 5
    assert ran.json["metadata"]["fell_back"] == 4
    assert "4 nodes have metadata from rules" in ran.err
    assert ran.err.endswith("the model 'm' gave no usable reply\n")
    assert graphret("inspect", "--graph", out, "--json").json["nodes"] == 4


def test_an_error_that_nobody_foresaw_is_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("two\nlines")

    monkeypatch.setattr(query, "opened_graph", broken)
    arguments = ("query", "x", "--method", "sage", "--graph", "g")
    assert "unexpected error: RuntimeError: two lines (--debug shows where)" in refused(
        1, *arguments
    )
    debugged = graphret(*arguments, "--debug")
    assert debugged.code == 1
    assert "Traceback" in debugged.err
    assert "in broken" in debugged.err


def completions(*words: str) -> list[str]:
    """What a shell is told that may follow the words of a command line."""
    line = ["graphret", *words]
    ran = CliRunner().invoke(
        app,
        prog_name="graphret",
        env={
            "_GRAPHRET_COMPLETE": "complete_bash",
            "COMP_WORDS": " ".join(line),
            "COMP_CWORD": str(len(line) - 1),
        },
    )
    return ran.stdout.split()


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["ins"], "inspect"),
        (["query", "--gr"], "--graph"),
        (["query", "x", "--method", "gra"], "grasp"),
        (["train", "pa"], "paths"),
    ],
)
def test_a_shell_completes_commands_options_and_values(
    words: list[str], offered: str
) -> None:
    assert offered in completions(*words)
    assert "build" not in completions(*words)


def test_the_real_command_answers_and_is_quick_to_help(tmp_path: Path) -> None:
    script = (
        "import sys, graphret.cli.app; print([m for m in ('numpy', 'scipy', 'torch',"
        " 'bm25s') if m in sys.modules])"
    )
    assert (
        subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, check=True
        ).stdout
        == "[]\n"
    )
    failed = subprocess.run(
        [sys.executable, "-m", "graphret.cli", "inspect", "--graph", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (failed.returncode, failed.stdout) == (3, "")
    assert "Traceback" not in failed.stderr
    help_ = graphret("--help").out
    for expected in ("demo", "build", "query", "inspect", "add", "remove", "bench"):
        assert expected in " ".join(help_.split())


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_an_interrupted_writer_leaves_the_graph(tmp_path: Path) -> None:
    graph = built(tmp_path)
    before = graphret("inspect", "--graph", graph, "--json").json
    more = tmp_path / "cy.txt"
    more.write_text("Cy Cole played in the film Dawn.")
    arrived, released = threading.Event(), threading.Event()

    def answer(_: object) -> Behaviour:
        arrived.set()
        released.wait(60)
        return status(500)

    with OpenAIServer(answer) as server:
        options = ["--metadata", "llm", "--model", "m", "--base-url", server.base_url]
        line = [
            sys.executable,
            "-m",
            "graphret.cli",
            "add",
            str(more),
            "--graph",
            str(graph),
            *options,
        ]
        process = subprocess.Popen(
            line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert arrived.wait(100)  # the model is being asked
        with pytest.raises(IndexLocked), writing(graph, timeout=0.1):
            pass
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        released.set()
    assert (process.returncode, out, err) == (130, "", "")
    assert graphret("inspect", "--graph", graph, "--json").json == before
    assert graphret("remove", "--graph", graph, "ann").code == 0  # the lock is free


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    passages = {
        "Ann Ames": ["Ann Ames directed the film Dawn.", "She was born in Kent."],
        "Dawn": ["Dawn is a film of 1999."],
        "Kent": ["Kent is a county in England."],
        "Ohio": ["Ohio is a state."],
    }
    questions = [
        {
            "question": "Who directed Dawn of 1999?",
            "supporting_facts": [["Dawn", 0], ["Ann Ames", 0]],
        },
        {
            "question": "Which county is Ann Ames from?",
            "supporting_facts": [["Kent", 0], ["Ann Ames", 1]],
        },
    ]
    (folder / "tiny_corpus.json").write_text(json.dumps(passages))
    (folder / "tiny.json").write_text(json.dumps(questions))
    return folder


def test_a_benchmark_prints_and_writes_the_same_result(
    data: Path, tmp_path: Path
) -> None:
    file = tmp_path / "results" / "tiny.json"
    ran = graphret(
        "bench",
        "multihop",
        "--data",
        data,
        "--encoder",
        "none",
        "--k",
        "1,2",
        "--json",
        file,
    )
    assert ran.code == 0, ran.err
    assert "recall@2" in ran.out
    written = json.loads(file.read_text(encoding="utf-8"))
    assert written["name"] == "multihop"
    assert written["counts"]["questions"] == 2
    assert written["rows"]["tiny/default"]["recall@2"] == 100.0
    assert written["rows"].keys() >= {
        "tiny/bm25",
        "tiny/paper",
        "tiny/propagate",
        "tiny/coverage",
        "tiny/lexical",
    }
    again = graphret(
        "bench",
        "multihop",
        "--data",
        data,
        "--encoder",
        "none",
        "--limit",
        1,
        "--json",
        "-",
    ).json
    assert (again["counts"]["questions"], again["counts"]["nodes"]) == (1, 4)


def test_the_benchmark_of_any_corpus_runs_the_sets_that_are_named(
    data: Path, tmp_path: Path
) -> None:
    for name in ("one", "two", "three"):
        shutil.copytree(data, tmp_path / "sets" / name)
    line = ["bench", "general", "--data", tmp_path / "sets", "--encoder", "none"]
    file = tmp_path / "general.json"
    ran = graphret(
        *line, "--set", "one,two", "--set", "three", "--k", "1,2", "--json", file
    )
    assert ran.code == 0, ran.err
    assert "all, the mean over 3 sets, 6 questions" in ran.out
    written = json.loads(file.read_text(encoding="utf-8"))
    assert written["rows"]["all/default"]["recall@2"] == 100.0
    assert set(
        graphret(*line, "--set", "two", "--limit", 1, "--json", "-").json["best"]
    ) == {"two"}
    assert set(graphret(*line, "--json", "-").json["best"]) == {"one", "two", "three"}
    assert "expected some of one, three, two, got 'four'" in refused(
        2, *line, "--set", "four"
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--split", "nonsense"], "'nonsense'"),
        (["--set", "tiny"], "No such option: --set"),
        (["--hops", "1"], "No such option: --hops"),
        (["--k", "one"], "Invalid value for '-k'"),
        (["--limit", "0"], "--limit"),
    ],
)
def test_an_option_that_says_nothing_here_is_2(
    data: Path, arguments: list[str], said: str
) -> None:
    ran = graphret("bench", "multihop", "--data", data, "--encoder", "none", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err
