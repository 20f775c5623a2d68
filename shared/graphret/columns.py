"""Columns of strings and of JSON records, on Arrow arrays: in memory, or mapped from a file of an index."""

from __future__ import annotations

import json
from abc import abstractmethod
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, Self, TypeVar, overload

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from graphret.errors import CorruptIndex, InvalidInput

T = TypeVar("T")
C = TypeVar("C", bound="Column[Any]")

_BLOCK = 1 << 14
_STRIDE = 16
_RUN = 100
_to_json = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode


class Column(Sequence[T]):
    """A read-only sequence over an Arrow array of strings; `Strings` and `Records` are the two kinds."""

    def __init__(self, array: pa.LargeStringArray) -> None:
        self.array = array

    @classmethod
    def of(cls, values: Column[Any] | Iterable[Any], what: str = "values") -> Self:
        """Return values as a column; an `InvalidInput` names `what` and the row of the first that cannot be in one."""
        if isinstance(values, cls):
            return values
        listed = list(values)
        try:
            return cls(text_array(map(cls._encode, listed)))
        except (TypeError, ValueError, RecursionError):
            for row, value in enumerate(listed):
                try:
                    cls._encode(value).encode()
                except (TypeError, ValueError, RecursionError) as error:
                    raise InvalidInput(f"{what}, row {row:,}: {error}") from error
            raise

    @staticmethod
    @abstractmethod
    def _encode(value: Any) -> str:
        """One item as text; raises TypeError, ValueError or RecursionError for what is not such an item."""

    @staticmethod
    @abstractmethod
    def _decode(texts: list[str]) -> list[Any]:
        """The items that the texts stand for."""

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
        position = range(len(self))[index]
        item: T = self._read(self.array.slice(position, 1))[0]
        return item

    def take(self, positions: ArrayLike) -> list[T]:
        """Return the items at `positions`, ``(m,)`` in any order; an IndexError says that one is out of range."""
        return self._read(self.array.take(to_arrow(np.asarray(positions, dtype=np.int64))))

    def tolist(self) -> list[T]:
        """Return every item."""
        return list(self)

    def __iter__(self) -> Iterator[T]:
        for start in range(0, len(self), _BLOCK):
            yield from self._read(self.array[start : start + _BLOCK])

    def equals(self, other: Column[T]) -> bool:
        """Whether another column holds the same items."""
        return bool(self.array.equals(other.array))

    def _read(self, array: pa.LargeStringArray) -> list[T]:
        try:
            return self._decode(array.to_pylist())
        except (ValueError, RecursionError) as error:
            raise CorruptIndex(f"{type(self).__name__}: an item cannot be read: {error}") from error


class Strings(Column[str]):
    """A column of strings. Lone surrogates, which are not text, are refused."""

    @staticmethod
    def _encode(value: Any) -> str:
        if not isinstance(value, str):
            raise TypeError(f"a string is expected, not {type(value).__name__}")
        return value

    @staticmethod
    def _decode(texts: list[str]) -> list[str]:
        return texts


class Records(Column[Any]):
    """A column of JSON objects as `to_json` writes them, key order kept; a tuple comes back as a list."""

    @staticmethod
    def _encode(value: Any) -> str:
        return to_json(value)

    @staticmethod
    def _decode(texts: list[str]) -> list[Any]:
        values: list[Any] = json.loads(f"[{','.join(texts)}]")  # one call: several times as fast
        return values


def to_json(value: Any) -> str:
    """`value` as compact JSON, key order kept; TypeError, ValueError or RecursionError for NaN, a set or the like."""
    return _to_json(value)


def no_strings(n: int) -> Strings:
    """A column of `n` empty strings."""
    return Strings(_large_strings(b"", np.zeros(n + 1, dtype=np.int64)))


def no_records(n: int) -> Records:
    """A column of `n` empty objects."""
    return Records(_large_strings(b"{}" * n, np.arange(n + 1, dtype=np.int64) * 2))


# Arrow's own ways from and to lists and numpy look whether they have to do with pandas, and take a second to import it.


