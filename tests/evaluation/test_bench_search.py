"""The harness of the search benchmarks; no time is judged here."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from benchmarks import bench_search, bench_spot
from benchmarks.figures import Report

from graphret.errors import InvalidInput


def test_a_small_run_of_bm25_has_all_figures() -> None:
    report = Report()
    bench_search.lexical(report, n=1200)
    assert set(report.figures) == {"search rank_bm25", "search bm25s", "search score"}
    assert report.counts["search/nodes"] == 1200
    assert all(figure.value > 0 for figure in report.figures.values())


def test_hnsw_finds_what_exact_search_finds() -> None:
    pytest.importorskip("hnswlib")
    report = Report()
    bench_search.hnsw(report, n=500)
    assert report.figures["hnsw recall"].value >= 0.98


def test_names_are_spotted_and_linked_among_few_and_many() -> None:
    report = Report()
    bench_search.spotting(report, few=1200, many=1500)
    assert {"spot 1200", "spot 1500 built", "link built", "link link", "link spot of a label"} <= set(report.figures)
    assert report.counts["link/nodes"] == 1500
    assert all(figure.value > 0 for figure in report.figures.values())


def test_invented_names_differ_mostly_and_are_the_same_every_time() -> None:
    names = bench_search.invented_names(2000)
    assert names == bench_search.invented_names(2000)
    assert len(set(names)) > 1600
    assert {len(name.split()) for name in names} == {1, 2, 3, 4}


@pytest.fixture
def metaqa(tmp_path: Path) -> Path:
    (tmp_path / "kb.txt").write_text("It|directed_by|Ann Lee\nSolaris|starred_actors|Bo Ray\n", encoding="utf-8")
    lines = ["who directed [It]\tAnn Lee", "what did [Bo Ray] act in\tSolaris", "who saw [Nobody Known]\tBo Ray"]
    for hops in (1, 2, 3):
        folder = tmp_path / f"{hops}-hop" / "vanilla"
        folder.mkdir(parents=True)
        (folder / "qa_dev.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return tmp_path


def test_spotting_is_measured_with_and_without_what_the_graph_lacks(metaqa: Path, tmp_path: Path) -> None:
    result = bench_spot.measure(metaqa)
    assert result["rows"]["1-hop, as written"] == pytest.approx(
        {"recall": 200 / 3, "recall of known": 100.0, "spots": 2 / 3}
    )
    assert result["counts"]["3-hop entities of the graph"] == 2
    file = tmp_path / "result.json"
    assert bench_spot.main(["--data", str(metaqa), "--limit", "1", "--json", str(file)]) == 0
    assert json.loads(file.read_text(encoding="utf-8"))["counts"]["2-hop questions"] == 1


def test_a_folder_without_the_graph_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"kb\.txt"):
        bench_spot.measure(tmp_path)
