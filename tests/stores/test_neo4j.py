"""`Neo4jStore`, on a real server and on one that fails, keeps the contract of
stores.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import neo4j
import pytest
from neo4j import exceptions
from neo4j_faults import CuttingProxy

from graphret.errors import (
    AccessDenied,
    GraphretError,
    InvalidInput,
    QueryRefused,
    QueryTimeout,
    StoreMismatch,
    StoreUnavailable,
)
from graphret.graphs.transfer import copy
from graphret.stores.memory import MemoryStore
from graphret.stores.neo4j import Neo4jStore
from graphret.testing.graphs import all_edges, all_nodes, random_graph
from graphret.testing.stores import CypherStoreSuite
from graphret.types import Edge, Node
from graphret.where import Where

Auth = tuple[str, str] | None


class TestNeo4jStore(CypherStoreSuite):
    @pytest.fixture
    def store(
        self, neo4j_empty: neo4j.Driver, neo4j_uri: str, neo4j_auth: Auth
    ) -> Iterator[Neo4jStore]:
        with Neo4jStore(neo4j_uri, auth=neo4j_auth) as store:
            yield store


def test_what_is_internal_is_hidden(neo4j_empty: neo4j.Driver) -> None:
    store = Neo4jStore.from_driver(neo4j_empty)
    odd = Node(
        "x",
        ("B", "A"),
        "n",
        "t",
        {"id": 1, "name": "own", "graphret_text": "mine", "deep": {"a": [1]}},
    )
    edge = Edge(
        "x", "R", "y", 2.0, {"weight": "own", "deep": [[1], None], "large": 2**63}
    )
    store.upsert([odd, Node("y", ())], [edge])
    again = Neo4jStore.from_driver(neo4j_empty)
    assert again.get(["x", "y"]) == [odd, Node("y", ())]
    assert again.neighbors(["y"]) == [edge]
    assert again.query("MATCH (n:A)-[r]->(m) RETURN r, [m], {n: n}").rows == [
        (edge, [Node("y", ())], {"n": odd})
    ]
    assert again.query("MATCH p = (:A)-->() RETURN p").rows == [
        ([odd, edge, Node("y", ())],)
    ]
    schema = again.schema()
    assert set(schema.labels) == {"A", "B"}
    assert set(schema.properties[""]) == {"id"}  # of y, which shows no label
    assert not any(name.startswith("graphret_") for name in schema.properties["A"])


def test_what_is_inserted_reads_as_if_upserted(neo4j_empty: neo4j.Driver) -> None:
    nodes, edges = random_graph(5)
    nodes += [Node("odd", ("B", "A"), "n", "t", {"id": 1, "deep": {"a": [1]}})]
    source = MemoryStore.of(nodes, edges)
    store = Neo4jStore.from_driver(neo4j_empty)
    done: list[tuple[str, int, int]] = []
    assert copy(source, store, progress=lambda *at: done.append(at)) == source.count()
    assert done[-1] == ("edges", len(edges), len(edges))
    assert all_nodes(store) == all_nodes(source)
    assert all_edges(store) == all_edges(source)
    copy(source, store)  # over what is there
    assert all_edges(store) == all_edges(source)
    with pytest.raises(InvalidInput, match="there is no node 'none'"):
        store.insert([Node("new")], [Edge("new", "R", "none")])
    with pytest.raises(GraphretError, match="odd"):
        store.insert([Node("new"), nodes[-1]])
    assert store.get(["new"]) == [None]


def test_values_of_a_query_are_json(neo4j_driver: neo4j.Driver) -> None:
    text = (
        "date('2020-01-02') AS d, duration('P1Y2M3DT4.5S') AS p, [point({x: 1, y: 2})]"
        " AS q, {a: time('10:00Z')} AS t"
    )
    assert Neo4jStore.from_driver(neo4j_driver).query(f"RETURN {text}").rows == [
        ("2020-01-02", "P1Y2M3DT4.5S", ["POINT(1.0 2.0)"], {"a": "10:00:00Z"})
    ]


def test_neighbours_are_the_heaviest_of_those_that_qualify(
    neo4j_empty: neo4j.Driver,
) -> None:
    """Also where the database cannot say which do."""
    store = Neo4jStore.from_driver(neo4j_empty)
    near = [
        Node(f"n{i}", properties={"deep": {"part": i % 2}, "part": i % 2})
        for i in range(9)
    ]
    store.upsert(
        [Node("hub"), *near],
        [Edge("hub", "R", node.id, float(i)) for i, node in enumerate(near)],
    )
    store.upsert(edges=[Edge("hub", "R", "hub", 100.0)])
    for where in ({"part": 1}, {"deep.part": 1}):
        assert [
            e.target for e in store.neighbors(["hub", "n1"], where=where, limit=2)
        ] == ["n5", "n7"]
    assert [e.target for e in store.neighbors(["hub"], limit=2)] == ["hub", "n8"]


#: What the database decides by itself, and what it leaves to `Where.matches`.
DECIDED: list[dict[str, Any]] = [
    *(
        {"v": value}
        for value in (
            "2020-01-02",
            "2020-01-02T10:00:00Z",
            "P1D",
            "10:00:00",
            1.5,
            True,
            ["a"],
        )
    ),
    *({"v": {"$gte": value}} for value in ("2020", "x", 1)),
    {"v": {"$lt": "2020-01-02T10:00:00.5Z"}},
    *(
        {"v": {"$in": value}}
        for value in (["2020-01-02", 1], [["a"], "x"], [None, True])
    ),
    {"v": {"$nin": ["2020-01-02", 1]}},
    *({"v": {"$contains": value}} for value in ("a", "0", 1, True)),
    *({"v": {"$icontains": value}} for value in ("A", "t10", "")),
    {"v": {"$exists": False}},
    *({"v": {"$ne": value}} for value in (None, "x", ["a"])),
    {"properties.name": "inner"},
    {"name": {"$contains": "1"}},
]
LEFT: list[dict[str, Any]] = [
    *({"v": {operator: 2**60}} for operator in ("$eq", "$ne", "$gte", "$lt")),
    *({"v": {"$in": value}} for value in ([2**60], [[1, "a"]])),
    {"v": {"$contains": [1]}},
    {"$not": {"w.a": 1}},
    {"$or": [{"v": 1}, {"w.a": {"$exists": True}}]},
    {
        "$and": [
            {"w.a": {"$exists": True}},
            {"v": {"$exists": True}},
            {"id": {"$gt": "0"}},
        ]
    },
]
OWN: list[Any] = ["x", "abc", 1, 2**60, 1.5, True, ["a"], ["a", "b"], [1], None, []]
FOREIGN = (
    "'x', 'abc', 1, 1152921504606846976, 1.5, true, ['a'], [1], date('2020-01-02'),"
    " datetime('2020-01-02T10:00Z'), "
)
FOREIGN += (
    "localdatetime('2020-01-02T10:00:00.5'), localtime('10:00'), duration('P1D'),"
    " '2020-01-02', null"
)


@pytest.fixture(scope="module")
def everyone(neo4j_module: neo4j.Driver) -> dict[str, tuple[Neo4jStore, list[Node]]]:
    """Nodes with a value of every kind, of graphret's and of something else."""
    own = Neo4jStore.from_driver(neo4j_module)
    own.upsert(
        Node(f"{i}", (), f"n{i}", "", {"v": value, "name": "inner", "w": {"a": i}})
        for i, value in enumerate(OWN)
    )
    for i, value in enumerate(FOREIGN.split(", ")):
        neo4j_module.execute_query(
            f"CREATE (:Theirs {{sku: {i}, title: 'n{i}', v: {value}}})"
        )
    theirs = Neo4jStore.from_driver(
        neo4j_module, id_property="sku", label="Theirs", name_property="title"
    )
    return {"own": (own, all_nodes(own)), "theirs": (theirs, all_nodes(theirs))}


