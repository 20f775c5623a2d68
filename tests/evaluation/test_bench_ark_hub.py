"""The benchmark of a hub: what it builds and how it reports; no time is judged here."""

from __future__ import annotations

from benchmarks import bench_ark_hub, speed
from benchmarks.figures import Report


def test_the_hub_has_the_neighbours_that_it_says() -> None:
    store = bench_ark_hub.hub(300)
    edges = store.neighbors(["hub"])
    assert {edge.source for edge in edges} | {edge.target for edge in edges} >= {f"n{i:07d}" for i in range(300)}
    assert {edge.source == "hub" for edge in edges} == {True, False}
    assert [list(block) for block in store.nodes()] == [list(block) for block in bench_ark_hub.hub(300).nodes()]


def test_the_part_adds_its_figures_and_counts() -> None:
    report = Report()
    bench_ark_hub.memory(report, 500)
    assert set(report.figures) == {"ark hub", "ark hub tokens", "ark hub memory first", "ark hub memory following"}
    assert report.figures["ark hub tokens"].met
    assert report.counts["ark hub/neighbours"] == 500
    assert len([name for name in report.seconds if name.startswith("ark hub/")]) == 16 + 20 + 1
    assert speed.PARTS["ark hub"] is bench_ark_hub.whole
