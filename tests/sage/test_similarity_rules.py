"""Percentiles, OR and AND, shared entities, structure, and what a report counts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from similarity_helpers import HashEncoder, document, table

from graphret.edges import EdgeTable
from graphret.errors import MissingDependency
from graphret.nodes import NodeTable
from graphret.sage.facts import Facts
from graphret.sage.overlap import OverlapPairs, overlap_pairs
from graphret.sage.report import GraphReport
from graphret.sage.settings import SimilaritySettings
from graphret.sage.similarity import Candidates, fit_thresholds, passing
from graphret.sage.similarity_index import SimilarityIndex
from graphret.sage.structure import structure_edges
from graphret.types import Edge, Node

NO_OVERLAP = OverlapPairs(*(np.zeros(0, np.int64),) * 2, np.zeros(0, np.int8), np.zeros(0, np.float32))


def candidates(**values: list[float]) -> Candidates:
    n = len(next(iter(values.values())))
    columns = {name: np.asarray(column, np.float32) for name, column in values.items()}
    return Candidates("document-document", np.zeros(n, np.int64), np.arange(1, n + 1), columns)


def test_a_threshold_is_the_percentile_of_what_is_known() -> None:
    group = candidates(topic_similarity=[0.1, 0.2, 0.3, 0.4, np.nan], content_similarity=[np.nan] * 5)
    fitted = fit_thresholds([group], NO_OVERLAP, 50)
    assert fitted == {("document-document", "topic_similarity"): pytest.approx(0.25)}
    # the q-th percentile of n sorted values lies at place q / 100 * (n - 1), between neighbours in proportion
    place = 0.95 * 3
    expected = 0.3 + (place - 2) * (0.4 - 0.3)
    assert fit_thresholds([group], NO_OVERLAP, 95)["document-document", "topic_similarity"] == pytest.approx(expected)


def test_given_thresholds_stay_and_missing_ones_are_fitted() -> None:
    group = candidates(topic_similarity=[0.1, 0.3], content_similarity=[0.5, 0.5])
    fitted = fit_thresholds([group], NO_OVERLAP, 95, {("document-document", "topic_similarity"): 0.9})
    assert dict(fitted) == {
        ("document-document", "topic_similarity"): 0.9,
        ("document-document", "content_similarity"): 0.5,
    }


def test_or_needs_one_signal_and_and_needs_all() -> None:
    nan = np.nan
    group = candidates(
        topic_similarity=[0.9, 0.9, 0.1, nan, 0.9, 0.1],
        content_similarity=[0.9, 0.1, 0.1, 0.9, 0.9, 0.1],
        entity_count=[1, 0, 0, 0, 0, 5],
    )
    limits = dict.fromkeys(
        [("document-document", "topic_similarity"), ("document-document", "content_similarity")], 0.9
    )
    limits = {key: float(np.float32(value)) for key, value in limits.items()}
    assert passing(group, limits, "or").tolist() == [True, True, False, True, True, False]
    assert passing(group, limits, "and").tolist() == [True, False, False, False, True, False]
    limits["document-document", "entity_count"] = 1.0
    assert passing(group, limits, "or").tolist() == [True, True, False, True, True, False]
    assert passing(group, limits, "and").tolist() == [True, False, False, False, False, False]
    assert not passing(group, {}, "or").any()
    assert not passing(group, {}, "and").any()


def test_and_is_sparser_than_or() -> None:
    rng = np.random.default_rng(0)
    words = [f"w{i}" for i in range(40)]
    nodes = [document(f"d{i:03d}", " ".join(rng.choice(words, 5)), " ".join(rng.choice(words, 3))) for i in range(120)]
    counts = {}
    for logic in ("or", "and"):
        for percentile in (80.0, 95.0):
            options = SimilaritySettings(percentile=percentile, logic=logic)  # type: ignore[arg-type]
            edges = SimilarityIndex.build(nodes, HashEncoder(), options).edges()
            counts[logic, percentile] = len(edges)
    assert counts["and", 95.0] < counts["or", 95.0] < counts["or", 80.0]
    assert counts["and", 95.0] <= counts["and", 80.0] < counts["or", 80.0]


def entity_pairs(nodes: list[Node], cap: int = 50, neighbors: int = 20) -> dict[tuple[str, str], float]:
    table_ = NodeTable.of(nodes)
    found = overlap_pairs(Facts.of(table_, cap), neighbors)
    ids = table_.ids
    pairs = zip(found.low.tolist(), found.high.tolist(), found.rarity.tolist(), strict=True)
    return {(ids[i], ids[j]): value for i, j, value in pairs}


def test_shared_entities_weigh_by_rarity() -> None:
    nodes = [document(f"d{i}", "", "", ["Common"]) for i in range(6)]
    nodes += [document("x", "", "", ["Rare Name", "Common"]), document("y", "", "", ["rare  name", "Common"])]
    pairs = entity_pairs(nodes)
    assert pairs["x", "y"] == pytest.approx(1 + np.log1p(8 / 8) / np.log1p(8 / 2), abs=1e-5)
    assert pairs["d0", "x"] == pytest.approx(np.log1p(8 / 8) / np.log1p(8 / 2), abs=1e-5)
    assert entity_pairs(nodes, cap=7) == {("x", "y"): pytest.approx(1, abs=1e-5)}
    assert entity_pairs(nodes, cap=1) == {}


def test_a_node_proposes_only_its_best_pairs() -> None:
    nodes = [document(f"d{i:02d}", "", "", ["E"]) for i in range(40)]
    pairs = entity_pairs(nodes, neighbors=3)
    assert len(pairs) <= 40 * 3
    assert ("d00", "d01") in pairs
    assert ("d38", "d39") not in pairs


def test_overlap_equals_a_direct_count() -> None:
    rng = np.random.default_rng(4)
    names = [f"Name {i}" for i in range(60)]
    nodes = [document(f"d{i:03d}", "", "", list(rng.choice(names, 4))) for i in range(150)]
    sets = {node.id: set(node.properties["entities"]) for node in nodes}
    bearers = {name: sum(name in s for s in sets.values()) for name in names}

    def rarity(a: str, b: str) -> float:
        return sum(np.log1p(150 / bearers[e]) / np.log1p(75) for e in sets[a] & sets[b])

    expected = {(a, b): rarity(a, b) for a in sets for b in sets if a < b and sets[a] & sets[b]}
    found = entity_pairs(nodes, neighbors=150)
    assert found.keys() == expected.keys()
    assert all(found[pair] == pytest.approx(value, abs=1e-4) for pair, value in expected.items())


def test_pairs_of_one_source_are_left_to_structure() -> None:
    nodes = [document(f"d{i}", "", "", ["E"], source_id="a" if i < 2 else "b", chunk_index=i) for i in range(3)]
    assert set(entity_pairs(nodes)) == {("d0", "d2"), ("d1", "d2")}


def chunks(count: int, source: str = "s") -> list[Node]:
    return [document(f"{source}#{i}", "text", source_id=source, chunk_index=i) for i in range(count)]


@pytest.mark.parametrize(("count", "pairs"), [(1, 0), (2, 1), (16, 120), (17, 8 * 17 - 36), (40, 8 * 40 - 36)])
def test_structure_links_all_of_a_small_source_and_a_window_of_a_large_one(count: int, pairs: int) -> None:
    nodes = NodeTable.of([*chunks(count), *chunks(1, "other")])
    edges = list(structure_edges(nodes).edges(nodes.ids))
    assert sum(e.relation == "SAME_SOURCE" for e in edges) == pairs
    following = {(e.source, e.target) for e in edges if e.relation == "NEXT"}
    assert following == {(f"s#{i}", f"s#{i + 1}") for i in range(count - 1)}
    assert all(e.weight == 1 and not e.properties for e in edges)


def test_explicit_edges_are_kept_as_given() -> None:
    nodes = NodeTable.of(chunks(2))
    edge = Edge("s#1", "CITES", "s#0", 0.25, {"page": 3})
    assert edge in list(structure_edges(nodes, [edge]).edges(nodes.ids))


def test_cell_that_contains_the_name_is_found() -> None:
    nodes = NodeTable.of(
        [
            document("d", "", "", ["Cartier Field"]),
            table(
                "t", "Games", ["Date", "Site"], [["May 1", "Home"], ["May 2", "Cartier Field, IN"]], ["Cartier Field"]
            ),
        ]
    )
    edges = SimilarityIndex.build(nodes, None, SimilaritySettings(percentile=0)).edges()
    (edge,) = edges.edges(nodes.ids)
    assert (edge.properties["target_row"], edge.properties["column"]) == (1, "Site")


def report() -> GraphReport:
    nodes = NodeTable.of([*chunks(4), *chunks(1, "t"), Node("r", ("Product", "Thing"))])
    edges = EdgeTable.of(
        nodes, [Edge("s#0", "A", "s#1"), Edge("s#1", "B", "s#0"), Edge("s#1", "A", "s#2"), Edge("t#0", "A", "t#0")]
    )
    return GraphReport.of(nodes, edges, {("document-document", "topic_similarity"): 0.5})


def test_a_report_counts() -> None:
    found = report()
    assert (found.nodes, found.edges, found.pairs, found.components, found.isolated) == (6, 4, 2, 4, 3)
    assert found.largest_component == 3
    assert found.labels == {"Document": 5, "Product": 1, "Thing": 1}
    assert found.relations == {"A": 3, "B": 1}
    assert found.degree == {"min": 0, "median": 0.5, "mean": pytest.approx(4 / 6), "p90": 1.5, "max": 2}
    assert {k: v for k, v in found.histogram.items() if v} == {"0": 3, "1": 2, "2": 1}
    assert found.density == pytest.approx(2 / 15)
    values = json.loads(json.dumps(found.to_dict()))
    assert values["thresholds"] == {"document-document": {"topic_similarity": 0.5}}
    for expected in ("nodes", "topic_similarity", "isolated", "3-5"):
        assert (expected in str(found)) == (expected != "3-5")


def test_a_report_of_nothing() -> None:
    nodes = NodeTable.of([])
    found = GraphReport.of(nodes, EdgeTable.empty(0))
    assert (found.nodes, found.components, found.degree["max"]) == (0, 0, 0)
    assert str(found)


@pytest.mark.parametrize("suffix", ["pdf", "png"])
def test_a_report_is_drawn(tmp_path: Path, suffix: str) -> None:
    pytest.importorskip("matplotlib")
    report().plot(tmp_path / f"report.{suffix}")
    head = (tmp_path / f"report.{suffix}").read_bytes()[:8]
    assert head.startswith(b"%PDF" if suffix == "pdf" else b"\x89PNG")


def test_drawing_without_matplotlib_names_the_extra(monkeypatch: Any, tmp_path: Path) -> None:
    monkeypatch.setitem(__import__("sys").modules, "matplotlib.figure", None)
    with pytest.raises(MissingDependency, match="plot"):
        report().plot(tmp_path / "report.pdf")
