"""Training how a graph ranks on labelled questions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli_helpers import graphret, refused
from tests_support import HashingEncoder

from graphret.corpus import Document, Table
from graphret.errors import InvalidInput
from graphret.evaluation.dataset import Dataset
from graphret.evaluation.runner import compare
from graphret.sage import SageGraph
from graphret.training import LabelledQuestion, train_ranking

STEMS = "Abro Belk Cemu Dorv Eltz Fomi Gant Huvi Ilsa Jorn Kemp Lund Mord Nant Ovel Pirn".split()
TOWNS = [f"{stem}{end}" for stem in STEMS for end in ("a", "burg", "ton")]


def _items() -> list[Any]:
    """A table leads from each town to its mayor and its river; the river's page says
    more of the question's words.
    """
    rows = [[town, f"Mayor {town}son", f"{town} River"] for town in TOWNS]
    mayors = [
        Document("A politician.", id=f"m-{t}", title=f"Mayor {t}son") for t in TOWNS
    ]
    rivers = [
        Document(
            f"Water that leads through {t}, born of rain.",
            id=f"r-{t}",
            title=f"{t} River",
        )
        for t in TOWNS
    ]
    return [
        Table(["Town", "Mayor", "River"], rows, id="towns", title="Towns of the land"),
        *mayors,
        *rivers,
    ]


def _questions(answer: str) -> list[LabelledQuestion]:
    return [
        LabelledQuestion(
            f"Who leads {town}, and was born where?", frozenset({f"{answer}-{town}"})
        )
        for town in TOWNS
    ]


@pytest.fixture(scope="module", params=["words", "encoder"])
def graph(request: Any) -> SageGraph:
    return SageGraph.build(
        _items(), encoder=HashingEncoder() if request.param == "encoder" else None
    )


def _hits(
    graph: SageGraph, questions: list[LabelledQuestion], ranking: Any = None
) -> float:
    def found(question: LabelledQuestion) -> bool:
        nodes = set().union(*graph.state.nodes_of(question.gold).values())
        return bool(nodes & {*graph.retriever(ranking).retrieve(question.text, 1).ids})

    return float(np.mean([found(question) for question in questions]))


def test_what_is_learned_holds_for_other_questions_and_is_kept_with_the_graph(
    graph: SageGraph, tmp_path: Path
) -> None:
    questions = _questions("m")
    assert _hits(graph, questions) < 0.5
    trained, metrics = train_ranking(graph, questions[::2])
    assert trained is not None
    assert metrics["tuned"]["mrr"] > metrics["default"]["mrr"]
    graph.ranking = trained
    try:
        assert _hits(graph, questions[1::2]) > 0.9
        assert _hits(graph, questions[1::2], "coverage") < 0.5
        graph.save(tmp_path / "g")
        again = SageGraph.load(tmp_path / "g", encoder=graph.encoder)
        retrieval, other = (
            either_graph.retriever().retrieve(questions[1].text, 8)
            for either_graph in (graph, again)
        )
        assert [hit.to_dict() for hit in retrieval] == [hit.to_dict() for hit in other]
        assert again.ranking == trained
        assert again.view({"id": {"$ne": "towns"}}).ranking == trained
        moved = [
            evidence
            for evidence in retrieval.hits[0].evidence
            if evidence.kind == "rank"
        ]
        assert moved[0].retriever == "coverage"
        assert 1 <= len(moved[0].properties) <= 3
        assert set(moved[0].properties) <= set(trained.features)
        assert "moved by" in str(moved[0])
        assert [hit.score for hit in retrieval] == sorted(
            (hit.score for hit in retrieval), reverse=True
        )
    finally:
        graph.ranking = None


def test_a_benchmark_measures_it_on_the_half_that_it_did_not_see(
    graph: SageGraph,
) -> None:
    questions = [
        LabelledQuestion(
            question.text,
            frozenset().union(*graph.state.nodes_of(question.gold).values()),
            ("tuned", "held")[i % 2],
        )
        for i, question in enumerate(_questions("m"))
    ]
    run = compare(
        Dataset("towns", list(graph.nodes), questions),
        (1,),
        encoder=None,
        rows=("default",),
        train="tuned",
    )
    held_rows = run.rows("held")
    assert held_rows["trained"]["hit@1"] > held_rows["default"]["hit@1"] + 40


def test_nothing_is_kept_that_does_not_gain(graph: SageGraph) -> None:
    questions = [
        LabelledQuestion(
            question.text,
            frozenset({graph.retriever().retrieve(question.text, 1).ids[0]}),
        )
        for question in _questions("m")
    ]
    trained, metrics = train_ranking(graph, questions)
    assert trained is None
    assert metrics["tuned"] == metrics["default"]


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        (_questions("m")[:9], "at least 10"),
        (
            [*_questions("m"), LabelledQuestion("Who?", frozenset({"nobody"}))],
            "'nobody'",
        ),
    ],
)
def test_questions_that_nothing_can_be_learned_of_are_refused(
    asked: list[LabelledQuestion], says: str
) -> None:
    with pytest.raises(InvalidInput, match=says):
        train_ranking(SageGraph.build(_items(), encoder=None), asked)


def test_the_command_keeps_the_ranking_and_query_uses_it(tmp_path: Path) -> None:
    SageGraph.build(_items(), encoder=None).save(tmp_path / "g")
    lines = [
        {"question": question.text, "answers": sorted(question.gold)}
        for question in _questions("m")
    ]
    (tmp_path / "qa.jsonl").write_text(
        "\n".join(map(json.dumps, lines)), encoding="utf-8"
    )
    options = ("--graph", tmp_path / "g", "--json")
    assert graphret(
        "train", "ranking", *options, "--questions", tmp_path / "qa.jsonl"
    ).json["trained"]
    arguments = [lines[3]["question"], *options, "-k", "1"]
    assert graphret("query", *arguments).json["hits"][0]["id"].startswith("m-")
    assert (
        not graphret("query", *arguments, "--ranking", "coverage")
        .json["hits"][0]["id"]
        .startswith("m-")
    )
    (tmp_path / "bad.jsonl").write_text('{"question": "Who?"}\n', encoding="utf-8")
    assert "line 1" in refused(
        2, "train", "ranking", *options, "--questions", tmp_path / "bad.jsonl"
    )
