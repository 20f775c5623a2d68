"""Values as numbers, and a list of such numbers for each node of a table."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from graphret.change import Change
from graphret.columns import TextArray
from graphret.lists import Lists
from graphret.numeric import padded
from graphret.storage import Bundle, Parts
from graphret.text_index import TextIndex

T = TypeVar("T")


class Codes:
    """Numbers for strings, in the order in which they come.

    It only ever grows, so that the states of a graph share one: none reads the numbers
    that came after it. Strings that were packed or saved are in arrays, in memory or on
    disk, and found there.
    """

    def __init__(
        self, values: Iterable[str] = (), saved: TextIndex | None = None
    ) -> None:
        self._saved = TextIndex.of(TextArray.of([])) if saved is None else saved
        self._values = list(values)  # those that came since
        self._code = _Numbered(self._saved, self._values)
        self._texts = self._saved.texts

    def __len__(self) -> int:
        return len(self._saved) + len(self._values)

    def of(self, value: str) -> int:
        """Return the number of a value, a new one where it has none yet."""
        return self._code[value]

    def of_each(self, values: Iterable[str]) -> list[int]:
        """Return the numbers of several values, new ones where they have none yet."""
        return [*map(self._code.__getitem__, values)]

    def find(self, values: Iterable[str]) -> NDArray[np.int64]:
        """Return the numbers of those of the values that have one."""
        known = map(self._code.find, values)
        return np.asarray([code for code in known if code >= 0], dtype=np.int64)

    def __getitem__(self, code: int) -> str:
        """Return what a number stands for."""
        n_saved = len(self._saved)
        if code >= n_saved:
            return self._values[code - n_saved]
        return self._saved.texts.encoded(code).decode()

    def at(self, codes: Sequence[int] | NDArray[np.integer[Any]]) -> list[str]:
        """Return what some numbers stand for."""
        wanted, n_saved = np.asarray(codes, np.int64), len(self._saved)
        if not n_saved:
            return [self._values[code] for code in wanted.tolist()]
        is_saved = wanted < n_saved
        saved = iter(self._saved.texts.take(wanted[is_saved]).tolist())
        return [
            next(saved) if code < n_saved else self._values[code - n_saved]
            for code in wanted.tolist()
        ]

    def texts(self) -> TextArray:
        """Return what each number stands for."""
        if len(self._texts) < len(self):
            n_new = len(self) - len(self._texts)
            new = TextArray.of_strings(self._values[-n_new:])
            self._texts = TextArray.concat([self._texts, new])
        return self._texts

    def packed(self) -> Codes:
        """Return the same numbers, in arrays where more came than are in these.

        There a string takes a fifth of the memory.
        """
        if len(self._values) <= len(self._saved):
            return self
        return Codes(saved=TextIndex.of(self.texts()))

    def parts(self) -> Parts:
        """The strings as they are saved."""
        is_saved = not self._values
        return (self._saved if is_saved else TextIndex.of(self.texts())).parts()

    @classmethod
    def from_bundle(cls, bundle: Bundle) -> Codes:
        """Open saved strings."""
        return cls(saved=TextIndex.from_bundle(bundle))


class _Numbered(dict[str, int]):
    """The numbers of values; one that is asked for and has none is put behind them."""

    def __init__(self, saved: TextIndex, values: list[str]) -> None:
        super().__init__((value, code) for code, value in enumerate(values))
        self._saved, self._values = saved, values
        self._n_saved = len(saved)

    def __missing__(self, value: str) -> int:
        code = self._saved.find(value) if self._n_saved else -1
        if code < 0:
            code = self._n_saved + len(self._values)
            self._values.append(value)
        self[value] = code
        return code

    def find(self, value: str) -> int:
        """Return the number of a value, -1 where it has none."""
        code = self.get(value)
        return self._saved.find(value) if code is None else code


class CodeLists(Lists[np.int32]):
    """A list of numbers for each node."""

    @classmethod
    def of(cls, several: Iterable[Sequence[int]]) -> CodeLists:
        """Put lists of numbers together."""
        return cls.read(several, iter)[0]

    @classmethod
    def read(
        cls, items: Iterable[T], *readers: Callable[[T], Iterable[int]]
    ) -> list[CodeLists]:
        """Return the numbers that each reader finds in every item.

        The items are gone through once.
        """
        made = [(array("i"), array("q", [0])) for _ in readers]
        for item in items:
            for read, (codes, starts) in zip(readers, made, strict=True):
                codes.extend(read(item))
                starts.append(len(codes))
        return [
            cls.packed(np.asarray(codes, np.int32), np.asarray(starts, np.int64))
            for codes, starts in made
        ]

    def parts(self) -> Parts:
        """The lists as they are saved."""
        codes, starts = self.pack()
        return Parts({"starts": starts, "codes": codes})

    @classmethod
    def from_bundle(cls, bundle: Bundle) -> CodeLists:
        """Open saved lists; they stay on disk until they are read."""
        return cls.packed(bundle.arrays["codes"], bundle.arrays["starts"])

    @cached_property
    def codes(self) -> NDArray[np.int32]:
        """The numbers of all nodes, in turn, ``(m,)``."""
        return self.pack()[0]

    @cached_property
    def owners(self) -> NDArray[np.int32]:
        """The node of each number, ``(m,)``."""
        return np.repeat(np.arange(len(self), dtype=np.int32), self.lengths)

    def at(self, positions: NDArray[np.int64]) -> NDArray[np.int32]:
        """Return the numbers of nodes, one node's after the other's."""
        return self.take(positions).pack()[0]

    def changed(self, change: Change, made: CodeLists) -> CodeLists:
        """Return the lists after a change, `made` being those of its fresh nodes."""
        return change.splice.of_lists(self, made)


def counted(codes: NDArray[np.integer[Any]], n: int) -> NDArray[np.int32]:
    """Return how often each number up to `n` occurs, ``(n,)``."""
    return np.bincount(codes, minlength=n).astype(np.int32)


def recounted(
    counts: NDArray[np.int32],
    came: NDArray[np.integer[Any]],
    went: NDArray[np.integer[Any]],
    n: int,
) -> NDArray[np.int32]:
    """Return how often each number up to `n` occurs after some came and some went."""
    after = padded(counts, n, 0)
    np.add.at(after, came, 1)
    np.subtract.at(after, went, 1)
    return after