@pytest.mark.parametrize("whose", ["own", "theirs"])
def test_a_condition_means_what_it_means_for_the_node_as_it_is_read(
    everyone: dict[str, Any], whose: str
) -> None:
    store, nodes = everyone[whose]
    assert len(nodes) == (len(OWN) if whose == "own" else FOREIGN.count(", ") + 1)
    for asked in (*DECIDED, *LEFT):
        where = Where.parse(asked)
        assert where is not None
        expected = [node.id for node in nodes if where.matches(node)]
        assert [node.id for node in all_nodes(store, where=asked)] == expected, asked
        if asked in LEFT:
            with pytest.raises(InvalidInput, match="the database itself decides"):
                store.view(asked)
        else:
            assert store.view(asked).restriction == where


ENDLESS = (
    "UNWIND range(1, 1000000) AS a UNWIND range(1, 1000000) AS b WITH a * b AS c RETURN"
    " count(c)"
)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (exceptions.AuthError("wrong password"), AccessDenied),
        (exceptions.Forbidden("not yours"), AccessDenied),
        (exceptions.ConfigurationError("no such setting"), InvalidInput),
        (exceptions.SessionExpired("the leader has changed"), StoreUnavailable),
        (exceptions.TransientError("locked by another"), StoreUnavailable),
    ],
    ids=lambda one: type(one).__name__ if isinstance(one, Exception) else "",
)
def test_what_the_driver_raises_has_a_type_and_says_why(
    error: Exception, kind: type[GraphretError]
) -> None:
    def refuse(**_: Any) -> Any:
        raise error

    store = Neo4jStore.from_driver(
        SimpleNamespace(session=refuse, execute_query_bookmark_manager=None)
    )
    with pytest.raises(kind, match=str(error)):
        store.count()


@pytest.mark.parametrize("uri", ["bolt://127.0.0.1:1", "neo4j://no.such.host.invalid"])
def test_no_server_at_all(uri: str) -> None:
    with Neo4jStore(uri, options={"max_transaction_retry_time": 0.1}) as store:
        for call in (
            store.count,
            lambda: store.query("RETURN 1"),
            lambda: store.upsert([Node("a")]),
        ):
            with pytest.raises(
                StoreUnavailable, match=re.escape(uri.partition("://")[2])
            ):
                call()


