"""What a store in Neo4j holds of values and names, and what conditions make of them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import neo4j
import pytest

from graphret.errors import InvalidInput, QueryRefused
from graphret.search import BM25Index
from graphret.stores.neo4j import Neo4jStore, quote
from graphret.testing.graphs import HOSTILE
from graphret.testing.reading import all_nodes
from graphret.types import Edge, Node
from graphret.where import Where


def test_what_is_internal_is_hidden(neo4j_empty: neo4j.Driver) -> None:
    store = Neo4jStore.from_driver(neo4j_empty, nested="json")
    odd = Node("x", ("B", "A"), "n", "t", {"id": 1, "name": None, "graphret_text": "mine", "deep": {"a": [1]}})
    store.upsert([odd, Node("y", ())], [Edge("x", "R", "y", 2.0, {"weight": "own", "deep": [[1], None], "no": None})])
    again = Neo4jStore.from_driver(neo4j_empty)
    assert again.get(["x", "y"]) == [odd, Node("y", ())]
    (edge,) = again.neighbors(["y"])
    assert edge == Edge("x", "R", "y", 2.0, {"weight": "own", "deep": [[1], None], "no": None})
    assert again.query("MATCH (n:A)-[r]->(m) RETURN r, [m], {n: n}").rows == [(edge, [Node("y", ())], {"n": odd})]
    assert again.query("MATCH p = (:A)-->() RETURN p").rows == [([odd, edge, Node("y", ())],)]
    assert set(again.schema().labels) == {"A", "B"}
    assert set(again.schema().properties[""]) == {"id"}  # of y, which shows no label
    assert not any(name.startswith("graphret_") for name in again.schema().properties["A"])
    with pytest.raises(InvalidInput, match="__Graphret__"):
        again.upsert([Node("z", ("__Graphret__",))])


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"a": 1}, "nested='json'"),
        ([1, "a"], "nested='json'"),
        ([None], "nested='json'"),
        (2**63, "64 bits"),
        ([-(2**63) - 1], "64 bits"),
    ],
    ids=repr,
)
def test_values_that_cannot_be_kept_are_refused_by_name(neo4j_empty: neo4j.Driver, value: Any, words: str) -> None:
    store = Neo4jStore.from_driver(neo4j_empty)
    for nodes, edges in (([Node("fine"), Node("bad", properties={"prop": value})], []), ([Node("bad")], [value])):
        with pytest.raises(InvalidInput, match=rf"(?s)bad.*prop.*{words}"):
            store.upsert(nodes, [Edge("bad", "R", "bad", 1.0, {"prop": given}) for given in edges])
    with pytest.raises(InvalidInput, match=r"node 'xxx.*bytes"):
        store.upsert([Node("x" * 5_000)])
    with pytest.raises(InvalidInput, match="surrogate"):
        store.upsert([Node("a", text="\ud800")])
    assert store.count() == (0, 0)


@pytest.mark.parametrize(
    "name", [*HOSTILE, "a`" * 3, "\\u005c\\u0060", "\\\\u0060", "`\\u0060`"], ids=lambda n: ascii(n[:20])
)
def test_quoted_names_are_read_back(neo4j_driver: neo4j.Driver, name: str) -> None:
    found = neo4j_driver.execute_query(f"WITH {{{quote(name)}: 1}} AS {quote(name)} RETURN *, keys({quote(name)}) AS k")
    assert found.records[0]["k"] == [name]


@pytest.mark.parametrize("name", ["", "a\0b", "n" * 20_000, None])
def test_names_that_cannot_be_quoted_are_refused(name: Any) -> None:
    with pytest.raises(InvalidInput):
        quote(name)


def test_values_of_a_query_are_json(neo4j_driver: neo4j.Driver) -> None:
    text = (
        "date('2020-01-02') AS d, duration('P1Y2M3DT4.5S') AS p, [point({x: 1, y: 2})] AS q, {a: time('10:00Z')} AS t"
    )
    assert Neo4jStore.from_driver(neo4j_driver).query(f"RETURN {text}").rows == [
        ("2020-01-02", "P1Y2M3DT4.5S", ["POINT(1.0 2.0)"], {"a": "10:00:00Z"})
    ]


def test_explain_names_the_kind(neo4j_driver: neo4j.Driver) -> None:
    store = Neo4jStore.from_driver(neo4j_driver)
    texts = ["MATCH (n) RETURN n", "CREATE (n) RETURN n", "CREATE (n)", "CREATE INDEX FOR (n:X) ON (n.y)"]
    assert [store.explain(text) for text in texts] == ["r", "rw", "w", "s"]
    with pytest.raises(QueryRefused):
        store.explain("MATCH (n) RETURN n; MATCH (m) RETURN m")


def test_an_index_of_this_process_misses_no_write_of_several_at_once(neo4j_empty: neo4j.Driver) -> None:
    batches = [[Node(f"n{i}-{j}", ("N",), f"name{i} word{j}") for j in range(3)] for i in range(12)]
    store = Neo4jStore.from_driver(neo4j_empty)
    store.upsert([Node("first", ("N",), "first")])
    index = BM25Index.of_store(store)
    store.attach(index)
    with ThreadPoolExecutor(6) as threads:
        list(threads.map(store.upsert, batches))
        list(threads.map(lambda batch: store.delete([batch[0].id]), batches))
    assert set(index.table.ids) == {"first", *(node.id for batch in batches for node in batch[1:])}


# -- conditions, on values that the contract does not have

ASKED: list[dict[str, Any]] = [
    *({"v": value} for value in ("2020-01-02", "2020-01-02T10:00:00Z", "P1D", "10:00:00", "x", 1, 1.5, True, ["a"])),
    *({"v": {"$gte": value}} for value in ("2020-01-02", "2020", "x", 1, 2**60, -(2**60))),
    *({"v": {"$lt": value}} for value in ("2020-01-03", "2020-01-02T10:00:00.5Z", 2, 2**60)),
    *({"v": {"$in": value}} for value in (["2020-01-02", 1], [["a"], "x"], [None, True], [2**60], [[1, "a"]])),
    *({"v": {"$nin": value}} for value in (["2020-01-02", 1], [2**60, "x"])),
    *({"v": {"$contains": value}} for value in ("a", "0", 1, True, [1])),
    *({"v": {"$exists": value}} for value in (True, False)),
    *({"v": {"$ne": value}} for value in (None, "x", 2**60, [1, "a"], ["a"])),
    {"v": 2**60},
    {"v.a": 1},
    {"$not": {"v.a": 1}},
    {"$or": [{"v": 1}, {"v.a": {"$exists": True}}]},
    {"$and": [{"v.a": {"$exists": True}}, {"v": {"$exists": True}}, {"id": {"$gt": "0"}}]},
    {"properties.v": "x"},
    {"properties.name": "inner"},
    {"name": {"$contains": "1"}},
]
OWN: list[Any] = ["x", "abc", '{"a": 1}', 1, 2**60, 1.5, True, ["a"], ["a", "b"], [1], None, {"a": 1}, [[1], [2]], []]
FOREIGN = (
    "'x', 'abc', 1, 1152921504606846976, 1.5, true, ['a'], [1], date('2020-01-02'), datetime('2020-01-02T10:00Z'), "
)
FOREIGN += "localdatetime('2020-01-02T10:00:00.5'), localtime('10:00'), duration('P1D'), '2020-01-02', null"


@pytest.fixture(scope="module")
def everyone(neo4j_module: neo4j.Driver) -> dict[str, tuple[Neo4jStore, list[Node]]]:
    """Nodes with a value of every kind, of graphret's and of something else."""
    for i, value in enumerate(FOREIGN.split(", ")):
        neo4j_module.execute_query(f"CREATE (:Theirs {{sku: {i}, title: 'n{i}', v: {value}}})")
    own = Neo4jStore.from_driver(neo4j_module, layout="graphret", nested="json")
    own.upsert(Node(f"{i}", (), f"n{i}", "", {"v": value, "name": "inner"}) for i, value in enumerate(OWN))
    theirs = Neo4jStore.from_driver(neo4j_module, id_property="sku", label="Theirs", name_property="title")
    return {"own": (own, all_nodes(own)), "theirs": (theirs, all_nodes(theirs))}


