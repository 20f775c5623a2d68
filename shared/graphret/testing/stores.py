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
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from graphret.errors import GraphretError, InvalidInput, QueryRefused, QueryTimeout
from graphret.search import BM25Index
from graphret.stores.base import CypherStore, GraphStore, delete_edges
from graphret.testing.graphs import CONDITIONS, EDGES, NO_JSON, NODES, random_graph
from graphret.testing.reading import all_edges, all_nodes, check_schema, edge_key, expected_neighbors
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

    def test_schema_counts_what_is_there(self, filled: GraphStore) -> None:
        schema = filled.schema()
        labels = Counter(label for node in NODES for label in node.labels)
        assert {label: n for label, n in schema.labels.items() if n} == labels
        primary = {node.id: node.label for node in NODES}
        triples = Counter((primary[e.source], e.relation, primary[e.target]) for e in EDGES)
        assert triples.items() <= dict(schema.relations).items()
        assert set(schema.relation_names) == {e.relation for e in EDGES}
        born = schema.properties["Person"]["born"]
        assert (born.type, born.coverage) == ("INTEGER", 1.0)
        assert set(born.examples) == {1791, 1815}
        assert schema.relation_properties["WROTE"]["year"].type == "INTEGER"

    def test_schema_counts_an_edge_for_every_label_that_finds_it(self, store: GraphStore) -> None:
        one_label = isinstance(store, CypherStore) and store.dialect == "ladybug"  # in a query, the primary one
        nodes = [Node("a", ("P", "Q")), Node("b", ("T",)), Node("c", ("T", "P")), Node("d", ("Z", "Y", "X"))]
        edges = [Edge("a", "R", "b"), Edge("a", "R", "c"), Edge("c", "S", "c"), Edge("c", "R", "b")]
        store.upsert(nodes, edges)
        labels = {node.id: node.labels[:1] if one_label else node.labels for node in nodes}
        expected = Counter(
            (source, edge.relation, target)
            for edge in edges
            for source in labels[edge.source]
            for target in labels[edge.target]
        )
        assert {triple: n for triple, n in store.schema().relations.items() if n} == expected

    def test_a_schema_says_what_may_be_missing(self, store: GraphStore) -> None:
        """Of a graph that is large, whatever that is to the store: of any other, nothing is."""
        nodes, edges = random_graph(4)
        store.upsert(nodes, edges)
        schema = store.schema()
        check_schema(schema, nodes, edges, primary=isinstance(store, CypherStore) and store.dialect == "ladybug")
        assert schema == store.schema()

    # -- neighbours

    def test_neighbors_of_a_small_graph(self, filled: GraphStore) -> None:
        def triples(**options: Any) -> list[tuple[str, str, str]]:
            return [(e.source, e.relation, e.target) for e in filled.neighbors(**options)]

        assert triples(ids=["engine"]) == [("babbage", "DESIGNED", "engine"), ("notes", "ABOUT", "engine")]
        assert triples(ids=["engine"], direction="out") == []
        assert triples(ids=["ada"], relations=["WROTE"]) == [("ada", "WROTE", "notes")]
        assert triples(ids=["ada"], relations=[]) == []
        assert triples(ids=["ada"], labels=["Person"]) == [("ada", "KNEW", "babbage")]
        assert triples(ids=["ada"], where={"born": 1791}) == [("ada", "KNEW", "babbage")]
        assert triples(ids=["engine"], limit=1) == [("babbage", "DESIGNED", "engine")]
        assert filled.neighbors(["notes"], direction="out") == [EDGES[2]]

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

    def test_a_node_is_replaced_whole_and_keeps_its_edges(self, filled: GraphStore) -> None:
        fresh = Node("ada", ("Countess",), "Ada King", "x", {"died": 1852})
        filled.upsert([fresh])
        assert filled.get(["ada"]) == [fresh]
        assert filled.count() == (len(NODES), len(EDGES))
        assert [e.relation for e in filled.neighbors(["ada"])] == ["KNEW", "WROTE"]
        assert "Author" not in {label for label, n in filled.schema().labels.items() if n}

    def test_an_edge_is_replaced_whole(self, filled: GraphStore) -> None:
        fresh = Edge("ada", "WROTE", "notes", 3.0, {"pages": 66})
        filled.upsert(edges=[fresh])
        assert filled.neighbors(["ada"], relations=["WROTE"]) == [fresh]
        assert filled.count() == (len(NODES), len(EDGES))

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

    def test_a_dangling_edge_is_refused_and_nothing_written(self, filled: GraphStore) -> None:
        with pytest.raises(InvalidInput, match="nobody"):
            filled.upsert([Node("new")], [Edge("new", "KNEW", "ada"), Edge("new", "KNEW", "nobody")])
        assert filled.count() == (len(NODES), len(EDGES))
        assert filled.get(["new"]) == [None]

    def test_an_id_twice_in_one_call_is_refused(self, filled: GraphStore) -> None:
        with pytest.raises(InvalidInput, match="new"):
            filled.upsert([Node("new", name="one"), Node("new", name="other")])
        assert filled.count() == (len(NODES), len(EDGES))

    def test_malformed_nodes_and_edges_are_refused(self, filled: GraphStore) -> None:
        wrong: list[Any] = [Node(""), Node(7), Node("x", "Label"), Node("x", name=None), Node("x", properties=[1])]  # type: ignore[arg-type]
        wrong += [Edge("x", "", "x"), Edge(7, "R", "x"), Edge("x", "R", 7)]  # type: ignore[arg-type]
        wrong += [Edge("x", "R", "x", float("nan")), Edge("x", "R", "x", 1.0, {"source_row": -1})]
        for one in wrong:
            nodes, edges = ([one], []) if isinstance(one, Node) else ([Node("x")], [one])
            with pytest.raises(InvalidInput):
                filled.upsert([Node("fine"), *nodes], edges)
        assert filled.count() == (len(NODES), len(EDGES))

    def test_what_is_no_json_is_refused_by_name(self, filled: GraphStore) -> None:
        """One message on every store; none advises to keep as JSON what is none."""
        for properties in NO_JSON:
            for nodes, edges in (
                ([Node("wrong", properties=properties)], []),
                ([Node("fine")], [Edge("ada", "WROTE", "fine", 1.0, properties)]),
            ):
                with pytest.raises(InvalidInput, match=r"(?s)node 'wrong'|edge 'ada' to 'fine'") as caught:
                    filled.upsert([Node("plain"), *nodes], edges)
                assert "nested=" not in str(caught.value)
        assert filled.count() == (len(NODES), len(EDGES))

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

    def test_a_view_cannot_be_written_to(self, filled: GraphStore) -> None:
        view = filled.view({"label": "Person"})
        with pytest.raises(GraphretError):
            view.upsert([Node("new", ("Person",))])
        with pytest.raises(GraphretError):
            view.delete(["ada"])
        assert filled.count() == (len(NODES), len(EDGES))

    def test_no_index_follows_a_view(self, filled: GraphStore) -> None:
        if not hasattr(filled, "attach"):
            pytest.skip("no index can be attached to the store")
        view = filled.view({"label": "Person"})
        index = BM25Index.of_store(view)
        for part in (view, view.view({"label": "Author"})):
            with pytest.raises(InvalidInput, match="view"):
                part.attach(index)  # type: ignore[attr-defined]
        filled.upsert([Node("hidden", ("Machine",), "hidden")])
        assert index.table.ids.tolist() == ["ada", "babbage"]


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

    def test_a_query_only_reads(self, cypher: CypherStore) -> None:
        for text in ("CREATE (:Person {id: 'eve'})", "MATCH (n) DETACH DELETE n", "MATCH (n:Person) SET n.born = 0"):
            with pytest.raises(QueryRefused):
                cypher.query(text)
        assert cypher.get([NODES[0].id, "eve"]) == [NODES[0], None]
        assert cypher.count() == (len(NODES), len(EDGES))

    def test_what_does_not_parse_is_refused(self, cypher: CypherStore) -> None:
        for call in (cypher.query, cypher.explain):
            with pytest.raises(QueryRefused):
                call("MATCH (n RETURN n")

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
