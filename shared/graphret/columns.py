"""Columns of strings and of JSON records, on arrays of their bytes.

The arrays are in memory, or mapped from the files of an index.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, ClassVar, Self, TypeVar, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graphret.errors import CorruptIndex, InvalidInput

T = TypeVar("T")

_BLOCK, _BYTES = 1 << 14, 1 << 20
#: A value as compact JSON, key order kept; TypeError, ValueError or RecursionError for
#: NaN, a set or the like.
to_json = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, separators=(",", ":")
).encode


class TextArray:
    """Texts end to end in UTF-8: their bytes, and where each begins, ``(n + 1,)``.

    A slice is a view of the same bytes.
    """

    def __init__(self, data: NDArray[np.uint8], offsets: NDArray[np.int64]) -> None:
        self.data, self.offsets = data, offsets

    @classmethod
    def of(cls, texts: Iterable[str | bytes]) -> TextArray:
        """Make an array of texts, or of their UTF-8."""
        encoded = [text.encode() if isinstance(text, str) else text for text in texts]
        lengths = np.fromiter(map(len, encoded), np.int64, len(encoded))
        return cls(np.frombuffer(b"".join(encoded), np.uint8), ends_of(lengths))

    @classmethod
    def of_strings(cls, texts: Iterable[str]) -> TextArray:
        """Make an array of strings; sooner than `of` where all are ASCII."""
        listed = [*texts]
        joined = "".join(listed)
        if not joined.isascii():
            return cls.of(listed)
        lengths = np.fromiter(map(len, listed), np.int64, len(listed))
        return cls(np.frombuffer(joined.encode(), np.uint8), ends_of(lengths))

    @classmethod
    def concat(cls, arrays: Sequence[TextArray]) -> TextArray:
        """Lay arrays end to end."""
        if len(arrays) == 1:
            return arrays[0]
        data = [array.data[array.offsets[0] : array.offsets[-1]] for array in arrays]
        begins = ends_of(np.fromiter(map(len, data), np.int64, len(data)))
        offsets = [
            array.offsets[:-1] + (begin - array.offsets[0])
            for array, begin in zip(arrays, begins, strict=False)
        ]
        return cls(
            np.concatenate([np.empty(0, np.uint8), *data]),
            np.concatenate([*offsets, begins[-1:]]),
        )

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, places: slice) -> TextArray:
        start, stop, step = places.indices(len(self))
        if step != 1:
            return self.take(np.arange(start, stop, step))
        return TextArray(self.data, self.offsets[start : max(start, stop) + 1])

    def take(self, positions: NDArray[np.int64]) -> TextArray:
        """Return the texts at `positions`.

        An IndexError says that one is out of range.
        """
        if len(positions) and positions.min() < 0:
            raise IndexError(f"position {positions.min()} is out of range")
        if len(positions) and np.all(np.diff(positions) == 1):
            return self[int(positions[0]) : int(positions[-1]) + 1]
        starts, ends = self.offsets[positions], self.offsets[positions + 1]
        offsets = ends_of(ends - starts)
        data = np.empty(offsets[-1], np.uint8)
        shifts, first = starts - offsets[:-1], 0
        while first < len(positions):
            # Blocks of so many bytes, as the place of each takes eight.
            within = np.searchsorted(offsets, offsets[first] + _BYTES, side="right")
            last = max(first + 1, int(within) - 1)
            places = np.arange(offsets[first], offsets[last])
            places += np.repeat(shifts[first:last], np.diff(offsets[first : last + 1]))
            data[offsets[first] : offsets[last]] = self.data[places]
            first = last
        return TextArray(data, offsets)

    def encoded(self, place: int) -> bytes:
        """Return one text in UTF-8, by whose order texts are in theirs."""
        return self.data[self.offsets[place] : self.offsets[place + 1]].tobytes()

    def tolist(self) -> list[str]:
        """Return every text; a UnicodeDecodeError says that one is none."""
        first = self.offsets[0]
        data = self.data[first : self.offsets[-1]].tobytes()
        places = pairwise((self.offsets - first).tolist())
        return [data[start:end].decode() for start, end in places]

    def is_among(self, texts: Collection[str]) -> NDArray[np.bool_]:
        """Tell which texts are among some, ``(n,)``, reading those of their lengths."""
        lengths = [len(text.encode("utf-8", "surrogatepass")) for text in texts]
        mask = np.isin(np.diff(self.offsets), np.asarray(lengths, np.int64))
        near = np.flatnonzero(mask)
        mask[near] = [text in texts for text in self.take(near).tolist()]
        return mask

    def contain(self, part: str) -> NDArray[np.bool_]:
        """Tell which texts contain a text that is not empty, ``(n,)``."""
        sought, mask = re.compile(re.escape(part.encode())), np.zeros(len(self), bool)
        read = self.data.data[: self.offsets[-1]]
        found = (one.span() for one in sought.finditer(read, int(self.offsets[0])))
        spans = np.array(list(found), np.int64).reshape(-1, 2)
        first, last = (
            np.searchsorted(self.offsets, place, side="right") - 1
            for place in (spans[:, 0], spans[:, 1] - 1)
        )
        mask[first[first == last]] = True
        for at in last[first != last].tolist():  # it may be hidden behind what is none
            mask[at] = mask[at] or part in self[at : at + 1].tolist()[0]
        return mask

    def equals(self, other: TextArray) -> bool:
        """Whether another array has the same texts."""
        mine, others = self.compact(), other.compact()
        return np.array_equal(mine.offsets, others.offsets) and np.array_equal(
            mine.data, others.data
        )

    def compact(self) -> TextArray:
        """Return the array without bytes that are of none of its texts."""
        first, last = self.offsets[0], self.offsets[-1]
        if first == 0 and last == len(self.data):
            return self
        return TextArray(self.data[first:last], self.offsets - first)


def ends_of(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where things of some lengths begin, laid end to end, and the last ends."""
    ends = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=ends[1:])
    return ends


