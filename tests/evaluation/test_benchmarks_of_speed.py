"""The benchmarks of speed run, small, and report; no time is judged here."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from benchmarks import bench_ark_hub, bench_search, bench_stores, speed, speed_parts
from benchmarks.figures import Figure, Report


@pytest.mark.parametrize(
    ("part", "figures", "counts"),
    [
        (partial(speed_parts.edges, n=300), {"edges"}, {"edges/nodes": 300}),
        (partial(speed_parts.scale, small=100, large=1000, degree=3), {"scale paper"}, {"scale/nodes, 1,000": 1000}),
        (partial(bench_search.lexical, n=1200), {"search rank_bm25", "search bm25s"}, {"search/nodes": 1200}),
        (partial(bench_search.hnsw, n=500), {"hnsw recall", "hnsw exact"}, {"hnsw/nodes": 500}),
        (partial(bench_search.spotting, n=1500), {"spot", "spot built"}, {}),
        (partial(bench_stores.stores, n_nodes=2000, degree=5), {"store build", "store open"}, {"stores/nodes": 2000}),
        (partial(bench_ark_hub.whole, n=500), {"ark hub"}, {"ark hub/neighbours": 500}),
    ],
)
def test_a_part_adds_its_figures_and_counts(
    part: Callable[[Report], None], figures: set[str], counts: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench_ark_hub, "ROUNDS", 2)
    report = Report()
    part(report)
    assert figures <= set(report.figures)
    assert counts.items() <= report.counts.items()
    assert all(figure.value > 0 for figure in report.figures.values())


def test_parts_are_run_by_name_and_make_a_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def part(report: Report) -> None:
        report.notes.append("encoder was left out: no torch")
        report.figures |= {"a": Figure("this", 2.5, target=3.0), "b": Figure("that", 7, unit="ms", target=5.0)}
        report.add("c", "least", 1.1, target=1.0, at_least=True)
        report.counts["nodes"] = 20_000

    monkeypatch.setitem(speed.PARTS, "import", part)
    speed.main(["--only", "import", "--markdown", str(tmp_path / "speed.md")])
    page = (tmp_path / "speed.md").read_text()
    assert page.startswith("# Speed")
    for said in (
        "| this | 2.5 times | at most 3 times |",
        "| that | 7 ms | at most 5 ms (missed) |",
        "| least | 1.1 times | at least 1 times |",
        "20,000",
        "no torch",
    ):
        assert said in page
    with pytest.raises(SystemExit):
        speed.main(["--only", "nothing"])
