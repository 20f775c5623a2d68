"""The harness of the speed benchmark: what it builds and how it reports; no time is judged here."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from benchmarks import speed, speed_parts, synthetic
from benchmarks.figures import Figure, Report

from graphret.corpus import Document, Table
from graphret.errors import InvalidInput
from graphret.expansion import RANKINGS
from graphret.expansion.frontier import Frontier
from graphret.sage import SageGraph


def test_synthetic_corpora_are_the_same_every_time_and_linked() -> None:
    made = synthetic.items(320)
    assert made == synthetic.items(320)
    assert made != synthetic.items(320, seed=1)
    assert sum(isinstance(item, Table) for item in made) == 20
    assert sum(isinstance(item, Document) for item in made) == 300
    graph = SageGraph.build(made, encoder=None, chunker=None)
    assert len(graph) == 320
    assert len(graph.edges) > 320
    for question in synthetic.questions(made, 5):
        assert len(graph.retriever().retrieve(question, 10).hits) == 10


def test_arrays_are_a_graph_that_every_ranking_can_expand() -> None:
    graph, index = synthetic.arrays(500, 4)
    assert (len(graph.nodes), len(graph.edges)) == (500, 2000)
    assert graph.edges.degrees().sum() == 4000
    order = np.lexsort((graph.edges.target, graph.edges.source))
    assert (order == np.arange(2000)).all()
    for question in synthetic.array_questions(5):
        assert len(index.lexical.term_ids(question)) > 0
        for make in RANKINGS.values():
            ranking = make()
            seeds = index.top(question, ranking.n_seeds(10))
            ranked = ranking.rank(Frontier(question, graph, index, seeds), 10)
            assert len(ranked.positions) >= 10
            assert (np.diff(ranked.scores) <= 0).all()


def test_a_part_adds_its_figures_and_counts() -> None:
    report = Report()
    speed_parts.scale(report, small=100, large=1000, degree=3)
    assert {f"scale {name}" for name in RANKINGS} < set(report.figures)
    assert report.counts["scale/edges, 1,000"] == 3000
    assert all(figure.value > 0 for figure in report.figures.values())


def test_targets_from_above_and_from_below() -> None:
    assert Figure("x", 2.9, target=3.0).met is True
    assert Figure("x", 3.1, target=3.0).met is False
    assert Figure("x", 1.1, target=1.15, at_least=True).met is False
    assert Figure("x", 5.0).met is None


def test_report_as_json_and_as_a_page() -> None:
    report = Report(notes=["encoder was left out: no torch"])
    report.figures = {"a": Figure("this", 2.5, target=3.0), "b": Figure("that", 7, unit="ms", target=5.0)}
    report.counts["nodes"] = 20_000
    result = json.loads(json.dumps(report.to_dict()))
    assert result["name"] == "speed"
    assert result["rows"]["a"] == {"value": 2.5, "target": 3.0, "met": True}
    assert result["rows"]["b"]["met"] is False
    page = speed.markdown_page(report)
    assert "| this | 2.5 times | at most 3 times |" in page
    assert "| that | 7 ms | at most 5 ms (missed) |" in page
    assert "nodes 20,000" in page
    assert "no torch" in page


def test_parts_are_run_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speed_parts, "IMPORTS", 1)
    files = [tmp_path / "speed.json", tmp_path / "docs" / "speed.md"]
    assert speed.main(["--only", "import", "--json", str(files[0]), "--markdown", str(files[1])]) == 0
    assert "import" in json.loads(files[0].read_text())["rows"]
    assert files[1].read_text().startswith("# Speed")
    with pytest.raises(InvalidInput, match="'nothing'"):
        speed.measure(["nothing"])
