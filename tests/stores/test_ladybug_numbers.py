"""Numbers that something else wrote to a Ladybug database: weights of every type, NaN and what is infinite."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphret.cypher import run_checked
from graphret.errors import StoreMismatch
from graphret.graphs import import_graph
from graphret.search import BM25Index
from graphret.stores import MemoryStore
from graphret.stores.ladybug import LadybugStore
from graphret.testing.reading import all_edges, all_nodes
from graphret.types import Edge, Node
from graphret.where import Where

Written = Callable[..., Path]


@pytest.fixture
def written(tmp_path: Path) -> Written:
    """Makes a database with Ladybug alone, or changes one."""
    import ladybug

    def write(*statements: str, path: Path | None = None) -> Path:
        path = path or tmp_path / "graph.lbug"
        with ladybug.Database(str(path)) as database, ladybug.Connection(database) as connection:
            for statement in statements:
                connection.execute(statement)
        return path

    return write


def roads(kind: str, weights: Sequence[str]) -> list[str]:
    """Statements that make a city with a road of each weight, and one of none, to a city of its own."""
    roads = [
        f"MATCH (a:City {{k: 'a'}}), (b:City {{k: 'b{n}'}}) CREATE (a)-[:ROAD {{weight: {weight}, since: {n}}}]->(b)"
        for n, weight in enumerate([*weights, "NULL"])
    ]
    cities = ", ".join(f"(:City {{k: '{k}'}})" for k in ("a", *(f"b{n}" for n in range(len(roads)))))
    return [
        "CREATE NODE TABLE City(k STRING PRIMARY KEY)",
        f"CREATE REL TABLE ROAD(FROM City TO City, weight {kind}, since INT64)",
        f"CREATE {cities}",
        *roads,
    ]


@pytest.mark.parametrize(
    ("kind", "weights", "read", "typed"),
    [
        ("INT64", ("3", "-9", "9007199254740993"), [3.0, -9.0, 9007199254740992.0], "INTEGER"),
        ("UINT8", ("4", "9"), [4.0, 9.0], "INTEGER"),
        ("INT128", ("5", "170141183460469231731687303715884105727"), [5.0, 2.0**127], "INTEGER"),
        ("DECIMAL(5, 2)", ("2.5", "-0.25"), [2.5, -0.25], "FLOAT"),
        ("FLOAT", ("2.5", "-0.0", "CAST('nan' AS FLOAT)"), [2.5, 0.0, 1.0], "FLOAT"),
        ("DOUBLE", ("2.5", "CAST('-nan' AS DOUBLE)"), [2.5, 1.0], "FLOAT"),
    ],
)
def test_a_number_of_any_type_is_a_weight(
    written: Written, tmp_path: Path, kind: str, weights: list[str], read: list[float], typed: str
) -> None:
    path = written(*roads(kind, weights))
    edges = [Edge("a", "ROAD", f"b{n}", weight, {"since": n}) for n, weight in enumerate([*read, 1.0])]
    first = sorted(edges, key=lambda edge: (-edge.weight, edge.target))
    with LadybugStore(path, read_only=True, id_property="k") as store:
        assert all_edges(store) == edges
        assert store.neighbors(["a"]) == edges
        assert store.neighbors(["a"], limit=1) == first[:1]
        assert [row[0] for row in store.query("MATCH ()-[r]->() RETURN r ORDER BY r.since").rows] == edges
        around = store.incidence("a")
        assert around is not None
        assert sorted(around.weight.tolist()) == sorted(edge.weight for edge in edges)
        assert store.schema().relation_properties["ROAD"]["weight"].type == typed
        with pytest.raises(StoreMismatch, match="ROAD"):
            store.check(edges=edges)
    import_graph(str(path), str(tmp_path / "copy"))
    assert [edge.weight for edge in all_edges(MemoryStore.load(tmp_path / "copy"))] == [
        np.float32(edge.weight) for edge in edges
    ]


def test_a_weight_that_is_no_number_is_a_property(written: Written, tmp_path: Path) -> None:
    """As what is infinite is, which an edge cannot weigh."""
    heavy = written(*roads("STRING", ["'heavy'", "'3'"]), path=tmp_path / "heavy.lbug")
    endless = written(*roads("DOUBLE", ["CAST('inf' AS DOUBLE)", "CAST('-inf' AS DOUBLE)"]))
    for path, values in ((heavy, ["heavy", "3"]), (endless, ["Infinity", "-Infinity"])):
        edges = [Edge("a", "ROAD", f"b{n}", 1.0, {"weight": value, "since": n}) for n, value in enumerate(values)]
        edges.append(Edge("a", "ROAD", "b2", 1.0, {"since": 2}))
        with LadybugStore(path, read_only=True, id_property="k") as store:
            assert all_edges(store) == edges
            assert store.neighbors(["a"], limit=1) == edges[:1]
            assert [row[0] for row in store.query("MATCH ()-[r]->() RETURN r ORDER BY r.since").rows] == edges
            assert store.schema().relation_properties["ROAD"]["weight"].type == "STRING"
            MemoryStore.of(all_nodes(store), edges)


def test_weights_of_one_are_known_to_the_guard(written: Written) -> None:
    with LadybugStore(written(*roads("INT64", ["1"])), read_only=True) as store:
        query = "MATCH (a:City)-[r:ROAD]->() RETURN r.weight ORDER BY r.since"
        assert run_checked(store, query, schema=store.schema()).rows == [(1,), (None,)]


def test_numbers_that_are_none_are_read_as_json(written: Written, tmp_path: Path) -> None:
    """NaN is no value, and what is infinite a text: in nodes, edges and conditions, whoever made the table."""
    nan, inf = "CAST('nan' AS DOUBLE)", "CAST('inf' AS DOUBLE)"
    with LadybugStore(tmp_path / "own.lbug") as store:
        store.upsert([Node("a", ("F",), "Dawn", "", {"x": 1.5, "l": [0.5, 1.0]}), Node("b", ("F",), "Dusk", "", {})])
        store.upsert(edges=[Edge("a", "R", "b", 2.0, {"p": 0.5})])
    change = [
        f"MATCH (n:F {{id: 'a'}}) SET n.x = {nan}, n.l = [{nan}, -{inf}]",
        f"MATCH (n:F {{id: 'b'}}) SET n.x = {inf}, n.l = [1.0]",
        f"MATCH ()-[r:R]->() SET r.p = {nan}, r.weight = {nan}",
    ]
    own = written(*change, path=tmp_path / "own.lbug")
    foreign = written(
        "CREATE NODE TABLE F(id STRING PRIMARY KEY, name STRING, x DOUBLE, l DOUBLE[])",
        "CREATE REL TABLE R(FROM F TO F, weight DOUBLE, p DOUBLE)",
        "CREATE (:F {id: 'a', name: 'Dawn'})-[:R {weight: 2}]->(:F {id: 'b', name: 'Dusk'})",
        *change,
    )
    nodes = [
        Node("a", ("F",), "Dawn", "", {"l": [None, "-Infinity"]}),
        Node("b", ("F",), "Dusk", "", {"x": "Infinity", "l": [1.0]}),
    ]
    conditions: list[dict[str, Any]] = [
        {"x": {"$exists": True}},
        {"x": "Infinity"},
        {"x": {"$ne": "Infinity"}},
        {"x": {"$gt": 1e300}},
        {"x": {"$lte": 5}},
        {"x": {"$gt": "A"}},
        {"x": {"$contains": "fin"}},
        {"properties.x": {"$nin": ["-Infinity"]}},
        {"l": [None, "-Infinity"]},
        {"l": {"$contains": None}},
        {"l": {"$contains": "-Infinity"}},
        {"l": {"$contains": 1}},
    ]
    fields = {own: (None, None), foreign: ("id", "name")}
    for path, (id_property, name_property) in fields.items():
        with LadybugStore(path, read_only=True, id_property=id_property, name_property=name_property) as store:
            assert all_nodes(store) == store.get(["a", "b"]) == nodes
            assert all_edges(store) == store.neighbors(["a"]) == [Edge("a", "R", "b")]
            assert store.query("MATCH (n)-[r]->(m) RETURN n, r, m").rows == [(nodes[0], Edge("a", "R", "b"), nodes[1])]
            for condition in conditions:
                where = Where.parse(condition)
                assert where is not None
                expected = [node for node in nodes if where.matches(node)]
                assert all_nodes(store, where=condition) == expected, condition
                assert [n for n in store.view(condition).get(["b", "a"]) if n] == expected[::-1], condition
            assert BM25Index.of_store(store).search("dusk", 1).ids == ["b"]
        import_graph(str(path), str(tmp_path / f"{path.stem} copy"))
        assert MemoryStore.load(tmp_path / f"{path.stem} copy").count() == (2, 1)


def test_what_a_query_returns_is_json(written: Written) -> None:
    query = (
        "RETURN CAST('nan' AS DOUBLE), [CAST('inf' AS FLOAT)], CAST('1.50' AS DECIMAL(5, 2)), CAST(7 AS INT128), "
        "CAST('2020-02-29 01:02:03' AS TIMESTAMP), {a: date('2020-02-29'), b: [CAST('nan' AS DOUBLE)]}, "
        "map([1], [date('2020-02-29')]), interval('3 days')"
    )
    with LadybugStore(written("CREATE NODE TABLE F(id STRING PRIMARY KEY)"), read_only=True) as store:
        ((*values, interval),) = store.query(query).rows
        assert values == [
            *(None, ["Infinity"], 1.5, 7, "2020-02-29T01:02:03"),
            *({"a": "2020-02-29", "b": [None]}, {"1": "2020-02-29"}),
        ]
        assert isinstance(interval, str)
        assert json.dumps(values) == json.dumps(list(run_checked(store, query, schema=store.schema()).rows[0][:-1]))
