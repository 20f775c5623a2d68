"""``graphret replay``: a recorded run, shown again."""

from __future__ import annotations

from pathlib import Path

import pytest
from ark_runs import small
from cli_helpers import graphret

from graphret.ark.trajectory import Recorder, recorded_runs
from graphret.explain import timeline_page
from graphret.graphs.example import KB

QUESTION = "which films did Kathryn Bigelow direct?"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("recorded")
    assert graphret("import", KB, "--to", folder / "movies").code == 0
    ran = graphret(
        *("query", QUESTION, "--graph", folder / "movies", "--method", "ark", "--record", folder / "r.jsonl")
    )
    assert ran.code == 0, ran.err
    return folder / "r.jsonl"


def test_a_run_is_shown(recorded: Path) -> None:
    ran = graphret("replay", recorded)
    assert (ran.code, ran.err) == (0, "")
    for said in (
        QUESTION,
        "agent 3",
        'explore_neighborhood(node="Kathryn Bigelow"',
        "Near Dark",
        "select(",
        "Vote",
    ):
        assert said in ran.out


def test_what_an_encoding_has_not_is_said_in_other_characters(tmp_path: Path) -> None:
    run = small("who built Poljud, 作家 or Magaš?")
    Recorder(tmp_path / "r.jsonl")(run)
    ran = graphret("replay", tmp_path / "r.jsonl", charset="cp1252")
    assert (ran.code, ran.err) == (0, "")
    assert r"who built Poljud, \u4f5c\u5bb6 or Maga" in ran.out
    assert "š?" in ran.out
    assert "Vote" in ran.out
    found = graphret("replay", tmp_path / "r.jsonl", "--json", charset="cp1252").json
    assert found["question"] == run.question


def test_a_run_is_shown_as_json(recorded: Path) -> None:
    found = graphret("replay", recorded, "--json").json
    assert (found["question"], found["how"], [agent["agent"] for agent in found["agents"]]) == (
        QUESTION,
        "votes",
        [1, 2, 3],
    )
    assert found["votes"][0]["id"] == found["agents"][0]["selection"][0]
    assert found["agents"][0]["messages"][1] == {"role": "user", "content": QUESTION}
    assert found["agents"][0]["stop"] == "finished"


def test_one_of_several_is_chosen(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    runs = [small(f"question {n}") for n in range(3)]
    for run in runs:
        Recorder(path)(run)
    ids = list(recorded_runs(path))
    last = graphret("replay", path)
    assert "question 2" in last.out
    assert f"the last of 3 runs; --run shows another: {ids[1]}, {ids[0]}" in " ".join(last.err.split())
    first = graphret("replay", path, "--run", ids[0][:12])
    assert "question 0" in first.out
    assert first.err == ""
    page = tmp_path / "p.html"
    graphret("replay", path, "--run", ids[1], "--html", page)
    assert page.read_text(encoding="utf-8") == timeline_page(runs[1])


def test_what_cannot_be_shown_is_named(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    Recorder(path)(small())
    for arguments, code, said in (
        ([tmp_path / "missing.jsonl"], 2, "missing.jsonl: cannot be read: No such file"),
        ([path, "--run", "zz"], 2, "it holds no run 'zz'; there are "),
    ):
        ran = graphret("replay", *arguments)
        assert (ran.code, ran.out) == (code, "")
        assert said in ran.err
    text = path.read_text()
    path.write_text(text[:-20])
    assert "r.jsonl, line 2: damaged" in graphret("replay", path).err
    path.write_text(text.replace("trajectory/1", "trajectory/9"))
    ran = graphret("replay", path)
    assert ran.code == 3
    assert "line 1: 'graphret.trajectory/9'" in ran.err
    path.write_text("\n")
    assert "holds no run" in graphret("replay", path).err
