"""Conditions on a Ladybug database mean what `Where.matches` does, and the database decides what it can."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest

from graphret.errors import InvalidInput
from graphret.stores.ladybug import LadybugStore
from graphret.stores.memory import MemoryStore
from graphret.testing.graphs import all_nodes
from graphret.types import Edge, Node
from graphret.where import Where

#: By property, values that one column holds together, and some that it does not.
KINDS: dict[str, list[Any]] = {
    "whole": [0, 1, -1, 2**53],
    "real": [0.0, 1.0, 0.5, -2.5],
    "text": ["", "a", "A", "ab", "é", "'\"`\\"],
    "flag": [True, False],
    "texts": [[], ["a"], ["a", "b"], [""]],
    "mixed": [1, "one", [1, "one"], {"a": {"b": 1}}, {"a": "x"}, 2**70, True, None],
    "name": ["inner", "outer"],
    "a.b": [1, 2],
}
FIELDS = [*KINDS, "absent", "id", "mixed.a.b", "mixed.a", "properties.whole", "properties.mixed", "properties.name"]
OPERANDS: list[Any] = [1, 1.5, True, "", "a", "one", "n1", 2**70, "a\0", ["a"], [1, "one"], None]


def test_conditions_mean_what_they_say() -> None:
    nodes = [
        Node(f"n{i}", [("Odd",), ("Even", "Odd"), ()][i % 3], ["", "a"][i % 2], "", {k: v[i % len(v)] for k, v in own})
        for i in range(18)
        for own in [[*KINDS.items()][i % 4 :]]
    ]
    edges = [Edge("n0", "TO", node.id) for node in nodes]
    conditions = [{field: {op: one}} for field in FIELDS for op in ("$eq", "$gt", "$contains") for one in OPERANDS]
    conditions += [{field: {op: OPERANDS[k::2]}} for field in FIELDS for op in ("$in", "$nin") for k in range(2)]
    with LadybugStore(":memory:") as store:
        store.upsert(nodes, edges)
        memory, ids = MemoryStore.of(all_nodes(store), edges), [node.id for node in nodes]
        for condition in conditions:
            where = Where.parse(condition)
            assert where is not None
            expected = {node.id for node in nodes if where.matches(node)}
            assert {node.id for node in all_nodes(store, where=condition)} == expected, condition
        views = 0
        for condition in (
            {"$or": [one, {"$not": other}]} for one, other in zip(conditions[::50], conditions[7::50], strict=False)
        ):
            with suppress(InvalidInput):  # where the database does not decide the condition by itself
                view, shown = store.view(condition), memory.view(condition)
                assert view.count() == shown.count(), condition
                assert view.get(ids) == shown.get(ids), condition
                assert view.neighbors(ids) == shown.neighbors(ids), condition
                assert [edge for block in view.edges() for edge in block] == view.neighbors(ids, direction="out")
                views += 1
            for limit in (None, 1):
                options: dict[str, Any] = {"where": condition, "labels": ["Odd"], "limit": limit}
                assert store.neighbors(ids[:2], **options) == memory.neighbors(ids[:2], **options), options
        assert views >= 3
        with pytest.raises(InvalidInput, match="the database itself decides"):
            store.view({"mixed.a": "x"})


def test_the_database_decides_what_it_can(rows_read: list[int]) -> None:
    nodes = [Node(f"i{i}", ("Item",), f"name {i}", properties={"rank": i, "tags": [f"t{i}"]}) for i in range(500)]
    conditions: list[tuple[dict[str, Any], int]] = [
        ({"$or": [{"rank": 7}, {"name": "name 8"}]}, 2),
        ({"tags": {"$contains": "t5"}}, 1),
        ({"$and": [{"rank": {"$lt": 5}}, {"tags": ["t4"]}]}, 1),  # the second of the five that the first leaves
    ]
    with LadybugStore(":memory:") as store:
        store.upsert(nodes)
        for condition, n in conditions:
            rows_read.clear()
            assert len(all_nodes(store, where=condition)) == n
            assert max(rows_read) <= 8
