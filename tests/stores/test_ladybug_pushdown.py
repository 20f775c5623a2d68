"""Conditions on dates and JSON in a Ladybug database: decided in it as far as it can, and always as `Where` says."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from graphret.columns import to_json
from graphret.stores.ladybug import LadybugStore
from graphret.stores.ladybug.engine import Session
from graphret.stores.ladybug.hubs import WORTH_A_QUERY
from graphret.types import Edge, Node
from graphret.where import Where

CONDITIONS: list[dict[str, Any]] = [
    *({field: {op: value}} for op in ("$eq", "$ne", "$gt", "$gte", "$lt", "$lte") for field, value in (
        ("day", "2020-01-03"), ("at", "2020-01-02T03:04:05.500000"), ("zoned", "2020-01-02T00:00:00+00:00"),
        ("price", 1.25), ("key", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a12"), ("name", ""), ("name", "9"), ("id", "3"),
    )),
    {"day": {"$in": ["0650-01-02", "2020-01-04", 5]}},
    {"day": {"$contains": "-01-0"}},
    {"day": {"$gt": 2019}},
    {"day": {"$exists": False}},
    {"at": {"$nin": ["2020-01-02T03:04:05"]}},
    {"price": {"$in": [1, 0.1]}},
    {"name": {"$exists": True}},
    {"span": {"$exists": True}},
    {"inner.city": "Ghent"},
    {"days": {"$contains": "2020-01-01"}},
    {"label": "Event"},
    *({field: {op: value}} for op in ("$eq", "$ne", "$gt", "$lte", "$contains") for field, value in (
        ("inner.at.x", 1.5), ("inner", 1), ("inner.none", 1), ("inner.city.x", 1), ("day.x", 1), ("marks.b", 2),
        ("marks", "a"), ("big", 2**64 - 1), ("big", 2.0**70), ("big", "5"), ("big", -0.5), ("huge", 2**80),
        ("points", 2.0), ("points", [1.0, 2.0]), ("points", 2), ("days", ["2020-01-01"]), ("span", "1 day, 0:00:00"),
        ("days", []), ("costs", 0.5), ("costs", [0.5]), ("both.x", 1), ("parts", []), ("long", 1e20), ("rows", [[1]]),
        ("rows", [[1], []]), ("rows", []), ("rows", [[]]), ("rows", [1]), ("rows", [[1.0, 2], []]), ("rows", [[True]]),
    )),
    *({"either": {op: value}} for op in ("$eq", "$ne", "$gt", "$contains", "$in") for value in ([7, "se"], "se", 6)
      if op != "$in" or isinstance(value, list)),
    {"big": {"$in": [5.0, "5", True]}},
    {"inner.city": {"$nin": ["Ghent", 1]}},
    {"marks.b": {"$exists": True}},
    {"parts": {"$in": [[], [1]]}},
]  # fmt: skip


@pytest.fixture(scope="module")
def foreign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import ladybug

    path = tmp_path_factory.mktemp("dates") / "graph.lbug"
    with ladybug.Database(str(path)) as database, ladybug.Connection(database) as connection:
        for statement in (
            "CREATE NODE TABLE Event(code INT64 PRIMARY KEY, number INT64, day DATE, at TIMESTAMP, zoned TIMESTAMP_TZ, "
            "price DECIMAL(10, 2), key UUID, span INTERVAL, "
            "inner STRUCT(city STRING, at STRUCT(x DOUBLE, y INT32)), days DATE[], "
            "marks MAP(STRING, INT64), big UINT64, huge INT128, points DOUBLE[2], costs DECIMAL(5, 2)[], "
            "parts STRUCT(a INT64)[], long DECIMAL(30, 3), rows INT64[][], "
            "either UNION(number INT64, word STRING))",
            "CREATE REL TABLE NEXT(FROM Event TO Event)",
            "CREATE (:Event {code: 1, number: 9, day: date('0650-01-02'), at: timestamp('2020-01-02 03:04:05.5'), "
            "zoned: timestamp('2020-01-02 02:00:00+02:00'), price: 1.25, inner: {city: 'Ghent', at: {x: 1.5, y: 1}}, "
            "marks: map(['a', 'b'], [1, 2]), big: 18446744073709551615, huge: 1208925819614629174706176, "
            "points: [1.0, 2.0], costs: [0.5], parts: [{a: 1}], long: 100000000000000000000.001, rows: [[1]], "
            "either: union_value(number := 7), "
            "key: uuid('a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'), days: [date('2020-01-01')], span: interval('1 day')})",
            "CREATE (:Event {code: 2, number: 10, marks: map(['b'], [9]), big: 5, huge: 5, costs: [1.5, 0.5], "
            "inner: {city: NULL, at: {x: 0.5, y: 2}}, rows: [[1, 2], []], parts: CAST([] AS STRUCT(a INT64)[]), "
            "day: date('2020-01-03'), at: timestamp('2020-01-02 03:04:05'), "
            "zoned: timestamp('2020-01-02 00:00:00.000001'), price: 0.1, "
            "key: uuid('a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a12')})",
            "CREATE (:Event {code: 3, day: date('2020-01-04'), at: timestamp('1999-12-31 23:59:59.123456'), price: 1})",
            "CREATE (:Event {code: 10, either: union_value(word := 'seven')})",
            "MATCH (a:Event), (b:Event) CREATE (a)-[:NEXT]->(b)",
        ):
            connection.execute(statement)
    return path


def test_times_of_many_nodes_are_compared_each_with_its_own(tmp_path: Path) -> None:
    """Texts of several lengths, and none, one after the other: also where the nodes are looked up from a list."""
    import ladybug

    path = tmp_path / "graph.lbug"
    with ladybug.Database(str(path)) as database, ladybug.Connection(database) as connection:
        for statement in (
            "CREATE NODE TABLE Event(code STRING PRIMARY KEY, zoned TIMESTAMP_TZ)",
            "CREATE REL TABLE NEXT(FROM Event TO Event)",
            "UNWIND range(10, 49) AS i CREATE (:Event {code: CAST(i AS STRING), zoned: CASE i % 5 WHEN 0 THEN NULL "
            "WHEN 1 THEN timestamp(concat('20', CAST(i AS STRING), '-01-02 03:04:05.5')) "
            "WHEN 2 THEN timestamp('0050-01-01 00:00:00') "
            "WHEN 3 THEN timestamp(concat('2020-01-02 03:04:', CAST(i AS STRING), '.123456+02:00')) "
            "ELSE timestamp('2020-01-02 03:04:05') END})",
            "MATCH (a:Event), (b:Event) WHERE a.code < '20' CREATE (a)-[:NEXT]->(b)",
        ):
            connection.execute(statement)
    with LadybugStore(path, read_only=True, id_property="code") as store:
        nodes = [node for block in store.nodes() for node in block]
        ids, anchors = [node.id for node in nodes], [node.id for node in nodes if node.id < "20"]
        times = {node.properties.get("zoned") for node in nodes} - {None}
        assert len({len(time) for time in times}) == 2
        for time in sorted(times)[::6]:
            for op in ("$eq", "$ne", "$gt", "$lte", "$contains"):
                where = Where.parse({"zoned": {op: time}})
                assert where is not None
                expected = [node.id for node in nodes if where.matches(node)]
                assert [n.id for block in store.nodes(where=where) for n in block] == expected
                assert [n.id for n in store.view(where).get(ids) if n] == expected
                found = store.neighbors(anchors, where=where, direction="out", limit=3)
                assert [(e.source, e.target) for e in found] == [(i, j) for i in anchors for j in expected[:3]]


@pytest.mark.parametrize("layout", [{}, {"id_property": "code", "name_property": "number"}], ids=repr)
def test_conditions_on_dates_and_times_mean_what_they_say(foreign: Path, layout: dict[str, Any]) -> None:
    with LadybugStore(foreign, read_only=True, **layout) as store:
        nodes = [node for block in store.nodes() for node in block]
        assert len(nodes) == 4
        for condition in CONDITIONS:
            where = Where.parse(condition)
            assert where is not None
            expected = [node.id for node in nodes if where.matches(node)]
            assert [n.id for block in store.nodes(where=condition) for n in block] == expected, condition
            assert [n.id for n in store.view(condition).get([n.id for n in nodes]) if n] == expected, condition
            found = store.neighbors([nodes[0].id], where=condition, direction="out", limit=2)
            assert [edge.target for edge in found] == expected[:2], condition
        own = {"id": nodes[1].id}
        assert [n.id for block in store.nodes(where=own) for n in block] == [nodes[1].id]


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of rows that each statement returned."""
    counts: list[int] = []
    rows = Session.rows

    def counting(self: Session, *arguments: Any) -> list[list[Any]]:
        found = rows(self, *arguments)
        counts.append(len(found))
        return found

    monkeypatch.setattr(Session, "rows", counting)
    return counts


