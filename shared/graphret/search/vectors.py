"""Vectors: checked, and made unit length."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graphret.errors import InvalidInput

Floats = NDArray[np.float32]


def check_vectors(
    vectors: ArrayLike, rows: int, dimension: int | None = None, what: str = "vectors"
) -> Floats:
    """Return what an encoder or a user gave as a float32 array, ``(rows, dimension)``;
    `what` is its name in an error.

    An `InvalidInput` says that its shape is another (of any width without `dimension`),
    or a value no finite number.
    """
    try:
        array = np.asarray(vectors, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise InvalidInput(
            f"{what}: they are not rows of as many numbers each ({error})"
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
        wanted = f"{rows} rows of {dimension or 'as many'} numbers each"
        raise InvalidInput(
            f"{what}: expected {wanted}, got an array of shape {array.shape}"
        )
    finite = np.isfinite(array).all(axis=1)
    if not finite.all():
        raise InvalidInput(
            f"{what}: item {int(np.argmin(finite))} has a NaN or an infinite number"
        )
    return array


def normalize(vectors: Floats) -> Floats:
    """Return the rows of (n, d) at length 1, in a new array; a row of zeros
    stays zero.
    """
    length = np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
    return np.asarray(vectors / np.where(length > 0, length, 1), dtype=np.float32)
