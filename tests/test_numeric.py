"""Steps with very many numbers do as those of numpy."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from graphret.numeric import marked

N = 60


@given(st.sets(st.integers(0, N - 1)), st.lists(st.integers(0, N - 1)))
def test_marked_numbers_are_found_where_they_are(
    codes: set[int], rows: list[int]
) -> None:
    are_marked = np.zeros(N, np.bool_)
    are_marked[sorted(codes)] = True
    found = marked(are_marked, np.asarray(rows, np.int32))
    assert found.tolist() == [i for i, row in enumerate(rows) if row in codes]
