"""The benchmarks of speed run, small, and report; no time is judged here."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
from benchmarks import bench_ark_hub, bench_search, bench_stores, speed_parts
from benchmarks.figures import Report


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
