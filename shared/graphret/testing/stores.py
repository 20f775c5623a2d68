"""The contract of graph stores as tests.

Derive from a suite, give it an empty store, and let pytest run it.

.. code-block:: python

    class TestMyStore(GraphStoreSuite):
        @pytest.fixture
        def store(self) -> Iterator[GraphStore]:
            with MyStore() as store:
                yield store
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from graphret.errors import GraphretError, InvalidInput, QueryRefused, QueryTimeout
from graphret.search import BM25Index
from graphret.stores.base import GraphStore
from graphret.testing.graphs import (
    CONDITIONS,
    EDGES,
    HOSTILE,
    NO_JSON,
    NODES,
    VALUES,
    all_edges,
    all_nodes,
    check_schema,
    edge_key,
    expected_neighbors,
    random_graph,
    two_tenants,
)
from graphret.types import Edge, Node
from graphret.where import Where


class GraphStoreSuite:
    """What every `GraphStore` does.

    Give the fixture `store`: an empty store for each test.
    """

    @pytest.fixture
    def store(self) -> Iterator[GraphStore]:
        raise NotImplementedError(
            "derive from the suite and override the fixture store"
        )

    @pytest.fixture
    def filled(self, store: GraphStore) -> GraphStore:
        store.upsert(NODES, EDGES)
        return store

    def test_an_empty_store_answers(self, store: GraphStore) -> None:
        assert isinstance(store, GraphStore)
        store.delete(["nobody"])
        store.upsert()
        assert (store.count(), store.get(["nobody"]), store.neighbors(["nobody"])) == (
            (0, 0),
            [None],
            [],
        )
        assert (all_nodes(store), all_edges(store), dict(store.schema().relations)) == (
            [],
            [],
            {},
        )

    def test_nodes_and_edges_are_got_gone_through_and_described(
        self, filled: GraphStore
    ) -> None:
        assert filled.get(["engine", "nobody", "ada", "engine"]) == [
            NODES[2],
            None,
            NODES[0],
            NODES[2],
        ]
        assert filled.get([]) == []
        assert filled.count() == (len(NODES), len(EDGES))
        assert all_nodes(filled) == sorted(NODES, key=lambda node: node.id)
        assert all_edges(filled) == sorted(EDGES, key=edge_key)
        assert all_nodes(filled, labels=["Author"]) == [NODES[0]]
        assert all_nodes(filled, where={"born": {"$lt": 1800}}) == [NODES[1]]
        assert [e.relation for e in all_edges(filled, relations=["KNEW", "ABOUT"])] == [
            "KNEW",
            "ABOUT",
        ]
        schema = filled.schema()
        born = schema.properties["Person"]["born"]
        assert (born.type, born.coverage, set(born.examples)) == (
            "INTEGER",
            1.0,
            {1791, 1815},
        )
        assert schema.relation_properties["WROTE"]["year"].type == "INTEGER"

    @pytest.mark.parametrize("seed", range(2))
    def test_neighbors_and_schema_are_those_of_the_contract(
        self, store: GraphStore, seed: int
    ) -> None:
        nodes, edges = random_graph(seed)
        store.upsert(nodes, edges)
        check_schema(store.schema(), nodes, edges)
        rng = random.Random(seed)
        for _ in range(15):
            options: dict[str, Any] = {
                "relations": rng.choice(
                    [None, None, ["LIKES"], ["KNOWS", "LIKES"], ["NOTHING"]]
                ),
                "labels": rng.choice(
                    [None, None, ["Person"], ["Person", "Film"], ["Nothing"]]
                ),
                "where": rng.choice([None, None, *CONDITIONS]),
                "direction": rng.choice(["both", "out", "in"]),
                "limit": rng.choice([None, 1, 2, 5]),
            }
            anchors = rng.choices(
                [*(node.id for node in nodes), "nobody"], k=rng.randint(0, 6)
            )
            assert store.neighbors(anchors, **options) == expected_neighbors(
                nodes, edges, anchors, **options
            ), options

    def test_conditions_mean_the_same_everywhere(self, store: GraphStore) -> None:
        nodes, _ = random_graph(0)
        store.upsert(nodes)
        expected: list[list[str]] = []
        for condition in CONDITIONS:
            where = Where.parse(condition)
            assert where is not None
            expected.append(sorted(node.id for node in nodes if where.matches(node)))
            assert [node.id for node in all_nodes(store, where=condition)] == expected[
                -1
            ], condition
        for start in range(
            0, len(CONDITIONS), 6
        ):  # a view of six together: databases plan each query anew
            some = slice(start, start + 6)
            assert store.view({"$or": CONDITIONS[some]}).count()[0] == len(
                set().union(*expected[some])
            ), some

    def test_edges_between_the_same_nodes_differ_by_relation_and_row(
        self, store: GraphStore
    ) -> None:
        edges = [
            Edge("a", "R", "b", 1.0, {"source_row": 1}),
            Edge("a", "R", "b", 2.0, {"source_row": 2, "target_row": 0}),
            Edge("a", "R", "b", 3.0),
            Edge("a", "S", "b"),
            Edge("b", "R", "a"),
            Edge("a", "R", "a"),
        ]
        store.upsert([Node("a", ("B", "A", "C")), Node("b", ("A", "B"))], edges)
        assert store.count() == (2, 6)
        assert all_edges(store) == sorted(edges, key=edge_key)
        assert store.neighbors(["a"], direction="in") == [
            e for e in sorted(edges, key=edge_key) if e.target == "a"
        ]
        assert store.get(["a", "b"]) == [
            Node("a", ("B", "A", "C")),
            Node("b", ("A", "B")),
        ]  # labels keep their order

    def test_malformed_nodes_and_edges_are_refused_and_nothing_written(
        self, filled: GraphStore
    ) -> None:
        untyped_node: Any = Node
        untyped_edge: Any = Edge
        malformed: list[Any] = [
            Node(""),
            untyped_node(7),
            untyped_node("x", "Label"),
            untyped_node("x", name=None),
            untyped_node("x", properties=[1]),
            Edge("x", "", "x"),
            untyped_edge(7, "R", "x"),
            Edge("x", "R", "nobody"),
            Edge("x", "R", "x", float("nan")),
            Node("fine", name="the same id twice"),
            Edge("x", "R", "x", 1.0, {"source_row": -1}),
        ]
        for properties in NO_JSON:
            malformed.append(Node("x", properties=properties))
            malformed.append(Edge("x", "R", "x", 1.0, properties))
        for item in malformed:
            nodes, edges = (
                ([item], []) if isinstance(item, Node) else ([Node("x")], [item])
            )
            with pytest.raises(InvalidInput, match=r"(?s)node|edge"):
                filled.upsert([Node("fine"), *nodes], edges)
        assert filled.count() == (len(NODES), len(EDGES))
        assert filled.get(["fine"]) == [None]

    def test_malformed_ids_and_options_are_refused_by_name(
        self, filled: GraphStore
    ) -> None:
        untyped: Any = filled
        # the letters of a bare string are ids too
        for ids in ("ada", ["ada", 7], None):
            for method in (untyped.get, untyped.neighbors, untyped.delete):
                with pytest.raises(InvalidInput, match="ids"):
                    method(ids)
        for option, value in (
            ("direction", "up"),
            ("limit", 0),
            ("relations", "KNEW"),
            ("labels", "Person"),
        ):
            with pytest.raises(InvalidInput, match=option):
                untyped.neighbors(["ada"], **{option: value})
        assert filled.count() == (len(NODES), len(EDGES))

    def test_many_changes_equal_one_build(self, store: GraphStore) -> None:
        nodes, edges = random_graph(7, 30, 60)
        stale = [replace(node, name="old", properties={"stale": 1}) for node in nodes]
        stale[0] = replace(stale[0], labels=("Stale",))
        store.upsert(
            stale,
            [
                replace(edge, properties={**edge.properties, "stale": 1})
                for edge in edges
            ],
        )
        for half in (slice(0, None, 2), slice(1, None, 2)):
            store.upsert(nodes[half], edges[half])
        apart = edges[::3]
        store.delete_edges(
            [
                *apart,
                Edge("nobody", "LIKES", nodes[0].id),
                Edge(nodes[0].id, "NOTHING", nodes[1].id),
            ]
        )
        gone = {node.id for node in nodes[::8]}
        store.delete([*gone, "nobody"])
        store.upsert([nodes[0]])
        assert store.neighbors([nodes[0].id]) == []
        assert "Stale" not in {label for label, n in store.schema().labels.items() if n}
        remaining = [node for node in nodes if node.id not in gone or node is nodes[0]]
        assert all_nodes(store) == sorted(remaining, key=lambda node: node.id)
        kept_edges = [
            edge
            for edge in edges
            if edge not in apart and not {edge.source, edge.target} & gone
        ]
        assert all_edges(store) == sorted(kept_edges, key=edge_key)

    def test_values_come_back_as_they_were(self, store: GraphStore) -> None:
        """Each has its own property, since a database may have one type for each."""
        nodes = [
            Node(name, ("Thing",), name, "", {f"value {i}": VALUES[name]})
            for i, name in enumerate(VALUES)
        ]
        edges = [
            Edge(node.id, "OWNS", node.id, 0.25, node.properties) for node in nodes
        ]
        store.upsert(nodes, edges)
        assert repr(store.get(list(VALUES))) == repr(
            nodes
        )  # True equals 1, and 3.0 equals 3
        assert all_edges(store) == sorted(edges, key=edge_key)

    def test_null_is_no_value(self, store: GraphStore) -> None:
        """It counts as absent in conditions and schemas, and a database may drop it."""
        a, c = (
            Node("a", ("Thing",), properties={"x": None, "y": 1}),
            Node("c", ("Thing",), properties={"x": 3}),
        )
        store.upsert([a, c], [Edge("a", "R", "c", 1.0, {"p": None, "q": 0.0})])
        [stored] = store.get(["a"])
        assert stored in (a, replace(a, properties={"y": 1}))
        for condition, ids in (
            ({"x": None}, ["a"]),
            ({"x": {"$ne": 3}}, ["a"]),
            ({"x": {"$exists": True}}, ["c"]),
        ):
            assert [node.id for node in all_nodes(store, where=condition)] == ids
        assert store.schema().properties["Thing"]["x"].coverage == 0.5

    @pytest.mark.parametrize(
        "value", [{"a": {"b": [1, None]}}, [[1, 2], [3]], [1, "two"]], ids=repr
    )
    def test_nested_values_come_back_or_are_refused_by_name(
        self, store: GraphStore, value: Any
    ) -> None:
        node = Node("deep", ("Thing",), properties={"nested": value})
        try:
            store.upsert([node])
        except InvalidInput:
            with pytest.raises(InvalidInput, match=r"(?s)deep.*nested"):
                store.upsert([node])
            assert store.count() == (0, 0)
        else:
            assert store.get(["deep"]) == [node]

    def test_hostile_ids_names_texts_and_values_are_kept(
        self, store: GraphStore
    ) -> None:
        canary = Node("canary", ("Canary",))
        data = [
            Node(name, ("Thing",), name, name, {"value": name, "list": [name]})
            for name in HOSTILE
        ]
        sees = [Edge("canary", "SEES", name, 1.0, {"value": name}) for name in HOSTILE]
        store.upsert([canary, *data], sees)
        assert store.get([*HOSTILE, "canary"]) == [*data, canary]
        assert all_edges(store) == sorted(sees, key=edge_key)
        for node, edge in zip(data, sees, strict=True):
            condition = {"name": node.name, "list": {"$contains": node.name}}
            assert all_nodes(store, where=condition) == [node]
            assert store.neighbors(["canary"], where={"value": node.name}) == [edge]
        assert store.neighbors(["canary"], relations=HOSTILE) == []
        assert store.neighbors(["canary"], labels=HOSTILE) == []
        store.delete(HOSTILE)
        assert all_nodes(store) == [canary]

    def test_hostile_labels_relations_and_properties_are_kept_or_refused(
        self, store: GraphStore
    ) -> None:
        canary = Node("canary", ("Canary",))
        store.upsert([canary])
        nodes, edges = [], []
        for i, name in enumerate(HOSTILE):
            node = Node(f"odd-{i:02}", (name,), properties={name: i})
            edge = Edge(node.id, name, "canary", 1.0, {name: -i})
            with suppress(InvalidInput):
                store.upsert([node], [edge])
                nodes.append(node)
                edges.append(edge)
        assert all_nodes(store) == [canary, *nodes]
        assert all_edges(store) == edges
        schema = store.schema()
        # two halves, so that a name that also finds another's nodes is noticed
        for half in (slice(0, None, 2), slice(1, None, 2)):
            names = [edge.relation for edge in edges[half]]
            values = {
                "$or": [
                    {f"properties.{name}": value}
                    for node in nodes[half]
                    for name, value in node.properties.items()
                ]
            }
            assert store.neighbors(["canary"], relations=names) == edges[half]
            assert all_nodes(store, labels=names, where=values) == nodes[half]
            for name in names:
                assert schema.labels[name] == 1
                assert schema.relations[name, name, "Canary"] == 1

    def test_a_view_leaks_nothing(self, store: GraphStore) -> None:
        (nodes, edges), (secret_nodes, secret_edges) = two_tenants()
        store.upsert([*nodes, *secret_nodes], [*edges, *secret_edges])
        view = store.view({"tenant": "y"})
        assert view.count() == (len(nodes), len(edges))
        assert view.get(["secret-0", nodes[0].id]) == [None, nodes[0]]
        assert (all_nodes(view), all_edges(view)) == (
            nodes,
            sorted(edges, key=edge_key),
        )
        assert all_nodes(view, where={"tenant": "x"}) == []
        assert all_nodes(view, labels=["Secret"]) == []
        assert all_edges(view, relations=["GUARDS"]) == []
        assert view.neighbors(["secret-0"], direction="in") == []
        everyone = [node.id for node in (*nodes, *secret_nodes)]
        for limit in (None, 1):
            assert view.neighbors(everyone, limit=limit) == expected_neighbors(
                nodes, edges, everyone, limit=limit
            )
        schema = view.schema()
        assert not schema.labels.get("Secret")
        assert "GUARDS" not in schema.relation_names
        assert "hidden" not in {
            name for of_label in schema.properties.values() for name in of_label
        }
        assert all_nodes(view.view({"label": "Person"})) == [
            node for node in nodes if "Person" in node.labels
        ]
        assert view.view({"tenant": "x"}).count() == (0, 0)

    def test_a_view_cannot_be_written_to_nor_followed(self, filled: GraphStore) -> None:
        view: Any = filled.view({"label": "Person"})
        acts: list[Callable[[], object]] = [
            lambda: view.upsert([Node("new", ("Person",))]),
            lambda: view.delete(["ada"]),
        ]
        if hasattr(view, "attach"):
            acts.append(lambda: view.attach(BM25Index.of_store(view)))
        for act in acts:
            with pytest.raises(GraphretError):
                act()
        assert filled.count() == (len(NODES), len(EDGES))


class CypherStoreSuite(GraphStoreSuite):
    """What every `CypherStore` does besides."""

    def test_a_query_returns_columns_and_rows(self, filled: Any) -> None:
        result = filled.query(
            "MATCH (p:Person) WHERE p.born < $year RETURN p.name AS name, p.born AS"
            " born ORDER BY born",
            {"year": 1900},
        )
        assert result.rows == [("Charles Babbage", 1791), ("Ada Lovelace", 1815)]
        assert result.to_dicts()[0] == {"name": "Charles Babbage", "born": 1791}
        result = filled.query(
            "MATCH (p)-[r:WROTE]->(t) RETURN p, r, t, date('2020-02-29'), [p.born,"
            " 0.5], null"
        )
        assert result.rows == [
            (NODES[0], EDGES[0], NODES[3], "2020-02-29", [1815, 0.5], None)
        ]
        for n in (100, 7):
            result = filled.query(f"UNWIND range(1, {n}) AS i RETURN i", max_rows=7)
            assert ([row[0] for row in result.rows], result.truncated) == (
                [*range(1, 8)],
                n > 7,
            )

    def test_a_query_that_writes_does_not_parse_or_takes_too_long_is_refused(
        self, filled: Any
    ) -> None:
        for text in (
            "CREATE (:Person {id: 'eve'})",
            "MATCH (n) DETACH DELETE n",
            "MATCH (n:Person) SET n.born = 0",
        ):
            with pytest.raises(QueryRefused):
                filled.query(text)
        for call in (filled.query, filled.explain):
            with pytest.raises(QueryRefused):
                call("MATCH (n RETURN n")
        slow = (
            "UNWIND range(1, 1000000) AS a UNWIND range(1, 1000000) AS b WITH a * b AS"
            " c RETURN count(c)"
        )
        with pytest.raises(QueryTimeout):
            filled.query(slow, timeout=0.3)
        assert filled.explain("MATCH (n:Person) RETURN n.name", timeout=30.0) in (
            "r",
            None,
        )
        assert (
            filled.explain("MATCH (n:Person) SET n.born = 0") != "r"
            or filled.dialect != "neo4j"
        )
        view = filled.view({"label": "Person"})
        for call in (view.query, view.explain):  # free Cypher could read past it
            with pytest.raises(QueryRefused):
                call("MATCH (n) RETURN count(n)")
        assert filled.get([NODES[0].id, "eve"]) == [NODES[0], None]
        assert filled.count() == (len(NODES), len(EDGES))
