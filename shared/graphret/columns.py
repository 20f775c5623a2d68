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
from graphret.lists import Lists, ends_of

T = TypeVar("T")

_BLOCK = 1 << 14
# So few texts are read one by one.
_FEW = 64
#: A value as compact JSON, key order kept; TypeError, ValueError or RecursionError for
#: NaN, a set or the like.
to_json = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, separators=(",", ":")
).encode


class TextArray(Lists[np.uint8]):
    """Texts in UTF-8, as lists of bytes."""

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

    def encoded(self, place: int) -> bytes:
        """Return one text in UTF-8, by whose order texts are in theirs."""
        begin, end = self.spans.data[self.rows[place]].tolist()
        return self.numbers.data[begin:end].tobytes()

    def tolist(self) -> list[str]:
        """Return every text; a UnicodeDecodeError says that one is none."""
        if len(self) <= _FEW:
            data = self.numbers.data
            places = self.standing().tolist()
            return [data[begin:end].tobytes().decode() for begin, end in places]
        data, offsets = self.pack()
        text = data.tobytes()
        return [text[start:end].decode() for start, end in pairwise(offsets.tolist())]

    def is_among(self, texts: Collection[str]) -> NDArray[np.bool_]:
        """Tell which texts are among some, ``(n,)``, reading those of their lengths."""
        lengths = [len(text.encode("utf-8", "surrogatepass")) for text in texts]
        mask = np.isin(self.lengths, np.asarray(lengths, np.int64))
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