def text_array(texts: Iterable[str]) -> pa.LargeStringArray:
    """Strings as an Arrow array."""
    encoded = [*map(str.encode, texts)]
    lengths = np.fromiter(map(len, encoded), np.int64, len(encoded))
    return _large_strings(b"".join(encoded), np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64))


def _large_strings(blob: bytes, offsets: NDArray[np.int64]) -> pa.LargeStringArray:
    return pa.LargeStringArray.from_buffers(len(offsets) - 1, pa.py_buffer(offsets), pa.py_buffer(blob))


def to_arrow(numbers: NDArray[Any]) -> pa.Array:
    """Numbers as an Arrow array, not copied."""
    buffer = pa.py_buffer(np.ascontiguousarray(numbers))
    return pa.Array.from_buffers(pa.from_numpy_dtype(numbers.dtype), len(numbers), [None, buffer])


def to_numpy(array: pa.Array) -> NDArray[Any]:
    """The numbers or truth values of an Arrow array without nulls; numbers are not copied."""
    if pa.types.is_boolean(array.type):
        return to_numpy(array.cast(pa.uint8())).view(np.bool_)
    kind = array.type.to_pandas_dtype()
    return np.ndarray(len(array), kind, array.buffers()[1], array.offset * np.dtype(kind).itemsize)


def assemble(columns: Sequence[C], order: NDArray[np.int64]) -> C:
    """Return the items of several columns of one kind in a new order, positions in the columns laid end to end."""
    if len(columns) == 1 and np.array_equal(order, np.arange(len(columns[0]))):
        return columns[0]
    joined = pa.concat_arrays([column.array for column in columns])
    kept = _stretches(order)
    taken = pa.concat_arrays([joined[a:b] for a, b in kept]) if kept else joined.take(to_arrow(order))
    return type(columns[0])(taken)


def gathered(arrays: Sequence[NDArray[Any]], order: NDArray[np.int64]) -> NDArray[Any]:
    """Do as `assemble` with arrays."""
    joined, kept = np.concatenate(arrays), _stretches(order)
    return np.concatenate([joined[a:b] for a, b in kept]) if kept else joined[order]


def _stretches(order: NDArray[np.int64]) -> list[tuple[int, int]]:
    """The stretches that stay together in an order, which are copied at once; none where they are short."""
    cuts = np.flatnonzero(np.diff(order) != 1) + 1
    if len(cuts) >= len(order) // _RUN:
        return []
    starts = order[np.append(0, cuts)]
    return list(zip(starts.tolist(), (starts + np.diff([0, *cuts, len(order)])).tolist(), strict=True))


class SortedIds:
    """Finds strings in a sorted column of distinct ones.

    They are searched where they lie, on disk or in memory, after a look at every 16th of them; once many were asked
    for beside the length of the column, they are looked up in a dictionary instead.
    """

    def __init__(self, ids: Strings) -> None:
        self.ids = ids
        self._known: dict[str, int] | None = None
        self._asked = 0

    @cached_property
    def _sample(self) -> list[str]:
        return self.ids[::_STRIDE].tolist()

    def find(self, wanted: Sequence[str]) -> NDArray[np.int64]:
        """Return the position of each string, -1 for one that is not here, ``(w,)``."""
        self._asked += len(wanted)
        if self._known is None and self._asked * _STRIDE >= len(self.ids):
            self._known = dict(zip(self.ids, range(len(self.ids)), strict=True))
        if self._known is not None:
            get = self._known.get
            return np.fromiter((get(one, -1) for one in wanted), np.int64, len(wanted))
        places = self.places(wanted)
        there = (place < len(self.ids) and self.ids[place] == one for place, one in zip(places, wanted, strict=True))
        return np.where(np.fromiter(there, bool, len(wanted)), places, -1)

    def places(self, wanted: Sequence[str]) -> NDArray[np.int64]:
        """Return where each string is or would have to be put in, ``(w,)``."""
        return np.fromiter(map(self._place, wanted), np.int64, len(wanted))

    def _place(self, wanted: str) -> int:
        end = bisect_left(self._sample, wanted) * _STRIDE
        start = max(0, end - _STRIDE)
        return start + bisect_left(self.ids[start:end].tolist(), wanted)
