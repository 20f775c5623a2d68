"""The benchmarks of speed run, small, and report; no time is judged here."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from benchmarks import bench_ark_hub, bench_search, bench_spot, bench_stores, speed, speed_parts, synthetic
from benchmarks.figures import Figure, Report

from graphret.corpus import Document, Table
from graphret.errors import InvalidInput


@pytest.mark.parametrize(
    ("part", "figures", "counts"),
    [
        (partial(speed_parts.scale, small=100, large=1000, degree=3), {"scale paper"}, {"scale/edges, 1,000": 3000}),
        (partial(bench_search.lexical, n=1200), {"search rank_bm25", "search bm25s"}, {"search/nodes": 1200}),
        (partial(bench_search.spotting, few=1200, many=1500), {"spot 1200", "link link"}, {"link/nodes": 1500}),
        (partial(bench_stores.stores, n_nodes=2000, degree=5), {"store build", "store open"}, {"stores/nodes": 2000}),
        (partial(bench_ark_hub.whole, n=500), {"ark hub"}, {"ark hub/neighbours": 500}),
    ],
)
def test_a_part_adds_its_figures_and_counts(
    part: Callable[[Report], None], figures: set[str], counts: dict[str, int]
) -> None:
    report = Report()
    part(report)
    assert figures <= set(report.figures)
    assert counts.items() <= report.counts.items()
    assert all(figure.value > 0 for figure in report.figures.values())


def test_hnsw_finds_what_exact_search_finds() -> None:
    pytest.importorskip("hnswlib")
    report = Report()
    bench_search.hnsw(report, n=500)
    assert report.figures["hnsw recall"].value >= 0.98


def test_synthetic_corpora_are_the_same_every_time() -> None:
    made = synthetic.items(320)
    assert made == synthetic.items(320) != synthetic.items(320, seed=1)
    assert (sum(isinstance(item, Table) for item in made), sum(isinstance(item, Document) for item in made)) == (
        20,
        300,
    )


def test_spotting_is_measured_with_and_without_what_the_graph_lacks(tmp_path: Path) -> None:
    (tmp_path / "kb.txt").write_text("It|directed_by|Ann Lee\nSolaris|starred_actors|Bo Ray\n", encoding="utf-8")
    lines = ["who directed [It]\tAnn Lee", "what did [Bo Ray] act in\tSolaris", "who saw [Nobody Known]\tBo Ray"]
    for hops in (1, 2, 3):
        folder = tmp_path / f"{hops}-hop" / "vanilla"
        folder.mkdir(parents=True)
        (folder / "qa_dev.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    result = bench_spot.measure(tmp_path)
    assert result["rows"]["1-hop, as written"] == pytest.approx(
        {"recall": 200 / 3, "recall of known": 100.0, "spots": 2 / 3}
    )


def test_a_report_as_json_and_as_a_page() -> None:
    report = Report(notes=["encoder was left out: no torch"])
    report.figures = {
        "a": Figure("this", 2.5, target=3.0),
        "b": Figure("that", 7, unit="ms", target=5.0),
        "c": Figure("least", 1.1, target=1.15, at_least=True),
        "d": Figure("none", 5.0),
    }
    report.counts["nodes"] = 20_000
    result = json.loads(json.dumps(report.to_dict()))
    assert result["rows"]["a"] == {"value": 2.5, "target": 3.0, "met": True}
    assert [figure.met for figure in report.figures.values()] == [True, False, False, None]
    page = speed.markdown_page(report)
    for said in (
        "| this | 2.5 times | at most 3 times |",
        "| that | 7 ms | at most 5 ms (missed) |",
        "20,000",
        "no torch",
    ):
        assert said in page


def test_parts_are_run_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speed_parts, "IMPORTS", 1)
    files = [tmp_path / "speed.json", tmp_path / "docs" / "speed.md"]
    assert speed.main(["--only", "import", "--json", str(files[0]), "--markdown", str(files[1])]) == 0
    assert "import" in json.loads(files[0].read_text())["rows"]
    assert files[1].read_text().startswith("# Speed")
    with pytest.raises(InvalidInput, match="'nothing'"):
        speed.measure(["nothing"])
