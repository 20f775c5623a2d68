"""Columns of strings and of JSON records: one utf-8 blob and its offsets, decoded an item at a time."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any, Self, TypeVar, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graphret.errors import CorruptIndex, InvalidInput

T = TypeVar("T")

_BLOCK = 1 << 14
_MANY = 32  # fewer items are read one by one, as are long ones
_SHORT = 24


class Column(Sequence[T]):
    """A read-only sequence whose items lie end to end in one utf-8 blob; `Strings` and `Records` are the two kinds.

    Parameters
    ----------
    blob
        uint8, shape (bytes,). Both arrays may be memory-mapped; nothing is copied.
    offsets
        int64, shape (n + 1,), rising from 0 to ``len(blob)``: item i is ``blob[offsets[i]:offsets[i + 1]]``.

    Raises
    ------
    InvalidInput
        If the two arrays do not have that form (that the offsets rise is not checked).
    """

    __slots__ = ("_view", "blob", "offsets")

    blob: NDArray[np.uint8]
    offsets: NDArray[np.int64]

    def __init__(self, blob: NDArray[np.uint8], offsets: NDArray[np.int64]) -> None:
        # Plain views: slicing an np.memmap object costs microseconds each time.
        self.blob, self.offsets = np.asarray(blob), np.asarray(offsets)
        if self.blob.dtype != np.uint8 or self.blob.ndim != 1:
            raise InvalidInput(f"blob: uint8 in one dimension expected, not {self.blob.dtype} in {self.blob.ndim}")
        if self.offsets.dtype != np.int64 or self.offsets.ndim != 1 or not len(self.offsets):
            raise InvalidInput("offsets: at least one int64 in one dimension expected")
        if self.offsets[0] != 0 or self.offsets[-1] != len(self.blob):
            raise InvalidInput(f"offsets: they do not run from 0 to the {len(self.blob)} bytes of the blob")
        self._view = memoryview(self.blob)  # type: ignore[arg-type]

    @staticmethod
    @abstractmethod
    def _encode(value: Any) -> bytes:
        """One item as bytes; raises ValueError, TypeError or RecursionError for what is not such an item."""

    @staticmethod
    @abstractmethod
    def _decode(texts: list[str]) -> list[Any]:
        """The items that the texts stand for; raises ValueError or RecursionError for what stands for none."""

    @classmethod
    def of(cls, values: Iterable[T]) -> Self:
        """Make a column in memory, in blocks, reading `values` once.

        Raises
        ------
        InvalidInput
            Names the position of the first item that cannot be stored, and why.
        """
        iterator = iter(values)
        blobs: list[bytes] = []
        lengths: list[NDArray[np.int64]] = []
        start = 0
        while block := list(islice(iterator, _BLOCK)):
            try:
                encoded = [*map(cls._encode, block)]
            except (TypeError, ValueError, RecursionError) as error:
                raise cls._refusal(block, start) from error
            blobs.append(b"".join(encoded))
            lengths.append(np.fromiter(map(len, encoded), np.int64, len(encoded)))
            start += len(block)
        offsets = np.zeros(start + 1, np.int64)
        if lengths:
            np.cumsum(np.concatenate(lengths), out=offsets[1:])
        return cls(np.frombuffer(b"".join(blobs), np.uint8), offsets)

    @classmethod
    def _refusal(cls, block: list[T], start: int) -> InvalidInput:
        for position, value in enumerate(block, start):
            try:
                cls._encode(value)
            except (TypeError, ValueError, RecursionError) as error:
                return InvalidInput(f"{cls.__name__}, item {position}: {error}")
        return InvalidInput(f"{cls.__name__}, an item from {start} on cannot be stored")

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> Self: ...
    def __getitem__(self, index: int | slice) -> T | Self:
        """Item `index`, or a column of the items of a slice (no copy of the bytes where its step is 1)."""
        if isinstance(index, slice):
            return self._slice(*index.indices(len(self)))
        position = index + len(self) if index < 0 else index
        if not 0 <= position < len(self):
            raise IndexError(f"item {index} of {len(self)}")
        return self._read([position], [int(self.offsets[position])], [int(self.offsets[position + 1])])[0]

    def _slice(self, start: int, stop: int, step: int) -> Self:
        if step == 1:
            stop = max(start, stop)
            first, last = int(self.offsets[start]), int(self.offsets[stop])
            return type(self)(self.blob[first:last], self.offsets[start : stop + 1] - first)
        at = np.fromiter(range(start, stop, step), np.int64)  # a step may be any Python integer
        begins, ends = self.offsets[at], self.offsets[at + 1]
        offsets = np.zeros(len(at) + 1, np.int64)
        np.cumsum(ends - begins, out=offsets[1:])
        parts = [self._view[a:b] for a, b in zip(begins.tolist(), ends.tolist(), strict=True)]
        return type(self)(np.frombuffer(b"".join(parts), np.uint8), offsets)

    def take(self, positions: ArrayLike) -> list[T]:
        """Return the items at `positions`, integers of shape (m,) in any order.

        Raises
        ------
        IndexError
            If a position is negative (search libraries mark a missing hit with -1) or past the end.
        """
        at = np.asarray(positions)
        if not at.size:
            return []
        if at.dtype.kind not in "iu" or at.ndim != 1:
            raise TypeError(f"positions are integers in one dimension, not {at.dtype} in {at.ndim}")
        if at.min() < 0 or at.max() >= len(self):
            raise IndexError(f"positions from {at.min()} to {at.max()} of {len(self)} items")
        at = at.astype(np.int64, copy=False)
        return self._items(at, self.offsets[at], self.offsets[at + 1])

    def _items(self, at: NDArray[np.int64], begins: NDArray[np.int64], ends: NDArray[np.int64]) -> list[T]:
        texts = self._gathered(begins, ends) if len(at) >= _MANY else None
        if texts is not None:
            with suppress(ValueError, RecursionError):  # reading one by one names the item
                return self._decode(texts)
        return self._read(at, begins.tolist(), ends.tolist())

    def _gathered(self, begins: NDArray[np.int64], ends: NDArray[np.int64]) -> list[str] | None:
        """The texts of short items in a third of the time of `_read`: their bytes are gathered with a zero between any
        two, decoded at once and split. `None` where the items are long, are no utf-8 or hold zeros themselves.
        """
        sizes = ends - begins + 1
        stops = np.cumsum(sizes)
        if stops[-1] > (_SHORT + 1) * len(sizes):
            return None
        try:
            at = np.repeat(begins - (stops - sizes), sizes)
            at += np.arange(len(at))
            at[stops - 1] = 0
            gathered = self.blob[at]
            gathered[stops - 1] = 0
            texts = str(gathered[:-1].data, "utf-8").split("\0")
        except (ValueError, IndexError):  # offsets that fall are left to `_read` too
            return None
        return texts if len(texts) == len(sizes) else None

    def equals(self, other: Column[T]) -> bool:
        """Whether another column holds the same items, which are not read for it."""
        return np.array_equal(self.offsets, other.offsets) and np.array_equal(self.blob, other.blob)

    def tolist(self) -> list[T]:
        """Return every item."""
        return list(self)

    def __iter__(self) -> Iterator[T]:
        for start in range(0, len(self), _BLOCK):
            bounds = self.offsets[start : start + _BLOCK + 1]
            yield from self._items(np.arange(start, start + len(bounds) - 1), bounds[:-1], bounds[1:])

    def _read(self, at: Sequence[int] | NDArray[np.int64], begins: list[int], ends: list[int]) -> list[T]:
        view = self._view
        try:
            return self._decode([str(view[a:b], "utf-8") for a, b in zip(begins, ends, strict=True)])
        except (ValueError, RecursionError) as error:
            if len(at) == 1:
                raise CorruptIndex(f"{type(self).__name__}, item {at[0]}: cannot be read: {error}") from error
            for one, a, b in zip(at, begins, ends, strict=True):
                self._read([one], [a], [b])
            raise

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.blob, self.offsets)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {len(self)} items, {len(self.blob)} bytes>"


class Strings(Column[str]):
    """A column of strings. Lone surrogates, which are not text, are refused."""

    __slots__ = ()

    @staticmethod
    def _encode(value: Any) -> bytes:
        return str.encode(value)

    @staticmethod
    def _decode(texts: list[str]) -> list[str]:
        return texts


_to_json = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode
_from_json = json.JSONDecoder().decode


def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the object of names and values read from JSON, of which `json` would keep the last of a name in silence.

    Raises
    ------
    ValueError
        Names what comes twice.
    """
    found = dict(pairs)
    if len(found) < len(pairs):
        ((twice, _),) = Counter(name for name, _ in pairs).most_common(1)
        raise ValueError(f"the name {twice!r} comes twice in one object")
    return found


