"""Conditions on what a Ladybug database keeps as JSON: it decides them itself, and as `Where.matches` does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import pytest

from graphret.errors import InvalidInput
from graphret.stores.ladybug import LadybugStore
from graphret.types import Edge, Node
from graphret.where import Where

NUMBERS: list[Any] = [
    *(0, 1, -1, 1990, 0.5, -0.0, 1.0, 1e-320, -5e-324, 1e15, 1e16, 123456789012345.6, 999999999999999.9, 1.5e300),
    *(sign * n for sign in (1, -1) for n in (10**15 - 1, 10**15, 10**16, 2**53, 2**53 + 1, 2**63, 2**63 + 1, 10**400)),
    *(2**70, 2.0**70, 2**70 + 1, int(1.5e300)),
]
TEXTS = [
    *("", "a", "A", "ab", "é", "東", "\U0001f600", "\uffff", "1990", "true", "null", "n", ".*", "[a-z]", "("),
    *('"', "\\", '\\"', 'a"b', "a\\b", "a\nb", "a\tb", "\x00", "a\x01", "\x7f", "u0001", "\u2028", "\\n", "\\u0001"),
    *(",", '","', '["a"]', '\n"p":1\n', '{\n"p":1\n}', '"p":'),
]
LISTS: list[Any] = [
    *([], [1], [1.0], [True], ["a"], ["a", "b"], ["b", "a"], [None], [[1]], [["a"], "b"], ["x,", ",y"], ['"', "\\"]),
    *([1, "one"], ["1"], [2**70], [0], [-0.0], ["a\nb"], [[[["a"]]], 1, "z"]),
]
MAPS: list[Any] = [{"p": 1}, {"a": {"p": 1}}, {"b": "}"}, [{"p": 1}, "a"]]
OPERANDS = [*NUMBERS, *TEXTS, *LISTS[:-1], True, False, None, float("inf"), float("-inf"), float("nan"), 10**5000]
RANGES = ("$gt", "$gte", "$lt", "$lte")


def leaves(operands: list[Any]) -> Iterator[dict[str, Any]]:
    for op in ("$eq", "$ne", "$contains", *RANGES):
        yield from ({op: operand} for operand in operands)
    for op in ("$in", "$nin"):
        yield from ({op: [left, right]} for left, right in pairwise(operands))
        yield {op: []}
    yield from ({"$exists": value} for value in (True, False))


def expected(nodes: list[Node], condition: dict[str, Any]) -> list[str]:
    where = Where.parse(condition)
    assert where is not None
    return sorted(node.id for node in nodes if where.matches(node))


@pytest.fixture
def unaided(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """The nodes that satisfy a condition, without a look at any of them outside of the database."""

    def found(store: LadybugStore, condition: dict[str, Any]) -> list[str]:
        with monkeypatch.context() as patch:
            patch.delattr(Where, "matches")
            return [node.id for block in store.nodes(where=condition) for node in block]

    return found


def found(store: LadybugStore, condition: dict[str, Any]) -> list[str]:
    return [node.id for block in store.nodes(where=condition) for node in block]


@pytest.fixture(scope="module")
def store() -> Iterator[LadybugStore]:
    with LadybugStore(":memory:", nested="json") as store:
        yield store


def filled(store: LadybugStore, nodes: list[Node], *fields: str) -> list[Node]:
    """Nodes put into an empty store, in which some properties have columns that take none of the values."""
    store.delete([node.id for block in store.nodes() for node in block])
    first = Node("first", ("A",), properties=dict.fromkeys(fields, False))
    store.upsert([first])
    store.upsert(nodes)
    return [first, *nodes]


@pytest.mark.parametrize("path", ["p", "a.p", "properties.p"])
def test_any_value_is_compared_with_any_other_in_the_database(
    store: LadybugStore, unaided: Callable[..., list[str]], path: str
) -> None:
    """At the top, or in a map between keys that have its name at their ends and beside values that look like it."""
    head, *rest = path.split(".")
    nodes = []
    for i, value in enumerate([*NUMBERS, *TEXTS, *LISTS, *MAPS]):
        held = value
        for key in rest:
            held = {"other": [{key: 2}, f'{{"{key}":'], f"x{key}": 1, key: value, f"{key}x": 2}
        others = {"other": {"p": 2, "q": [1]}, "pp": [1, "a"], "properties": held} if head != "properties" else {}
        nodes.append(Node(f"n{i:03}", ("A",), properties={**others, head: held}))
    nodes.append(Node("none", ("A",), properties={"other": [1, "p"]}))
    if rest:
        nodes.append(Node("null", ("A",), properties={head: {"p": None}}))
        nodes.append(Node("whole", ("A",), properties={head: {"p": 3}, path: [1, "a"]}))
        nodes.append(Node("scalar", ("A",), properties={head: "p", "p": [1, "a"]}))
    nodes = filled(store, nodes, "p", head)
    for leaf in leaves(OPERANDS[::3] if path == "p" else OPERANDS[1::7]):
        assert unaided(store, {path: leaf}) == expected(nodes, {path: leaf}), leaf


NAMES = [
    "p[0]*",
    "p",
    "p\\",
    'p"',
    "p\nq",
    "p q",
    "日本\U0001f600",
    "p.q",
    ".",
    "(p",
    "P|p",
    "\\Qp\\E",
    "p" * 300,
    "p$",
]


def test_the_name_of_a_property_is_taken_as_it_is(store: LadybugStore, unaided: Callable[..., list[str]]) -> None:
    nodes = [
        Node(f"n{i:02}{j}", ("A",), properties={"pp": "x", name: value, "o": {name: 1}})
        for i, name in enumerate(NAMES)
        for j, value in enumerate((1990, "a", [1, "a"], {"p": 1990, "q": "a"}))
    ]
    nodes = filled(store, nodes, *NAMES)
    for name in NAMES:
        for leaf in leaves([1990, "a"]):
            assert unaided(store, {name: leaf}) == expected(nodes, {name: leaf}), (name, leaf)


def nested(value: Any, levels: int) -> Any:
    for i in range(levels):
        value = [value, i] if i % 3 else {"q": value, "r": "a"}
    return value


@pytest.mark.parametrize("field", ["p", "p.r"])
def test_neither_depth_nor_control_characters_nor_digits_leave_the_database(
    store: LadybugStore, unaided: Callable[..., list[str]], field: str
) -> None:
    """At the top and beside what is nested deeply, which has no lines."""
    values: list[Any] = [nested("a", 12), {"q": nested("b", 190), "r": "a"}, [nested("a", 20), "a"], [["a"]]]
    values += ["a\x01", "a\x02", "a\n", "a\\n", "a\\u0001", "a\x1f", "a\x00", "a", '"', -(2**64), 2.0**64, [1.0]]
    nodes = [Node(f"n{i:02}{len(v)}", ("A",), properties=v) for i, p in enumerate(values) for v in ({"p": p}, {})]
    nodes += [Node(f"m{i:02}", ("A",), properties={"p": {"r": value, "s": "}"}}) for i, value in enumerate(values)]
    nodes = filled(store, nodes, "p")
    for leaf in leaves(["a\n", "a\x01", 2**64, [1]]):
        assert unaided(store, {field: leaf}) == expected(nodes, {field: leaf}), leaf


def test_a_path_may_be_long(store: LadybugStore, unaided: Callable[..., list[str]]) -> None:
    values: list[Any] = [nested(5, 9), {"q": [5, 1], "r": 5}, {"q": {"q": 5}}]
    deep: Any = 5
    for _ in range(25):
        deep = {"q": deep}
    long = "k" * 20_000
    values += [{long: deep}, {long: 5, "q": deep}, {f"{long}l": 5, f'"{long}': [5]}, f'"{long}":5']
    nodes = [Node(f"n{i}{k[0]}", ("A",), properties={k: v}) for i, v in enumerate(values) for k in ("p", long)]
    nodes = filled(store, nodes, "p")
    for field in (f"p.{long}", f"{long}.{long}", long, f"p.q.{'q.' * 24}q", "p" + ".q" * 300):
        for leaf in ({"$eq": 5.0}, {"$exists": True}):
            assert unaided(store, {field: leaf}) == expected(nodes, {field: leaf}), (field[:9], leaf)


def test_an_operand_may_be_too_long_for_a_pattern(store: LadybugStore, unaided: Callable[..., list[str]]) -> None:
    long = "x" * 120_000
    numbers = [[1.0, -0.0, 2**60, 1e17, "1.0", True][i % 6] for i in range(4_000)]
    values = [[long], numbers, [numbers, 1], "a\n" + long, f"\\n{long}", f"{long}\\", [[long]], f'"{long}"']
    nodes = filled(store, [Node(f"n{i}", ("A",), properties={"p": v}) for i, v in enumerate(values)], "p")
    equal = [int(v) if isinstance(v, float) and v else v for v in numbers]
    for operand in (f"n{long}", f'{long}"', equal):
        for leaf in ({"$contains": operand}, {"$nin": [[long], operand]}):
            assert unaided(store, {"p": leaf}) == expected(nodes, {"p": leaf}), str(leaf)[:30]
    many = [f"{i:03}{long[:300]}" for i in range(700)]
    assert unaided(store, {"p": {"$in": [many, long, *many, [long]]}}) == ["n0"]
    with pytest.raises(InvalidInput, match="100 whole numbers of 17 digits"):
        found(store, {"p": [10**17 + i for i in range(6_000)]})


def test_what_is_nested_very_deeply_is_found_once_it_is_written() -> None:
    """Though all that was there before could be read in the database, which had been asked for it."""
    deep: Any = "a"
    for _ in range(12):
        deep = {"p": deep}
    with LadybugStore(":memory:", nested="json") as store:
        filled(store, [Node("n1", ("A",), properties={"p": ["a"]})], "p")
        assert found(store, {"p": {"$contains": "a"}}) == ["n1"]
        store.upsert([Node("n2", ("A",), properties={"p": [deep, "a"]})])
        assert found(store, {"p": {"$contains": "a"}}) == ["n1", "n2"]
        store.upsert([Node("n2", ("A",), properties={"p": deep})])
        assert found(store, {".".join("p" * 13): "a"}) == ["n2"]


def test_a_condition_cannot_get_out_of_its_place(store: LadybugStore) -> None:
    nodes = filled(store, [Node("n1", ("A",), properties={"p": [1]})], "p")
    for text in ("' OR true OR '", '"', "`", "n.$where_n_0", "\\'", "1) OR (true", "|", ").*(", "}\n", "\n,\n"):
        for condition in ({text: 1}, {f"p.{text}": {"$gt": 0}}, {"p": {"$contains": text}}, {"p": {"$in": [text]}}):
            assert found(store, condition) == expected(nodes, condition) == [], condition


def test_neighbours_and_views_know_what_json_says(store: LadybugStore, unaided: Callable[..., list[str]]) -> None:
    years: list[Any] = ["unknown", *range(1980, 2000)]
    nodes = [Node(f"n{i:02}", ("A",), properties={"year": y, "tags": [y, f"t{i % 3}"]}) for i, y in enumerate(years)]
    nodes = filled(store, nodes, "year", "tags")
    store.upsert(edges=[Edge("first", "TO", node.id) for node in nodes])
    for condition in ({"year": {"$gte": 1990}}, {"tags": {"$contains": "t1"}}, {"year": {"$lt": "v"}}):
        wanted = expected(nodes, condition)
        assert [e.target for e in store.neighbors(["first"], where=condition, limit=5)] == wanted[:5]
        view = store.view(condition)
        assert view.count()[0] == len(wanted)
        assert [node.id for node in view.get([node.id for node in nodes]) if node] == wanted


def test_nodes_without_json_do_not_hide_those_after_them(store: LadybugStore) -> None:
    """The database's functions may repeat for later nodes what they gave for one of which there was nothing to say."""
    values: list[Any] = [True, False, "b", 7, [1, "b"], 10**17, {"q": "b"}, "a\\b"]
    nodes = [
        Node(f"n{i:03}", ("A", "B")[: 1 + i % 2], properties={"p": values[i * i % 8 - i % 3]} if i % 3 else {})
        for i in range(90)
    ]
    nodes = filled(store, nodes, "p")
    ids = [node.id for node in nodes]
    store.upsert(edges=[Edge(a, "TO", b) for a, b in pairwise(ids)] + [Edge("n005", "TO", i) for i in ids])
    edges = store.neighbors(ids)
    for op in RANGES:
        for operand in ("b", 7, 10**16):
            for field in ("p", "p.q"):
                condition: dict[str, Any] = {field: {op: operand}}
                wanted = {*expected(nodes, condition)}
                view = store.view(condition)
                assert {node.id for node in view.get(ids) if node} == wanted, condition
                for direction, end in (("in", "source"), ("out", "target")):
                    got = store.neighbors(ids, where=condition, direction=direction)
                    assert got == [edge for edge in edges if getattr(edge, end) in wanted], condition
