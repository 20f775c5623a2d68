"""A `SageGraph` in any store: written, brought up to date, and read back, it gives the same hits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from corpora import BALLPARKS, QUESTION
from tests_support import HashingEncoder

from graphret.corpus import Document
from graphret.errors import InvalidInput
from graphret.sage import SageGraph, SageSettings
from graphret.sage.persistence import MARK
from graphret.stores import MemoryStore
from graphret.stores.base import GraphStore
from graphret.stores.ladybug import LadybugStore
from graphret.stores.neo4j import Neo4jStore
from graphret.types import Edge, Node

QUESTIONS = [QUESTION, "Which pilots played at Sick's Stadium?", "teams", "nothing of the kind"]
RANKINGS = ["coverage", "propagate", "paper"]


@pytest.fixture(params=["memory", "ladybug", "neo4j"])
def store(request: pytest.FixtureRequest) -> Iterator[GraphStore]:
    if request.param == "memory":
        yield MemoryStore()
    elif request.param == "neo4j":
        yield Neo4jStore.from_driver(request.getfixturevalue("neo4j_empty"))
    else:
        with LadybugStore(":memory:") as opened:
            yield opened


@pytest.fixture(params=["lexical", "encoder"])
def graph(request: pytest.FixtureRequest) -> SageGraph:
    return SageGraph.build(BALLPARKS, encoder=None if request.param == "lexical" else HashingEncoder())


def read(store: GraphStore, graph: SageGraph, **options: Any) -> SageGraph:
    return SageGraph.from_store(store, encoder=HashingEncoder() if graph.encoder else None, **options)


def hits(graph: SageGraph) -> list[Any]:
    answers = [graph.retriever(ranking).retrieve(question, 5) for ranking in RANKINGS for question in QUESTIONS]
    return [[(hit.node, hit.score, hit.evidence) for hit in answer] for answer in answers]


def test_the_same_hits_come_from_a_store_however_it_changed(graph: SageGraph, store: GraphStore) -> None:
    for change in (
        lambda: None,
        lambda: graph.add([Document("The Aqua Sox play in Everett, near Seattle.", id="sox", title="Aqua Sox")]),
        lambda: graph.remove(["sox", "pilots"]),
    ):
        change()
        graph.write_to(store)
        assert store.count() == (len(graph.nodes), len(graph.edges))
        again = read(store, graph)
        assert list(again.nodes) == list(graph.nodes)
        assert list(again.edges.edges(again.nodes.ids)) == list(graph.edges.edges(graph.nodes.ids))
        assert hits(again) == hits(graph)
    where = {"source_id": {"$ne": "sicks"}}
    assert hits(read(store.view(where), graph)) == hits(graph.view(where)) == hits(again.view(where))
    with pytest.raises(InvalidInput, match="store"):
        again.add([Document("x", id="x")])


def test_only_what_differs_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    store, graph = MemoryStore(), SageGraph.build(BALLPARKS, encoder=None)
    graph.write_to(store)
    graph.add([Document("The Aqua Sox play in Everett.", id="sox", title="Aqua Sox")])
    written: list[Node] = []
    monkeypatch.setattr(store, "upsert", lambda nodes=(), edges=(): written.extend(nodes))
    graph.write_to(store)
    assert [node.id for node in written] == ["sox#0"]


def test_every_kind_of_edge_is_in_the_store_with_its_properties(store: GraphStore) -> None:
    graph = SageGraph.build(BALLPARKS, encoder=HashingEncoder())
    graph.write_to(store)
    assert set(store.schema().relation_names) == set(graph.edges.relations)
    assert {"IS_SIMILAR", "MENTIONS", "SHARES_ENTITY"} <= set(graph.edges.relations)
    found = store.neighbors(["teams#0"], relations=["MENTIONS"])
    assert any(edge.properties.get("source_row") == 0 and edge.properties.get("column") == "Park" for edge in found)


def test_two_graphs_and_nodes_of_others_share_a_store(store: GraphStore) -> None:
    first, second = SageGraph.build(BALLPARKS[:2], encoder=None), SageGraph.build(BALLPARKS[2:], encoder=None)
    mine = Node("mine", ("Note",), "A note")
    store.upsert([mine])
    first.write_to(store, name="first")
    second.write_to(store, name="second")
    theirs = [Edge("mine", "ABOUT", "teams#0", 2.0), Edge("teams#0", "SEEN_BY", "mine")]
    store.upsert(edges=theirs)
    second.remove(["opera"])
    second.write_to(store, name="second")
    assert list(SageGraph.from_store(store, name="first", encoder=None).nodes) == list(first.nodes)
    assert list(SageGraph.from_store(store, name="second", encoder=None).nodes) == list(second.nodes)
    assert store.get(["mine"]) == [mine]
    assert store.count() == (len(first) + len(second) + 1, len(first.edges) + len(second.edges) + len(theirs))
    with pytest.raises(InvalidInput, match="third"):
        SageGraph.from_store(store, name="third", encoder=None)
    with pytest.raises(InvalidInput, match="not the graph's"):
        first.write_to(store, name="second")
    assert list(SageGraph.from_store(store, name="second", encoder=None).nodes) == list(second.nodes)


def test_properties_of_every_kind_come_back(store: GraphStore) -> None:
    deep = {"none": None, "deep": {"a": [1, None]}, "mixed": [1, "a"], "rows": [["a"], []], "big": 2**70, "n": 1.5}
    graph = SageGraph.from_nodes([Node("a", ("T",), "A", "alpha", deep), Node("b")], encoder=None, metadata=None)
    graph.write_to(store)
    assert list(read(store, graph).nodes) == list(graph.nodes)
    assert [n.id for block in store.nodes(where={"n": {"$gt": 1}}) for n in block] == ["a"]
    with pytest.raises(InvalidInput, match=MARK):
        SageGraph.from_nodes([Node("a", properties={MARK: "x"})], encoder=None, metadata=None).write_to(store)


def test_settings_are_those_of_the_graph() -> None:
    store, settings = MemoryStore(), SageSettings(alpha=0.9)
    graph = SageGraph.build(BALLPARKS, encoder=HashingEncoder(), settings=settings)
    graph.write_to(store)
    assert hits(read(store, graph, settings=settings)) == hits(graph)
    assert SageGraph.from_store(store, encoder=None).encoder is None