class Column(Sequence[T]):
    """A read-only sequence over an array of texts, as `Strings` or as `Records`.

    A kind encodes an item as text (TypeError, ValueError or RecursionError say that it
    cannot), and decodes many.
    """

    _encode: ClassVar[staticmethod[[Any], str]]
    _decode: ClassVar[staticmethod[[list[str]], list[Any]]]

    def __init__(self, array: TextArray) -> None:
        self.array = array

    @classmethod
    def of(cls, values: Column[Any] | Iterable[Any], what: str = "values") -> Self:
        """Return values as a column.

        An `InvalidInput` names `what` and the row of the first value that cannot be in
        one.
        """
        if isinstance(values, cls):
            return values
        encoded: list[bytes] = []
        try:
            encoded.extend(cls._encode(value).encode() for value in values)
        except (TypeError, ValueError, RecursionError) as error:
            raise InvalidInput(f"{what}, row {len(encoded):,}: {error}") from error
        return cls(TextArray.of(encoded))

    @classmethod
    def repeat(cls, value: T, n: int) -> Self:
        """A column of `n` times the same item."""
        return cls(TextArray.of([cls._encode(value).encode()] * n))

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
        at = range(len(self))[index]
        item: T = self._read(self.array[at : at + 1])[0]
        return item

    def take(self, positions: ArrayLike) -> list[T]:
        """Return the items at `positions`, ``(m,)`` in any order.

        An IndexError says that one is out of range.
        """
        return self._read(self.array.take(np.asarray(positions, dtype=np.int64)))

    def tolist(self) -> list[T]:
        """Return every item."""
        return list(self)

    def __iter__(self) -> Iterator[T]:
        for start in range(0, len(self), _BLOCK):
            yield from self._read(self.array[start : start + _BLOCK])

    def _read(self, array: TextArray) -> list[T]:
        try:
            return self._decode(array.tolist())
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
    """A column of JSON objects as `to_json` writes them, with their keys in order.

    A tuple comes back as a list.
    """

    _encode = staticmethod(to_json)
    _decode = staticmethod(
        lambda texts: json.loads(f"[{','.join(texts)}]")
    )  # one call: several times as fast
