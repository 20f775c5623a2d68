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
    HOSTILE,
    NO_JSON,
    NODES,
    TEXTS,
    VALUES,
    all_edges,
    all_nodes,
    check_schema,
    edge_key,
    expected_neighbors,
    random_graph,
)
from graphret.types import Edge, Node
from graphret.where import Where


class GraphStoreSuite:
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
        assert (store.count(), store.get(["nobody"]), store.neighbors(["nobody"])) == ((0, 0), [None], [])
        assert (all_nodes(store), all_edges(store), dict(store.schema().relations)) == ([], [], {})
        store.delete(["nobody"])
        store.upsert()

    def test_nodes_and_edges_are_got_gone_through_and_described(self, filled: GraphStore) -> None:
        assert filled.get(["engine", "nobody", "ada", "engine"]) == [NODES[2], None, NODES[0], NODES[2]]
        assert filled.get([]) == []
        assert filled.count() == (len(NODES), len(EDGES))
        assert all_nodes(filled) == sorted(NODES, key=lambda node: node.id)
        assert all_edges(filled) == sorted(EDGES, key=edge_key)
        assert all_nodes(filled, labels=["Author"]) == [NODES[0]]
        assert all_nodes(filled, where={"born": {"$lt": 1800}}) == [NODES[1]]
        assert [e.relation for e in all_edges(filled, relations=["KNEW", "ABOUT"])] == ["KNEW", "ABOUT"]
        schema = filled.schema()
        born = schema.properties["Person"]["born"]
        assert (born.type, born.coverage, set(born.examples)) == ("INTEGER", 1.0, {1791, 1815})
        assert schema.relation_properties["WROTE"]["year"].type == "INTEGER"

    def test_schema_counts_nodes_and_edges_by_label_and_says_what_may_be_missing(self, store: GraphStore) -> None:
        """Of a graph that is large, whatever that is to the store: of any other, nothing is."""
        nodes, edges = random_graph(4)
        store.upsert(nodes, edges)
        schema = store.schema()
        check_schema(schema, nodes, edges, primary=isinstance(store, CypherStore) and store.dialect == "ladybug")
        assert schema == store.schema()

    @pytest.mark.parametrize("seed", range(2))
    def test_neighbors_are_those_of_the_contract(self, store: GraphStore, seed: int) -> None:
        nodes, edges = random_graph(seed)
        store.upsert(nodes, edges)
        rng = random.Random(seed)
        ids = [node.id for node in nodes] + ["nobody"]
        for _ in range(15):
            options: dict[str, Any] = {
                "relations": rng.choice([None, None, ["LIKES"], ["KNOWS", "LIKES"], ["NOTHING"]]),
                "labels": rng.choice([None, None, ["Person"], ["Person", "Film"], ["Nothing"]]),
                "where": rng.choice([None, None, *CONDITIONS]),
                "direction": rng.choice(["both", "out", "in"]),
                "limit": rng.choice([None, 1, 2, 5]),
            }
            anchors = rng.choices(ids, k=rng.randint(0, 6))
            assert store.neighbors(anchors, **options) == expected_neighbors(nodes, edges, anchors, **options), options

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
        for start in range(0, len(CONDITIONS), 6):  # a view of six together: databases plan each query anew
            some = CONDITIONS[start : start + 6]
            assert store.view({"$or": some}).count()[0] == len(set().union(*found[start : start + 6])), some

    # -- writing

    def test_nodes_and_edges_are_replaced_whole(self, filled: GraphStore) -> None:
        node = Node("ada", ("Countess",), "Ada King", "x", {"died": 1852})
        edge = replace(EDGES[0], properties={"p": 66})
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
        store.upsert([Node("a", ("B", "A", "C")), Node("b", ("A", "B"))], edges)
        assert store.count() == (2, 6)
        assert all_edges(store) == sorted(edges, key=edge_key)
        assert store.neighbors(["a"], direction="in") == [e for e in sorted(edges, key=edge_key) if e.target == "a"]
        assert store.get(["a", "b"]) == [Node("a", ("B", "A", "C")), Node("b", ("A", "B"))]  # labels keep their order

    def test_what_is_malformed_is_refused_by_name_and_nothing_written(self, filled: GraphStore) -> None:
        wrong: list[Any] = [Node(""), Node(7), Node("x", "Label"), Node("x", name=None), Node("x", properties=[1])]  # type: ignore[arg-type]
        wrong += [Node("fine", name="the same id twice"), *(Node("x", properties=own) for own in NO_JSON)]
        wrong += [Edge("x", "", "x"), Edge(7, "R", "x"), Edge("x", "R", 7), Edge("x", "R", "nobody")]  # type: ignore[arg-type]
        wrong += [Edge("x", "R", "x", float("nan")), Edge("x", "R", "x", 1.0, {"source_row": -1})]
        wrong += [Edge("x", "R", "x", 1.0, own) for own in NO_JSON]
        for one in wrong:
            nodes, edges = ([one], []) if isinstance(one, Node) else ([Node("x")], [one])
            with pytest.raises(InvalidInput, match=r"(?s)node|edge"):
                filled.upsert([Node("fine"), *nodes], edges)
        filled.upsert([Node("a"), Node("d")])
        for ids in ("ada", ["ada", 7], None):  # the letters of a bare string are ids too
            for call in (filled.get, filled.neighbors, filled.delete):
                with pytest.raises(InvalidInput, match="ids"):
                    call(ids)  # type: ignore[arg-type]
        for options in ({"direction": "up"}, {"limit": 0}, {"relations": "KNEW"}, {"labels": "Person"}):
            with pytest.raises(InvalidInput, match=next(iter(options))):
                filled.neighbors(["ada"], **options)
        assert filled.count() == (len(NODES) + 2, len(EDGES))
        assert filled.get(["fine"]) == [None]

    def test_deleting_takes_the_edges_too(self, filled: GraphStore) -> None:
        filled.delete(["ada", "nobody"])
        assert filled.get(["ada"]) == [None]
        assert filled.count() == (len(NODES) - 1, sum("ada" not in (e.source, e.target) for e in EDGES))
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
        shuffled = rng.sample(edges, len(edges))
        for start in range(0, len(edges), 9):
            store.upsert(edges=shuffled[start : start + 9])
        gone = {node.id for node in rng.sample(nodes, 5)}
        store.delete(gone)
        kept = [e for e in edges if not {e.source, e.target} & gone]
        assert all_nodes(store) == [node for node in sorted(nodes, key=lambda n: n.id) if node.id not in gone]
        assert all_edges(store) == sorted(kept, key=edge_key)

    # -- values and names

    def test_values_come_back_as_they_were(self, store: GraphStore) -> None:
        """Each under a name of its own, since a database may have one type for a name."""
        nodes = [Node(name, ("Thing",), name, "", {f"value {i}": VALUES[name]}) for i, name in enumerate(VALUES)]
        edges = [Edge(node.id, "OWNS", node.id, 0.25, node.properties) for node in nodes]
        store.upsert(nodes, edges)
        found = store.get(list(VALUES))
        assert found == nodes
        assert all_edges(store) == sorted(edges, key=edge_key)
        kinds = [[type(v) for node in some if node for v in node.properties.values()] for some in (found, nodes)]
        assert kinds[0] == kinds[1]  # True equals 1, and 3.0 equals 3

    def test_null_is_no_value(self, store: GraphStore) -> None:
        """A condition takes it for absent, a schema does not see it, and a database may leave it out."""
        nodes = [
            Node("a", ("Thing",), properties={"x": None, "y": 1}),
            Node("b", ("Thing",), properties={"y": 2}),
            Node("c", ("Thing",), properties={"x": 3, "z": None}),
        ]
        store.upsert(nodes, [Edge("a", "R", "b", 1.0, {"p": None, "q": 0.0})])
        assert [node and {**node.properties, "x": node.properties.get("x")} for node in store.get(["a", "b"])] == [
            {"x": None, "y": 1},
            {"x": None, "y": 2},
        ]
        for condition in ({"x": None}, {"x": {"$ne": 3}}, {"x": {"$exists": True}}, {"z": {"$exists": True}}):
            where = Where.parse(condition)
            assert where is not None
            assert [n.id for n in all_nodes(store, where=condition)] == [n.id for n in nodes if where.matches(n)]
        schema = store.schema()
        assert schema.properties["Thing"]["x"].coverage == pytest.approx(1 / 3)
        assert "z" not in schema.properties["Thing"]

    @pytest.mark.parametrize("value", [{"a": {"b": [1, None]}}, [[1, 2], [3]], [1, "two"]], ids=repr)
    def test_nested_values_come_back_or_are_refused_by_name(self, store: GraphStore, value: Any) -> None:
        node = Node("deep", ("Thing",), properties={"nested": value})
        try:
            store.upsert([node])
        except InvalidInput:
            with pytest.raises(InvalidInput, match=r"(?s)deep.*nested"):
                store.upsert([node])
            assert store.count() == (0, 0)
        else:
            assert store.get(["deep"]) == [node]

    def test_hostile_names_are_only_names(self, store: GraphStore) -> None:
        """As id, name, text and value they are kept; as label, relation or property kept or refused, never obeyed.

        A schema has the names that nodes and edges bear, and says what a query calls those that it calls otherwise.
        """
        canary, texts = Node("canary", ("Canary",)), [*HOSTILE, *TEXTS]
        data = [Node(name, ("Thing",), name, name, {"value": name, "list": [name]}) for name in texts]
        sees = [Edge("canary", "SEES", name, 1.0, {"value": name}) for name in texts]
        store.upsert([canary, *data], sees)
        assert store.get([*texts, "canary"]) == [*data, canary]
        assert all_edges(store) == sorted(sees, key=edge_key)
        for name in texts:
            either = {"$or": [{"name": name}, {"list": {"$contains": name}}]}
            assert [n.id for n in all_nodes(store, where=either) if n.name == name] == [name]
            assert [e.target for e in store.neighbors(["canary"], where={"value": name})] == [name]
        assert store.neighbors(["canary"], relations=HOSTILE) == store.neighbors(["canary"], labels=HOSTILE) == []
        assert all_nodes(store, where={"$or": [{f"properties.{name}": i} for i, name in enumerate(HOSTILE)]}) == []
        store.delete(texts)
        odd: dict[str, tuple[Node, Edge]] = {}
        for i, name in enumerate(HOSTILE):
            node = Node(f"odd-{i:02}", (name,), properties={name: i})
            edge = Edge(node.id, name, "canary", 1.0, {name: -i})
            try:
                store.upsert([node], [edge])
            except InvalidInput:
                continue
            odd[name] = node, edge
        assert store.count() == (1 + len(odd), len(odd))
        assert store.get(["canary", *(node.id for node, _ in odd.values())]) == [canary, *(n for n, _ in odd.values())]
        schema = store.schema()
        for some in (list(odd)[::2], list(odd)[1::2]):  # parts, so that a name that finds what bears another is seen
            edges = store.neighbors([node.id for node, _ in odd.values()], relations=some)
            assert sorted(edges, key=edge_key) == [odd[name][1] for name in some]
            values = {"$or": [{f"properties.{name}": odd[name][0].properties[name]} for name in some]}
            for wanted in ({"labels": some}, {"where": values}):
                assert {n.id for n in all_nodes(store, **wanted)} >= {odd[name][0].id for name in some}
            assert len(all_nodes(store, labels=some, where=values)) == len(some)
        for name, (node, edge) in odd.items():
            assert (schema.labels[name], schema.relations[name, name, "Canary"]) == (1, 1)
            if isinstance(store, CypherStore):
                label, relation = schema.cypher_labels.get(name, name), schema.cypher_relations.get(name, name)
                pattern = f"(n:{_quoted(store, label)})-[r:{_quoted(store, relation)}]->(:Canary)"
                assert store.query(f"MATCH {pattern} RETURN n.id, r").rows == [(node.id, edge)]

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
        assert all_nodes(view, where={"tenant": "x"}) == all_nodes(view, labels=["Secret"]) == []
        assert all_edges(view) == sorted(edges, key=edge_key)
        assert all_edges(view, relations=["GUARDS"]) == []
        everyone = [node.id for node in (*nodes, *secret)]
        for limit in (None, 1):
            assert view.neighbors(everyone, limit=limit) == expected_neighbors(nodes, edges, everyone, limit=limit)
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
        assert found.rows == [("Charles Babbage", 1791), ("Ada Lovelace", 1815)]
        assert found.to_dicts()[0] == {"name": "Charles Babbage", "born": 1791}
        found = cypher.query("MATCH (p)-[r:WROTE]->(t) RETURN p, r, t, date('2020-02-29'), [p.born, 0.5], null")
        assert found.rows == [(NODES[0], EDGES[0], NODES[3], "2020-02-29", [1815, 0.5], None)]
        for n in (100, 7):
            found = cypher.query(f"UNWIND range(1, {n}) AS i RETURN i", max_rows=7)
            assert ([row[0] for row in found.rows], found.truncated) == ([*range(1, 8)], n > 7)

    def test_a_query_that_writes_does_not_parse_or_takes_too_long_is_refused(self, cypher: CypherStore) -> None:
        for text in ("CREATE (:Person {id: 'eve'})", "MATCH (n) DETACH DELETE n", "MATCH (n:Person) SET n.born = 0"):
            with pytest.raises(QueryRefused):
                cypher.query(text)
        for call in (cypher.query, cypher.explain):
            with pytest.raises(QueryRefused):
                call("MATCH (n RETURN n")
        slow = "UNWIND range(1, 1000000) AS a UNWIND range(1, 1000000) AS b WITH a * b AS c RETURN count(c)"
        with pytest.raises(QueryTimeout):
            cypher.query(slow, timeout=0.3)
        assert cypher.explain("MATCH (n:Person) RETURN n.name", timeout=30.0) in ("r", None)
        assert cypher.explain("MATCH (n:Person) SET n.born = 0") != "r" or cypher.dialect != "neo4j"
        view = cypher.view({"label": "Person"})
        assert isinstance(view, CypherStore)
        for call in (view.query, view.explain):  # free Cypher could read past it
            with pytest.raises(QueryRefused):
                call("MATCH (n) RETURN count(n)")
        assert cypher.get([NODES[0].id, "eve"]) == [NODES[0], None]
        assert cypher.count() == (len(NODES), len(EDGES))


def _quoted(store: CypherStore, name: str | None) -> str:
    """Return a name as Cypher writes it; Neo4j's replaces Unicode escapes first."""
    assert name is not None
    if store.dialect == "neo4j":
        name = name.replace("\\", "\\u005c")
    return "`" + name.replace("`", "``") + "`"
