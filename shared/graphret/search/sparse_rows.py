"""Some rows of a sparse matrix, quicker than by its own indexing."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

try:
    from scipy.sparse._sparsetools import csr_row_index
except ImportError:  # it is scipy's own, and may go
    csr_row_index = None


def sparse_rows(matrix: sp.csr_matrix, rows: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.int64]]:
    """Return what ``matrix[rows]`` holds, without its checks, which take longer than the copy of a thousand rows.

    Parameters
    ----------
    rows
        From 0 up, in any order, ``(r,)``.

    Returns
    -------
    columns, values, ends
        The entries of the rows laid end to end, and where those of each row end, ``(r,)``.
    """
    if csr_row_index is None:
        part = matrix[rows]
        return part.indices, part.data, part.indptr[1:].astype(np.int64)
    rows = np.asarray(rows).astype(matrix.indices.dtype)  # one type for all, or what is written to would be a copy
    ends = np.cumsum(matrix.indptr[rows + 1] - matrix.indptr[rows], dtype=np.int64)
    size = int(ends[-1]) if len(rows) else 0
    columns, values = np.empty(size, matrix.indices.dtype), np.empty(size, matrix.data.dtype)
    csr_row_index(len(rows), rows, matrix.indptr, matrix.indices, matrix.data, columns, values)
    return columns, values, ends
