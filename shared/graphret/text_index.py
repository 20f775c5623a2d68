"""`TextIndex`: where each of many distinct texts is in an array, found in place."""

from __future__ import annotations

from collections.abc import (
    Callable,
    ItemsView,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Any, TypeVar
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from graphret.columns import TextArray
from graphret.lists import ends_of
from graphret.storage import Bundle, Parts

V = TypeVar("V")

_FOUND_KEPT, _LISTS_KEPT = 1 << 14, 1 << 16


class TextIndex(Mapping[str, int]):
    """The position of each of distinct texts.

    It is a hash table of arrays, so that an opened one reads what is asked for and
    nothing else.

    Parameters
    ----------
    texts
        The texts.
    starts, order
        Where the texts of each bucket begin in `order`, the positions of all by their
        bucket, ``(n,)``. The bucket of a text is the end of its checksum.
    """

    def __init__(
        self, texts: TextArray, starts: NDArray[np.int32], order: NDArray[np.int32]
    ) -> None:
        self.texts, self.starts, self.order = texts, starts, order

    def __reduce__(self) -> Any:
        return TextIndex, (self.texts, self.starts, self.order)

    @classmethod
    def of(cls, texts: TextArray) -> TextIndex:
        """Index texts of which no two are equal."""
        packed, offsets = texts.pack()
        data, n_texts = packed.tobytes(), len(texts)
        n_buckets = 1 << max(n_texts.bit_length() - 1, 0)
        checksums = (
            crc32(data[begin:end]) for begin, end in pairwise(offsets.tolist())
        )
        buckets = np.fromiter(checksums, np.int64, n_texts) & (n_buckets - 1)
        order = np.argsort(buckets, kind="stable")
        starts = ends_of(np.bincount(buckets, minlength=n_buckets))
        texts = TextArray.packed(packed, offsets)
        return cls(texts, starts.astype(np.int32), order.astype(np.int32))

    def parts(self) -> Parts:
        """The index as it is saved, with its texts."""
        parts = Parts({"starts": self.starts, "order": self.order})
        parts.add_texts("texts", self.texts)
        return parts

    @classmethod
    def from_bundle(cls, bundle: Bundle) -> TextIndex:
        """Open a saved index; it stays on disk until it is read."""
        arrays = bundle.arrays
        return cls(bundle.texts("texts"), arrays["starts"], arrays["order"])

    @cached_property
    def _buffers(self) -> tuple[memoryview, ...]:
        """The arrays, as what single items are read from soonest."""
        data, offsets = self.texts.pack()
        arrays: tuple[NDArray[Any], ...] = self.starts, self.order, offsets, data
        return tuple(np.ascontiguousarray(array).data for array in arrays)

    def find(self, text: str) -> int:
        """Return the position of a text, -1 where it is none of them."""
        if not len(self.order):
            return -1
        starts, order, offsets, data = self._buffers
        sought = text.encode()
        bucket = crc32(sought) & (len(starts) - 2)
        first, last, length = starts[bucket], starts[bucket + 1], len(sought)
        if first == last:  # a third of the buckets, soonest told so
            return -1
        for at in order[first:last]:
            begin = offsets[at]
            is_long = offsets[at + 1] - begin == length
            if is_long and data[begin : begin + length] == sought:
                return int(at)
        return -1

    def get(self, key: str, default: Any = None) -> Any:
        """Return the position of a text, or else the default."""
        at = self.find(key)
        return default if at < 0 else at

    def __getitem__(self, text: str) -> int:
        if (at := self.find(text)) < 0:
            raise KeyError(text)
        return at

    def __iter__(self) -> Iterator[str]:
        return iter(self.texts.tolist())

    def __len__(self) -> int:
        return len(self.texts)

    def items(self) -> ItemsView[str, int]:
        """Return all texts with their positions."""
        return {text: at for at, text in enumerate(self)}.items()


class SavedLists(Mapping[str, tuple[V, ...]]):
    """A table of lists by text that was saved; an entry is read when it is asked for.

    Parameters
    ----------
    keys, starts
        The keys, and where the list of each begins, ``(n + 1,)``.
    read
        Returns what stands from one place to another in the lists laid end to end.
    """

    def __init__(
        self,
        keys: TextIndex,
        starts: NDArray[np.int64],
        read: Callable[[slice], Sequence[V]],
    ) -> None:
        self._keys, self._starts, self._read = keys, starts, read

        def read_list(at: int) -> tuple[V, ...]:
            return tuple(read(slice(*starts[at : at + 2].tolist())))

        # texts say some keys over and over
        self._find = lru_cache(_FOUND_KEPT)(keys.find)
        self._list = lru_cache(_LISTS_KEPT)(read_list)

    def __getitem__(self, key: str) -> tuple[V, ...]:
        return self._list(self._keys[key])

    def get(self, key: str, default: Any = None) -> Any:
        """Return the list of a key, or else the default."""
        at = self._find(key)
        return default if at < 0 else self._list(at)

    def count(self, key: str) -> int:
        """Return how long the list of a key is, 0 where there is none, unread."""
        at = self._find(key)
        return 0 if at < 0 else int(self._starts[at + 1] - self._starts[at])

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __len__(self) -> int:
        return len(self._keys)

    def items(self) -> ItemsView[str, tuple[V, ...]]:
        """Return all entries, read at once."""
        values = self._read(slice(0, int(self._starts[-1])))
        places = pairwise(self._starts.tolist())
        return {
            key: tuple(values[begin:end])
            for key, (begin, end) in zip(self._keys, places, strict=True)
        }.items()


def starts_of(lists: Iterable[Sequence[Any]]) -> NDArray[np.int64]:
    """Return where each of several lists begins, laid end to end, and the last ends."""
    return ends_of(np.fromiter(map(len, lists), np.int64))