def test_dates_are_compared_in_the_database(foreign: Path, read: list[int]) -> None:
    with LadybugStore(foreign, read_only=True) as store:
        read.clear()
        found = [n for block in store.nodes(where={"day": {"$gte": "2020-01-04"}}) for n in block]
        assert len(found) == 1
        assert max(read) == 1


@pytest.fixture(scope="module")
def keeping() -> Iterator[LadybugStore]:
    towns = ["Ghent", "Oslo", "Ba\nri", 'Qu"ito', "Zürich"]
    nodes = [
        Node(f"n{i:03}", ("Town",), properties={"place": {"city": towns[i % 5], "no": i}, "other": "Ghent"})
        for i in range(300)
    ]
    plain = [Node("p0", ("Town",), properties={"plain": 1, "note": {"place": "of no city"}}), Node("p1", ("Town",))]
    with LadybugStore(":memory:", nested="json") as store:
        store.upsert([*nodes, *plain], [Edge("n000", "TO", node.id, 1.0 / (i + 1)) for i, node in enumerate(nodes)])
        yield store


@pytest.mark.parametrize(
    "condition",
    [
        {"place.city": "Oslo"},
        {"place.city": {"$in": ["Ba\nri", 'Qu"ito']}},
        {"place.city": {"$contains": "ric"}},
        {"place.city": {"$contains": ""}},
        {"place.city": {"$ne": "Zürich"}},
        {"place.no": 77.0},
        {"place.no": {"$gt": 290}},
        {"place.city": {"$exists": False}},
        {"plain": {"$exists": True}},
        {"place": "of no city"},
        {"other": "Ghent"},
    ],
    ids=repr,
)
def test_conditions_on_json_are_decided_before_a_limit_is(
    keeping: LadybugStore, read: list[int], condition: dict[str, Any]
) -> None:
    nodes = [node for block in keeping.nodes() for node in block]
    where = Where.parse(condition)
    assert where is not None
    expected = [node.id for node in nodes if where.matches(node)]
    assert [n.id for block in keeping.nodes(where=condition) for n in block] == expected
    read.clear()
    found = keeping.neighbors(["n000"], where=condition, limit=7)
    wanted = [i for i in expected if i.startswith("n")][:7]
    assert sorted(edge.target for edge in found) == wanted
    assert max(read) <= 7 + WORTH_A_QUERY + 1