def test_a_database_that_is_not_there(neo4j_uri: str, neo4j_auth: Auth) -> None:
    with (
        Neo4jStore(
            neo4j_uri.replace("bolt", "neo4j", 1), auth=neo4j_auth, database="nowhere"
        ) as store,
        pytest.raises(StoreMismatch, match="nowhere"),
    ):
        store.count()


@pytest.fixture
def proxy(neo4j_empty: neo4j.Driver, neo4j_uri: str) -> Iterator[CuttingProxy]:
    with CuttingProxy(neo4j_uri) as proxy:
        yield proxy


def test_a_line_that_is_cut_in_a_batch_leaves_nothing_half_written(
    proxy: CuttingProxy, neo4j_auth: Auth
) -> None:
    nodes = [Node(f"n{i}", ("A",), f"name {i}", "t" * 20) for i in range(5_600)]
    edges = [Edge(f"n{i}", "R", f"n{i + 1}") for i in range(5_599)]
    with Neo4jStore(
        proxy.uri, auth=neo4j_auth, options={"max_transaction_retry_time": 0.5}
    ) as store:
        store.upsert([Node("first", ("B",))])
        proxy.budget = 380_000
        with pytest.raises(StoreUnavailable):
            store.upsert(nodes, edges)
        for call in (
            store.count,
            lambda: store.get(["first"]),
            lambda: list(store.nodes()),
        ):
            with pytest.raises(StoreUnavailable, match=r"127\.0\.0\.1"):
                call()
        proxy.budget = None
        assert store.count() == (1, 0)
        store.upsert(nodes[:3], edges[:2])  # the same store works on
        assert store.count() == (4, 2)


def test_queries_only_read_and_end_in_time(neo4j_empty: neo4j.Driver) -> None:
    store = Neo4jStore.from_driver(neo4j_empty)
    for text in ("CREATE INDEX FOR (n:A) ON (n.b)", "CALL apoc.create.node(['A'], {})"):
        with pytest.raises(QueryRefused):
            store.query(text)
    assert store.count() == (0, 0)
    with pytest.raises(QueryTimeout):
        Neo4jStore.from_driver(neo4j_empty, timeout=0.3).query(ENDLESS)
    tangled = ", ".join(f"(a{i})--(a{i + step})" for i in range(20) for step in (1, 3))
    with pytest.raises(QueryTimeout):  # the plan alone takes long
        store.explain(f"MATCH {tangled} RETURN count(*)", timeout=0.1)
    texts = [
        "MATCH (n) RETURN n",
        "CREATE (n) RETURN n",
        "CREATE (n)",
        "CREATE INDEX FOR (n:X) ON (n.y)",
    ]
    assert [store.explain(text) for text in texts] == ["r", "rw", "w", "s"]


def test_a_parameter_that_cannot_be_sent(neo4j_driver: neo4j.Driver) -> None:
    store = Neo4jStore.from_driver(neo4j_driver)
    for value in (2**70, object(), "\ud800"):
        with pytest.raises(InvalidInput):
            store.query("RETURN $value", {"value": value})
    assert store.query("RETURN 1").rows == [(1,)]


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"name_property": []}, "name_property"),
        ({"text_property": ["a", 3]}, "text_property"),
        ({"timeout": -1}, "timeout"),
        ({"uri": "127.0.0.1:7687"}, "uri"),
        (
            {"uri": "neo4j://host/films"},
            "uri:.*database=",
        ),  # the driver would take the user's own
        ({"uri": "neo4j://me:secret@host"}, "uri:.*auth="),
        ({"options": {"no_such_option": 1}}, "uri.*no_such_option"),
    ],
    ids=str,
)
def test_malformed_options_are_refused(options: dict[str, Any], word: str) -> None:
    with pytest.raises(InvalidInput, match=rf"^{word}") as caught:
        Neo4jStore(**{"uri": "bolt://127.0.0.1:1", **options})
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("_again", [1, 2])
def test_each_test_begins_with_an_empty_database(
    neo4j_empty: neo4j.Driver, _again: int
) -> None:
    run = neo4j_empty.execute_query
    assert run("RETURN apoc.version() AS version").records[0]["version"]
    assert run("MATCH (n) RETURN count(n) AS n").records[0]["n"] == 0
    indexes = run(
        "SHOW INDEXES YIELD name, type WHERE type <> 'LOOKUP' RETURN name"
    ).records
    assert {row["name"] for row in indexes} <= {
        "graphret_id"
    }  # what every store makes at first may stay
    run("CREATE CONSTRAINT `a``b` FOR (n:A) REQUIRE n.x IS UNIQUE")
    run("CREATE FULLTEXT INDEX f FOR (n:A) ON EACH [n.x]")
    run("UNWIND range(1, 10) AS i CREATE (:A {x: i})-[:R]->(:B)")
