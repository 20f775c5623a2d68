"""What a graph says of itself: its size, its names, and that it cannot help."""

from __future__ import annotations

import json
import sys
import warnings
from dataclasses import replace
from pathlib import Path

import pytest

from graphret import Document, Edge, Node, SageGraph
from graphret.edges import EdgeTable
from graphret.errors import MissingDependency
from graphret.nodes import NodeTable
from graphret.sage.report import GraphReport

PLACES = ["Aswan", "Bergen", "Cadiz", "Delft", "Essen", "Faro", "Ghent", "Hull", "Izmir", "Jaffa", "Kotor", "Lucca"]
DOCUMENTS = [
    Document(f"{place} is on the water. It is {i * 17} km from {PLACES[i - 1]}.", id=place, title=place)
    for i, place in enumerate(PLACES)
]


def build(documents: list[Document], **options: object) -> tuple[SageGraph, list[str]]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        graph = SageGraph.build(documents, encoder=None, metadata=None, **options)  # type: ignore[arg-type]
    return graph, [str(one.message) for one in caught if one.category is UserWarning]


@pytest.mark.parametrize(
    ("titles", "reason"),
    [
        ([""] * 12, "12 are without a name"),
        (["-"] * 12, "12 are named '-'"),
        ([*["places.csv"] * 5, *"abcdefg"], "5 are named 'places.csv'"),
        ([f"file_{i}.txt" for i in range(12)], "0 are linked to another"),
    ],
)
def test_a_graph_that_cannot_help_says_why_and_what_to_do(titles: list[str], reason: str) -> None:
    _, (said,) = build([replace(one, title=title) for one, title in zip(DOCUMENTS, titles, strict=True)])
    for part in (f"of 12 documents, tables and records {reason}", "metadata['title']", "docs/concepts/expansion.md"):
        assert part in said


@pytest.mark.parametrize(
    ("documents", "options"),
    [
        ([replace(one, title="") for one in DOCUMENTS[:9]], {}),  # few
        ([replace(DOCUMENTS[0], text="They sail. " * 400, title="-")], {"chunker": "sentence"}),  # chunks of one
        ([*DOCUMENTS[:9], *(replace(one, title="") for one in DOCUMENTS[9:])], {}),
    ],
)
def test_one_that_can_says_nothing(documents: list[Document], options: dict[str, object]) -> None:
    assert build(documents, **options)[1] == []


def test_a_report_counts_names() -> None:
    graph, _ = build([*DOCUMENTS, *(Document(f"Note {i}.", title="[note]") for i in range(3)), Document("Nameless.")])
    report = graph.report()
    assert json.loads(json.dumps(report.to_dict()))["named"] == report.named == 15 / 16
    assert list(report.names.items())[:2] == [("[note]", 3), ("Aswan", 1)]
    assert len(report.names) == 10
    assert all(said in str(report) for said in ("93.8%", "[note]"))
    assert repr(graph) == f"SageGraph(16 nodes, {report.edges} edges; encoder None)"


def report() -> GraphReport:
    names = {f"s{i}": ("Document",) for i in range(5)} | {"r": ("Product", "Thing")}
    nodes = NodeTable.of(Node(id_, labels) for id_, labels in names.items())
    edges = [Edge("s0", "A", "s1"), Edge("s1", "B", "s0"), Edge("s1", "A", "s2"), Edge("s4", "A", "s4")]
    return GraphReport.of(nodes, EdgeTable.of(nodes, edges), {"document-document": {"topic_similarity": 0.5}})


def test_a_report_counts() -> None:
    found = report()
    assert (found.nodes, found.edges, found.pairs, found.components, found.isolated) == (6, 4, 2, 4, 3)
    assert found.largest_component == 3
    assert found.labels == {"Document": 5, "Product": 1, "Thing": 1}
    assert found.relations == {"A": 3, "B": 1}
    assert found.degree == {"min": 0, "median": 0.5, "mean": pytest.approx(4 / 6), "p90": 1.5, "max": 2}
    assert {k: v for k, v in found.histogram.items() if v} == {"0": 3, "1": 2, "2": 1}
    assert found.density == pytest.approx(2 / 15)
    for expected in ("nodes", "topic_similarity", "isolated", "3-5"):
        assert (expected in str(found)) == (expected != "3-5")
    nothing = GraphReport.of(NodeTable.of([]), EdgeTable.empty(0))
    assert (nothing.nodes, nothing.components, nothing.degree["max"]) == (0, 0, 0)
    assert str(nothing)


def test_a_report_is_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib")
    report().plot(tmp_path / "report.png")
    assert (tmp_path / "report.png").read_bytes().startswith(b"\x89PNG")
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingDependency, match="plot"):
        report().plot(tmp_path / "report.pdf")
