"""Columns of strings and of JSON records, on arrays of their bytes.

The arrays are in memory, or mapped from the files of an index.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import pairwise
from threading import Lock
from typing import Any, ClassVar, Self, TypeVar, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graphret.errors import CorruptIndex, InvalidInput

T = TypeVar("T")

_BLOCK, _BYTES = 1 << 14, 1 << 20
# So few texts are read one by one; shorter runs of texts are not copied as such.
_FEW, _LEAST_RUN = 8, 16
# How much more room bytes that grow take, a part of their length; and how many times as
# many bytes as are read there may be before they are packed.
_ROOM, _MOST_DEAD = 8, 2
#: A value as compact JSON, key order kept; TypeError, ValueError or RecursionError for
#: NaN, a set or the like.
to_json = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, separators=(",", ":")
).encode


class GrowingBytes:
    """Bytes that only ever grow: what stands somewhere stays there.

    The arrays of texts of several states share them, as each reads its own texts alone.
    """

    def __init__(self, data: NDArray[np.uint8]) -> None:
        self.data, self.length = data, len(data)
        self._growing = Lock()

    def append(self, data: NDArray[np.uint8]) -> int:
        """Write bytes behind all others, and return where they begin."""
        with self._growing:
            begin, end = self.length, self.length + len(data)
            if begin == end:
                return begin
            if end > len(self.data):
                larger = np.empty(end + end // _ROOM, np.uint8)
                larger[:begin] = self.data[:begin]
                self.data = larger
            self.data[begin:end] = data
            self.length = end
        return begin


class TextArray:
    """Texts in UTF-8: bytes, and where each text begins and ends in them, ``(n,)``.

    A slice, and a choice of texts, read the same bytes.
    """

    def __init__(
        self, shared: GrowingBytes, begins: NDArray[np.int64], ends: NDArray[np.int64]
    ) -> None:
        self.shared, self.begins, self.ends = shared, begins, ends

    def __reduce__(self) -> Any:
        return TextArray.packed, self.pack()

    @classmethod
    def packed(cls, data: NDArray[np.uint8], offsets: NDArray[np.int64]) -> TextArray:
        """Return texts that stand end to end: where each begins, ``(n + 1,)``."""
        return cls(GrowingBytes(data), offsets[:-1], offsets[1:])

    @classmethod
    def of(cls, texts: Iterable[str | bytes]) -> TextArray:
        """Make an array of texts, or of their UTF-8."""
        encoded = [text.encode() if isinstance(text, str) else text for text in texts]
        lengths = np.fromiter(map(len, encoded), np.int64, len(encoded))
        data = np.frombuffer(b"".join(encoded), np.uint8)
        return cls.packed(data, ends_of(lengths))

    @classmethod
    def of_strings(cls, texts: Iterable[str]) -> TextArray:
        """Make an array of strings; sooner than `of` where all are ASCII."""
        listed = [*texts]
        joined = "".join(listed)
        if not joined.isascii():
            return cls.of(listed)
        lengths = np.fromiter(map(len, listed), np.int64, len(listed))
        return cls.packed(np.frombuffer(joined.encode(), np.uint8), ends_of(lengths))

    @staticmethod
    def sharing(arrays: Sequence[TextArray]) -> list[TextArray]:
        """Return the same arrays as readers of the same bytes.

        They are those of the first array, to which those of the others are appended.
        """
        first = arrays[0]
        if int((first.ends - first.begins).sum()) * _MOST_DEAD < first.shared.length:
            first = TextArray.packed(*first.pack())
        alike = [first]
        for array in arrays[1:]:
            if array.shared is not first.shared:
                data, offsets = array.pack()
                offsets = offsets + first.shared.append(data)
                array = TextArray(first.shared, offsets[:-1], offsets[1:])
            alike.append(array)
        return alike

    @classmethod
    def concat(cls, arrays: Sequence[TextArray]) -> TextArray:
        """Lay arrays end to end."""
        alike = cls.sharing(arrays)
        begins, ends = (
            np.concatenate([getattr(array, name) for array in alike])
            for name in ("begins", "ends")
        )
        return cls(alike[0].shared, begins, ends)

    def __len__(self) -> int:
        return len(self.begins)

    def __getitem__(self, places: slice) -> TextArray:
        return TextArray(self.shared, self.begins[places], self.ends[places])

    def take(self, positions: NDArray[np.int64]) -> TextArray:
        """Return the texts at `positions`.

        An IndexError says that one is out of range.
        """
        if len(positions) and positions.min() < 0:
            raise IndexError(f"position {positions.min()} is out of range")
        return TextArray(self.shared, self.begins[positions], self.ends[positions])

    def pack(self) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        """Return the bytes of the texts end to end, and where each begins.

        Nothing is copied where they stand so already.
        """
        begins, ends = self.begins, self.ends
        offsets, data = ends_of(ends - begins), self.shared.data
        firsts = np.append(0, np.flatnonzero(begins[1:] != ends[:-1]) + 1)
        if not len(self):
            return data[:0], offsets
        if len(firsts) == 1:
            return data[begins[0] : ends[-1]], offsets
        if len(firsts) * _LEAST_RUN < len(self):
            lasts = np.append(firsts[1:], len(self)) - 1
            runs = zip(begins[firsts].tolist(), ends[lasts].tolist(), strict=True)
            return np.concatenate([data[begin:end] for begin, end in runs]), offsets
        return self._gathered(offsets), offsets

    def _gathered(self, offsets: NDArray[np.int64]) -> NDArray[np.uint8]:
        """Return the bytes of scattered texts, given where they are to begin."""
        data, gathered = self.shared.data, np.empty(offsets[-1], np.uint8)
        shifts, first = self.begins - offsets[:-1], 0
        while first < len(self):
            # Blocks of so many bytes, as the place of each takes eight.
            within = np.searchsorted(offsets, offsets[first] + _BYTES, side="right")
            last = max(first + 1, int(within) - 1)
            places = np.arange(offsets[first], offsets[last])
            places += np.repeat(shifts[first:last], np.diff(offsets[first : last + 1]))
            gathered[offsets[first] : offsets[last]] = data[places]
            first = last
        return gathered

    def encoded(self, place: int) -> bytes:
        """Return one text in UTF-8, by whose order texts are in theirs."""
        return self.shared.data[self.begins[place] : self.ends[place]].tobytes()

    def tolist(self) -> list[str]:
        """Return every text; a UnicodeDecodeError says that one is none."""
        if len(self) <= _FEW:
            return [self.encoded(place).decode() for place in range(len(self))]
        data, offsets = self.pack()
        text = data.tobytes()
        return [text[start:end].decode() for start, end in pairwise(offsets.tolist())]

    def is_among(self, texts: Collection[str]) -> NDArray[np.bool_]:
        """Tell which texts are among some, ``(n,)``, reading those of their lengths."""
        lengths = [len(text.encode("utf-8", "surrogatepass")) for text in texts]
        mask = np.isin(self.ends - self.begins, np.asarray(lengths, np.int64))
        near = np.flatnonzero(mask)
        mask[near] = [text in texts for text in self.take(near).tolist()]
        return mask

    def contain(self, part: str) -> NDArray[np.bool_]:
        """Tell which texts contain a text that is not empty, ``(n,)``."""
        sought, mask = re.compile(re.escape(part.encode())), np.zeros(len(self), bool)
        data, offsets = self.pack()
        found = (one.span() for one in sought.finditer(data.data))
        spans = np.array(list(found), np.int64).reshape(-1, 2)
        first, last = (
            np.searchsorted(offsets, place, side="right") - 1
            for place in (spans[:, 0], spans[:, 1] - 1)
        )
        mask[first[first == last]] = True
        for at in last[first != last].tolist():  # it may be hidden behind what is none
            mask[at] = mask[at] or part in self[at : at + 1].tolist()[0]
        return mask

    def equals(self, other: TextArray) -> bool:
        """Whether another array has the same texts."""
        (mine, my_offsets), (others, other_offsets) = self.pack(), other.pack()
        return np.array_equal(my_offsets, other_offsets) and np.array_equal(
            mine, others
        )


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
