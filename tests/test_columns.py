"""Columns are the lists that they were made of, and ids are found in them wherever they lie."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphret.columns import Records, Strings, gathered
from graphret.errors import CorruptIndex, InvalidInput
from graphret.nodes import NodeTable

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)


@settings(max_examples=30)
@given(st.lists(st.text()), st.lists(JSON), st.data())
def test_columns_are_the_lists_they_were_made_of(texts: list[str], values: list[Any], data: st.DataObject) -> None:
    for made, column in ((texts, Strings.of(iter(texts))), (values, Records.of(values))):
        assert len(column) == len(made)
        assert column.tolist() == made
        assert column[1:-1].tolist() == made[1:-1]
        at = data.draw(st.lists(st.integers(0, len(made) - 1), max_size=9)) if made else []
        assert column.take(np.asarray(at, dtype=np.int64)) == [made[i] for i in at]
        assert [column[i] for i in at] == [made[i] for i in at]
        assert pickle.loads(pickle.dumps(column)).array.equals(column.array)
        both = gathered([column[:2].array, column.array], np.arange(len(made))[::-1])
        assert type(column)(both).tolist() == [*made[:2], *made][: len(made)][::-1]
    assert Records.repeat({"a": 1}, 3).tolist() == [{"a": 1}] * 3


@pytest.mark.parametrize(
    ("kind", "bad"), [(Strings, 3), (Strings, "\ud800"), (Records, {"a": {1}}), (Records, [1e999])]
)
def test_what_cannot_be_in_a_column_is_refused_by_its_row(kind: Any, bad: Any) -> None:
    with pytest.raises(InvalidInput, match="names, row 20"):
        kind.of(["fine"] * 20 + [bad, "fine"], "names")


def test_what_does_not_decode_is_a_damaged_index() -> None:
    raw = pa.array([b"fine", b"a\xff"], pa.large_binary())
    column = Strings(pa.LargeStringArray.from_buffers(2, *raw.buffers()[1:]))
    assert column[0] == "fine"
    for broken in (column, Records(pa.array(["{}", "{"], pa.large_string()))):
        with pytest.raises(CorruptIndex):
            broken.take([0, 1])


@settings(max_examples=30)
@given(st.sets(st.text(min_size=1, max_size=3)), st.lists(st.text(max_size=3)), st.booleans())
def test_ids_are_found_where_they_are(ids: set[str], others: list[str], much: bool) -> None:
    table = NodeTable.build(list(ids))[0]
    place = {one: i for i, one in enumerate(sorted(ids))}
    for wanted in ([*others, *ids] if much else [one] for one in [*others, *ids]):
        assert table.find(wanted).tolist() == [place.get(one, -1) for one in wanted]
