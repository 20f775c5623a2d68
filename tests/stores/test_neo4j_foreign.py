"""Graphs in Neo4j that something else wrote: read as they are, added to, and never
changed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import neo4j
import pytest

from graphret import Expand
from graphret.cypher import check
from graphret.errors import InvalidInput, StoreMismatch
from graphret.search import BM25Index
from graphret.stores.neo4j import Neo4jStore
from graphret.testing.graphs import all_edges, all_nodes, edge_key
from graphret.types import Edge, Node

SKU: dict[str, Any] = {
    "id_property": "sku",
    "label": "P",
    "name_property": ["title", "name"],
    "text_property": "body",
}


@pytest.fixture
def database(neo4j_empty: neo4j.Driver) -> neo4j.Driver:
    neo4j_empty.execute_query(
        """CREATE (a:Person:Author {uuid: 'a', title: 'Dr', name: 'Ada', description: 'text'}),
        (b:Person {uuid: 'b', name: 'Charles', at: point({x: 1.5, y: 2.0})}), (c:Machine {uuid: 3, title: 'Engine'}),
        (d {note: 'has no label'}), (a)-[:KNEW {weight: 2, since: datetime('1833-06-05T20:00Z')}]->(b),
        (a)-[:KNEW {weight: 'heavy'}]->(b), (b)-[:BUILT {weight: 0.5}]->(c), (c)-[:NEAR]->(d)
        SET a.born = date('1815-12-10')"""
    )
    neo4j_empty.execute_query("CREATE INDEX FOR (n:Unused) ON (n.uuid)")
    return neo4j_empty


def theirs(driver: neo4j.Driver) -> list[Any]:
    """What is in the database that graphret did not write."""
    queries = (
        (
            "MATCH (n) WHERE NOT n:__GraphretAdded__ RETURN labels(n), properties(n)"
            " ORDER BY elementId(n)"
        ),
        (
            "MATCH (a)-[r]->() WHERE r.graphret_added IS NULL RETURN a.sku, type(r),"
            " properties(r) ORDER BY elementId(r)"
        ),
    )
    return [
        record.values()
        for query in queries
        for record in driver.execute_query(query).records
    ]


def test_a_foreign_graph_goes_by_element_ids(database: neo4j.Driver) -> None:
    store = Neo4jStore.from_driver(database)
    assert store.count() == (4, 4)
    by_name = {node.name: node for node in all_nodes(store)}
    ada, charles, engine, other = (
        by_name["Ada"],
        by_name["Charles"],
        by_name["Engine"],
        by_name[""],
    )
    assert (
        ada.id
        == database.execute_query(
            "MATCH (n {uuid: 'a'}) RETURN elementId(n) AS id"
        ).records[0]["id"]
    )
    about = {"uuid": "a", "title": "Dr", "born": "1815-12-10", "description": "text"}
    assert ada == Node(ada.id, ("Author", "Person"), "Ada", "text", about)
    assert charles.properties["at"] == "POINT(1.5 2.0)"
    assert (engine.properties, other.labels) == ({"uuid": 3, "title": "Engine"}, ())
    assert store.get([ada.id, "no element id", "a"]) == [ada, None, None]
    edges = store.neighbors([ada.id])
    assert sorted(
        (e.weight, e.properties.get("weight"), e.properties.get("since")) for e in edges
    ) == [
        (1.0, "heavy", None),
        (2.0, None, "1833-06-05T20:00:00Z"),
    ]
    assert [e.weight for e in store.neighbors([ada.id], limit=1)] == [2.0]
    assert [e.target for e in store.neighbors([engine.id], direction="out")] == [
        other.id
    ]
    index = BM25Index.of_store(store)
    assert {
        hit.node.name for hit in Expand(None, store, index).retrieve("Ada", k=2)
    } == {"Ada", "Charles"}


def test_the_schema_has_the_types_of_the_database(database: neo4j.Driver) -> None:
    schema = Neo4jStore.from_driver(database).schema()
    assert schema.labels == {
        "Author": 1,
        "Machine": 1,
        "Person": 2,
    }  # none that only an index names
    assert schema.relations["Person", "KNEW", "Person"] == 2
    assert schema.relations["Machine", "NEAR", ""] == 1
    assert schema.properties["Author"]["born"].type == "DATE"
    assert set(schema.properties[""]) == {"note"}
    assert re.search(r"at: POINT[;}]", schema.text())
    assert not check(
        "MATCH (p:Person) RETURN p.at.x, p.born.year LIMIT 1", schema
    ).errors
    assert check(
        "MATCH (m:Machine)-[:BUILT]->(p:Person) RETURN p LIMIT 1", schema
    ).errors


def test_a_large_graph_has_a_sampled_schema(
    neo4j_empty: neo4j.Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a relation with many edges the database counts what it can, and the schema
    says what was read in part.
    """
    for limit, most in (("SAMPLE", 10), ("COUNTED", 100), ("SCANNED", 500)):
        monkeypatch.setattr(f"graphret.stores.neo4j.schema.{limit}", most)
    neo4j_empty.execute_query(
        "UNWIND range(1, 120) AS i CREATE (:A {i: i})-[:ONE]->(b:B), (b)-[:TWO]->(:C),"
        " (:C)-[:TWO]->(:B), (:A)-[:TWO]->(:A) FOREACH (_ IN CASE i WHEN 120 THEN [1]"
        " ELSE [] END | CREATE (:A {late: 1}))"
    )
    store = Neo4jStore.from_driver(neo4j_empty)
    schema = store.schema()
    assert schema.labels == {"A": 361, "B": 240, "C": 240}
    assert {t: n for t, n in schema.relations.items() if t[1] == "ONE"} == {
        ("A", "ONE", "B"): 120
    }
    assert schema.sampled_relations == {"TWO"}
    assert schema.sampled_properties == {"", "A", "B", "C"}
    assert store.view({"i": {"$lt": 3}}).schema().labels == {"A": 2}


