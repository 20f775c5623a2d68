"""Columns put together and searched without reading what is not asked for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphret import columns
from graphret.columns import HashedStrings, SortedIds, assemble, no_records, no_strings, to_records, to_strings
from graphret.errors import CorruptIndex, InvalidInput
from graphret.storage import Records, Strings


@given(st.lists(st.lists(st.text(max_size=3), max_size=6), min_size=1, max_size=3), st.data())
def test_assembled_columns_are_the_items_in_the_new_order(lists: list[list[str]], data: st.DataObject) -> None:
    flat = [value for values in lists for value in values]
    order = data.draw(st.lists(st.integers(0, len(flat) - 1), max_size=12)) if flat else []
    at = np.asarray(order, dtype=np.int64)
    assert assemble([Strings.of(values) for values in lists], at).tolist() == [flat[i] for i in order]
    records = assemble([Records.of({"v": value} for value in values) for values in lists], at)
    assert records.tolist() == [{"v": flat[i]} for i in order]


def test_assembled_in_several_blocks_of_stretches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "_RUNS", 3)
    values = [f"v{i}" for i in range(50)]
    order = np.random.default_rng(0).permutation(50)
    assert assemble([Strings.of(values[:20]), Strings.of(values[20:])], order).tolist() == [values[i] for i in order]


@given(st.lists(st.text("ab", max_size=2), max_size=4), st.lists(st.text("ab", max_size=2), max_size=4))
def test_columns_are_equal_where_their_items_are(left: list[str], right: list[str]) -> None:
    assert Strings.of(left).equals(Strings.of(right)) is (left == right)
    assert Strings.of(["x", *left])[1:].equals(Strings.of(left))


@given(st.lists(st.text(max_size=4) | st.text("\0é", max_size=3), min_size=1), st.data())
def test_items_taken_together_are_those_taken_one_by_one(values: list[str], data: st.DataObject) -> None:
    positions = data.draw(st.lists(st.integers(0, len(values) - 1), min_size=32, max_size=40))
    assert Strings.of(values).take(positions) == [values[i] for i in positions]
    assert Records.of({"a": value} for value in values).take(positions) == [{"a": values[i]} for i in positions]


def test_of_items_taken_together_the_broken_one_is_named() -> None:
    column = Strings(np.frombuffer(b"ab\xffcd", np.uint8), np.arange(6))
    assert column.take([0, 1, 3, 4] * 10) == list("abcd") * 10
    with pytest.raises(CorruptIndex, match="item 2"):
        column.take([0, 1, 2] * 20)
    records = Records(np.frombuffer(b"{}{},}", np.uint8), np.asarray([0, 2, 4, 5, 6]))
    with pytest.raises(CorruptIndex, match="item 2"):
        records.take([0, 1, 2] * 20)


def test_columns_of_nothing() -> None:
    assert no_strings(3).tolist() == ["", "", ""]
    assert no_records(3).tolist() == [{}, {}, {}]
    assert no_records(0).tolist() == []
    order = np.asarray([0, 2, 2], dtype=np.int64)
    assert assemble([no_records(2), no_records(1)], order).tolist() == [{}, {}, {}]
    assert assemble([no_strings(2), Strings.of(["x"])], order).tolist() == ["", "x", "x"]


TEXTS = st.text(min_size=1) | st.text("a\0é\U0001f600", min_size=1, max_size=6)
WAYS = ["search, one by one", "search, at once", "hash, one by one", "hash, at once", "hash, all alike"]


@given(st.lists(TEXTS, unique=True), st.lists(TEXTS), st.sampled_from(WAYS), st.sampled_from([2, 32]))
def test_ids_are_found_where_they_are(ids: list[str], others: list[str], way: str, head: int) -> None:
    ids.sort()
    wanted = [*ids, *others]
    with pytest.MonkeyPatch.context() as patch:
        searched = way.startswith("search")
        if searched:
            patch.setattr(columns, "_SMALL", -1)
            patch.setattr(columns, "_SHARE", 0)
            patch.setattr(columns, "_STRIDE", 3)
            patch.setattr(columns, "_HEAD", head)
        patch.setattr(columns, "_MANY", 1000 if way.endswith("one by one") else 1)
        if way == "hash, all alike":
            patch.setattr(columns, "hash", lambda value: -len(value) % 3, raising=False)
        lookup = SortedIds(Strings.of(ids))
        found = lookup.find(wanted)
        assert found.tolist() == [ids.index(one) if one in ids else -1 for one in wanted]
        assert lookup.places(wanted).tolist() == [sum(other < one for other in ids) for one in wanted]
        assert (lookup._hashed is None) == (searched and bool(ids))


@pytest.mark.parametrize("many", [1, 100])
@pytest.mark.parametrize("odd", [None, 7, "\ud800", "", "9" * 10_000, "n9\0"], ids=lambda odd: ascii(odd)[:9])
def test_what_can_be_no_id_is_not_found(monkeypatch: pytest.MonkeyPatch, many: int, odd: Any) -> None:
    monkeypatch.setattr(columns, "_MANY", many)
    lookup = SortedIds(Strings.of(f"n{i}" for i in range(10)))
    assert lookup.find(["n3", odd, "n9"]).tolist() == [3, -1, 9]
    monkeypatch.setattr(columns, "hash", lambda value: 1, raising=False)
    lookup = SortedIds(Strings.of(f"n{i}" for i in range(10)))
    assert lookup.find([odd, "n9", odd, "n0"]).tolist() == [-1, 9, -1, 0]
    monkeypatch.setattr(columns, "_SMALL", -1)
    monkeypatch.setattr(columns, "_SHARE", 0)
    lookup = SortedIds(Strings.of(f"n{i}" for i in range(10)))
    assert lookup.find([odd, "n9", odd, "n0"]).tolist() == [-1, 9, -1, 0]
    assert lookup._hashed is None


@given(
    st.lists(st.text("ab\0", min_size=3, max_size=3), unique=True), st.lists(st.text("ab\0", min_size=2, max_size=4))
)
@pytest.mark.parametrize("alike", [False, True])
def test_ids_of_one_width_are_found_by_hash(alike: bool, ids: list[str], others: list[str]) -> None:
    ids = sorted(ids)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(columns, "_MANY", 1)
        if alike:
            patch.setattr(columns, "hash", lambda value: value.count("b"), raising=False)
        found = HashedStrings(Strings.of(ids)).find([*others, *ids])
    assert found.tolist() == [ids.index(one) if one in ids else -1 for one in [*others, *ids]]


def test_many_ids_are_found_among_many() -> None:
    ids = sorted({f"{i * 7919 % 100_003}-é" for i in range(20_000)})
    lookup = SortedIds(Strings.of(ids))
    order = np.random.default_rng(0).permutation(len(ids))
    assert lookup.find([ids[i] for i in order.tolist()]).tolist() == order.tolist()
    assert lookup._hashed is not None
    assert lookup.find([f"{value}?" for value in ids]).max() == -1


@pytest.mark.parametrize(
    ("act", "named"),
    [
        (lambda: to_strings("names", ["a", 3]), r"names: .*item 1"),
        (lambda: to_records("properties", [{}, {"a": float("nan")}]), r"properties: .*item 1"),
    ],
)
def test_what_is_no_column_is_named(act: Any, named: str) -> None:
    with pytest.raises(InvalidInput, match=named):
        act()


def test_columns_are_taken_as_they_are() -> None:
    given_strings, given_records = Strings.of(["a"]), Records.of([{"a": 1}])
    assert to_strings("names", given_strings) is given_strings
    assert to_records("properties", given_records) is given_records
    assert to_records("properties", [None, {"a": 1}]).tolist() == [{}, {"a": 1}]


def test_hashes_are_taken_when_enough_was_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "_SMALL", 0)
    lookup = SortedIds(Strings.of(f"{i:04d}" for i in range(1000)))
    for asked in range(1, 130):
        assert lookup.find([f"{asked:04d}"]).tolist() == [asked]
        assert (lookup._hashed is not None) == (asked >= 125)
