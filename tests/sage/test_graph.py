"""Graphs of documents: made, changed, filtered, saved, and what they say of
themselves.
"""

from __future__ import annotations

import json
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests_support import BALLPARKS, QUESTION, HashingEncoder, edges_of

from graphret import Document, Edge, Node, SageGraph
from graphret.corpus import Corpus, Record
from graphret.edges import EdgeTable
from graphret.errors import InvalidInput
from graphret.nodes import NodeTable
from graphret.sage.report import GraphReport


@pytest.fixture(params=["lexical", "encoder"])
def graph(request: Any) -> SageGraph:
    return SageGraph.build(
        BALLPARKS, encoder=None if request.param == "lexical" else HashingEncoder()
    )


def test_a_row_joins_the_team_to_its_park(graph: SageGraph) -> None:
    answer = graph.retriever().retrieve(QUESTION, 3)
    assert set(answer.ids) == {"pilots#0", "sicks#0", "teams#0"}
    (park,) = [hit for hit in answer if hit.id == "sicks#0"]
    (reason,) = [e for e in park.evidence if e.kind == "neighbor"]
    assert reason.source == "teams#0"
    assert (reason.target, reason.direction) == ("sicks#0", "out")
    assert (
        reason.properties["source_row"] == 1
    )  # as people count, and in the whole table
    assert reason.properties["column"] == "Park"


def test_explicit_edges_are_kept() -> None:
    items = Corpus(
        (Record("drill", text="A drill."), Record("battery", text="A battery.")),
        (Edge("drill", "NEEDS", "battery", 0.7, {"note": "18 V"}),),
    )
    built = SageGraph.build(items, encoder=None)
    built.add([Document("Drills are tools.", id="doc")])
    needs = [e for e in built.edges.edges(built.nodes.ids) if e.relation == "NEEDS"]
    assert needs == [
        Edge("drill", "NEEDS", "battery", pytest.approx(0.7), {"note": "18 V"})
    ]
    built.remove(["battery"])
    assert "NEEDS" not in built.edges.relations


# -- change


def test_chunks_numbered_by_their_time_follow_each_other() -> None:
    times = {"a": 1_764_500_000_002, "b": 1_764_500_000_001}
    nodes = [
        Node(id_, ("Document",), "Log", id_, {"source_id": "log", "chunk_index": time})
        for id_, time in times.items()
    ]
    graph = SageGraph.from_nodes(nodes, encoder=None)
    assert ("b", "NEXT", "a") in {
        (edge.source, edge.relation, edge.target)
        for edge in graph.edges.edges(graph.nodes.ids)
    }


def test_remove_takes_items_and_nodes_and_a_retriever_sees_changes(
    graph: SageGraph,
) -> None:
    retriever = graph.retriever()
    assert graph.remove(["teams", "opera#0"]) == ["opera#0", "teams#0"]
    for ids, error in (
        (["pilots", "teams"], "'teams'"),
        (["pilots", "sicks", "milwaukee", "county"], "empty"),
    ):
        with pytest.raises(InvalidInput, match=error):
            graph.remove(ids)
        assert len(graph) == 4
    graph.add(
        [
            Document(
                "The zeppelin hangar was built in 1913.",
                id="hangar",
                title="Zeppelin hangar",
            )
        ]
    )
    assert retriever.retrieve("zeppelin hangar", 1).ids == ["hangar#0"]


# -- filters and views


def test_where_limits_results_and_a_view_limits_reading(graph: SageGraph) -> None:
    where = {"tenant": "b"}
    answer = graph.retriever().retrieve(QUESTION, 2, where=where)
    assert set(answer.ids) == {"sicks#0", "county#0"}
    assert any(
        e.source == "teams#0" for h in answer for e in h.evidence
    )  # the walk passes through the other tenant
    retrieval = graph.view(where).retriever().retrieve(QUESTION, 10)
    assert set(retrieval.ids) == {"sicks#0", "county#0"}
    assert all(
        e.source in {"sicks#0", "county#0", None} for h in retrieval for e in h.evidence
    )