def test_options_say_which_properties_are_id_name_and_text(
    database: neo4j.Driver,
) -> None:
    described = {
        "id_property": "uuid",
        "name_property": ["title", "name"],
        "text_property": "description",
    }
    store = Neo4jStore.from_driver(database, **described)
    ada, charles, engine = (
        node for node in store.get(["a", "b", "3"]) if node is not None
    )
    assert (ada.name, ada.text, charles.name, engine.id) == (
        "Dr",
        "text",
        "Charles",
        "3",
    )
    other = next(
        node.id for node in all_nodes(store) if node.properties.get("note")
    )  # it goes by its element id
    assert store.neighbors(["3"], direction="out") == [Edge("3", "NEAR", other)]
    assert store.get([other, "3.0", "c"])[1:] == [None, None]
    assert (
        store.query("MATCH (p:Author)-[r:KNEW {weight: 2}]->(q) RETURN r")
        .rows[0][0]
        .source
        == "a"
    )
    assert store.query(
        "MATCH path = (p:Person)-[:BUILT]->() RETURN path, p.at"
    ).rows == [([charles, Edge("b", "BUILT", "3", 0.5), engine], "POINT(1.5 2.0)")]
    assert [node.id for node in all_nodes(store, where={"id": "3"})] == ["3"]
    people = Neo4jStore.from_driver(database, id_property="uuid", label="Person")
    assert people.count() == (2, 2)
    assert [node.labels for node in all_nodes(people)] == [
        ("Author", "Person"),
        ("Person",),
    ]
    assert [e.relation for e in people.neighbors(["b"])] == ["KNEW", "KNEW"]
    assert people.get(["3"]) == [None]
    database.execute_query("CREATE (:Person {uuid: 'b'})")
    with pytest.raises(InvalidInput, match=r"'b'.*uuid"):
        people.get(["a", "b"])


@pytest.mark.parametrize("mixed", [False, True])
def test_what_llama_index_wrote_is_seen_as_it_is(
    neo4j_empty: neo4j.Driver, mixed: bool
) -> None:
    neo4j_empty.execute_query(
        """CREATE (c:__Node__:Chunk {id: 'chunk', text: 'Ada knew Charles', embedding: [0.1, 0.2]}),
        (a:__Node__:__Entity__:Person {id: 'Ada', name: 'Ada', embedding: [0.1, 0.2], age: 36}),
        (c)-[:MENTIONS]->(a)"""
    )
    if mixed:
        neo4j_empty.execute_query("CREATE (:City {name: 'London'})")
    store = Neo4jStore.from_driver(neo4j_empty)
    ada = Node("Ada", ("Person",), "Ada", "", {"age": 36})
    assert store.get(["Ada", "chunk"]) == [
        ada,
        Node("chunk", ("Chunk",), "", "Ada knew Charles"),
    ]
    assert store.neighbors(["Ada"]) == [Edge("chunk", "MENTIONS", "Ada")]
    assert store.schema().labels.keys() == {
        "Chunk",
        "Person",
        *(["City"] if mixed else []),
    }
    assert store.count() == (2 + mixed, 1)


