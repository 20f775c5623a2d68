"""Questions and answers become questions and queries; a run that was cut off is gone on
with.
"""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest
from cli_helpers import graphret, refused
from tiny_model import saved_tiny_model

from graphret.errors import InvalidInput
from graphret.graphraft import CandidateFinder
from graphret.graphraft.entities import mentioned_entities
from graphret.graphs import import_graph, read_metaqa
from graphret.graphs.example import ALIASES, KB
from graphret.planning import PathPlanner
from graphret.training import LabelledQuestion, SynthesisReport, synthesize
from graphret.training.candidates import read_queries

PLANNER = PathPlanner(read_metaqa(KB).store(), aliases=ALIASES)
FINDER = CandidateFinder(PLANNER.store, PLANNER.space)
QUESTIONS = [
    LabelledQuestion("who directed Zero Dark Thirty", frozenset({"Kathryn Bigelow"})),
    LabelledQuestion(
        "which films share a director with Near Dark",
        frozenset({"Zero Dark Thirty", "Blue Steel"}),
    ),
    LabelledQuestion("what does Near Dark cost", frozenset({"Orson Welles"})),
    LabelledQuestion("what is the meaning of life", frozenset({"Orson Welles"})),
]


def test_the_best_query_has_the_most_hits_then_the_fewest_results(
    tmp_path: Path,
) -> None:
    out = tmp_path / "queries.jsonl"
    asked_questions: list[str] = []

    def entities(question: str) -> list:  # type: ignore[type-arg]
        asked_questions.append(question)
        return mentioned_entities(PLANNER, question)

    assert synthesize(FINDER, entities, QUESTIONS[:2], out) == SynthesisReport(
        2, 2, 2, 2
    )
    report = synthesize(FINDER, entities, QUESTIONS, out)
    assert (report.questions, report.answerable, report.kept) == (4, 2, 2)
    assert len(asked_questions) == 4  # none twice
    text = out.read_text()
    out.write_text("".join(text.splitlines(keepends=True)[:3]))
    assert synthesize(FINDER, entities, QUESTIONS, out) == report
    assert out.read_text() == text
    assert [record["question"] for record in read_queries(out)] == [
        record.text for record in QUESTIONS[:2]
    ]
    first, *other_records = map(json.loads, text.splitlines())
    assert [record["best"] is not None for record in other_records] == [
        True,
        False,
        False,
    ]
    assert (
        first["best"]
        == 'MATCH (a1:Movie {name: "Zero Dark Thirty"})-[:directed_by]-(T:Director)'
        " RETURN T.name AS name"
    )
    assert (first["hits"][0], first["num_results"][0]) == (1, 1)
    assert first["hits"] == sorted(first["hits"], reverse=True)
    strict = synthesize(
        FINDER,
        partial(mentioned_entities, PLANNER),
        QUESTIONS,
        tmp_path / "b",
        precision=1.0,
    )
    assert (strict.answerable, strict.kept) == (2, 1)
    out.write_text(text + '{"question": 3}\n')
    with pytest.raises(InvalidInput, match=r"queries.jsonl, line 5"):
        synthesize(FINDER, entities, QUESTIONS, out)


def test_queries_are_made_and_asked_on_the_command_line(tmp_path: Path) -> None:
    graph, qa, out = (
        tmp_path / "movies",
        tmp_path / "qa.jsonl",
        tmp_path / "queries.jsonl",
    )
    import_graph(KB, str(graph))
    qa.write_text(
        "".join(
            json.dumps({"question": q.text, "answers": sorted(q.gold)}) + "\n"
            for q in QUESTIONS
        )
    )
    options = ("--graph", graph, "--qa", qa, "--out", out, "--aliases", ALIASES)
    ran = graphret("train", "queries", *options, "--json")
    assert (ran.json["questions"], ran.json["answerable"]) == (4, 2), ran.err
    assert (
        "2 of 4 questions"
        in graphret("train", "queries", *options, "--target", "Movie").out
    )
    asks, writer = (
        (
            "query",
            QUESTIONS[1].text,
            "--graph",
            graph,
            "--method",
            "graphraft",
            "-k",
            2,
            "--json",
        ),
        tmp_path,
    )
    saved_tiny_model(writer)
    for options, name in (((), "paths"), (("--writer", writer), writer.name)):
        answered = graphret(*asks, *options)
        assert answered.json["hits"][0]["evidence"][0]["kind"] == "query", answered.err
        assert name in [
            stage.get("writer") for stage in answered.json["trace"]["stages"]
        ]
    assert "--hints" in refused(
        2, "query", "q", "--graph", graph, "--method", "graphraft", "--hints", "x"
    )
