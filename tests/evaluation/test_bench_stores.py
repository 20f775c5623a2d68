"""The benchmark of stores: what it builds and how it reports; no time is judged here."""

from __future__ import annotations

from benchmarks import bench_stores, speed
from benchmarks.figures import Report

from graphret.stores import MemoryStore


def test_the_columns_are_a_graph_and_the_same_every_time() -> None:
    given = bench_stores.columns(200, 5)
    again = bench_stores.columns(200, 5)
    assert all(
        (given[name] == again[name]) if isinstance(given[name], list) else (given[name] == again[name]).all()
        for name in given
    )
    store = MemoryStore.from_arrays(given.pop("ids"), **given)
    assert store.count()[0] == 200
    assert 950 < store.count()[1] <= 1000
    assert len(store.schema().labels) == bench_stores.LABELS
    assert len(store.schema().relation_names) == bench_stores.RELATIONS


def test_the_part_adds_its_figures_and_counts() -> None:
    report = Report()
    bench_stores.stores(report, 2000, 5)
    assert set(report.figures) == {
        "store build",
        "store build, bare",
        "store memory",
        "store open",
        "store neighbors",
        "store upsert",
    }
    assert report.counts["stores/nodes"] == 2000
    assert report.counts["stores/neighbors found"] > 50
    assert all(figure.value > 0 for figure in report.figures.values())
    assert speed.PARTS["stores"] is bench_stores.stores
