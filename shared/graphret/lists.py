"""`Lists`: lists of numbers over one array, which may grow behind all of them."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from typing import Any, Generic, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T", bound=np.generic)

# Shorter runs of lists are not copied as such; of scattered ones so many numbers are
# copied at once.
_LEAST_RUN, _BLOCK = 16, 1 << 20
# How much more room numbers that grow take, a part of their length; and how many times
# as many numbers as are read there may be before they are packed.
_ROOM, _MOST_DEAD = 8, 2


class Growing(Generic[T]):
    """Numbers that only ever grow: what stands somewhere stays there.

    The lists of several states share them, as each reads its own alone.
    """

    def __init__(self, data: NDArray[T]) -> None:
        self.data, self.length = data, len(data)
        self._growing = Lock()

    def append(self, data: NDArray[T]) -> int:
        """Write numbers behind all others, and return where they begin."""
        with self._growing:
            begin, end = self.length, self.length + len(data)
            if begin == end:
                return begin
            if end > len(self.data):
                larger = np.empty(end + end // _ROOM, self.data.dtype)
                larger[:begin] = self.data[:begin]
                self.data = larger
            self.data[begin:end] = data
            self.length = end
        return begin


class Lists(Generic[T]):
    """Lists of numbers: these, and where each list begins and ends in them, ``(n,)``.

    A slice, and a choice of lists, read the same numbers. After a change the lists that
    came stand behind all others, wherever they belong: no other is copied.
    """

    def __init__(
        self, shared: Growing[T], begins: NDArray[np.int64], ends: NDArray[np.int64]
    ) -> None:
        self.shared, self.begins, self.ends = shared, begins, ends

    def __reduce__(self) -> Any:
        return type(self).packed, self.pack()

    @classmethod
    def packed(cls, data: NDArray[T], offsets: NDArray[np.int64]) -> Self:
        """Return lists that stand end to end: where each begins, ``(n + 1,)``."""
        return cls(Growing(data), offsets[:-1], offsets[1:])

    @classmethod
    def sharing(cls, several: Sequence[Self]) -> list[Self]:
        """Return the same lists as readers of the same numbers.

        They are those of the first lists, to which those of the others are appended.
        """
        first = several[0]
        n_read = int(first.ends.sum() - first.begins.sum())
        if n_read * _MOST_DEAD < first.shared.length:
            first = cls.packed(*first.pack())
        alike = [first]
        for lists in several[1:]:
            if lists.shared is not first.shared:
                data, offsets = lists.pack()
                offsets = offsets + first.shared.append(data)
                lists = cls(first.shared, offsets[:-1], offsets[1:])
            alike.append(lists)
        return alike

    @classmethod
    def concat(cls, several: Sequence[Self]) -> Self:
        """Lay lists end to end."""
        alike = cls.sharing(several)
        begins, ends = (
            np.concatenate([getattr(lists, name) for lists in alike])
            for name in ("begins", "ends")
        )
        return cls(alike[0].shared, begins, ends)

    def __len__(self) -> int:
        return len(self.begins)

    def __getitem__(self, places: slice) -> Self:
        return type(self)(self.shared, self.begins[places], self.ends[places])

    @property
    def lengths(self) -> NDArray[np.int64]:
        """How many numbers each list has, ``(n,)``."""
        return self.ends - self.begins

    def take(self, positions: NDArray[np.int64]) -> Self:
        """Return the lists at `positions`.

        An IndexError says that one is out of range.
        """
        if len(positions) and positions.min() < 0:
            raise IndexError(f"position {positions.min()} is out of range")
        return type(self)(self.shared, self.begins[positions], self.ends[positions])

    def pack(self) -> tuple[NDArray[T], NDArray[np.int64]]:
        """Return the numbers of the lists end to end, and where each list begins.

        Nothing is copied where they stand so already.
        """
        begins, ends = self.begins, self.ends
        offsets, data = ends_of(self.lengths), self.shared.data
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

    def _gathered(self, offsets: NDArray[np.int64]) -> NDArray[T]:
        """Return the numbers of scattered lists, given where they are to begin."""
        data = self.shared.data
        gathered = np.empty(offsets[-1], data.dtype)
        shifts, first = self.begins - offsets[:-1], 0
        while first < len(self):
            # Blocks of so many numbers, as the place of each takes eight bytes.
            within = np.searchsorted(offsets, offsets[first] + _BLOCK, side="right")
            last = max(first + 1, int(within) - 1)
            places = np.arange(offsets[first], offsets[last])
            places += np.repeat(shifts[first:last], np.diff(offsets[first : last + 1]))
            gathered[offsets[first] : offsets[last]] = data[places]
            first = last
        return gathered


def ends_of(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where things of some lengths begin, laid end to end, and the last ends."""
    ends = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=ends[1:])
    return ends
