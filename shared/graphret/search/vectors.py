"""Checks that every vector passes on its way in."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphret.errors import InvalidInput


def check_vectors(
    vectors: Any, rows: int, dimension: int | None = None, *, what: str = "vector"
) -> NDArray[np.float32]:
    """Return vectors as float32, ``(rows, d)``.

    Raises
    ------
    InvalidInput
        When there are too many or too few, they are not of one width, not of the expected one, or not finite; the message
        names the first that is wrong.
    """
    try:
        array = np.asarray(vectors, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"{what}: vectors of one width are expected: {error}") from None
    if not rows and not array.size:
        return np.zeros((0, dimension or (array.shape[1] if array.ndim == 2 else 0)), dtype=np.float32)
    if array.ndim != 2 or len(array) != rows:
        raise InvalidInput(f"{what}: {rows} vectors are expected, not an array of shape {array.shape}")
    if dimension is not None and array.shape[1] != dimension:
        raise InvalidInput(f"{what} 0: a width of {dimension} is expected, not {array.shape[1]}")
    finite = np.isfinite(array).all(axis=1)
    if not finite.all():
        raise InvalidInput(f"{what} {int(np.argmin(finite))}: it holds a value that is not a finite number")
    return array


def normalize(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return rows scaled to unit length; rows of zeros stay."""
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(np.divide(vectors, norms, out=np.zeros_like(vectors), where=norms > 0), dtype=np.float32)
