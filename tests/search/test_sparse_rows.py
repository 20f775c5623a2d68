"""Rows of a sparse matrix taken without its own indexing."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from graphret.search.sparse_rows import sparse_rows


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("n_rows", [0, 1, 50])
@pytest.mark.parametrize("private", [True, False])
def test_rows_are_those_that_indexing_gives(
    n_rows: int, index: type, private: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not private:  # a scipy without the function that is not public
        monkeypatch.setattr("graphret.search.sparse_rows.csr_row_index", None)
    rng = np.random.default_rng(n_rows)
    matrix = sp.random(20, 30, density=0.2, format="csr", dtype=np.float32, random_state=1)
    matrix.indices, matrix.indptr = matrix.indices.astype(index), matrix.indptr.astype(index)
    for array in (matrix.data, matrix.indices, matrix.indptr):
        array.flags.writeable = False  # as those of an opened index are
    rows = rng.integers(0, 20, n_rows)
    columns, values, ends = sparse_rows(matrix, rows)
    expected = matrix[rows]
    np.testing.assert_array_equal(columns, expected.indices)
    np.testing.assert_array_equal(values, expected.data)
    np.testing.assert_array_equal(ends, expected.indptr[1:])
