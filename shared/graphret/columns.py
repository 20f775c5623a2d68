"""Columns of strings and of JSON records, on Arrow arrays: in memory, or mapped from a
file of an index.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar, Self, TypeVar, overload

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from graphret.errors import CorruptIndex, InvalidInput

T = TypeVar("T")
C = TypeVar("C", str, tuple[str, ...])

_BLOCK = 1 << 14
_RUN = 100
#: A value as compact JSON, key order kept; TypeError, ValueError or RecursionError for
#: NaN, a set or the like.
to_json = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, separators=(",", ":")
).encode


class Column(Sequence[T]):
    """A read-only sequence over an Arrow array of strings; `Strings` and `Records` are
    the two kinds.

    A kind encodes an item as text (TypeError, ValueError or RecursionError say that it
    cannot), and decodes many.
    """

    _encode: ClassVar[staticmethod[[Any], str]]
    _decode: ClassVar[staticmethod[[list[str]], list[Any]]]

    def __init__(self, array: pa.LargeStringArray) -> None:
        self.array = array

    @classmethod
    def of(cls, values: Column[Any] | Iterable[Any], what: str = "values") -> Self:
        """Return values as a column; an `InvalidInput` names `what` and the row of the
        first that cannot be in one.
        """
        if isinstance(values, cls):
            return values
        encoded: list[bytes] = []
        try:
            encoded.extend(cls._encode(value).encode() for value in values)
        except (TypeError, ValueError, RecursionError) as error:
            raise InvalidInput(f"{what}, row {len(encoded):,}: {error}") from error
        return cls(text_array(encoded))

    @classmethod
    def repeat(cls, value: T, n: int) -> Self:
        """A column of `n` times the same item."""
        return cls(text_array([cls._encode(value).encode()] * n))

    def __len__(self) -> int:
        return len(self.array)

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> Self: ...
    def __getitem__(self, index: int | slice) -> T | Self:
        """Item `index`, or a column of the items of a slice."""
        if isinstance(index, slice):
            return type(self)(self.array[index])
        item: T = self._read(self.array.slice(range(len(self))[index], 1))[0]
        return item

    def take(self, positions: ArrayLike) -> list[T]:
        """Return the items at `positions`, ``(m,)`` in any order; an IndexError says
        that one is out of range.
        """
        return self._read(
            self.array.take(to_arrow(np.asarray(positions, dtype=np.int64)))
        )

    def tolist(self) -> list[T]:
        """Return every item."""
        return list(self)

    def __iter__(self) -> Iterator[T]:
        for start in range(0, len(self), _BLOCK):
            yield from self._read(self.array[start : start + _BLOCK])

    def _read(self, array: pa.LargeStringArray) -> list[T]:
        try:
            return self._decode(array.to_pylist())
        except (ValueError, RecursionError) as error:
            raise CorruptIndex(
                f"{type(self).__name__}: an item cannot be read: {error}"
            ) from error


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"expected a string, got {type(value).__name__}")
    return value


class Strings(Column[str]):
    """A column of strings. Lone surrogates, which are not text, are refused."""

    _encode = staticmethod(_text)
    _decode = staticmethod(lambda texts: texts)


class Records(Column[Any]):
    """A column of JSON objects as `to_json` writes them, key order kept; a tuple comes
    back as a list.
    """

    _encode = staticmethod(to_json)
    _decode = staticmethod(
        lambda texts: json.loads(f"[{','.join(texts)}]")
    )  # one call: several times as fast


# Arrow's own ways from and to lists and numpy look whether they have to do with pandas,
# and take a second to import it.
def text_array(texts: Iterable[str | bytes]) -> pa.LargeStringArray:
    """Strings, or their UTF-8, as an Arrow array."""
    encoded = [text.encode() if isinstance(text, str) else text for text in texts]
    offsets = np.zeros(len(encoded) + 1, dtype=np.int64)
    np.cumsum(np.fromiter(map(len, encoded), np.int64, len(encoded)), out=offsets[1:])
    return pa.LargeStringArray.from_buffers(
        len(encoded), pa.py_buffer(offsets), pa.py_buffer(b"".join(encoded))
    )


def to_arrow(numbers: NDArray[Any]) -> pa.Array:
    """Numbers as an Arrow array, not copied."""
    buffer = pa.py_buffer(np.ascontiguousarray(numbers))
    return pa.Array.from_buffers(
        pa.from_numpy_dtype(numbers.dtype), len(numbers), [None, buffer]
    )


def to_numpy(array: pa.Array) -> NDArray[Any]:
    """The numbers or truth values of an Arrow array, anything where it has nulls;
    numbers are not copied.
    """
    if pa.types.is_boolean(array.type):
        return to_numpy(array.cast(pa.uint8())).view(np.bool_)
    kind = array.type.to_pandas_dtype()
    return np.ndarray(
        len(array), kind, array.buffers()[1], array.offset * np.dtype(kind).itemsize
    )


def coded(column: pa.DictionaryArray) -> tuple[NDArray[Any], list[Any]]:
    """The codes of a dictionary column, not copied, and what they stand for."""
    return to_numpy(column.indices), column.dictionary.to_pylist()


def remap_codes(
    columns: Iterable[tuple[NDArray[Any], Sequence[C]]], order: NDArray[np.int64]
) -> tuple[NDArray[np.int32], list[C]]:
    """Codes of several columns, laid end to end in a new order, and what they stand
    for: sorted, and none unused.
    """
    listed = list(columns)
    values = sorted({value for _, known in listed for value in known})
    code = {value: i for i, value in enumerate(values)}
    parts: list[NDArray[Any]] = [
        np.asarray([code[value] for value in known], dtype=np.int32)[own]
        for own, known in listed
    ]
    joined: NDArray[np.int32] = np.concatenate([np.empty(0, np.int32), *parts])[order]
    used = np.bincount(joined, minlength=len(values)) > 0
    kept = [value for value, there in zip(values, used.tolist(), strict=True) if there]
    return (np.cumsum(used, dtype=np.int32) - 1)[joined], kept


def take_concat(arrays: Sequence[pa.Array], order: NDArray[np.int64]) -> pa.Array:
    """Return the items of arrays laid end to end in a new order; stretches that stay
    together are copied at once.
    """
    joined = pa.concat_arrays(arrays)
    cuts = np.flatnonzero(np.diff(order) != 1) + 1
    if len(cuts) >= len(order) // _RUN:
        return joined.take(to_arrow(order))
    starts = order[np.append(0, cuts)]
    ends = starts + np.diff([0, *cuts, len(order)])
    return pa.concat_arrays(
        [joined[a:b] for a, b in zip(starts.tolist(), ends.tolist(), strict=True)]
    )
