"""SAGE's edges by percentile and logic, what the signals say, and the page of both."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests_support import HashingEncoder

from graphret.errors import InvalidInput
from graphret.evaluation import bench_sage, load_ottqa, render
from graphret.explain import edge_page, write_edge_page
from graphret.sage import SageGraph, SageSettings, SimilaritySettings
from graphret.sage.edge_statistics import (
    correlation,
    counts_per_node,
    edge_counts,
    pair_statistics,
    with_similarity,
)
from graphret.types import Node

pytestmark = pytest.mark.filterwarnings("ignore:links add little")

KINDS = ["document-document", "document-table", "table-table"]


@pytest.fixture(scope="module")
def result(ottqa: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GRAPHRET_CACHE", str(tmp_path_factory.mktemp("cache")))
        return bench_sage(
            ottqa,
            k=[2, 5],
            limit=6,
            percentiles=[50, 80, 95],
            encoder=HashingEncoder(),
        )


@pytest.fixture(scope="module")
def graph(ottqa: Path) -> SageGraph:
    nodes = load_ottqa(ottqa).nodes
    return SageGraph.from_nodes(
        nodes, encoder=HashingEncoder(), metadata=None, settings=SageSettings.paper()
    )


def test_edges_fall_with_the_percentile_and_by_all_signals_there_are_fewer(
    result: dict[str, Any],
) -> None:
    rows = result["rows"]
    edges = {
        (logic, percentile): rows[f"ottqa/edges/{logic} {percentile}"]["edges"]
        for logic in ("or", "and")
        for percentile in (50, 80, 95)
    }
    for logic in ("or", "and"):
        assert edges[logic, 50] >= edges[logic, 80] >= edges[logic, 95]
    for percentile in (50, 80, 95):
        assert edges["or", percentile] > edges["and", percentile]
    row = rows["ottqa/edges/or 80"]
    n_nodes = 10  # four tables and six passages
    assert row["degree"] == pytest.approx(2 * row["edges"] / n_nodes)
    assert row["density"] == pytest.approx(row["edges"] / 45, abs=1e-6)
    assert sum(rows["ottqa/kinds/or 80"].values()) == row["edges"]
    assert [*result["shown"]["ottqa/kinds"]] == KINDS
    assert 0 <= row["recall@2"] <= row["recall@5"] <= 100
    assert rows["ottqa/edges/flat"].keys() == {"recall@2", "recall@5"}
    gain = result["intervals"]["ottqa/edges/or 80"]["recall@5"]["gain"]
    assert gain == pytest.approx(
        row["recall@5"] - rows["ottqa/edges/flat"]["recall@5"], abs=0.02
    )
    json.dumps(result, allow_nan=False)


@pytest.mark.parametrize(("percentile", "logic"), [(80.0, "or"), (60.0, "and")])
def test_a_swept_graph_is_the_one_that_is_built_so(
    percentile: float, logic: Any, graph: SageGraph
) -> None:
    settings = SageSettings(
        similarity=SimilaritySettings(percentile=percentile, logic=logic),
        links=graph.settings.links,
    )
    built = SageGraph.from_nodes(
        list(graph.nodes), encoder=HashingEncoder(), metadata=None, settings=settings
    )
    swept = with_similarity(graph, percentile, logic)
    ids = graph.nodes.ids
    assert list(swept.edges.edges(ids)) == list(built.edges.edges(ids))
    assert edge_counts(swept, 45) == edge_counts(built, 45)


def test_what_signals_say_of_pairs_is_counted_as_by_hand(graph: SageGraph) -> None:
    found = {one.kind: one for one in pair_statistics(graph)}
    assert sorted(found) == KINDS
    tables = found["table-table"]
    assert tables.pairs == 6  # of four tables
    assert [*tables.means] == [
        "column_similarity",
        "title_similarity",
        "description_similarity",
        "entity_count",
    ]
    assert tables.means["column_similarity"] == 1.0  # all have the same header
    assert tables.correlations[0] == [None] * 4  # it does not vary
    assert tables.correlations[1][1] == 1.0
    assert sum(tables.histograms["title_similarity"].counts) == 6
    names = [set(node.properties["entities"]) for node in graph.nodes]
    tabular = [
        own for own, node in zip(names, graph.nodes, strict=True) if "#" in node.id
    ]
    shared = [
        len(one & other)
        for nth, one in enumerate(tabular)
        for other in tabular[nth + 1 :]
    ]
    assert tables.means["entity_count"] == pytest.approx(np.mean(shared))
    counted = counts_per_node(graph, "entities")
    assert {role: sum(counts) for role, counts in counted.items()} == {
        "document": 6,
        "table": 4,
    }


def test_a_models_events_and_relationships_count_too() -> None:
    told: dict[str, tuple[list[str], list[list[str]]]] = {
        "a": (["1815: a birth", "a war"], [["Ada", "wrote", "Notes"]]),
        "b": (
            ["1815: a birth"],
            [["Ada", "wrote", "Notes"], ["Ada", "met", "Babbage"]],
        ),
        "c": ([], []),
    }
    nodes = [
        Node(id_, ("Document",), id_, f"{id_} text", {"events": e, "relationships": r})
        for id_, (e, r) in told.items()
    ]
    graph = SageGraph.from_nodes(nodes, encoder=HashingEncoder(), metadata=None)
    (found,) = pair_statistics(graph)
    assert found.means["event_count"] == pytest.approx(1 / 3)
    assert found.means["entity_relationship_overlap"] == 0.5  # known of one pair


def test_correlations_are_pearsons_over_what_is_known_of_both() -> None:
    unknown = math.nan
    one = np.asarray([0.1, 0.2, unknown, 0.4, 0.9])
    other = np.asarray([1.0, 2.0, 9.0, 4.0, unknown])
    assert correlation(one, other) == 1.0
    assert correlation(one, -other) == -1.0
    assert correlation(one, np.full(5, 0.3)) is None
    assert correlation(one[:1], other[:1]) is None


def test_the_result_is_shown_and_drawn(result: dict[str, Any], tmp_path: Path) -> None:
    page = write_edge_page(tmp_path / "new" / "edges.html", result).read_text()
    assert page == edge_page(result)
    for said in (
        "edges of 45 candidates",
        "or 95",
        "topic_title_similarity",
        "<circle",
    ):
        assert said in page
    assert page.count("<polyline") == 2 * len(result["shown"]["ottqa/edges"])
    hostile = result | {"notes": ["<script>alert(1)</script>"]}
    assert "<script>alert" not in edge_page(hostile)
    from io import StringIO

    from rich.console import Console

    out = StringIO()
    Console(file=out, width=200).print(render(result))
    for said in ("% cand.", "and 95", "(2) content_similarity", "recall@5"):
        assert said in out.getvalue()


def test_what_cannot_be_swept_is_refused(ottqa: Path) -> None:
    with pytest.raises(InvalidInput, match="encoder"):
        bench_sage(ottqa, encoder=None)
    with pytest.raises(InvalidInput, match="101"):
        bench_sage(ottqa, limit=1, encoder=HashingEncoder(), percentiles=[101])