# -- adding to them


@pytest.fixture
def products(neo4j_empty: neo4j.Driver) -> Iterator[Neo4jStore]:
    neo4j_empty.execute_query(
        "CREATE (a:P {sku: 1, title: 'One', born: date('2020-01-01')})-[:R {w: 1}]->(:P"
        " {sku: 'b', embedding: [0.5]}), (a)-[:R]->(:Q {sku: 'q'})"
    )
    before = theirs(neo4j_empty)
    yield Neo4jStore.from_driver(neo4j_empty, **SKU)
    assert theirs(neo4j_empty) == before


def test_nodes_and_edges_are_added_and_found_like_the_others(
    products: Neo4jStore,
) -> None:
    added = [
        Node(
            "x",
            ("Chunk", "Art"),
            "An X",
            "x y",
            {"n": 1, "title": "own", "embedding": [1.0]},
        ),
        Node("y", (), "", "", {"name": "inner", "body": 3}),
    ]
    edges = [
        Edge("x", "MENTIONS", "1", 2.0, {"source_row": 1}),
        Edge("1", "IS_SIMILAR", "b", 0.5),
        Edge("x", "R", "y"),
    ]
    for _ in range(2):  # again, as an interrupted import
        products.upsert(added, edges)
        assert products.count() == (4, 4)
    for store in (products, Neo4jStore.from_driver(products.driver, **SKU)):
        assert store.get(["x", "y"]) == added
        assert [node.id for node in all_nodes(store)] == ["1", "b", "x", "y"]
        assert all_edges(store) == sorted(
            [*edges, Edge("1", "R", "b", 1.0, {"w": 1})], key=edge_key
        )
        assert store.neighbors(["1"], limit=1) == edges[:1]
        assert store.schema().labels == {"Art": 1, "Chunk": 1, "P": 2}
        assert [node.id for node in all_nodes(store, labels=["P"])] == ["1", "b"]
        assert store.view({"label": "Chunk"}).count() == (1, 0)
    products.upsert([Node("x", ("Art",), "Another")], [Edge("x", "R", "y", 3.0)])
    assert products.get(["x"]) == [Node("x", ("Art",), "Another")]
    products.delete_edges([edges[1], Edge("x", "R", "y"), Edge("x", "NONE", "q")])
    products.delete(["y", "nobody"])
    assert products.count() == (3, 2)


def test_what_something_else_wrote_is_not_written_to(products: Neo4jStore) -> None:
    products.upsert([Node("x")])
    calls: list[Callable[[], None]] = [
        lambda: products.upsert([Node("new"), Node("1", name="Two")]),
        lambda: products.delete(["x", "b"]),
    ]
    for call in calls:
        with pytest.raises(InvalidInput, match=r"node '[1b]'.*another program wrote"):
            call()
    for _ in range(2):
        products.upsert(
            edges=[Edge("1", "R", "b", 2.0)]
        )  # beside the one that is there
        assert sorted(e.weight for e in products.neighbors(["b"])) == [1.0, 2.0]
    products.delete_edges([Edge("1", "R", "b")])
    with pytest.raises(InvalidInput, match="no node 'q'"):
        products.upsert([Node("new")], [Edge("new", "R", "q")])
    assert products.get(["x", "new"]) == [Node("x"), None]


def test_edges_are_added_between_element_ids(database: neo4j.Driver) -> None:
    store, before = Neo4jStore.from_driver(database), theirs(database)
    first, second, *_ = [node.id for node in all_nodes(store)]
    store.upsert(edges=[Edge(first, "IS_SIMILAR", second, 0.5)])
    assert store.neighbors([second], relations=["IS_SIMILAR"]) == [
        Edge(first, "IS_SIMILAR", second, 0.5)
    ]
    with pytest.raises(StoreMismatch, match="id_property"):
        store.upsert([Node("new")])
    store.delete_edges([Edge(first, "IS_SIMILAR", second)])
    assert theirs(database) == before
    assert store.count() == (4, 4)
