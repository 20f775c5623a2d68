"""Build, query, add, remove and inspect through the command, and the shape of what they print."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from cli_helpers import built, graphret, write_corpus

from graphret import SageGraph, storage

QUESTION = "Where was the director of Dawn born?"
COUNTS = {"nodes", "edges", "labels", "relations"}


def test_build_add_remove_and_inspect_agree(tmp_path: Path) -> None:
    corpus, out = write_corpus(tmp_path), tmp_path / "graph"
    made = graphret("build", corpus, "--out", out, "--encoder", "none", "--json").json
    assert made.keys() == {"folder", "encoder", "seconds", *COUNTS}
    assert (made["folder"], made["encoder"]) == (str(out), None)
    assert made["labels"] == {"Document": 3, "Table": 1}

    before = graphret("inspect", out, "--json").json
    assert {key: before[key] for key in COUNTS} == {key: made[key] for key in COUNTS}
    assert sum(before["relations"].values()) == before["edges"]

    more = tmp_path / "cy.jsonl"
    more.write_text('{"id": "cy", "title": "Cy Cole", "text": "Cy Cole played in the film Dawn by Ann Ames."}')
    added = graphret("add", out, more, "--json").json
    assert added.keys() == {"folder", "added", *COUNTS}
    assert added["added"] == ["cy#0"]
    assert added["nodes"] == made["nodes"] + 1
    assert added["relations"]["MENTIONS"] == made["relations"]["MENTIONS"] + 1  # its text says Ann Ames

    removed = graphret("remove", out, "cy", "--json").json
    assert removed.keys() == {"folder", "removed", *COUNTS}
    assert removed["removed"] == ["cy#0"]
    after = graphret("inspect", out, "--json").json
    assert after["generation"] != before["generation"]
    assert {key: after[key] for key in COUNTS} == {key: before[key] for key in COUNTS}


def test_inspect_says_all_that_it_promises(tmp_path: Path) -> None:
    out = built(tmp_path)
    report = SageGraph.load(out).report().to_dict()
    found = graphret("inspect", out, "--json").json
    assert {key: found[key] for key in report} == report
    assert found.keys() - report.keys() == {"folder", "encoder", "version", "graphret", "generation", "files", "bytes"}
    assert found["bytes"] == sum(file.stat().st_size for file in out.glob("gen-*/*.npy"))
    shown = graphret("inspect", out).out
    assert "MENTIONS" in shown
    assert "every checksum right" in shown


def test_query_finds_the_director_by_the_row_that_names_her(tmp_path: Path) -> None:
    answer = graphret("query", QUESTION, "--graph", built(tmp_path), "-k", 3, "--json").json
    assert answer.keys() == {"query", "k", "hits", "trace"}
    assert (answer["query"], answer["k"], len(answer["hits"])) == (QUESTION, 3, 3)
    assert all(
        hit.keys() == {"id", "name", "labels", "score", "relevance", "text", "evidence"} for hit in answer["hits"]
    )
    assert {hit["id"] for hit in answer["hits"][:2]} == {"ann#0", "films#0"}
    ann = next(hit for hit in answer["hits"] if hit["id"] == "ann#0")
    edge = next(evidence for evidence in ann["evidence"] if evidence["kind"] == "neighbor")
    assert (edge["source"], edge["relation"]) == ("films#0", "MENTIONS")
    assert edge["properties"] == {"kind": "exact", "name": "Ann Ames", "column": "Director", "source_row": 1}
    assert answer["trace"]["stages"]


@pytest.mark.parametrize("ranking", ["coverage", "propagate", "paper"])
def test_query_takes_each_ranking(tmp_path: Path, ranking: str) -> None:
    answer = graphret("query", QUESTION, "--graph", built(tmp_path), "--ranking", ranking, "-k", 2, "--json").json
    stage = next(stage for stage in answer["trace"]["stages"] if stage["name"].endswith("expand"))
    assert stage["ranking"] == ranking


def test_query_returns_only_what_the_condition_allows(tmp_path: Path) -> None:
    graph = built(tmp_path)
    answer = graphret("query", QUESTION, "--graph", graph, "--where", '{"year": {"$gte": 1990}}', "--json").json
    assert [hit["id"] for hit in answer["hits"]] == ["bob#0"]
    nothing = graphret("query", QUESTION, "--graph", graph, "--where", '{"year": 2000}')
    assert (nothing.code, nothing.out) == (0, "nothing qualifies\n")


def test_query_prints_the_edge_and_the_row(tmp_path: Path) -> None:
    ran = graphret("query", QUESTION, "--graph", built(tmp_path), "-k", 2)
    assert ran.code == 0
    for said in (
        "Ann Ames",
        "Films of 1999 · List",
        "row 1",
        "Film: Dawn · Director: Ann Ames",
        "found by the question",
    ):
        assert said in ran.out


def test_unicode_survives(tmp_path: Path) -> None:
    graph = built(tmp_path)
    answer = graphret("query", "作家 🎬", "--graph", graph, "-k", 1, "--json").json
    assert answer["query"] == "作家 🎬"
    assert answer["hits"][0]["name"] == "Café Ünïcode"
    assert answer["hits"][0]["text"] == "كاتب 作家 e\u0301 🎬 <b>bold</b>"
    assert "Café Ünïcode" in graphret("query", "作家", "--graph", graph, "-k", 1).out


def test_explain_writes_a_page_beside_the_answer(tmp_path: Path) -> None:
    page = tmp_path / "deep" / "why.html"
    ran = graphret("query", "作家", "--graph", built(tmp_path), "-k", 4, "--explain", page, "--json")
    assert len(ran.json["hits"]) == 4
    text = page.read_text(encoding="utf-8")
    assert "Café Ünïcode" in text
    assert "<b>bold</b>" not in text


def test_chunking_off_gives_one_node_a_document(tmp_path: Path) -> None:
    records = [{"id": "long", "title": "Long", "text": "A sentence that says something new. " * 400}]
    corpus = write_corpus(tmp_path, records)
    whole = graphret("build", corpus, "--out", tmp_path / "a", "--encoder", "none", "--chunker", "none", "--json").json
    cut = graphret(
        "build", corpus, "--out", tmp_path / "b", "--encoder", "none", "--chunker", "sentence", "--json"
    ).json
    assert whole["nodes"] == 1 < cut["nodes"]


def test_rows_per_segment_is_kept_for_what_is_added(tmp_path: Path) -> None:
    table = {"title": "T", "header": ["n"], "rows": [[f"cell {i}"] for i in range(20)]}
    corpus = write_corpus(tmp_path, [{"id": "one", **table}])
    out = tmp_path / "graph"
    options = ("--encoder", "none", "--rows-per-segment", 5, "--json")
    assert graphret("build", corpus, "--out", out, *options).json["nodes"] == 4
    more = write_corpus(tmp_path, [{"id": "two", **table}])
    assert len(graphret("add", out, more, "--json").json["added"]) == 4


def test_build_replaces_a_graph_in_whole(tmp_path: Path) -> None:
    out = built(tmp_path)
    corpus = write_corpus(tmp_path, [{"id": "only", "title": "Only", "text": "Nothing else is here."}])
    assert graphret("build", corpus, "--out", out, "--encoder", "none", "--json").json["nodes"] == 1
    assert graphret("inspect", out, "--json").json["labels"] == {"Document": 1}


def test_inspect_draws_a_plot(tmp_path: Path) -> None:
    plot = tmp_path / "plots" / "degrees.svg"
    assert graphret("inspect", built(tmp_path), "--plot", plot).code == 0
    assert plot.read_text(encoding="utf-8").lstrip().startswith("<?xml")


def test_adding_at_the_same_time_loses_nothing(tmp_path: Path) -> None:
    out = built(tmp_path)
    files = []
    for number in range(2):
        file = tmp_path / f"{number}.jsonl"
        file.write_text(json.dumps({"id": f"n{number}", "title": f"Name {number}", "text": "A new text."}))
        files.append(file)
    ran = [
        subprocess.Popen([sys.executable, "-m", "graphret.cli", "add", str(out), str(file)], stdout=subprocess.DEVNULL)
        for file in files
    ]
    assert [process.wait() for process in ran] == [0, 0]
    assert {f"n{number}#0" for number in range(2)} <= set(SageGraph.load(out).nodes.ids)


def test_a_change_waits_for_the_writer_before_it(tmp_path: Path) -> None:
    out = built(tmp_path)
    more = tmp_path / "cy.txt"
    more.write_text("Cy Cole played.")
    done: list[int] = []
    adding = threading.Thread(target=lambda: done.append(graphret("add", out, more).code))
    with storage.writing(out):
        graph = SageGraph.load(out)
        adding.start()
        graph.remove(["bob"])
        graph.save(out)
    adding.join()
    ids = set(SageGraph.load(out).nodes.ids)
    assert done == [0]
    assert "bob#0" not in ids  # what the other writer removed stays removed
    assert any(id_.startswith("doc-") for id_ in ids)