@pytest.mark.parametrize("whose", ["own", "theirs"])
def test_a_condition_means_what_it_means_for_the_node_as_it_is_read(everyone: dict[str, Any], whose: str) -> None:
    store, nodes = everyone[whose]
    assert len(nodes) == (len(OWN) if whose == "own" else FOREIGN.count(", ") + 1)
    for asked in ASKED:
        where = Where.parse(asked)
        assert where is not None
        expected = [node.id for node in nodes if where.matches(node)]
        assert [node.id for node in all_nodes(store, where=asked)] == expected, asked
        if "v.a" in str(asked) or str(2**60) in str(asked) or "[1, 'a']" in str(asked) or "': [1]}" in str(asked):
            with pytest.raises(InvalidInput, match="the database itself decides"):
                store.view(asked)
        else:
            assert [node.id for node in all_nodes(store.view(asked))] == expected, asked


def test_neighbours_are_the_heaviest_of_those_that_qualify(neo4j_empty: neo4j.Driver) -> None:
    """Also where the database cannot say which do."""
    store = Neo4jStore.from_driver(neo4j_empty, nested="json")
    near = [Node(f"n{i}", properties={"deep": {"part": i % 2}, "part": i % 2}) for i in range(9)]
    store.upsert([Node("hub"), *near], [Edge("hub", "R", node.id, float(i)) for i, node in enumerate(near)])
    store.upsert(edges=[Edge("hub", "R", "hub", 100.0)])
    for where in ({"part": 1}, {"deep.part": 1}):
        assert [e.target for e in store.neighbors(["hub", "n1"], where=where, limit=2)] == ["n5", "n7"]
    assert [e.target for e in store.neighbors(["hub"], limit=2)] == ["hub", "n8"]
