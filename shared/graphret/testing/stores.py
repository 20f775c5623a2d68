"""The contract of graph stores as tests: derive from a suite, give it an empty store, and let pytest run it.

.. code-block:: python

    class TestMyStore(GraphStoreSuite):
        @pytest.fixture
        def store(self) -> Iterator[GraphStore]:
            with MyStore() as store:
                yield store
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from graphret.errors import GraphretError, InvalidInput, QueryRefused, QueryTimeout
from graphret.search import BM25Index
from graphret.stores.base import CypherStore, GraphStore, delete_edges
from graphret.testing.graphs import (
    CONDITIONS,
    EDGES,
    NO_JSON,
    NODES,
    all_edges,
    all_nodes,
    check_schema,
    edge_key,
    expected_neighbors,
    random_graph,
)
from graphret.testing.store_values import StoreValues
from graphret.types import Edge, Node
from graphret.where import Where


class GraphStoreSuite(StoreValues):
    """What every `GraphStore` does. Give the fixture `store`: an empty store for each test."""

    @pytest.fixture
    def store(self) -> Iterator[GraphStore]:
        """An empty store."""
        raise NotImplementedError("derive from the suite and give it a store")

    @pytest.fixture
    def filled(self, store: GraphStore) -> GraphStore:
        """The store with a small graph in it."""
        store.upsert(NODES, EDGES)
        return store

    # -- reading

    def test_an_empty_store_answers(self, store: GraphStore) -> None:
        assert isinstance(store, GraphStore)
        assert store.count() == (0, 0)
        assert store.get(["nobody"]) == [None]
        assert store.neighbors(["nobody"]) == []
        assert all_nodes(store) == []
        assert all_edges(store) == []
        assert dict(store.schema().relations) == {}
        store.delete(["nobody"])
        store.upsert()

    def test_get_keeps_the_order_and_marks_the_absent(self, filled: GraphStore) -> None:
        assert filled.get(["engine", "nobody", "ada", "engine"]) == [NODES[2], None, NODES[0], NODES[2]]
        assert filled.get([]) == []
        assert filled.count() == (len(NODES), len(EDGES))

    def test_everything_can_be_gone_through_once(self, filled: GraphStore) -> None:
        assert all_nodes(filled) == sorted(NODES, key=lambda node: node.id)
        assert all_edges(filled) == sorted(EDGES, key=edge_key)
        assert all_nodes(filled, labels=["Author"]) == [NODES[0]]
        assert all_nodes(filled, where={"born": {"$lt": 1800}}) == [NODES[1]]
        assert [e.relation for e in all_edges(filled, relations=["KNEW", "ABOUT"])] == ["KNEW", "ABOUT"]

    def test_schema_says_what_properties_hold(self, filled: GraphStore) -> None:
        schema = filled.schema()
        assert set(schema.relation_names) == {e.relation for e in EDGES}
        born = schema.properties["Person"]["born"]
        assert (born.type, born.coverage) == ("INTEGER", 1.0)
        assert set(born.examples) == {1791, 1815}
        assert schema.relation_properties["WROTE"]["year"].type == "INTEGER"

    def test_schema_counts_nodes_and_edges_by_label_and_says_what_may_be_missing(self, store: GraphStore) -> None:
        """Of a graph that is large, whatever that is to the store: of any other, nothing is."""
        nodes, edges = random_graph(4)
        store.upsert(nodes, edges)
        schema = store.schema()
        check_schema(schema, nodes, edges, primary=isinstance(store, CypherStore) and store.dialect == "ladybug")
        assert schema == store.schema()

    # -- neighbours

    @pytest.mark.parametrize("seed", range(2))
    def test_neighbors_are_those_of_the_contract(self, store: GraphStore, seed: int) -> None:
        nodes, edges = random_graph(seed)
        store.upsert(nodes, edges)
        rng = random.Random(seed)
        ids = [node.id for node in nodes] + ["nobody"]
        for _ in range(20):
            options: dict[str, Any] = {
                "relations": rng.choice([None, None, ["LIKES"], ["KNOWS", "LIKES"], ["NOTHING"]]),
                "labels": rng.choice([None, None, ["Person"], ["Person", "Film"], ["Nothing"]]),
                "where": rng.choice([None, None, *CONDITIONS]),
                "direction": rng.choice(["both", "out", "in"]),
                "limit": rng.choice([None, 1, 2, 5]),
            }
            anchors = rng.choices(ids, k=rng.randint(0, 6))
            assert store.neighbors(anchors, **options) == expected_neighbors(nodes, edges, anchors, **options), options

    def test_malformed_options_are_refused_by_name(self, filled: GraphStore) -> None:
        wrong: list[dict[str, Any]] = [{"direction": "up"}, {"limit": 0}, {"relations": "KNEW"}, {"labels": "Person"}]
        for options in wrong:
            with pytest.raises(InvalidInput, match=next(iter(options))):
                filled.neighbors(["ada"], **options)

    def test_conditions_mean_the_same_everywhere(self, store: GraphStore) -> None:
        nodes, _ = random_graph(0)
        store.upsert(nodes)
        found: list[set[str]] = []
        for condition in CONDITIONS:
            where = Where.parse(condition)
            assert where is not None
            expected = sorted(node.id for node in nodes if where.matches(node))
            assert [node.id for node in all_nodes(store, where=condition)] == expected, condition
            found.append(set(expected))
        for start in range(0, len(CONDITIONS), 3):  # a view of three together: databases plan each query anew
            some = CONDITIONS[start : start + 3]
            assert store.view({"$or": some}).count()[0] == len(set().union(*found[start : start + 3])), some

    # -- writing

    def test_nodes_and_edges_are_replaced_whole(self, filled: GraphStore) -> None:
        node, edge = (
            Node("ada", ("Countess",), "Ada King", "x", {"died": 1852}),
            replace(EDGES[0], properties={"p": 66}),
        )
        filled.upsert([node], [edge])
        assert filled.get(["ada"]) == [node]
        assert filled.neighbors(["ada"], relations=["WROTE"]) == [edge]
        assert filled.count() == (len(NODES), len(EDGES))
        assert "Author" not in {label for label, n in filled.schema().labels.items() if n}

    def test_edges_between_the_same_nodes_differ_by_relation_and_row(self, store: GraphStore) -> None:
        edges = [
            Edge("a", "R", "b", 1.0, {"source_row": 1}),
            Edge("a", "R", "b", 2.0, {"source_row": 2, "target_row": 0}),
            Edge("a", "R", "b", 3.0),
            Edge("a", "S", "b"),
            Edge("b", "R", "a"),
            Edge("a", "R", "a"),
        ]
        store.upsert([Node("a"), Node("b")], edges)
        assert store.count() == (2, 6)
        assert all_edges(store) == sorted(edges, key=edge_key)
        assert store.neighbors(["a"], direction="in") == [e for e in sorted(edges, key=edge_key) if e.target == "a"]

    def test_what_is_malformed_is_refused_by_name_and_nothing_written(self, filled: GraphStore) -> None:
        wrong: list[Any] = [Node(""), Node(7), Node("x", "Label"), Node("x", name=None), Node("x", properties=[1])]  # type: ignore[arg-type]
        wrong += [Node("fine", name="the same id twice"), *(Node("x", properties=own) for own in NO_JSON)]
        wrong += [Edge("x", "", "x"), Edge(7, "R", "x"), Edge("x", "R", 7), Edge("x", "R", "nobody")]  # type: ignore[arg-type]
        wrong += [Edge("x", "R", "x", float("nan")), Edge("x", "R", "x", 1.0, {"source_row": -1})]
        wrong += [Edge("x", "R", "x", 1.0, own) for own in NO_JSON]
        for one in wrong:
            nodes, edges = ([one], []) if isinstance(one, Node) else ([Node("x")], [one])
            with pytest.raises(InvalidInput, match=r"(?s)node|edge") as caught:
                filled.upsert([Node("fine"), *nodes], edges)
            assert "nested=" not in str(caught.value)  # which helps with JSON alone
        assert filled.count() == (len(NODES), len(EDGES))
        assert filled.get(["fine"]) == [None]

    def test_what_is_no_list_of_ids_is_refused(self, filled: GraphStore) -> None:
        """A bare string above all: its letters are ids too."""
        filled.upsert([Node("a"), Node("d")])
        wrong: list[Any] = ["ada", ["ada", 7], None]
        for ids in wrong:
            for call in (filled.get, filled.neighbors, filled.delete):
                with pytest.raises(InvalidInput, match="ids"):
                    call(ids)
        assert filled.count() == (len(NODES) + 2, len(EDGES))

    def test_deleting_takes_the_edges_too(self, filled: GraphStore) -> None:
        filled.delete(["ada", "nobody"])
        assert filled.get(["ada"]) == [None]
        assert filled.count() == (len(NODES) - 1, sum("ada" not in (e.source, e.target) for e in EDGES))
        assert filled.neighbors(["ada"]) == []
        filled.upsert([NODES[0]])
        assert filled.neighbors(["ada"]) == []

    def test_edges_can_be_taken_away_alone(self, store: GraphStore) -> None:
        nodes, edges = random_graph(5)
        store.upsert(nodes, edges)
        gone = edges[::3]
        delete_edges(store, [*gone, Edge("nobody", "LIKES", nodes[0].id), Edge(nodes[0].id, "NOTHING", nodes[1].id)])
        assert all_nodes(store) == sorted(nodes, key=lambda node: node.id)
        assert all_edges(store) == sorted((edge for edge in edges if edge not in gone), key=edge_key)

    def test_many_changes_equal_one_build(self, store: GraphStore) -> None:
        nodes, edges = random_graph(7)
        rng = random.Random(7)
        store.upsert([replace(node, name="old", properties={"stale": 1}) for node in nodes[:20]])
        for start in range(0, len(nodes), 13):
            store.upsert(nodes[start : start + 13])
        for edge in rng.sample(edges, len(edges)):
            store.upsert(edges=[edge])
        gone = {node.id for node in rng.sample(nodes, 5)}
        store.delete(gone)
        kept = [e for e in edges if not {e.source, e.target} & gone]
        assert all_nodes(store) == [node for node in sorted(nodes, key=lambda n: n.id) if node.id not in gone]
        assert all_edges(store) == sorted(kept, key=edge_key)

    # -- views

    def test_a_view_leaks_nothing(self, store: GraphStore) -> None:
        nodes, edges = random_graph(3)
        secret = [Node(f"secret-{i}", ("Secret",), "hush", "hush", {"tenant": "x", "hidden": i}) for i in range(5)]
        nodes = [replace(node, properties={**node.properties, "tenant": "y"}) for node in nodes]
        into = [Edge(nodes[i].id, "GUARDS", node.id, 9.0, {"code": i}) for i, node in enumerate(secret)]
        store.upsert([*nodes, *secret], [*edges, *into, Edge("secret-0", "LIKES", nodes[0].id, 9.0)])
        view = store.view({"tenant": "y"})
        assert view.count() == (len(nodes), len(edges))
        assert view.get(["secret-0", nodes[0].id]) == [None, nodes[0]]
        assert all_nodes(view) == sorted(nodes, key=lambda node: node.id)
        assert all_nodes(view, where={"tenant": "x"}) == []
        assert all_nodes(view, labels=["Secret"]) == []
        assert all_edges(view) == sorted(edges, key=edge_key)
        assert all_edges(view, relations=["GUARDS"]) == []
        everyone = [node.id for node in (*nodes, *secret)]
        assert view.neighbors(everyone) == expected_neighbors(nodes, edges, everyone)
        assert view.neighbors(everyone, limit=1) == expected_neighbors(nodes, edges, everyone, limit=1)
        assert view.neighbors(["secret-0"], direction="in") == []
        schema = view.schema()
        assert not schema.labels.get("Secret")
        assert "GUARDS" not in schema.relation_names
        assert "hidden" not in {name for of_label in schema.properties.values() for name in of_label}
        inner = view.view({"label": "Person"})
        assert {node.id for node in all_nodes(inner)} == {node.id for node in nodes if "Person" in node.labels}
        assert view.view({"tenant": "x"}).count() == (0, 0)

    def test_a_view_cannot_be_written_to_nor_followed(self, filled: GraphStore) -> None:
        view = filled.view({"label": "Person"})
        with pytest.raises(GraphretError):
            view.upsert([Node("new", ("Person",))])
        with pytest.raises(GraphretError):
            view.delete(["ada"])
        if hasattr(view, "attach"):
            with pytest.raises(InvalidInput, match="view"):
                view.attach(BM25Index.of_store(view))
        assert filled.count() == (len(NODES), len(EDGES))


class CypherStoreSuite(GraphStoreSuite):
    """What every `CypherStore` does besides."""

    @pytest.fixture
    def cypher(self, filled: GraphStore) -> CypherStore:
        """The store with a small graph in it, to be asked in Cypher."""
        assert isinstance(filled, CypherStore)
        return filled

    def test_a_query_returns_columns_and_rows(self, cypher: CypherStore) -> None:
        found = cypher.query(
            "MATCH (p:Person) WHERE p.born < $year RETURN p.name AS name, p.born AS born ORDER BY born", {"year": 1900}
        )
        assert found.columns == ["name", "born"]
        assert found.rows == [("Charles Babbage", 1791), ("Ada Lovelace", 1815)]
        assert found.to_dicts()[0] == {"name": "Charles Babbage", "born": 1791}
        assert not found.truncated

    def test_nodes_and_relationships_come_back_as_such_and_other_values_as_json(self, cypher: CypherStore) -> None:
        found = cypher.query("MATCH (p)-[r:WROTE]->(t) RETURN p, r, t, date('2020-02-29'), [p.born, 0.5], null")
        assert found.rows == [(NODES[0], EDGES[0], NODES[3], "2020-02-29", [1815, 0.5], None)]

    def test_a_row_cap_says_that_it_cut(self, cypher: CypherStore) -> None:
        found = cypher.query("UNWIND range(1, 100) AS i RETURN i", max_rows=7)
        assert [row[0] for row in found.rows] == list(range(1, 8))
        assert found.truncated
        assert not cypher.query("UNWIND range(1, 7) AS i RETURN i", max_rows=7).truncated

    def test_a_query_that_writes_or_does_not_parse_is_refused(self, cypher: CypherStore) -> None:
        for text in ("CREATE (:Person {id: 'eve'})", "MATCH (n) DETACH DELETE n", "MATCH (n:Person) SET n.born = 0"):
            with pytest.raises(QueryRefused):
                cypher.query(text)
        for call in (cypher.query, cypher.explain):
            with pytest.raises(QueryRefused):
                call("MATCH (n RETURN n")
        assert cypher.get([NODES[0].id, "eve"]) == [NODES[0], None]
        assert cypher.count() == (len(NODES), len(EDGES))

    def test_a_slow_query_is_stopped(self, cypher: CypherStore) -> None:
        with pytest.raises(QueryTimeout):
            cypher.query(
                "UNWIND range(1, 1000000) AS a UNWIND range(1, 1000000) AS b WITH a * b AS c RETURN count(c)",
                timeout=0.5,
            )
        assert cypher.count() == (len(NODES), len(EDGES))

    def test_explain_runs_nothing(self, cypher: CypherStore) -> None:
        assert cypher.explain("MATCH (n:Person) RETURN n.name", timeout=30.0) in ("r", None)
        assert cypher.explain("MATCH (n:Person) SET n.born = 0") != "r" or cypher.dialect != "neo4j"
        assert cypher.get([NODES[0].id]) == [NODES[0]]

    def test_a_view_answers_no_free_cypher(self, cypher: CypherStore) -> None:
        view = cypher.view({"label": "Person"})
        assert isinstance(view, CypherStore)
        with pytest.raises(QueryRefused):
            view.query("MATCH (n) RETURN count(n)")
        with pytest.raises(QueryRefused):
            view.explain("MATCH (n) RETURN count(n)")
