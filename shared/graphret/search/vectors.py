"""Vectors: checked, and made unit length."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graphret.errors import InvalidInput

Floats = NDArray[np.float32]


def check_vectors(vectors: ArrayLike, rows: int, dimension: int | None = None, what: str = "vectors") -> Floats:
    """The vectors as a float32 array of shape (rows, dimension).

    Parameters
    ----------
    vectors
        What an encoder or a user gave; a row of zeros is allowed. No rows at all take any shape.
    rows, dimension
        The shape to hold; None accepts any width.
    what
        How an error calls them.

    Raises
    ------
    InvalidInput
        A wrong number of rows, a wrong width, something that is no number, NaN or infinity; names the item.
    """
    try:
        array = np.asarray(vectors, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"{what}: they are not rows of as many numbers each ({error})") from error
    if rows == 0 and array.size == 0:
        return np.zeros((0, array.shape[1] if array.ndim == 2 else dimension or 0), np.float32)
    if array.ndim != 2:
        raise InvalidInput(f"{what}: expected one row an item, got an array of shape {array.shape}")
    if array.shape[0] != rows:
        raise InvalidInput(f"{what}: {array.shape[0]} rows for {rows} items")
    if dimension is not None and array.shape[1] != dimension:
        raise InvalidInput(f"{what}: item 0 has {array.shape[1]} numbers, expected {dimension}")
    finite = np.isfinite(array).all(axis=1)
    if not finite.all():
        raise InvalidInput(f"{what}: item {int(np.argmin(finite))} has a NaN or an infinite number")
    return array


def normalize(vectors: Floats) -> Floats:
    """Each row of (n, d) at length 1, in a new array; a row of zeros stays zero."""
    length = np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
    return np.asarray(vectors / np.where(length > 0, length, 1), dtype=np.float32)


def check_texts(texts: Sequence[str], what: str = "texts") -> list[str]:
    """The texts as a list; InvalidInput names the first item that is no str."""
    if isinstance(texts, str):
        raise InvalidInput(f"{what}: expected a sequence of texts, got one str")
    items = list(texts)
    for index, text in enumerate(items):
        if not isinstance(text, str):
            raise InvalidInput(f"{what}: item {index} is {type(text).__name__}, expected str")
    return items


def unique(texts: Sequence[str]) -> tuple[list[str], NDArray[np.intp]]:
    """The distinct texts in order of appearance, and for each text its position among them."""
    position: dict[str, int] = {}
    inverse = np.fromiter((position.setdefault(text, len(position)) for text in texts), np.intp, len(texts))
    return list(position), inverse
