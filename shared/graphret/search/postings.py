"""`Postings`: which lists hold a code, over lists that change."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from graphret.lists import Lists
from graphret.numeric import gathered, ranges, unique
from graphret.splice import Splice
from graphret.storage import Bundle, Parts

# Where more than one list in so many came since the index was made, it is made anew.
_FEW = 8


@dataclass(frozen=True, eq=False)
class Postings:
    """An inverted index of lists as they once were, and what became of these since.

    It is never changed once made. The lists that came later are few, and looked through
    themselves.

    Parameters
    ----------
    starts, owners
        Where the occurrences of each code begin, and the list of each, ascending, as
        they were numbered when the index was made.
    now
        Where each of these lists is now, -1 where it is gone or altered.
    later
        Where the lists are that came since, ascending.
    """

    starts: NDArray[np.int64]
    owners: NDArray[np.int32]
    now: NDArray[np.int32]
    later: NDArray[np.int64]

    @classmethod
    def of(cls, lists: Lists[np.int32]) -> Postings:
        """Index lists."""
        codes, starts = lists.pack()
        n_lists, width = len(lists), int(codes.max(initial=-1)) + 1
        ones = np.ones(len(codes), np.int8)
        by_list = sp.csr_array((ones, codes, starts), shape=(n_lists, width))
        by_code = by_list.tocsc()
        now = np.arange(n_lists, dtype=np.int32)
        owners = by_code.indices.astype(np.int32)
        return cls(by_code.indptr, owners, now, np.zeros(0, np.int64))

    def parts(self, lists: Lists[np.int32]) -> Parts:
        """The postings of the lists as they are now, as they are saved."""
        is_whole = len(self.now) == len(lists) and not len(self.later)
        whole = self if is_whole else Postings.of(lists)
        return Parts({"starts": whole.starts, "owners": whole.owners})

    @classmethod
    def from_bundle(cls, bundle: Bundle, n_lists: int) -> Postings:
        """Open saved postings; they stay on disk until they are read."""
        now = np.arange(n_lists, dtype=np.int32)
        starts, owners = bundle.arrays["starts"], bundle.arrays["owners"]
        return cls(starts, owners, now, np.zeros(0, np.int64))

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
        """How often a code occurred in the lists as they once were."""
        if code + 1 >= len(self.starts):
            return 0
        return int(self.starts[code + 1] - self.starts[code])

    def occurrences(
        self, codes: NDArray[np.int64], lists: Lists[np.int32]
    ) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Return every occurrence of some distinct codes in the lists as they are now.

        An occurrence is a list and the number of the code in `codes`, by which the
        occurrences are sorted.
        """
        indexed = np.flatnonzero(codes + 1 < len(self.starts))
        at = codes[indexed]
        owners = self.now[self.owners[ranges(self.starts, at)]]
        which = np.repeat(indexed, self.starts[at + 1] - self.starts[at])
        if (owners < 0).any():
            owners, which = owners[owners >= 0], which[owners >= 0]
        if not len(self.later) or not len(codes):
            return owners, which
        later_owners, later_which = self._in_later(codes, lists)
        owners = np.concatenate([owners, later_owners])
        which = np.concatenate([which, later_which])
        order = np.argsort(which, kind="stable")  # soon done, as it is two runs
        return owners[order], which[order]

    def _in_later(
        self, codes: NDArray[np.int64], lists: Lists[np.int32]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the occurrences of some codes in the lists that came since."""
        said, starts = lists.take(self.later).pack()
        owners = np.repeat(self.later, np.diff(starts))
        order = np.argsort(codes)
        at = np.minimum(np.searchsorted(codes, said, sorter=order), len(codes) - 1)
        which = order[at]
        there = codes[which] == said
        owners, which = owners[there], which[there]
        by_code = np.argsort(which, kind="stable")
        return owners[by_code], which[by_code]