def to_json(value: Any) -> str:
    """`value` as compact JSON, key order kept.

    Raises
    ------
    TypeError, ValueError, RecursionError
        If it is not JSON: NaN, a set, or a key that is not a string, which `json` would quietly turn into one.
    """
    text = _to_json(value)
    if isinstance(value, dict | list | tuple):
        _require_string_keys(value)
    return text


def _require_string_keys(value: dict[Any, Any] | list[Any] | tuple[Any, ...]) -> None:
    items: Iterable[Any] = value
    if isinstance(value, dict):
        for key in value:
            if not isinstance(key, str):
                raise TypeError(f"the key {key!r} is not a string")
        items = value.values()
    for item in items:
        if isinstance(item, dict | list | tuple):
            _require_string_keys(item)


class Records(Column[Any]):
    """A column of JSON values (objects, mostly), key order kept; a tuple comes back as a list."""

    __slots__ = ()

    @staticmethod
    def _encode(value: Any) -> bytes:
        return to_json(value).encode()

    @staticmethod
    def _decode(texts: list[str]) -> list[Any]:
        if len(texts) == 1:
            return [_from_json(texts[0])]
        values: list[Any] = _from_json(f"[{','.join(texts)}]")  # one call: several times as fast
        if len(values) != len(texts):
            raise ValueError("an item is not one JSON value")
        return values
