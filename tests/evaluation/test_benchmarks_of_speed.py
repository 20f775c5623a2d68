"""The benchmarks of speed run, small, and report; no time is judged here."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from benchmarks import bench_ark_hub, bench_search, bench_stores, speed, speed_parts
from benchmarks.figures import Figure, Report

from graphret.errors import InvalidInput


@pytest.mark.parametrize(
    ("part", "figures", "counts"),
    [
        (partial(speed_parts.scale, small=100, large=1000, degree=3), {"scale paper"}, {"scale/edges, 1,000": 3000}),
        (partial(bench_search.lexical, n=1200), {"search rank_bm25", "search bm25s"}, {"search/nodes": 1200}),
        (partial(bench_search.spotting, n=1500), {"spot", "spot built"}, {}),
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
