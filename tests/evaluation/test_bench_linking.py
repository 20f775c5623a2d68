"""Entities by names, by a model and by nearest nodes, and the best query around
each.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_helpers import graphret
from tests_support import HashingEncoder

from graphret.errors import InvalidInput
from graphret.evaluation import bench_linking
from graphret.graphraft.entities import nearest_entities
from graphret.graphs import read_metaqa
from graphret.graphs.example import ALIASES, KB
from graphret.llm import OpenAIChat
from graphret.planning import PathPlanner
from graphret.search import BM25Index, HybridIndex
from graphret.testing.openai_server import (
    Behaviour,
    OpenAIServer,
    Request,
    json_text,
    status,
)
from graphret.training import LabelledQuestion

STORE = read_metaqa(KB).store()
PLANNER = PathPlanner(STORE, aliases=ALIASES)
INDEX = BM25Index.of_store(STORE)
BY_BIGELOW = "which films did she direct who directed Near Dark"
ASKED = [
    LabelledQuestion("who directed Zero Dark Thirty", frozenset({"Kathryn Bigelow"})),
    # the model knows whom it means, the planner finds the film
    LabelledQuestion(BY_BIGELOW, frozenset({"Blue Steel", "The Loveless"})),
    LabelledQuestion("what is the meaning of life", frozenset({"Kathryn Bigelow"})),
]


def script(request: Request) -> Behaviour:
    question = request.messages[-1]["content"]
    if "meaning" in question:
        return status(500)
    named = "Kathryn Bigelow" if "Near Dark" in question else "Zero Dark Thirty"
    return json_text({"names": [named]})


def test_each_way_has_what_its_best_queries_find() -> None:
    with OpenAIServer(script) as server:
        model = OpenAIChat("m", server.base_url, max_retries=0)
        result = bench_linking(PLANNER, INDEX, ASKED, model=model, neighbors=[1])
    rows = result["rows"]
    assert [*rows] == ["names", "model", "1 nearest"]
    for row in rows.values():
        assert row["good"] >= row["recall"] >= row["all"]
    assert rows["model"]["good"] == pytest.approx(66.67)
    assert rows["model"]["all"] == pytest.approx(66.67)
    assert rows["model"]["size"] >= 1
    assert rows["model"]["best"] >= rows["names"]["best"]
    assert rows["names"]["good"] >= 33
    gain = result["intervals"]["model"]["recall"]["gain"]
    expected = rows["model"]["recall"] - rows["names"]["recall"]
    assert gain == pytest.approx(expected, abs=0.02)
    assert "by words, since there is no encoder" in result["notes"][0]
    assert "the model failed on 1, first 'what is the meaning" in result["notes"][1]


def test_nearest_nodes_are_entities_of_their_own() -> None:
    found = nearest_entities(STORE, INDEX, "Near Dark and Blue Steel", 2)
    assert {entity.name for entity in found} == {"Near Dark", "Blue Steel"}
    assert len({entity.place for entity in found}) == 2
    assert nearest_entities(STORE, INDEX, "zzz", 2) == []
    by_meaning = HybridIndex.of_store(STORE, HashingEncoder())
    result = bench_linking(PLANNER, by_meaning, ASKED[:1], neighbors=[2, 5])
    assert "nearest nodes are those by embeddings" in result["notes"][0]
    assert result["rows"]["5 nearest"]["entities"] <= 5


def test_the_comparison_on_the_command_line(tmp_path: Path) -> None:
    graph, qa = tmp_path / "movies", tmp_path / "qa.jsonl"
    assert graphret("import", KB, "--out", graph).code == 0
    lines = [
        json.dumps({"question": one.text, "answers": sorted(one.gold)}) for one in ASKED
    ]
    qa.write_text("\n".join(lines))
    ran = graphret(
        *("bench", "linking", "--graph", graph, "--qa", qa, "--aliases", ALIASES),
        *("--neighbors", "1,3", "--json", tmp_path / "out.json"),
    )
    assert ran.code == 0, ran.err
    written = json.loads((tmp_path / "out.json").read_text())
    assert [*written["rows"]] == ["names", "1 nearest", "3 nearest"]
    for said in ("3 nearest", "entities", "recall"):
        assert said in ran.out
    with pytest.raises(InvalidInput, match="expected at least one"):
        bench_linking(PLANNER, INDEX, [])