def test_a_view_cannot_be_changed_or_saved(graph: SageGraph, tmp_path: Path) -> None:
    for view in (graph.view({"tenant": "a"}), graph.view(None)):
        for change in (
            lambda v: v.add([Document("x")]),
            lambda v: v.remove(["pilots"]),
            lambda v: v.refit(),
            lambda v: v.save(tmp_path / "view"),
        ):
            with pytest.raises(InvalidInput, match="view"):
                change(view)
    assert not (tmp_path / "view").exists()


# -- on disk


def test_saved_and_opened_it_maps_memory_and_answers_the_same(
    graph: SageGraph, tmp_path: Path
) -> None:
    graph.save(tmp_path / "graph")
    opened = SageGraph.load(tmp_path / "graph", encoder=graph.encoder)
    assert list(opened.nodes) == list(graph.nodes)
    assert edges_of(opened) == edges_of(graph)
    assert opened.settings == graph.settings
    for ranking in ("coverage", "propagate", "paper"):
        hits = [
            [h.to_dict() for h in same_graph.retriever(ranking).retrieve(QUESTION, 6)]
            for same_graph in (opened, graph)
        ]
        assert hits[0] == hits[1]
    arrays = [
        opened.edges.source,
        opened.edges.weight,
        opened.index.lexical.weights.of_nodes.data,
    ]
    arrays += [opened.index.dense.vectors] if opened.index.dense else []
    assert not any(array.flags.writeable or array.flags.owndata for array in arrays)
    for same_graph in (opened, graph):
        same_graph.add([Document("A new ballpark.", id="new", title="New park")])
    assert edges_of(opened) == edges_of(graph)


def test_an_encoder_is_asked_for_and_without_it_a_graph_is_searched_by_words_and_loses_nothing(
    tmp_path: Path,
) -> None:
    class Other(HashingEncoder):
        name = "other"

    SageGraph.build(BALLPARKS, encoder=HashingEncoder()).save(tmp_path / "graph")
    with pytest.raises(InvalidInput, match=r"hashing-48.*other"):
        SageGraph.load(tmp_path / "graph", encoder=Other())
    opened = SageGraph.load(tmp_path / "graph", encoder=None)
    assert "sicks#0" in opened.retriever().retrieve(QUESTION, 3).ids
    for change in (
        lambda: opened.save(tmp_path / "graph"),
        lambda: opened.remove(["sicks"]),
    ):
        with pytest.raises(InvalidInput, match="without its encoder"):
            change()
    assert (
        SageGraph.load(tmp_path / "graph", encoder=HashingEncoder()).index.dense
        is not None
    )


# -- bad input


def test_what_no_graph_can_be_built_of_is_named(graph: SageGraph) -> None:
    class Broken(HashingEncoder):
        def encode_documents(self, texts: list[str]) -> Any:
            return np.full((len(texts), 4), np.nan, dtype=np.float32)

    for act, error in (
        (lambda: SageGraph.build([], encoder=None), "empty"),
        (lambda: SageGraph.build(BALLPARKS, encoder=Broken()), "NaN"),
        (
            lambda: SageGraph.from_nodes(
                list(graph.nodes), encoder=None, vectors=np.ones((2, 4))
            ),
            "rows",
        ),
        (lambda: graph.retriever(ranking="best").retrieve("q", 1), "best"),
        (lambda: graph.retriever(on_failure="perhaps").retrieve("q", 1), "perhaps"),
    ):
        with pytest.raises(InvalidInput, match=error):
            act()


# -- many at once


def test_readers_see_one_state_while_a_writer_changes_the_graph() -> None:
    built = SageGraph.build(BALLPARKS, encoder=None)
    done = threading.Event()

    def read() -> bool:
        while not done.is_set():
            if (
                len(set(built.retriever().retrieve("zeppelin hangar stadium", 4).ids))
                != 4
            ):
                return False
        return True

    with ThreadPoolExecutor(4) as threads:
        readers = [threads.submit(read) for _ in range(4)]
        try:
            for _ in range(3):
                built.add(
                    [
                        Document(
                            "The zeppelin hangar was built in 1913.",
                            id="hangar",
                            title="Zeppelin hangar",
                        )
                    ]
                )
                built.remove(["hangar"])
        finally:
            done.set()
    assert all(reader.result() for reader in readers)


