"""Conditions in Ladybug's Cypher mean what `Where.matches` does, on every way to read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import cycle
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphret.errors import InvalidInput
from graphret.stores.ladybug import LadybugStore
from graphret.stores.memory import MemoryStore
from graphret.types import Edge, Node
from graphret.where import Where

_LARGE = 2**53
_DEEP: Any = json.loads("[" * 30 + '"one"' + "]" * 30)

#: By property, values that one column holds together.
KINDS: dict[str, list[Any]] = {
    "whole": [0, 1, -1, 7, _LARGE + 1, -(2**63), 2**63 - 1],
    "real": [0.0, 1.0, 0.5, -2.5, 1e300, 5e-324, float(_LARGE)],
    "text": ["a\x01b", "a\n", "", "a", "A", "ab", "é", "東京", "1", "'\"`\\"],
    "flag": [True, False],
    "texts": [[], ["a"], ["a", "b"], ["b", "a"], [""]],
    "wholes": [[], [1], [0, 1], [_LARGE + 1]],
    "reals": [[], [1.0], [0.5, 1.0]],
    "flags": [[True], [True, False], []],
    "mixed": [
        1,
        "one",
        [1, "one"],
        {"a": {"b": 1}},
        {"a": "x"},
        [[1]],
        2**70,
        True,
        -0.0,
        {"mixed": 1},
        '\n"mixed":1\n',
        "a\\nb\n",
        1990,
        0.0,
        2**63 + 1,
        ["one", "x,", '"'],
        {"a": {"b": ["x"], "mixed": {"b": 1}}},
        "a\x01b",
        "a\tb",
        1e17,
        10**17 + 1,
        -(10**20),
        {"a": {"b": "a\x01b"}},
        {"a": {"b": -(10**17)}, "mixed": _DEEP},
        _DEEP,
    ],
    "properties.name": ["inner", "outer"],
    "a.b": [1, 2],
}
FIELDS = [*KINDS, "absent", "id", "name", "label", "mixed.a.b", "mixed.a", "properties.whole", "properties.mixed"]
OPERANDS: list[Any] = [
    *(value for values in KINDS.values() for value in values if not isinstance(value, dict) and value != [[1]]),
    None,
    1.5,
    0,
    -0.0,
    1.0,
    2.0**70,
    float(2**63),
    _LARGE,
    -(2**63) - 1,
    1e400,
    1e-320,
    2**63,
    "n",
    [1, True],
    [True],
    ["a", 1],
    "n1",
    "Odd",
    "a\n",
    10**17,
    -1e17,
    -(10**25),
]


def nodes() -> st.SearchStrategy[list[Node]]:
    def made(rows: list[tuple[dict[str, Any], tuple[str, ...], str]]) -> list[Node]:
        return [Node(f"n{i}", labels, name, "", values) for i, (values, labels, name) in enumerate(rows)]

    values = st.fixed_dictionaries({}, optional={name: st.sampled_from(found) for name, found in KINDS.items()})
    labels = st.sampled_from([("Odd",), ("Even",), ("Odd", "Even"), ("Even", "Odd", "Both"), ()])
    return st.lists(st.tuples(values, labels, st.sampled_from(["", "a", "Odd"])), min_size=1, max_size=6).map(made)


def leaves() -> st.SearchStrategy[dict[str, Any]]:
    operand = st.sampled_from(OPERANDS)
    compared = st.one_of(
        st.tuples(st.sampled_from(["$eq", "$ne", "$gt", "$gte", "$lt", "$lte", "$contains"]), operand),
        st.tuples(st.sampled_from(["$in", "$nin"]), st.lists(operand, max_size=3)),
        st.tuples(st.just("$exists"), st.booleans()),
    )

    def fits(field: str, op: str) -> bool:
        return field != "label" or not op.startswith(("$gt", "$lt"))

    return st.tuples(st.sampled_from(FIELDS), compared).map(
        lambda item: {item[0]: {item[1][0]: item[1][1]}} if fits(item[0], item[1][0]) else {item[0]: "Odd"}
    )


def conditions() -> st.SearchStrategy[dict[str, Any]]:
    return st.recursive(
        leaves(),
        lambda inner: st.one_of(
            st.lists(inner, min_size=1, max_size=3).map(lambda found: {"$and": found}),
            st.lists(inner, min_size=1, max_size=3).map(lambda found: {"$or": found}),
            inner.map(lambda one: {"$not": one}),
        ),
        max_leaves=4,
    )


@pytest.fixture(scope="module")
def store() -> Iterator[LadybugStore]:
    with LadybugStore(":memory:", nested="json") as store:
        yield store


@settings(max_examples=16)
@given(nodes=nodes(), wanted=st.lists(conditions(), min_size=2, max_size=4))
def test_a_condition_means_what_it_says(store: LadybugStore, nodes: list[Node], wanted: list[dict[str, Any]]) -> None:
    store.delete([node.id for block in store.nodes() for node in block])
    edges = [Edge(nodes[0].id, "TO", node.id) for node in nodes] + [Edge(n.id, "TO", nodes[0].id) for n in nodes[1:]]
    store.upsert(nodes, edges)
    memory = MemoryStore.of(nodes, edges)
    ids = [node.id for node in nodes]
    for condition, direction in zip(wanted, cycle(("both", "out", "in")), strict=False):
        where = Where.parse(condition)
        assert where is not None
        expected = {node.id for node in nodes if where.matches(node)}
        assert {n.id for block in store.nodes(where=condition) for n in block} == expected, condition
        view = store.view(condition)
        assert view.get(ids) == [node if node.id in expected else None for node in nodes], condition
        assert view.count() == memory.view(condition).count(), condition
        assert view.neighbors(ids) == memory.view(condition).neighbors(ids), condition
        options: dict[str, Any] = {"where": condition, "direction": direction, "labels": ["Odd"]}
        assert store.neighbors(ids[:2], **options) == memory.neighbors(ids[:2], **options), options


def test_half_of_a_surrogate_pair_is_compared_and_never_stored(store: LadybugStore) -> None:
    """No text holds one; in the order of code points it stands before all that comes after the halves."""
    texts = ["", "a", "ab", "ab\ue000", "ac", "é", "\ud7ff", "\ue000", "\U00010000", "a\U0010ffff"]
    held: list[Any] = [*({"text": v, "name": v} for v in texts), *({"mixed": [v, 1]} for v in texts), {"mixed": 1}, {}]
    nodes = [Node(f"n{i:02}", ("Odd",), p.get("text", ""), "", {**p, "texts": ["a"]}) for i, p in enumerate(held)]
    store.delete([node.id for block in store.nodes() for node in block])
    store.upsert([*nodes, Node("x", ("Odd",), "", "", {"mixed": "ab"}), Node("y", ("Odd",), "", "", {"mixed": 2**70})])
    nodes = [node for block in store.nodes() for node in block]
    halves = ["\ud800", "a\udfff", "ab\udc00\ue000"]
    asked: list[dict[str, Any]] = [
        {field: {op: half}}
        for field in ("text", "mixed", "name", "properties.name")
        for op in ("$eq", "$ne", "$contains", "$gt", "$gte", "$lt", "$lte")
        for half in halves
    ]
    asked += [{"text": {op: [*halves, "ab", [halves[0]]]}} for op in ("$in", "$nin")] + [{"texts": [halves[0]]}]
    for where in [*asked, {"label": halves[0]}, {"label": {"$ne": halves[0]}}]:
        wanted = Where.parse(where)
        assert wanted is not None
        found = {node.id for block in store.nodes(where=where) for node in block}
        assert found == {node.id for node in nodes if wanted.matches(node)}, ascii(where)


def test_json_with_half_of_a_surrogate_pair_is_refused_by_name() -> None:
    with LadybugStore(":memory:", nested="json") as store, pytest.raises(InvalidInput, match=r"node 'n'.*'mixed'"):
        store.upsert([Node("n", properties={"mixed": [1, "\ud800"]})])


def test_true_is_no_number_in_a_list_either(store: LadybugStore) -> None:
    store.delete([node.id for block in store.nodes() for node in block])
    store.upsert([Node("n0", ("Odd",), properties={"flags": [True], "wholes": [1], "reals": [1.0], "mixed": 0.0})])
    for condition in ({"flags": [1]}, {"wholes": [True]}, {"reals": [True]}, {"wholes": {"$in": [[True], [2]]}}):
        assert [*store.nodes(where=condition)] == [], condition
    assert len([*store.nodes(where={"mixed": -0.0, "wholes": [1.0], "reals": [1]})]) == 1
