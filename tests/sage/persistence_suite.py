"""What a `SageGraph` does in any store: written, brought up to date, and read back, it gives the same hits."""

from __future__ import annotations

from typing import Any

import pytest
from corpora import BALLPARKS, QUESTION
from tests_support import HashingEncoder

from graphret.corpus import Document
from graphret.errors import InvalidInput
from graphret.sage import SageGraph, SageSettings
from graphret.sage.persistence import EMBEDDING, MARK, Written
from graphret.stores.base import GraphStore
from graphret.types import Edge, Node, Retrieval

QUESTIONS = [QUESTION, "Which pilots played at Sick's Stadium?", "teams", "nothing of the kind"]
RANKINGS = ["coverage", "propagate", "paper"]


def again(store: GraphStore, graph: SageGraph, **options: Any) -> SageGraph:
    return SageGraph.from_store(store, encoder=HashingEncoder() if graph.encoder else None, **options)


def answers(graph: SageGraph) -> list[Retrieval]:
    return [graph.retriever(ranking).retrieve(question, 5) for ranking in RANKINGS for question in QUESTIONS]


def hits(graph: SageGraph) -> list[Any]:
    return [[(hit.node, hit.score, hit.evidence) for hit in answer] for answer in answers(graph)]


class PersistenceSuite:
    """Give the fixture `store`: an empty store for each test."""

    @pytest.fixture(params=["lexical", "encoder"])
    def graph(self, request: Any) -> SageGraph:
        return SageGraph.build(BALLPARKS, encoder=None if request.param == "lexical" else HashingEncoder())

    def test_the_same_hits_come_from_a_store(self, graph: SageGraph, store: GraphStore) -> None:
        done = graph.write_to(store)
        assert done == Written(len(graph.nodes), len(graph.edges))
        assert store.count() == (len(graph.nodes), len(graph.edges))
        read = again(store, graph)
        assert list(read.nodes) == list(graph.nodes)
        assert list(read.edges.edges(read.nodes.ids)) == list(graph.edges.edges(graph.nodes.ids))
        assert hits(read) == hits(graph)

    def test_every_kind_of_edge_is_in_the_store_with_its_properties(self, store: GraphStore) -> None:
        graph = SageGraph.build(BALLPARKS, encoder=HashingEncoder())
        graph.write_to(store)
        assert set(store.schema().relation_names) == set(graph.edges.relations)
        assert {"IS_SIMILAR", "MENTIONS", "SHARES_ENTITY"} <= set(graph.edges.relations)
        found = store.neighbors(["teams#0"], relations=["MENTIONS"])
        assert any(edge.properties.get("source_row") == 0 and edge.properties.get("column") == "Park" for edge in found)
        (node,) = store.get(["teams#0"])
        assert node is not None
        assert len(node.properties[EMBEDDING]) == graph.index.dense.vectors.shape[1]  # type: ignore[union-attr]

    def test_embeddings_in_the_store_are_not_made_again(self, store: GraphStore) -> None:
        SageGraph.build(BALLPARKS, encoder=HashingEncoder()).write_to(store)
        encoder = HashingEncoder()
        SageGraph.from_store(store, encoder=encoder)
        assert encoder.encoded == []

    def test_without_embeddings_in_the_store_nodes_are_embedded(self, store: GraphStore) -> None:
        graph = SageGraph.build(BALLPARKS, encoder=HashingEncoder())
        graph.write_to(store, embeddings=False)
        assert hits(again(store, graph)) == hits(graph)

    def test_a_second_write_writes_what_differs(self, graph: SageGraph, store: GraphStore) -> None:
        graph.write_to(store)
        assert graph.write_to(store) == Written()
        graph.add([Document("The Aqua Sox play in Everett, near Seattle.", id="sox", title="Aqua Sox")])
        done = graph.write_to(store)
        assert done.nodes > 0
        assert hits(again(store, graph)) == hits(graph)
        graph.remove(["sox", "pilots"])
        assert graph.write_to(store).nodes_removed >= 2
        assert store.count() == (len(graph.nodes), len(graph.edges))
        assert hits(again(store, graph)) == hits(graph)

    def test_edges_that_the_graph_lost_go_and_those_of_others_stay(self, store: GraphStore) -> None:
        graph = SageGraph.build(BALLPARKS, encoder=None, edges=[Edge("teams", "NEEDS", "sicks", 0.5)])
        store.upsert([Node("mine", ("Note",), "A note")])
        graph.write_to(store)
        store.upsert(edges=[Edge("mine", "ABOUT", "teams#0", 2.0), Edge("teams#0", "SEEN_BY", "mine")])
        without = SageGraph.build(BALLPARKS, encoder=None)
        assert without.write_to(store).edges_removed >= 1
        edges = {(edge.source, edge.relation, edge.target) for block in store.edges() for edge in block}
        assert {("mine", "ABOUT", "teams#0"), ("teams#0", "SEEN_BY", "mine")} <= edges
        assert "NEEDS" not in {relation for _, relation, _ in edges}
        assert store.count() == (len(without.nodes) + 1, len(without.edges) + 2)
        assert hits(again(store, without)) == hits(without)

    def test_two_graphs_and_other_nodes_share_a_store(self, store: GraphStore) -> None:
        first, second = SageGraph.build(BALLPARKS[:2], encoder=None), SageGraph.build(BALLPARKS[2:], encoder=None)
        store.upsert([Node("mine", ("Note",), "A note")])
        first.write_to(store, name="first")
        second.write_to(store, name="second")
        assert list(SageGraph.from_store(store, name="first").nodes) == list(first.nodes)
        assert list(SageGraph.from_store(store, name="second").nodes) == list(second.nodes)
        with pytest.raises(InvalidInput, match="third"):
            SageGraph.from_store(store, name="third")
        with pytest.raises(InvalidInput, match="not the graph's"):
            first.write_to(store, name="second")

    def test_a_node_of_someone_else_is_not_replaced(self, store: GraphStore) -> None:
        store.upsert([Node("teams#0", ("Note",), "mine")])
        with pytest.raises(InvalidInput, match="teams#0"):
            SageGraph.build(BALLPARKS, encoder=None).write_to(store)
        assert store.get(["teams#0"]) == [Node("teams#0", ("Note",), "mine")]
        assert store.count() == (1, 0)

    def test_properties_of_every_kind_come_back(self, store: GraphStore) -> None:
        properties = {
            "none": None,
            "deep": {"a": [1, None]},
            "mixed": [1, "a"],
            "rows": [["a"], []],
            "big": 2**70,
            "n": 1.5,
        }
        graph = SageGraph.from_nodes(
            [Node("a", ("T",), "A", "alpha", properties), Node("b")], encoder=None, metadata=None
        )
        graph.write_to(store)
        assert list(again(store, graph).nodes) == list(graph.nodes)
        assert [n.id for block in store.nodes(where={"n": {"$gt": 1}}) for n in block] == ["a"]
        with pytest.raises(InvalidInput, match=MARK):
            SageGraph.from_nodes([Node("a", properties={MARK: "x"})], encoder=None, metadata=None).write_to(store)

    def test_a_graph_from_a_store_cannot_be_changed(self, graph: SageGraph, store: GraphStore) -> None:
        graph.write_to(store)
        read = again(store, graph)
        with pytest.raises(InvalidInput, match="store"):
            read.add([Document("x", id="x")])
        assert hits(read.view({"id": {"$ne": "teams#0"}})) == hits(graph.view({"id": {"$ne": "teams#0"}}))

    def test_a_view_of_a_store_gives_a_part_of_the_graph(self, graph: SageGraph, store: GraphStore) -> None:
        graph.write_to(store)
        where = {"source_id": {"$ne": "pilots"}}
        assert hits(again(store.view(where), graph)) == hits(graph.view(where))

    def test_settings_and_encoder_must_be_those_of_the_graph(self, store: GraphStore) -> None:
        settings = SageSettings(alpha=0.9)
        graph = SageGraph.build(BALLPARKS, encoder=HashingEncoder(), settings=settings)
        graph.write_to(store)
        assert hits(again(store, graph, settings=settings)) == hits(graph)
        other = HashingEncoder()
        other.name = "another"
        with pytest.raises(InvalidInput, match=r"'another'"):
            SageGraph.from_store(store, encoder=other)
        assert SageGraph.from_store(store).encoder.name == HashingEncoder().name  # type: ignore[union-attr]
        assert SageGraph.from_store(store, encoder=None).encoder is None