PLACES = [
    "Aswan",
    "Bergen",
    "Cadiz",
    "Delft",
    "Essen",
    "Faro",
    "Ghent",
    "Hull",
    "Izmir",
    "Jaffa",
    "Kotor",
    "Lucca",
]
DOCUMENTS = [
    Document(
        f"{place} is on the water. It is {i * 17} km from {PLACES[i - 1]}.",
        id=place,
        title=place,
    )
    for i, place in enumerate(PLACES)
]


def build(documents: list[Document], **options: object) -> tuple[SageGraph, list[str]]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        graph = SageGraph.build(documents, encoder=None, metadata=None, **options)  # type: ignore[arg-type]
    return graph, [
        str(warning.message) for warning in caught if warning.category is UserWarning
    ]


@pytest.mark.parametrize(
    ("titles", "reason"),
    [
        ([""] * 12, "12 are without a name"),
        (["-"] * 12, "12 are named '-'"),
        ([*["places.csv"] * 5, *"abcdefg"], "5 are named 'places.csv'"),
        ([f"file_{i}.txt" for i in range(12)], "0 are linked to another"),
    ],
)
def test_a_graph_that_cannot_help_says_why_and_what_to_do(
    titles: list[str], reason: str
) -> None:
    _, (message,) = build(
        [
            replace(document, title=title)
            for document, title in zip(DOCUMENTS, titles, strict=True)
        ]
    )
    for part in (
        f"of 12 documents, tables and records {reason}",
        "metadata['title']",
        "docs/concepts/expansion.md",
    ):
        assert part in message


@pytest.mark.parametrize(
    ("documents", "options"),
    [
        ([replace(one, title="") for one in DOCUMENTS[:9]], {}),  # few
        (
            [replace(DOCUMENTS[0], text="They sail. " * 400, title="-")],
            {"chunker": "sentence"},
        ),  # chunks of one
        ([*DOCUMENTS[:9], *(replace(one, title="") for one in DOCUMENTS[9:])], {}),
    ],
)
def test_one_that_can_says_nothing(
    documents: list[Document], options: dict[str, object]
) -> None:
    assert build(documents, **options)[1] == []


def test_a_report_counts_names() -> None:
    graph, _ = build(
        [
            *DOCUMENTS,
            *(Document(f"Note {i}.", title="[note]") for i in range(3)),
            Document("Nameless."),
        ]
    )
    report = graph.report()
    assert json.loads(json.dumps(report.to_dict()))["named"] == report.named == 15 / 16
    assert list(report.names.items())[:2] == [("[note]", 3), ("Aswan", 1)]
    assert len(report.names) == 10
    assert all(expected in str(report) for expected in ("93.8%", "[note]"))
    assert repr(graph) == f"SageGraph(16 nodes, {report.edges} edges; encoder None)"


def report() -> GraphReport:
    names = {f"s{i}": ("Document",) for i in range(5)} | {"r": ("Product", "Thing")}
    nodes = NodeTable.of(Node(id_, labels) for id_, labels in names.items())
    edges = [
        Edge("s0", "A", "s1"),
        Edge("s1", "B", "s0"),
        Edge("s1", "A", "s2"),
        Edge("s4", "A", "s4"),
    ]
    return GraphReport.of(
        nodes,
        EdgeTable.of(nodes, edges),
        {"document-document": {"topic_similarity": 0.5}},
    )


def test_a_report_counts() -> None:
    counts = report()
    assert (
        counts.nodes,
        counts.edges,
        counts.pairs,
        counts.components,
        counts.isolated,
    ) == (6, 4, 2, 4, 3)
    assert counts.largest_component == 3
    assert counts.labels == {"Document": 5, "Product": 1, "Thing": 1}
    assert counts.relations == {"A": 3, "B": 1}
    assert counts.degree == {
        "min": 0,
        "median": 0.5,
        "mean": pytest.approx(4 / 6),
        "p90": 1.5,
        "max": 2,
    }
    assert {k: v for k, v in counts.histogram.items() if v} == {"0": 3, "1": 2, "2": 1}
    assert counts.density == pytest.approx(2 / 15)
    for expected in ("nodes", "topic_similarity", "isolated", "3-5"):
        assert (expected in str(counts)) == (expected != "3-5")
    nothing = GraphReport.of(NodeTable.of([]), EdgeTable.empty(0))
    assert (nothing.nodes, nothing.components, nothing.degree["max"]) == (0, 0, 0)
    assert str(nothing)
