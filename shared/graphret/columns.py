"""Columns of strings and records put together and looked up, without reading an item that is not asked for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from graphret.errors import InvalidInput
from graphret.strings import Column, Records, Strings

C = TypeVar("C", bound="Column[Any]")

_RUNS = 1 << 17
_STRIDE = 16
_HEAD = 32
_WIDEST = 256
_SMALL = 4096
_SHARE = 8
_MANY = 32  # fewer strings are looked up one by one
_WORD = (1 << 64) - 1


def no_strings(n: int) -> Strings:
    """A column of `n` empty strings."""
    return Strings(np.empty(0, dtype=np.uint8), np.zeros(n + 1, dtype=np.int64))


def no_records(n: int) -> Records:
    """A column of `n` empty objects."""
    return Records(np.frombuffer(b"{}" * n, dtype=np.uint8), np.arange(0, 2 * n + 1, 2, dtype=np.int64))


def all_empty(column: Column[Any]) -> bool:
    """Whether a column holds nothing but empty strings, or a column of objects nothing but empty ones."""
    return len(column.blob) == (2 * len(column) if isinstance(column, Records) else 0)


def to_strings(what: str, values: Strings | Iterable[str]) -> Strings:
    """Return a column of strings; an `InvalidInput` names `what` and the row of an item that is none."""
    if isinstance(values, Strings):
        return values
    try:
        return Strings.of(values)
    except InvalidInput as error:
        raise InvalidInput(f"{what}: {error}") from error


def to_records(what: str, values: Records | Sequence[Any]) -> Records:
    """Return a column of objects; an `InvalidInput` names `what` and the row of an item that is not JSON."""
    if isinstance(values, Records):
        return values
    if not any(values):
        return no_records(len(values))
    try:
        return Records.of(value or {} for value in values)
    except InvalidInput as error:
        raise InvalidInput(f"{what}: {error}") from error


def assemble(columns: Sequence[C], order: NDArray[np.int64]) -> C:
    """Return the items of several columns of one kind in a new order; nothing is decoded.

    Parameters
    ----------
    order
        Positions in the columns laid end to end, ``(n,)``; each may come any number of times. Stretches that stay
        together are copied at once.
    """
    kind = type(columns[0])
    if all(map(all_empty, columns)):
        return no_records(len(order)) if isinstance(columns[0], Records) else no_strings(len(order))  # type: ignore[return-value]
    first = np.cumsum([0, *map(len, columns)])
    sizes = np.concatenate([np.diff(column.offsets) for column in columns])[order]
    offsets = np.zeros(len(order) + 1, dtype=np.int64)
    np.cumsum(sizes, out=offsets[1:])
    cut = np.flatnonzero(np.diff(order) != 1) + 1
    which = np.zeros(len(order), dtype=np.int64)
    if len(columns) > 1:
        which = np.searchsorted(first, order, side="right") - 1
        cut = np.union1d(cut, np.flatnonzero(np.diff(which)) + 1)
    begins = np.concatenate([[0], cut]) if len(order) else cut
    ends = np.append(cut, len(order)) if len(order) else cut
    out = np.empty(int(offsets[-1]), dtype=np.uint8)
    views = [memoryview(np.ascontiguousarray(column.blob)) for column in columns]  # type: ignore[arg-type]
    at = 0
    for start in range(0, len(begins), _RUNS):
        chosen, last = begins[start : start + _RUNS], ends[start : start + _RUNS]
        source = which[chosen]
        left, right = order[chosen] - first[source], order[last - 1] - first[source] + 1
        low, high = np.empty(len(chosen), dtype=np.int64), np.empty(len(chosen), dtype=np.int64)
        for i, column in enumerate(columns):
            mine = source == i
            low[mine], high[mine] = column.offsets[left[mine]], column.offsets[right[mine]]
        parts = [views[i][a:b] for i, a, b in zip(source.tolist(), low.tolist(), high.tolist(), strict=True)]
        blob = np.frombuffer(b"".join(parts), dtype=np.uint8)
        out[at : at + len(blob)] = blob
        at += len(blob)
    return kind(out, offsets)


class SortedIds:
    """Finds strings in a sorted column of distinct ones.

    Large columns are searched where they lie, on disk or in memory, after a look at every 16th string; once much was
    asked for beside the length of the column, or where that is small, strings are looked up by their hash instead.
    """

    def __init__(self, ids: Strings) -> None:
        self.ids = ids
        self._blob, self._offsets = memoryview(ids.blob), memoryview(ids.offsets)  # type: ignore[arg-type]
        self._sample: NDArray[np.bytes_] | None = None
        self._hashed: HashedStrings | None = None
        self._asked = 0

    def find(self, wanted: Sequence[str]) -> NDArray[np.int64]:
        """Return the position of each string, -1 for one that is not here, ``(w,)``."""
        self._asked += len(wanted)
        if self._hashed is None and max(self._asked * _SHARE, _SMALL) >= len(self.ids):
            self._hashed = HashedStrings(self.ids)
        if self._hashed is not None:
            return self._hashed.find(wanted)
        asked = _encoded(wanted)
        found = self._at_once(asked)
        left = np.flatnonzero(found < 0)
        places = self._places([asked[i] for i in left.tolist()])
        for i, place in zip(left.tolist(), places.tolist(), strict=True):
            if place < len(self.ids) and self._at(place) == asked[i]:
                found[i] = place
        return found

    def places(self, wanted: Sequence[str]) -> NDArray[np.int64]:
        """Return where each string is or would have to be put in, ``(w,)``."""
        return self._places(_encoded(wanted))

    def _places(self, asked: list[bytes]) -> NDArray[np.int64]:
        low = np.maximum(self._sampled(asked, "left") - 1, 0) * _STRIDE
        high = np.minimum(self._sampled(asked, "right") * _STRIDE, len(self.ids))
        return np.fromiter(map(self._place, asked, low.tolist(), high.tolist()), dtype=np.int64, count=len(asked))

    def _sampled(self, asked: list[bytes], side: Literal["left", "right"]) -> NDArray[np.int64]:
        """How many strings of the sample are lower than each (or as low, on the right) as far as their heads say."""
        if self._sample is None:  # utf-8 sorts as the strings do
            begins, blob = self.ids.offsets[:-1:_STRIDE], self.ids.blob
            sizes = self.ids.offsets[1::_STRIDE] - begins
            columns = np.arange(min(max(sizes.max(initial=1), 1), _HEAD))
            heads = blob.take(begins[:, None] + columns, mode="clip") if len(blob) else np.empty((0, 1), np.uint8)
            heads[columns >= sizes[:, None]] = 0
            self._sample = heads.view(f"S{len(columns)}").ravel()
        return np.searchsorted(self._sample, np.asarray(asked, dtype=self._sample.dtype), side=side)

    def _at_once(self, asked: list[bytes]) -> NDArray[np.int64]:
        """The positions of strings found by bisection of all together, -1 for those that it cannot tell.

        Strings are compared in as many bytes as the longest of those asked for has, which may reach into the string
        that comes next; what was found is then compared in its own length.
        """
        found = np.full(len(asked), -1, dtype=np.int64)
        width = max(map(len, asked), default=0)
        blob, offsets = self.ids.blob, self.ids.offsets
        if len(asked) < _MANY or not 0 < width <= min(_WIDEST, len(blob)):
            return found
        sizes = np.fromiter(map(len, asked), dtype=np.int64, count=len(asked))
        values = np.asarray(asked, dtype=f"S{width}")
        last = len(blob) - width
        windows: NDArray[np.bytes_] = np.ndarray((last + 1,), dtype=values.dtype, buffer=blob.data, strides=(1,))
        block = self._sampled(asked, "right")
        low, high = np.maximum(block - 1, 0) * _STRIDE, np.minimum(block * _STRIDE, len(self.ids))
        for _ in range((_STRIDE - 1).bit_length()):
            middle = (low + high) >> 1
            above = windows[np.minimum(offsets[middle], last)] > values
            low, high = np.where(above, low, middle), np.where(above, middle, high)
        begins = offsets[low]
        there = np.flatnonzero((low < high) & (begins <= last))
        there = there[offsets[low[there] + 1] - begins[there] == sizes[there]]
        read = windows[begins[there]].view(np.uint8).reshape(-1, width)
        same = read == values[there].view(np.uint8).reshape(-1, width)
        there = there[(same | (np.arange(width) >= sizes[there, None])).all(axis=1)]
        found[there] = low[there]
        return found

    def _place(self, value: bytes, low: int, high: int) -> int:
        while low < high:
            middle = (low + high) // 2
            if self._at(middle) < value:
                low = middle + 1
            else:
                high = middle
        return low

    def _at(self, position: int) -> bytes:
        return bytes(self._blob[self._offsets[position] : self._offsets[position + 1]])


def _encoded(wanted: Sequence[str]) -> list[bytes]:
    """Strings as utf-8; what is no string or no text becomes bytes that no utf-8 equals."""
    try:
        return [*map(str.encode, wanted)]
    except (TypeError, UnicodeEncodeError):
        return [str.encode(value, errors="surrogatepass") if isinstance(value, str) else b"\xff" for value in wanted]


class HashedStrings:
    """Finds strings in a column of distinct ones by their hash.

    A dictionary would do, but at a hundred thousand strings each of its lookups waits for memory several times over.
    Here hashes and positions are arrays in the order of the hashes, about 20 bytes a string, and a batch is looked up
    in all of them at once. What is found is compared with what was asked for byte by byte.
    """

    def __init__(self, strings: Strings) -> None:
        self.strings = strings
        n = len(strings)
        self._shift = 64 - (2 * n + 1).bit_length()
        hashes = np.fromiter(map(hash, strings), dtype=np.int64, count=n).view(np.uint64)
        order = np.argsort(hashes)
        self._hashes, self._positions = hashes[order], order.astype(np.int32)
        # Where the hashes begin that share their first bits; there are at least twice as many such groups as strings.
        sizes = np.bincount(self._groups(hashes), minlength=1 << (64 - self._shift))
        self._starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
        arrays = self._starts, self._hashes, self._positions, strings.offsets, strings.blob
        self._views: tuple[memoryview, ...] = tuple(map(memoryview, arrays))  # type: ignore[arg-type]

    def find(self, wanted: Sequence[str]) -> NDArray[np.int64]:
        """Return the position of each string, -1 for one that is not here, ``(w,)``."""
        if len(wanted) >= _MANY and len(self._hashes):
            found = self._by_hash(wanted)
            if self._are_at(found, wanted):
                return found
        return np.fromiter(map(self._one, wanted), dtype=np.int64, count=len(wanted))

    def _groups(self, hashes: NDArray[np.uint64]) -> NDArray[np.int64]:
        return (hashes >> np.uint64(self._shift)).view(np.int64)

    def _by_hash(self, wanted: Sequence[str]) -> NDArray[np.int64]:
        """The position of a string of the same hash for each, -1 where there is none."""
        hashes = np.fromiter(map(hash, wanted), dtype=np.int64, count=len(wanted)).view(np.uint64)
        groups = self._groups(hashes)
        at, ends = self._starts[groups], self._starts[groups + 1]
        same = self._hashes.take(at, mode="clip") == hashes  # no other group holds that hash
        found = np.where(same, self._positions.take(at, mode="clip"), np.int64(-1))
        left = np.flatnonzero(~same & (at + 1 < ends))
        while len(left):
            at[left] += 1
            here = at[left]
            same = self._hashes[here] == hashes[left]
            found[left[same]] = self._positions[here[same]]
            left = left[~same & (here + 1 < ends[left])]
        return found

    def _are_at(self, found: NDArray[np.int64], wanted: Sequence[str]) -> bool:
        """Whether the strings at the positions found are those that were asked for."""
        there = np.flatnonzero(found >= 0)
        chosen = wanted if len(there) == len(wanted) else [wanted[i] for i in there.tolist()]
        try:
            text = "".join(chosen)
            said = text.encode()
        except (TypeError, UnicodeEncodeError):  # no string, or no text
            return False
        lengths = map(len, chosen if text.isascii() else map(str.encode, chosen))
        sizes = np.fromiter(lengths, dtype=np.int64, count=len(chosen))
        at = found[there]
        begins = self.strings.offsets[at]
        if not np.array_equal(self.strings.offsets[at + 1] - begins, sizes):
            return False
        blob, width = self.strings.blob, int(sizes.max(initial=0))
        if 0 < width <= _WIDEST and (sizes == width).all():  # all of one width are read as items of it
            windows = np.ndarray((len(blob) - width + 1,), dtype=f"S{width}", buffer=blob.data, strides=(1,))
            return bool(windows[begins].tobytes() == said)
        bytes_at = np.repeat(begins - (np.cumsum(sizes) - sizes), sizes)
        bytes_at += np.arange(len(said))
        return bool(blob[bytes_at].tobytes() == said)

    def _one(self, wanted: str) -> int:
        starts, hashes, positions, offsets, blob = self._views
        own = hash(wanted) & _WORD
        group = own >> self._shift
        for i in range(starts[group], starts[group + 1]):
            if hashes[i] == own:
                position = positions[i]
                if str(blob[offsets[position] : offsets[position + 1]], "utf-8") == wanted:
                    return int(position)
        return -1


def fewest_sets(
    codes: NDArray[np.int32], label_sets: Sequence[tuple[str, ...]]
) -> tuple[NDArray[np.int32], list[tuple[str, ...]]]:
    """Leave out sets of labels that no node has and sort the others, so that the same nodes have the same columns."""
    used = np.bincount(codes, minlength=len(label_sets)) > 0
    kept = sorted({labels for labels, there in zip(label_sets, used.tolist(), strict=True) if there})
    rank = {labels: i for i, labels in enumerate(kept)}
    new = np.asarray([rank.get(labels, -1) for labels in label_sets], dtype=np.int32)
    return new[codes], kept
