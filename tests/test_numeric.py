"""Steps with very many numbers do as those of numpy."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from graphret.numeric import marked, renumbered

N = 60


@given(st.sets(st.integers(0, N - 1)), st.lists(st.integers(0, N - 1)))
def test_marked_numbers_are_found_where_they_are(
    codes: set[int], rows: list[int]
) -> None:
    are_marked = np.zeros(N, np.bool_)
    are_marked[sorted(codes)] = True
    found = marked(are_marked, np.asarray(rows, np.int32))
    assert found.tolist() == [i for i, row in enumerate(rows) if row in codes]


@given(
    st.sets(st.integers(0, N - 1), max_size=8),
    st.sets(st.integers(0, N - 1), max_size=8),
    st.lists(st.integers(0, N - 1)),
)
def test_numbers_get_those_that_they_have_after_some_came_and_some_went(
    come: set[int], gone: set[int], rows: list[int]
) -> None:
    new, places = np.full(N, -1, np.int32), 0
    for code in range(N):
        places += code in come  # in front of it
        if code not in gone:
            new[code] = places
            places += 1
    codes = np.asarray(rows, np.int32)
    assert renumbered(codes, new).tolist() == new[codes].tolist()
