"""`Postings`: which lists hold a code, over lists that change."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from graphret.lists import Lists, ends_of
from graphret.numeric import gathered, unique
from graphret.splice import Splice
from graphret.storage import Bundle, Parts

# Where more than one list in so many came since the index was made, it is made anew.
_FEW = 8


class Occurrences(NamedTuple):
    """How often lists hold some codes, code by code.

    Parameters
    ----------
    owners, times
        The lists that hold a code, ascending, and how often each does.
    starts
        Where those of each code begin, ``(c + 1,)``.
    """

    owners: NDArray[np.int32]
    times: NDArray[np.int32]
    starts: NDArray[np.int64]

    @property
    def codes(self) -> NDArray[np.int64]:
        """The place of each owner's code among those that were asked for."""
        return np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))


@dataclass(frozen=True, eq=False)
class Postings:
    """An inverted index of lists as they once were, and what became of these since.

    It is never changed once made. The lists that came later are few, and looked through
    themselves.

    Parameters
    ----------
    indexed
        The occurrences of all codes, lists being numbered as they were when the index
        was made.
    now
        Where each of these lists is now, -1 where it is gone or altered.
    later
        Where the lists are that came since, ascending.
    """

    indexed: Occurrences
    now: NDArray[np.int32]
    later: NDArray[np.int64]

    @classmethod
    def of(cls, lists: Lists[np.int32]) -> Postings:
        """Index lists."""
        codes, starts = lists.pack()
        n_lists, width = len(lists), int(codes.max(initial=-1)) + 1
        ones = np.ones(len(codes), np.int32)
        by_list = sp.csr_array((ones, codes, starts), shape=(n_lists, width))
        by_code = by_list.tocsc()
        by_code.sum_duplicates()
        owners, begins = by_code.indices.astype(np.int32, copy=False), by_code.indptr
        indexed = Occurrences(owners, by_code.data, begins.astype(np.int64))
        now = np.arange(n_lists, dtype=np.int32)
        return cls(indexed, now, np.zeros(0, np.int64))

    def parts(self, lists: Lists[np.int32]) -> Parts:
        """The postings of the lists as they are now, as they are saved."""
        is_whole = len(self.now) == len(lists) and not len(self.later)
        whole = self if is_whole else Postings.of(lists)
        return Parts(whole.indexed._asdict())

    @classmethod
    def from_bundle(cls, bundle: Bundle, n_lists: int) -> Postings:
        """Open saved postings; they stay on disk until they are read."""
        indexed = Occurrences(*(bundle.arrays[name] for name in Occurrences._fields))
        now = np.arange(n_lists, dtype=np.int32)
        return cls(indexed, now, np.zeros(0, np.int64))

    def changed(self, splice: Splice) -> Postings | None:
        """Return the postings of the lists after a splice, or `None`.

        A splice puts the lists in a new order, with others among them; `None` says that
        too many of them are not indexed by now.
        """
        moved = np.append(splice.moved, np.int32(-1))  # what is gone stays so
        later = unique(splice.others, moved[self.later])
        later = later[later >= 0]
        if len(later) * _FEW > len(splice.order):
            return None
        return replace(self, now=gathered(moved, self.now), later=later)

    def count(self, code: int) -> int:
        """How many of the lists as they once were held a code."""
        starts = self.indexed.starts
        return 0 if code + 1 >= len(starts) else int(starts[code + 1] - starts[code])

    def occurrences(
        self, codes: NDArray[np.int64], lists: Lists[np.int32]
    ) -> Occurrences:
        """Return how often the lists as they are now hold each of some distinct codes.

        A common code has very many owners, and few of them came later: they are put in
        among the others.
        """
        indexed, later = self._of_indexed(codes), self._of_later(codes, lists)
        owners, times, starts = indexed
        if not len(later.owners):
            return indexed
        at = np.empty(len(later.owners), np.int64)
        for code in np.flatnonzero(np.diff(later.starts)).tolist():
            here, held = (
                slice(one[code], one[code + 1]) for one in (later.starts, starts)
            )
            at[here] = held.start + np.searchsorted(owners[held], later.owners[here])
        return Occurrences(
            np.insert(owners, at, later.owners),
            np.insert(times, at, later.times),
            starts + later.starts,
        )

    def _of_indexed(self, codes: NDArray[np.int64]) -> Occurrences:
        """Return the occurrences of some codes in the lists that are indexed."""
        all_starts = self.indexed.starts
        known = np.flatnonzero(codes < len(all_starts) - 1)
        (owners, starts), (times, _) = (
            Lists.packed(column, all_starts).take(codes[known]).pack()
            for column in (self.indexed.owners, self.indexed.times)
        )
        lengths = np.zeros(len(codes), np.int64)
        lengths[known] = np.diff(starts)
        found = Occurrences(gathered(self.now, owners), times, ends_of(lengths))
        stay = found.owners >= 0
        if stay.all():
            return found
        lengths -= np.bincount(found.codes[~stay], minlength=len(codes))
        return Occurrences(found.owners[stay], times[stay], ends_of(lengths))

    def _of_later(
        self, codes: NDArray[np.int64], lists: Lists[np.int32]
    ) -> Occurrences:
        """Return the occurrences of some codes in the lists that came since."""
        said, starts = lists.take(self.later).pack()
        owners = np.repeat(self.later, np.diff(starts))
        order = np.argsort(codes)
        at = np.searchsorted(codes, said, sorter=order)
        near = np.flatnonzero(at < len(codes))
        which = order[at[near]]
        there = codes[which] == said[near]
        which, owners = which[there], owners[near[there]]
        n_lists = len(lists)
        pairs, times = np.unique(which * n_lists + owners, return_counts=True)
        which, owners = np.divmod(pairs, max(n_lists, 1))
        return Occurrences(
            owners.astype(np.int32),
            times.astype(np.int32),
            ends_of(np.bincount(which, minlength=len(codes))),
        )
