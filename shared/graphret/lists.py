"""`Lists`: lists of numbers over one array, which may grow behind all of them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from threading import Lock
from typing import Any, Generic, Self, TypeAlias, TypeVar

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

T = TypeVar("T", bound=np.generic)

#: The number of the span of each list: all in turn, or a choice.
Rows: TypeAlias = "range | NDArray[np.int32]"

# Runs of fewer numbers, on the average, are not copied as such; of scattered lists so
# many numbers are copied at once.
_LEAST_RUN, _BLOCK = 100, 1 << 20
# How much more room an array that grows takes, a part of its length; and how many times
# as many numbers, or spans, as are read there may be before lists are packed.
_ROOM, _MOST_DEAD = 8, 2


class Growing(Generic[T]):
    """An array that only ever grows: what stands somewhere stays there.

    The lists of several states share it, as each reads its own part alone.
    """

    def __init__(self, data: NDArray[T]) -> None:
        self.data, self.length, self.length_at_first = data, len(data), len(data)
        self._growing = Lock()

    def append(self, data: NDArray[T]) -> int:
        """Write rows behind all others, and return where they begin."""
        with self._growing:
            begin, end = self.length, self.length + len(data)
            if begin == end:
                return begin
            if end > len(self.data):
                shape = end + end // _ROOM, *self.data.shape[1:]
                larger = np.empty(shape, self.data.dtype)
                larger[:begin] = self.data[:begin]
                self.data = larger
            self.data[begin:end] = data
            self.length = end
        return begin


class Lists(Generic[T]):
    """Lists of numbers: these, and where each list stands in them.

    A slice, and a choice of lists, read the same numbers. After a change the lists that
    came stand behind all others, wherever they belong: no other is copied.

    Parameters
    ----------
    numbers
        The numbers.
    spans
        Where lists begin and end in them, ``(s, 2)``.
    rows
        Which of the spans are the lists, ``(n,)``. Lists that change together have the
        same ones.
    """

    def __init__(
        self, numbers: Growing[T], spans: Growing[np.int64], rows: Rows
    ) -> None:
        self.numbers, self.spans, self.rows = numbers, spans, rows

    def __reduce__(self) -> Any:
        return type(self).packed, self.pack()

    @classmethod
    def packed(cls, data: NDArray[T], offsets: NDArray[np.int64]) -> Self:
        """Return lists that stand end to end: where each begins, ``(n + 1,)``."""
        return cls(Growing(data), Growing(_between(offsets)), range(len(offsets) - 1))

    @classmethod
    def sharing(cls, several: Sequence[Self]) -> list[Self]:
        """Return the same lists as readers of the same numbers.

        They are those of the first that has any, behind which all others are written.
        """
        first = next((lists for lists in several if len(lists)), several[0])
        base = cls.packed(*first.pack()) if first._is_worn() else first
        return [base if lists is first else lists._behind(base) for lists in several]

    def _is_worn(self) -> bool:
        """Whether so many numbers or spans are read no more that packing is due."""
        numbers = self.numbers
        return (
            numbers.length > _MOST_DEAD * numbers.length_at_first
            or self.spans.length > _MOST_DEAD * len(self)
        )

    def _behind(self, base: Self) -> Self:
        """Return the lists as readers of the numbers of others, written behind them."""
        if self.spans is base.spans:
            return self
        data, offsets = self.pack()
        offsets = offsets + base.numbers.append(data)
        first = base.spans.append(_between(offsets))
        rows = range(first, first + len(self))
        return type(self)(base.numbers, base.spans, rows)

    @classmethod
    def concat(cls, several: Sequence[Self]) -> Self:
        """Lay lists end to end."""
        alike = cls.sharing(several)
        rows = joined_rows([lists.rows for lists in alike])
        return cls(alike[0].numbers, alike[0].spans, rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, places: slice) -> Self:
        rows = self.rows[places]
        if isinstance(rows, range) and rows.step != 1:
            rows = np.asarray(rows, np.int32)
        return type(self)(self.numbers, self.spans, rows)

    def standing(self) -> NDArray[np.int64]:
        """Return where each list begins and ends, ``(n, 2)``."""
        spans, rows = self.spans.data, self.rows
        if isinstance(rows, range):
            return spans[rows.start : rows.stop]
        return spans[rows]

    @property
    def lengths(self) -> NDArray[np.int64]:
        """How many numbers each list has, ``(n,)``."""
        begins, ends = self.standing().T
        lengths: NDArray[np.int64] = ends - begins
        return lengths

    def take(self, positions: NDArray[np.int64]) -> Self:
        """Return the lists at `positions`.

        An IndexError says that one is out of range.
        """
        if len(positions) and not 0 <= positions.min() <= positions.max() < len(self):
            raise IndexError(f"a position is out of range: there are {len(self)} lists")
        rows = self.rows
        if isinstance(rows, range):
            chosen = (positions + rows.start).astype(np.int32)
        else:
            chosen = rows[positions]
        return type(self)(self.numbers, self.spans, chosen)

    def pack(self) -> tuple[NDArray[T], NDArray[np.int64]]:
        """Return the numbers of the lists end to end, and where each list begins.

        Nothing is copied where they stand so already.
        """
        begins, ends = self.standing().T
        offsets, data = ends_of(ends - begins), self.numbers.data
        firsts = np.append(0, np.flatnonzero(begins[1:] != ends[:-1]) + 1)
        if not len(self):
            return data[:0], offsets
        if len(firsts) == 1:
            return data[begins[0] : ends[-1]], offsets
        if len(firsts) * _LEAST_RUN < offsets[-1]:
            lasts = np.append(firsts[1:], len(self)) - 1
            runs = zip(begins[firsts].tolist(), ends[lasts].tolist(), strict=True)
            return np.concatenate([data[begin:end] for begin, end in runs]), offsets
        return _gathered(data, begins, offsets), offsets


def _gathered(
    data: NDArray[T], begins: NDArray[np.int64], offsets: NDArray[np.int64]
) -> NDArray[T]:
    """Return the numbers of scattered lists end to end, where `offsets` says."""
    gathered = np.empty(offsets[-1], data.dtype)
    shifts, first = begins - offsets[:-1], 0
    while first < len(begins):
        # Blocks of so many numbers, as the place of each takes eight bytes.
        within = np.searchsorted(offsets, offsets[first] + _BLOCK, side="right")
        last = max(first + 1, int(within) - 1)
        places = np.arange(offsets[first], offsets[last])
        places += np.repeat(shifts[first:last], np.diff(offsets[first : last + 1]))
        gathered[offsets[first] : offsets[last]] = data[places]
        first = last
    return gathered


def _between(offsets: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return where lists begin and end that stand end to end, ``(n, 2)``: a view."""
    ends = np.asarray(offsets, np.int64)
    shape, strides = (len(ends) - 1, 2), ends.strides * 2
    return as_strided(ends, shape, strides, writeable=False)


def joined_rows(several: Sequence[Rows]) -> Rows:
    """Lay rows end to end; those that follow on each other stay a range."""
    filled = [rows for rows in several if len(rows)]
    ranges = [rows for rows in filled if isinstance(rows, range)]
    if len(ranges) == len(filled) and all(
        before.stop == rows.start for before, rows in pairwise(ranges)
    ):
        return range(ranges[0].start, ranges[-1].stop) if ranges else range(0)
    return np.concatenate([numbered(rows) for rows in filled])


def numbered(rows: Rows) -> NDArray[np.int32]:
    """Return rows as an array."""
    if isinstance(rows, range):
        return np.arange(rows.start, rows.stop, dtype=np.int32)
    return rows


def ends_of(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where things of some lengths begin, laid end to end, and the last ends."""
    ends = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=ends[1:])
    return ends
