"""Tuning how SAGE ranks on labelled questions."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli_helpers import graphret, refused
from tests_support import HashingEncoder

from graphret.corpus import Document, Table
from graphret.errors import InvalidInput
from graphret.expansion import Coverage, Paper, Propagate, ranking_of
from graphret.sage import SageGraph
from graphret.training import Question, tune_ranking

TOWNS = "Abro Belk Cemu Dorv Eltz Fomi Gant Huvi Ilsa Jorn Kemp Lund".split()
COACHES = "Anna Bert Carl Dora Egon Fred Gina Hugo Ines Jens Kara Lars".split()
ITEMS = [
    Table(["Club", "Coach"], [[f"{t} United", f"{c} Moss"] for t, c in zip(TOWNS, COACHES, strict=True)], id="clubs"),
    *(Document(f"{c} Moss was born in 19{50 + i}.", id=c, title=f"{c} Moss") for i, c in enumerate(COACHES)),
    *(Document(f"{t} United has a coach who was born and won a cup.", id=f"{t}-cup", title=f"{t} cup") for t in TOWNS),
]
# The table leads to the coach; the pages of cups say more of the question's words.
QUESTIONS = [
    Question(f"When was the coach of {t} United born?", frozenset({c})) for t, c in zip(TOWNS, COACHES, strict=True)
]


@pytest.fixture(scope="module", params=["words", "encoder"])
def graph(request: Any) -> SageGraph:
    return SageGraph.build(ITEMS, encoder=HashingEncoder() if request.param == "encoder" else None)


@pytest.mark.parametrize("ranking", [Coverage(weight=0.5), Propagate(inherit=0.1), Paper(seed_share=0.3)])
def test_what_is_told_is_what_the_retriever_does(graph: SageGraph, ranking: Any, tmp_path: Path) -> None:
    k = 4
    tuned = tune_ranking(graph.retriever(ranking), QUESTIONS, k)
    assert tuned.metrics["tuned"][f"recall@{k}"] >= tuned.metrics["default"][f"recall@{k}"]
    tuned.save(tmp_path / "sage.json")
    chosen = graph.retriever(settings=tmp_path / "sage.json")
    assert chosen.ranking == ranking_of(tmp_path / "sage.json") == tuned.settings

    def recall(one: Any) -> float:
        gold = {question.text: graph.state.nodes_of(question.gold) for question in QUESTIONS}
        found = {text: {*graph.retriever(one).retrieve(text, k).ids} for text in gold}
        return 100 * float(np.mean([any(nodes & found[text]) for text, own in gold.items() for nodes in own.values()]))

    assert recall(ranking) == pytest.approx(tuned.metrics["default"][f"recall@{k}"], abs=0.01)
    (across, along), (down, below) = tuned.axes.items()
    for i, j in ((0, 0), (len(along) - 1, len(below) - 1), (len(along) // 2, 1)):
        one = replace(tuned.settings, **{across: along[i], down: below[j]})
        assert recall(one) == pytest.approx(tuned.heat[i, j])


def test_what_beats_the_default_is_chosen_and_nothing_else() -> None:
    graph = SageGraph.build(ITEMS, encoder=None)
    poor = tune_ranking(graph.retriever(Coverage(weight=0)), QUESTIONS, 3)
    assert poor.metrics["tuned"]["recall@3"] > poor.metrics["default"]["recall@3"]
    assert poor.settings.weight > 0
    best = tune_ranking(graph.retriever(poor.settings), QUESTIONS, 3)
    assert best.settings == poor.settings
    for asked, said in ((QUESTIONS[:9], "at least 10"), ([Question("q", frozenset({"nobody"}))], "'nobody'")):
        with pytest.raises(InvalidInput, match=said):
            tune_ranking(graph.retriever(), asked)


def test_the_command_writes_what_query_reads(tmp_path: Path) -> None:
    folder, qa, out = tmp_path / "clubs.sage", tmp_path / "qa.jsonl", tmp_path / "sage.json"
    SageGraph.build(ITEMS, encoder=None).save(folder)
    qa.write_text("\n".join(json.dumps({"question": one.text, "answers": [*one.gold]}) for one in QUESTIONS))
    told = ("tune", "--method", "sage", "--graph", folder, "--qa", qa, "--out", out)
    found = graphret(*told, "--ranking", "propagate", "-k", 3, "--json").json
    assert [*found["axes"]] == ["inherit", "walked"]
    assert np.shape(found["heat"]) == (16, 3)
    assert "recall@10" in graphret(*told).out
    assert json.loads(out.read_text())["name"] == "coverage"
    asked = graphret("query", QUESTIONS[0].text, "--graph", folder, "--settings", out, "--json")
    assert len(asked.json["hits"]) == 10
    out.write_text('{"name": "coverage", "wait": 1}')
    assert "no settings" in refused(2, "query", "who?", "--graph", folder, "--settings", out)
    refused(2, "tune", "--graph", folder, "--qa", qa, "--out", out, "-k", 3)
