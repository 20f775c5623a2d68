"""Check vectors, and normalize them to unit length."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graphret.errors import InvalidInput

Floats = NDArray[np.float32]


def check_vectors(
    vectors: ArrayLike, rows: int, dimension: int | None = None, what: str = "vectors"
) -> Floats:
    """Return vectors as a float32 array, ``(rows, dimension)``, checked.

    `InvalidInput` is raised for another shape (any width without `dimension`) or a
    value that is not finite; `what` is the name of the vectors in its message.
    """
    try:
        array = np.asarray(vectors, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise InvalidInput(
            f"{what}: expected rows of as many numbers each: {error}"
        ) from error
    if rows == 0 and array.size == 0:
        return np.zeros(
            (0, array.shape[1] if array.ndim == 2 else dimension or 0), np.float32
        )
    if (
        array.ndim != 2
        or len(array) != rows
        or array.shape[1] != (dimension or array.shape[1])
    ):
        raise InvalidInput(
            f"{what}: expected {rows} rows of {dimension or 'as many'} numbers each,"
            f" got an array of shape {array.shape}"
        )
    finite = np.isfinite(array).all(axis=1)
    if not finite.all():
        raise InvalidInput(
            f"{what}: item {int(np.argmin(finite))} has a NaN or an infinite number"
        )
    return array


def normalize(vectors: Floats) -> Floats:
    """Return rows, ``(n, d)``, at unit length, in a new array; zero rows stay zero."""
    length = np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
    return np.asarray(vectors / np.where(length > 0, length, 1), dtype=np.float32)
