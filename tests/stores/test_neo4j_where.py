"""Conditions mean in Neo4j what `Where.matches` says of the node as it is read."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from graphret.errors import InvalidInput
from graphret.stores.neo4j import FOREIGN, LLAMA_INDEX, OWN, Layout, Neo4jStore, Neo4jWhere
from graphret.stores.neo4j.values import node_from
from graphret.types import Node
from graphret.where import Where

if TYPE_CHECKING:
    import neo4j

pytestmark = pytest.mark.neo4j(weight=10)

#: Values that lie near each other: of other types, at the ends of 64 bits, where floating-point numbers thin out.
SCALARS: list[Any] = [
    *(0, -0.0, 1, -1, 2, 2**53, 2**53 + 1, 2**63 - 1, -(2**63), 0.0, 1.0, 0.5, -1.5, 1e16, 9.3e18, 1e300),
    *(
        True,
        False,
        "",
        "a",
        "A",
        "ab",
        "b",
        "1",
        "true",
        "é",
        "e\u0301",
        "\ue000",
        "\U0001f3ac",
        "a\ue000",
        "a\U0001f3ac",
        "a\U0001f3ac\uff5e",
        "a\ud7ff",
        "it's",
        '"',
        "\\u0041",
    ),
]
LISTS: list[Any] = [[], ["a"], ["a", "b"], ["b", "a"], [1], [1, 2], [1.0], [True], [True, False], ["1"]]
NESTED: list[Any] = [
    {"b": 1},
    {"b": {"c": "a"}},
    {"b": ["a", "b"]},
    {"b": [1, "a"]},
    {"b": None},
    {},
    [1, "a"],
    [1, 2.5],
    [None, 1],
    [[1], [2]],
    [{"b": 1}],
    [True, 1],
]
BEYOND = [2**63, -(2**63) - 1, 2**64, 10**30, 10**400]
FIELDS = ["a", "b", "a.b", "a.b.c", "properties.a", "properties.name", "properties.a.b", "odd key", "missing"]
ORDERS = ["$gt", "$gte", "$lt", "$lte"]
OWN_FIELDS = ["id", "name", "text"]


def nodes() -> list[Node]:
    values = [*SCALARS, *LISTS, *NESTED, None]
    found = [
        Node(f"n{i:02}", [("A",), ("A", "B"), ("B", "A"), ()][i % 4], "name"[: i % 5], "a" * (i % 3), {"a": value})
        for i, value in enumerate(values)
    ]
    more = [
        {"a.b": 1, "a": {"b": 2}},
        {"a.b": "a"},
        {"name": "inner", "id": 7, "text": ["a"]},
        {"properties.name": "a", "name": "b"},
        {"properties.a": "a"},
        {"odd key": 1, "b": 2},
        {"graphret_json": "a", "b": {"name": 1}},
        {},
    ]
    return [*found, *(Node(f"m{i}", ("B",), "m", "", properties) for i, properties in enumerate(more))]


operands = st.sampled_from([*SCALARS, *BEYOND, None])
with_lists = st.one_of(operands, st.sampled_from([*LISTS, [1, "a"], [1, 2.5], [None, 1], [[1], [2]]]))


def leaves() -> st.SearchStrategy[dict[str, Any]]:
    field = st.sampled_from(FIELDS * 3 + OWN_FIELDS)
    one = st.tuples(st.sampled_from(["$eq", "$ne", "$contains", "$gt", "$gte", "$lt", "$lte"]), with_lists)
    many = st.tuples(st.sampled_from(["$in", "$nin"]), st.lists(with_lists, max_size=3))
    there = st.tuples(st.just("$exists"), st.booleans())
    label = st.tuples(
        st.just("label"),
        st.one_of(
            st.tuples(st.sampled_from(["$eq", "$ne", "$contains"]), st.sampled_from(["A", "B", "C", 1])),
            st.tuples(st.sampled_from(["$in", "$nin"]), st.lists(st.sampled_from(["A", "B", "C"]), max_size=2)),
            there,
        ),
    )
    return st.one_of(st.tuples(field, st.one_of(one, many, there)), label).map(lambda leaf: {leaf[0]: dict([leaf[1]])})


conditions = st.recursive(
    leaves(),
    lambda inner: st.one_of(
        inner.map(lambda c: {"$not": c}),
        st.lists(inner, min_size=1, max_size=3).map(lambda cs: {"$and": cs}),
        st.lists(inner, min_size=1, max_size=3).map(lambda cs: {"$or": cs}),
    ),
    max_leaves=3,
)


def verdicts(driver: neo4j.Driver, layout: Layout, wheres: list[Where]) -> dict[str, list[bool]]:
    """What the server says of each condition for each node, in one query."""
    columns, parameters = [], {}
    for i, where in enumerate(wheres):
        writer = Neo4jWhere(layout, "n", f"w{i}_")
        columns.append(writer.write(where))
        parameters |= writer.parameters
    text = f"MATCH {layout.node('n')} RETURN {layout.id_of('n')} AS id, [{', '.join(columns)}] AS verdicts"
    return {row["id"]: row["verdicts"] for row in driver.execute_query(text, parameters).records}


def compare(driver: neo4j.Driver, layout: Layout, nodes: list[Node], asked: list[dict[str, Any]]) -> None:
    wheres = [where for condition in asked if (where := Where.parse(condition)) is not None]
    found = verdicts(driver, layout, wheres)
    wrong = [
        (where.to_dict(), node.properties, node.labels, found[node.id][i])
        for i, where in enumerate(wheres)
        for node in nodes
        if where.matches(node) is not found[node.id][i]
    ]
    assert not wrong, "\n".join(map(str, wrong[:10]))


@pytest.fixture(scope="module")
def filled(neo4j_module: neo4j.Driver) -> tuple[neo4j.Driver, list[Node]]:
    store = Neo4jStore.from_driver(neo4j_module, nested="json")
    store.upsert(nodes())
    return neo4j_module, nodes()


def test_what_is_nested_comes_back_exactly(filled: tuple[neo4j.Driver, list[Node]]) -> None:
    driver, written = filled
    read = Neo4jStore.from_driver(driver).get([node.id for node in written])
    assert read == written
    assert [typed(node.properties) for node in read if node] == [typed(node.properties) for node in written]


def typed(properties: Mapping[str, Any]) -> list[str]:
    """The properties with 1, 1.0 and true apart."""
    return sorted(map(repr, properties.items()))


#: Sixty conditions in one query each time; a smaller query would show no more, and take as long.
@settings(max_examples=6, phases=[Phase.generate], suppress_health_check=[HealthCheck.large_base_example])
@given(asked=st.lists(conditions, min_size=60, max_size=60))
def test_conditions_mean_what_they_say(filled: tuple[neo4j.Driver, list[Node]], asked: list[dict[str, Any]]) -> None:
    compare(filled[0], OWN, filled[1], asked)


def test_strings_are_in_the_order_of_code_points_and_zero_has_no_sign(filled: tuple[neo4j.Driver, list[Node]]) -> None:
    texts = [value for value in SCALARS if isinstance(value, str)]
    operands = [
        *texts,
        "\ud800",
        "a\udfff",
        "a\U0001f3ac\udc00a",
        "a\U0001f3ac\ue000",
        "\uffff",
        "\U00010000",
        "\U0010ffff\ue000a",
        0,
        -0.0,
        0.0,
    ]
    asked: list[dict[str, Any]] = [{"a": {op: one}} for op in (*ORDERS, "$eq") for one in operands]
    compare(filled[0], OWN, filled[1], asked)


def test_large_numbers_are_compared_exactly(neo4j_empty: neo4j.Driver) -> None:
    """The server compares an integer with how a large number is written, and takes 2**63 for the integer before it."""
    numbers = [2**53 + 1, 2**59, 2**59 + 1, -(2**61), 2**63 - 1, -(2**63)]
    values = [*numbers, *map(float, numbers[1:]), -1e300]
    operands: list[Any] = [*values, 2**63, -(2**63) - 1, math.inf, 10**400]
    written = [Node(str(i), properties={"a": value}) for i, value in enumerate([*values, *([v] for v in values)])]
    Neo4jStore.from_driver(neo4j_empty).upsert(written)
    neo4j_empty.execute_query("CREATE ({id: 'x', a: [2.0 ^ 63, 0.0 / 0]}), ({id: 'y', a: 2.0 ^ 63})")
    foreign = replace(FOREIGN, id="id")
    read = [node for block in Neo4jStore.from_driver(neo4j_empty, layout=foreign).nodes() for node in block]
    asked: list[dict[str, Any]] = [{"a": {op: one}} for op in ("$eq", *ORDERS) for one in operands]
    asked += [{"a": test} for v in values[3:-1] for test in ([v], {"$contains": v}, {"$in": [[v], v, "a"]})]
    asked += [{"a": [v, None]} for v in values[3:-1]]
    for one in asked:  # one by one, since the server plans the same words once
        compare(neo4j_empty, foreign, read, [one])
    compare(neo4j_empty, OWN, written, asked[::7])


def test_conditions_on_what_others_wrote(neo4j_empty: neo4j.Driver) -> None:
    """Dates, times and durations are read as texts, and conditions take them for these texts."""
    neo4j_empty.execute_query(
        """CREATE (:A {a: date('2020-02-01')}), (:A:B {a: datetime('2020-02-01T10:00:00.120+01:00[Europe/Paris]')}),
        (:A {a: duration('P1Y2M3DT4.5S')}), (:B {a: localtime('10:00')}), (:B {a: time('10:00:00.5Z')}),
        (:B {a: localdatetime('2020-01-01T00:00:01.000000001')}), (:C {a: '2020-02-01', name: 'a'}), (:C {a: 2020}),
        (:C {a: ['2020-02-01'], title: 'b', name: 7}), (:D {b: 1})"""
    )
    read = [node for block in Neo4jStore.from_driver(neo4j_empty).nodes() for node in block]
    assert len({node.id for node in read}) == 10
    texts = ["2020-02-01", "2020-01-01T00:00:01.000000001", "10:00:00.5Z", "P1Y2M3DT4.5S", "", "z", "7", 2020]
    operators = ["$eq", "$ne", *ORDERS, "$contains"]
    asked: list[dict[str, Any]] = [{"a": {op: text}} for op in operators for text in texts]
    asked += [{field: {op: value}} for field in ("name", "id") for op in operators for value in ("7", True)]
    asked += [{"name": {"$in": [7, "7", ["a"]]}}, {"text": ["a"]}]
    asked += [{"name": "a"}, {"name": "7"}, {"text": ""}, {"a": {"$in": texts[:2]}}, {"id": {"$ne": read[0].id}}]
    asked += [{"title": "b"}, {"properties.name": 7}, {"b": 1}, {"b": True}, {"label": "B"}, {"a": {"$exists": False}}]
    compare(neo4j_empty, FOREIGN, read, asked)
    writer = Neo4jStore.from_driver(neo4j_empty, layout=replace(LLAMA_INDEX, label="A"), nested="json")
    writer.upsert(Node(node.id, ("B",), node.name, node.text, node.properties) for node in nodes())
    mixed = [node for block in Neo4jStore.from_driver(neo4j_empty, layout="llama-index").nodes() for node in block]
    asked = [{"a": {"$gte": "2020-01-01"}}, {"a": "P1Y2M3DT4.5S"}, {"name": {"$contains": "a"}}]
    asked += [{field: {op: "a"}} for field in FIELDS for op in ("$eq", "$contains")]
    compare(neo4j_empty, LLAMA_INDEX, mixed, asked)


#: Values that JSON has no room for, and fields that say something else than a name or a text.
ODD = """CREATE (:A {a: [date('2020-01-01'), date('-0044-03-15')], b: [time('10:00Z')], name: ['x', 'y'], text: 1.5}),
(:A {a: date('-0044-03-15'), b: datetime('+10000-01-01T00:00:00.5Z'), name: date('2020-01-01'), title: 'x'}),
(:B {a: point({x: 1, y: 2}), b: [point({longitude: 1, latitude: 2})], name: true}), (:B {a: [duration('P1D')], b: []}),
(:B {a: 0.0 / 0.0, b: [1.0, 0.0 / 0.0], name: 'x'}), (:C {a: 1 / 0.0, b: [-1 / 0.0, 1.0], text: 'Infinity'}),
(:C {a: $bytes, b: [0.5, 1.0]}), (:C {a: datetime({year: -20, timezone: 'Europe/Berlin'}), `a.x`: 1}),
(:C {a: point({x: 1, y: 2, z: 3}), b: ['2020-01-01'], `properties.name`: 'x'}), (:D {id: [1], a: 2, b: 1}),
(:D {name: point({x: 1, y: 2}), a: time('10:00-03:30'), b: [datetime('2020-01-01T00:00-00:30')]}),
(:D {a: datetime('2020-01-01T10:00[America/St_Johns]'), b: [datetime('2020-01-01T10:00[UTC]')]}),
(:D {a: datetime('1800-01-01T00:00[America/New_York]'), b: datetime('1880-01-01T00:00[Asia/Kolkata]')})"""


@pytest.mark.parametrize("layout", [replace(FOREIGN, id="id"), LLAMA_INDEX], ids=["foreign", "llama-index"])
def test_conditions_on_values_that_json_lacks(neo4j_empty: neo4j.Driver, layout: Layout) -> None:
    """Lists of dates, points, bytes, NaN, infinite numbers and years beyond Python's mean what is read of them."""
    neo4j_empty.execute_query(ODD, bytes=b"a\xff")
    read = [node for block in Neo4jStore.from_driver(neo4j_empty, layout=layout).nodes() for node in block]
    assert len({node.id for node in read}) == 13
    held = [node.properties.get(field) for node in read for field in ("a", "b", "name", "text", "id")]
    lists = [value for value in held if isinstance(value, list) and not any(isinstance(v, dict) for v in value)]
    operands = [v for value in (*held, *lists) for v in (value if isinstance(value, list) else [value])]
    operands = [v for v in operands if not isinstance(v, dict)] + ["-0044", 7203, 97, *lists, [None]]
    distinct = list({repr(operand): operand for operand in operands}.values())
    asked = [{field: {op: v}} for field in ("a", "b") for op in ("$eq", "$contains") for v in distinct]
    asked += [
        {"properties.name": {op: v}} for op in ("$eq", "$contains") for v in (["x", "y"], "x", "2020-01-01", True)
    ]
    asked += [{field: {op: v}} for field in ("a", "b") for op in ("$gt", "$lte") for v in ("2020", 1, "Infinity")]
    asked += [{field: 1.0} for field in ("a.x", "a.z", "b.x", "properties.a.x", "name.x")] + [
        {"a.srid": 7203},
        {"a.z": 3.0},
    ]
    asked += [{"properties.text": 1.5}, {"text": "1.5"}, {"name": "x"}, {"id": [1]}, {"properties.id": [1]}]
    asked += [{field: {"$nin": [*lists, "2020-01-01", None]}} for field in ("a", "b")]
    asked += [{f: {"$exists": True}} for f in ("a", "b", "a.x", "a.z", "properties.name", "properties.text")]
    for one in asked:  # one by one, since the server plans the same words once
        compare(neo4j_empty, layout, read, [one])


