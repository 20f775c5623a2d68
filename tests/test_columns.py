"""Columns are the lists that they were made of, and ids are found in them wherever they lie."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphret.columns import Records, SortedIds, Strings, assemble
from graphret.errors import CorruptIndex, InvalidInput

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)


@given(st.lists(st.text()), st.lists(JSON), st.data())
def test_columns_are_the_lists_they_were_made_of(texts: list[str], values: list[Any], data: st.DataObject) -> None:
    for made, column in ((texts, Strings.of(iter(texts))), (values, Records.of(values))):
        assert len(column) == len(made)
        assert column.tolist() == made
        assert column[1:-1].tolist() == made[1:-1]
        at = data.draw(st.lists(st.integers(0, len(made) - 1), max_size=9)) if made else []
        assert column.take(np.asarray(at, dtype=np.int64)) == [made[i] for i in at]
        assert [column[i] for i in at] == [made[i] for i in at]
        assert pickle.loads(pickle.dumps(column)).equals(column)
        assert (
            assemble([column[:2], column], np.arange(len(made))[::-1]).tolist()
            == [*made[:2], *made][len(made) - 1 :: -1]
        )


@pytest.mark.parametrize("bad", [None, 3, b"bytes", "\ud800"])
def test_what_is_no_string_is_refused_by_position(bad: Any) -> None:
    with pytest.raises(InvalidInput, match="names, row 20"):
        Strings.of(["fine"] * 20 + [bad, "fine"], "names")


@pytest.mark.parametrize("bad", [float("nan"), {"a": {1, 2}}, object(), "\udc00"])
def test_what_is_no_json_is_refused_by_position(bad: Any) -> None:
    with pytest.raises(InvalidInput, match="values, row 2"):
        Records.of([{}, "fine", {"x": bad}])


def test_what_does_not_decode_is_a_damaged_index() -> None:
    raw = pa.array([b"fine", b"a\xff"], pa.large_binary())
    column = Strings(pa.LargeStringArray.from_buffers(2, *raw.buffers()[1:]))
    assert column[0] == "fine"
    for broken in (column, Records(pa.array(["{}", "{"], pa.large_string()))):
        with pytest.raises(CorruptIndex):
            broken.take([0, 1])


@given(st.sets(st.text(max_size=3)), st.lists(st.text(max_size=3)), st.booleans())
def test_ids_are_found_where_they_are(ids: set[str], others: list[str], much: bool) -> None:
    ordered = sorted(ids)
    place = {one: i for i, one in enumerate(ordered)}
    lookup = SortedIds(Strings.of(ordered))
    wanted: Sequence[str] = [*others, *ordered]
    if much:
        lookup.find(ordered)
    assert lookup.find(wanted).tolist() == [place.get(one, -1) for one in wanted]
    assert lookup.places(wanted).tolist() == [sum(own < one for own in ordered) for one in wanted]