SCALARS: list[Any] = [
    "Oslo",
    "",
    'Qu"ito\n',
    5,
    5.0,
    True,
    1,
    0,
    -0.0,
    1e300,
    2**70,
    2.0**70,
    int(1e300),
    "5",
    ["Oslo"],
]


@pytest.mark.parametrize("lined", [True, False])
def test_json_is_compared_with_scalars_in_the_database(
    lined: bool, read: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With lines and without."""
    if not lined:
        monkeypatch.setattr("graphret.stores.ladybug.columns.json_object", to_json)
    nodes = [Node(f"n{i:02}", ("Town",), properties={"x": {"y": 1}, "z": {"x": v}}) for i, v in enumerate(SCALARS)]
    nodes += [Node(f"s{i:02}", ("Town",), properties={"x": v}) for i, v in enumerate(SCALARS)]
    nodes += [Node("k0", ("Town",), properties={'"x': {"x": 5}}), Node("k1", ("Town",))]
    tests = [
        *({op: value} for op in ("$eq", "$ne") for value in (*SCALARS[:-1], None, False, math.inf)),
        *({op: [SCALARS[i], SCALARS[i + 2], None]} for op in ("$in", "$nin") for i in range(len(SCALARS) - 3)),
        *({"$exists": value} for value in (True, False)),
    ]
    with LadybugStore(":memory:", nested="json") as store:
        lists = Node("k2", ("Town",), properties={"x": ["Oslo"]})
        store.upsert([lists])  # before the others: the column is one of lists, and they are kept as JSON
        store.upsert(nodes)
        nodes.append(lists)
        for test in tests if lined else tests[::4]:
            where = Where.parse({"x": test})
            assert where is not None
            expected = sorted(node.id for node in nodes if where.matches(node))
            read.clear()
            view = store.view(where)
            assert view.count()[0] == len(expected), test
            assert max(read) <= 1
            assert [n.id for block in view.nodes() for n in block] == expected, test


def test_a_property_that_one_table_keeps_as_json_and_another_in_a_column() -> None:
    """And a third has not: no statement names a column that its table lacks."""
    nodes = [
        Node("a", ("Column",), properties={"x": 1}),
        Node("b", ("Json",), properties={"other": {"x": 1}}),
        Node("c", ("Json",), properties={"x": {"y": 1}}),
        Node("d", ("Neither",)),
    ]
    with LadybugStore(":memory:", nested="json") as store:
        store.upsert(nodes, [Edge("d", "TO", node.id) for node in nodes])
        for test in ({"$eq": 1}, {"$ne": 1}, {"$in": [0, 1]}, {"$contains": 1}, {"$exists": True}, {"$lt": 2}):
            for field in ("x", "x.y", "properties.x"):
                condition: dict[str, Any] = {field: test}
                where = Where.parse(condition)
                assert where is not None
                expected = [node.id for node in nodes if where.matches(node)]
                assert [n.id for block in store.nodes(where=condition) for n in block] == expected, condition
                found = store.neighbors(["d"], where=condition, direction="out")
                assert [edge.target for edge in found] == expected, condition


def test_a_structure_that_only_one_of_two_foreign_tables_has(tmp_path: Path) -> None:
    import ladybug

    path = tmp_path / "graph.lbug"
    with ladybug.Database(str(path)) as database, ladybug.Connection(database) as connection:
        for statement in (
            "CREATE NODE TABLE Person(code STRING PRIMARY KEY, home STRUCT(city STRING))",
            "CREATE NODE TABLE Event(code STRING PRIMARY KEY)",
            "CREATE (:Person {code: 'p', home: {city: 'Ghent'}}), (:Person {code: 'q'}), (:Event {code: 'e'})",
        ):
            connection.execute(statement)
    with LadybugStore(path, read_only=True, id_property="code") as store:
        wanted: list[tuple[dict[str, Any], list[str]]] = [
            ({"home.city": "Ghent"}, ["p"]),
            ({"home.city": {"$ne": "Ghent"}}, ["e", "q"]),
            ({"home": {"$eq": 1}}, []),
        ]
        for condition, expected in wanted:
            assert [n.id for block in store.nodes(where=condition) for n in block] == expected, condition


def test_what_lies_in_maps_is_decided_before_a_limit_is(tmp_path: Path, read: list[int]) -> None:
    """Of many nodes, with nulls and equal keys among them, and names that no type can be written with."""
    import ladybug
    import pyarrow as pa
    from pyarrow import parquet

    towns = ["Ghent", "a town with a long name", "", None]
    inner = pa.struct([("the town", pa.string()), ("n,o", pa.map_(pa.int16(), pa.float64()))])
    days = [
        [("1999", None), ("2020", {"the town": towns[i % 4], "n,o": [(5, i / 2), (6, None)][: i % 3]})]
        if i % 5
        else None
        for i in range(5_000)
    ]
    marks = [
        [(key, None if i % 7 == 2 else i) for key in "aba"[: i % 4]] + [("a", None)] * (i % 9 == 1)
        for i in range(5_000)
    ]
    columns = {
        "code": pa.array(range(5_000)),
        "days": pa.array(days, pa.map_(pa.string(), inner)),
        "marks": pa.array(marks, pa.map_(pa.string(), pa.int64())),
    }
    parquet.write_table(pa.table(columns), tmp_path / "nodes.parquet")
    path = tmp_path / "graph.lbug"
    with ladybug.Database(str(path)) as database, ladybug.Connection(database) as connection:
        for statement in (
            f"CREATE NODE TABLE Event AS LOAD FROM '{tmp_path}/nodes.parquet' RETURN *",
            "CREATE REL TABLE NEXT(FROM Event TO Event)",
            "MATCH (a:Event), (b:Event) WHERE a.code = 0 CREATE (a)-[:NEXT]->(b)",
        ):
            connection.execute(statement)
    with LadybugStore(path, read_only=True, id_property="code") as store:
        nodes = [node for block in store.nodes() for node in block]
        assert len(nodes) == 5_000
        conditions: list[dict[str, Any]] = [
            {"days.2020.the town": "Ghent"},
            {"$not": {"days.2020.the town": {"$contains": "o"}}},
            {"days.2020.n,o.5": {"$gt": 2_400}},
            {"days.2020.n,o.6": {"$exists": False}},
            {"days.1999": {"$exists": True}},
            {"marks.a": {"$gte": 4_900}},
            {"marks.b": {"$in": [None, 4_998, 4_999]}},
            {"marks.c": 1},
        ]
        for condition in conditions:
            where = Where.parse(condition)
            assert where is not None
            expected = {node.id for node in nodes if where.matches(node)}
            assert {n.id for block in store.nodes(where=where) for n in block} == expected, condition
            some = [node.id for node in nodes[::7]]
            assert [n.id for n in store.view(where).get(some) if n] == [i for i in some if i in expected], condition
            read.clear()
            assert store.view(where).count()[0] == len(expected), condition
            found = store.neighbors(["0"], where=where, direction="out", limit=9)
            assert len(found) == min(9, len(expected)), condition
            assert {edge.target for edge in found} <= expected, condition
            assert max(read) <= 9 + WORTH_A_QUERY + 1


_UUID = "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"


@pytest.mark.parametrize(
    ("kind", "keys", "parts"),
    [
        ("INT64", ["8", "0"], ["8", "0"]),
        ("DOUBLE", ["CAST('nan' AS DOUBLE)", "CAST('-nan' AS DOUBLE)"], ["nan", "0"]),
        ("STRING", ["'a'", "''"], ["a", "", "None"]),
        ("UUID", [f"CAST('{_UUID}' AS UUID)", f"CAST('{_UUID[:-1]}2' AS UUID)"], [_UUID]),
        ("INTERVAL", ["interval('1 month')", "interval('0 days')"], ["30 days, 0:00:00", "0:00:00"]),
    ],
)
def test_null_and_nan_among_the_keys_of_a_map_are_those_keys_only(
    tmp_path: Path, kind: str, keys: list[str], parts: list[str]
) -> None:
    """Ladybug's function `map` lets them in; it finds nothing by NaN, and takes a null for whatever key it likes."""
    import ladybug

    first, second = keys
    none = f"CAST(NULL AS {kind})"
    maps = [
        *("map([%s, {b}], [1, 5])", "map([%s, {b}], [NULL, 3])", "map([%s, {a}], [1, 2])", "map([{a}, %s], [2, 1])"),
        *("map([{b}, %s, {a}], [3, 1, NULL])", "map([{b}, {a}, {b}], [3, 2, 1])", "map([%s, {b}, %s], [1, 3, NULL])"),
    ]
    maps = [one.replace("%s", none).format(a=first, b=second) for one in maps]
    odd = f"CASE WHEN i % 3 = 0 THEN {none} ELSE {first} END"
    path = tmp_path / "graph.lbug"
    with ladybug.Database(str(path)) as database, ladybug.Connection(database) as connection:
        for table in "ABC":
            columns = f"m MAP({kind}, INT64), s STRUCT(i INT64, u MAP(INT64, MAP({kind}, INT64)))"
            connection.execute(f"CREATE NODE TABLE {table}(code INT64 PRIMARY KEY, {columns})")
        for n, one in enumerate(maps * 2):
            connection.execute(
                f"CREATE (:{'AB'[n % 2]} {{code: {2 * n}, m: {one}, s: {{i: 8, u: map([8], [{one}])}}}})"
            )
            connection.execute(f"CREATE (:C {{code: {2 * n + 1}, m: map([{first}], [{n}])}})")
        connection.execute(f"UNWIND range(100, 130) AS i CREATE (:A {{code: i, m: map([{second}, {odd}], [i, 2])}})")
        connection.execute("UNWIND range(200, 210) AS i CREATE (:B {code: i})")
        connection.execute("CREATE REL TABLE NEXT(FROM C TO A, FROM C TO B)")
        for table in "AB":
            connection.execute(f"MATCH (c:C {{code: 1}}), (n:{table}) WHERE n.code < 210 CREATE (c)-[:NEXT]->(n)")
    with LadybugStore(path, read_only=True, id_property="code") as store:
        near = {edge.target for edge in store.neighbors(["1"])}
        nodes = [node for block in store.nodes() for node in block]
        assert len({str(node.properties) for node in nodes}) > 20 < len(near)
        for field in [f"{start}.{part}" for part in parts for start in ("m", "s.u.8")]:
            for compared in ({"$exists": True}, {"$gte": 2}, {"$in": [None, 1]}):
                where = Where.parse({field: compared})
                assert where is not None
                expected = [node.id for node in nodes if where.matches(node)]
                found = [node.id for block in store.nodes(where=where) for node in block]
                assert found == expected, (field, compared)
                found = [edge.target for edge in store.neighbors(["1"], where=where)]
                assert found == [i for i in expected if i in near], (field, compared)
                other = store.view({"$not": {field: compared}}).get([node.id for node in nodes])
                assert [node.id for node in other if node] == [n.id for n in nodes if n.id not in expected]


@pytest.mark.parametrize(
    "kind", ["STRUCT(city STRING, no INT64)", "MAP(STRING, STRING)", "UNION(s STRUCT(city STRING))"]
)
def test_a_column_of_properties_beside_a_column_of_one(tmp_path: Path, kind: str) -> None:
    """What is null in it is not looked for elsewhere; what it has no name for is."""
    import ladybug

    town = "{city: 'Ghent', no: 1}"
    values = {
        "S": [town, town.replace("'Ghent'", "CAST(NULL AS STRING)")],
        "M": ["map(['city'], ['Ghent'])", "map(['city', 'no'], [NULL, '1'])", "map(['no'], ['1'])"],
        "U": ["union_value(s := {city: 'Ghent'})", "union_value(s := {city: CAST(NULL AS STRING)})"],
    }[kind[0]]
    path = tmp_path / "graph.lbug"
    with ladybug.Database(str(path)) as database, ladybug.Connection(database) as connection:
        connection.execute(f"CREATE NODE TABLE Event(code INT64 PRIMARY KEY, properties {kind}, city STRING)")
        for n, value in enumerate([*values, "NULL"]):
            connection.execute(f"CREATE (:Event {{code: {n}, properties: {value}, city: 'Oslo'}})")
    with LadybugStore(path, read_only=True, id_property="code") as store:
        nodes = [node for block in store.nodes() for node in block]
        assert len(nodes) == len(values) + 1
        for test in ({"$eq": "Oslo"}, {"$ne": "Oslo"}, {"$eq": None}, {"$exists": True}, {"$contains": "hen"}):
            where = Where.parse({"properties.city": test})
            assert where is not None
            expected = [node.id for node in nodes if where.matches(node)]
            assert [n.id for block in store.nodes(where=where) for n in block] == expected, test