def test_of_two_stored_for_one_property_the_same_is_read_and_compared() -> None:
    """A name that is none is read as a property, and gives way to what is stored for that, as in conditions."""
    for stored in ({"name": ["x"], "properties.name": "y"}, {"properties.name": "y", "name": ["x"]}):
        assert node_from(LLAMA_INDEX, "n", [], stored).properties == {"name": "y"}
    kept = {"properties.name": float("nan"), "name": ["x"]}
    assert node_from(LLAMA_INDEX, "n", [], kept).properties == {"name": ["x"]}


def test_null_is_no_absence_beside_a_property_of_the_same_name(neo4j_empty: neo4j.Driver) -> None:
    """A property ``properties.y`` that is null is found as such, and hides ``y`` as one with a value does."""
    made = [
        Node("1", properties={"properties.y": None, "y": "a"}),
        Node("2", properties={"properties.y": "b", "y": "a"}),
        Node("3", properties={"y": "a"}),
        Node("4", properties={"properties.x.y": None, "x.y": "a"}),
    ]
    nested = [
        Node("5", properties={"properties": {"y": None}, "y": "a"}),
        Node("6", properties={"properties": {"y": "b"}, "y": "a"}),
        Node("7", properties={"properties": {"x": {"y": None}}, "x.y": "a"}),
        Node("8", properties={"properties": None, "y": "a"}),
        Node("9", properties={"properties": {"y": [None]}, "y": "a"}),
    ]
    asked = [{f: test} for f in ("properties.y", "properties.x.y") for test in ({"$eq": "a"}, {"$exists": True})]
    for layout, nodes in ((OWN, [*made, *nested]), (replace(FOREIGN, id="key", label="Foreign"), made)):
        store = Neo4jStore.from_driver(neo4j_empty, layout=layout, nested="json")
        store.upsert(nodes)
        read = [node for block in store.nodes() for node in block]
        known = [{name: value for name, value in node.properties.items() if name != "key"} for node in read]
        assert known == [node.properties for node in nodes]
        compare(neo4j_empty, layout, read, asked)


@pytest.mark.parametrize("op", ["$gt", "$lte"])
def test_labels_have_no_order(op: str) -> None:
    where = Where.parse({"label": {op: "A"}})
    with pytest.raises(InvalidInput, match="label"):
        Neo4jWhere(OWN, "n").write(where)
