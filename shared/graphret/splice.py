"""`Splice`: columns laid end to end, cut into pieces that are put in a new order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from graphret.lists import Lists, Rows, joined_rows, numbered
from graphret.numeric import unique

T = TypeVar("T", bound=np.generic)
L = TypeVar("L", bound=Lists[Any])
C = TypeVar("C", str, tuple[str, ...])

#: Rows that stay beside each other: the number of their column, and which.
Piece: TypeAlias = tuple[int, slice]

# Pieces of fewer rows than this, on the average, are not worth cutting out.
_LEAST_ROWS = 100
_BLOCK, _FEW = 1 << 12, 4  # codes that are looked at, at once, and looked for


class Splice:
    """A new order of the rows of columns that are laid end to end.

    After a change most rows stay beside those they were beside: such a piece is copied
    at once, several times as fast as row by row.

    Parameters
    ----------
    lengths
        How many rows the columns have.
    order
        The places of rows in the columns laid end to end, ``(m,)``.
    """

    def __init__(self, lengths: Sequence[int], order: NDArray[np.int64]) -> None:
        self.lengths, self.order = lengths, order

    @cached_property
    def pieces(self) -> list[Piece] | None:
        """The pieces in their new order; `None` if they are too short."""
        begins, order = np.cumsum([0, *self.lengths]), self.order
        is_cut = np.ones(len(order), dtype=bool)
        np.not_equal(order[1:], order[:-1] + 1, out=is_cut[1:])
        for begin in begins[1:-1].tolist():
            is_cut |= order == begin
        firsts = np.flatnonzero(is_cut)
        if not _are_long(len(firsts), len(order)):
            return None
        sizes = np.diff(np.append(firsts, len(order)))
        places = order[firsts]
        numbers = np.searchsorted(begins, places, side="right") - 1
        return [
            (number, slice(row, row + size))
            for number, row, size in zip(
                numbers.tolist(),
                (places - begins[numbers]).tolist(),
                sizes.tolist(),
                strict=True,
            )
        ]

    @cached_property
    def moved(self) -> NDArray[np.int32]:
        """The new place of each row of the first column, -1 if it is left out."""
        n_rows = self.lengths[0]
        moved = np.full(n_rows, -1, dtype=np.int32)
        if self.pieces is None:
            remaining = np.flatnonzero(self.order < n_rows)
            moved[self.order[remaining]] = remaining
        for number, rows, begin, end in self._placed():
            if number == 0:
                moved[rows] = np.arange(begin, end)
        return moved

    @cached_property
    def others(self) -> NDArray[np.int64]:
        """The new places of the rows that are not of the first column, ascending."""
        if self.pieces is None:
            return np.flatnonzero(self.order >= self.lengths[0])
        placed = (
            np.arange(begin, end) for number, _, begin, end in self._placed() if number
        )
        return np.concatenate([np.zeros(0, np.int64), *placed])

    def _placed(self) -> Iterator[tuple[int, slice, int, int]]:
        """Yield each piece, where it begins in the new order, and where it ends."""
        begin = 0
        for number, rows in self.pieces or ():
            end = begin + rows.stop - rows.start
            yield number, rows, begin, end
            begin = end

    def of(self, *columns: NDArray[T]) -> NDArray[T]:
        """Return the column that arrays make, ``(m, …)``."""
        if self.pieces is None:
            rows = columns[0] if len(columns) == 1 else np.concatenate(columns)
            return rows[self.order]
        parts = (columns[number][rows] for number, rows in self.pieces)
        return np.concatenate([columns[0][:0], *parts])

    def of_lists(self, *columns: L) -> L:
        """Return the column that lists make, or texts, which stay where they are."""
        alike = columns[0].sharing(columns)
        rows = self._of_rows([column.rows for column in alike])
        return type(columns[0])(alike[0].numbers, alike[0].spans, rows)

    def _of_rows(self, several: Sequence[Rows]) -> Rows:
        """Return the rows of lists in their new order.

        Columns that change together have the same rows, which are put in order once.
        """
        known = tuple(rows if isinstance(rows, range) else id(rows) for rows in several)
        if known not in self._rows:
            if self.pieces is None:
                spliced: Rows = numbered(joined_rows(several))[self.order]
            else:
                spliced = joined_rows(
                    [several[number][piece] for number, piece in self.pieces]
                )
            self._rows[known] = several, spliced  # an id is taken again once it is free
        return self._rows[known][1]

    @cached_property
    def _rows(self) -> dict[tuple[Any, ...], tuple[Sequence[Rows], Rows]]:
        """Rows that were put in order, and what they were made of."""
        return {}


class Merge(Splice):
    """The rows of a column without some of them, and those of another among them.

    Parameters
    ----------
    n_rows
        How many rows the first column has.
    gone
        Which of these are left out, ascending.
    at
        The row of the first column in front of which each row of the other comes,
        ascending.
    """

    def __init__(
        self, n_rows: int, gone: NDArray[np.int64], at: NDArray[np.int64]
    ) -> None:
        self.lengths, self._gone, self._at = (n_rows, len(at)), gone, at

    @cached_property
    def order(self) -> NDArray[np.int64]:  # type: ignore[override]
        """The places of rows in the columns laid end to end."""
        n_rows, n_new = self.lengths
        stay = np.delete(np.arange(n_rows), self._gone)
        places = np.searchsorted(stay, self._at)
        return np.insert(stay, places, n_rows + np.arange(n_new))

    @cached_property
    def pieces(self) -> list[Piece] | None:
        """The pieces in their new order; `None` if they are too short."""
        n_rows, n_new = self.lengths
        cuts = unique(np.array([0, n_rows]), self._gone, self._gone + 1, self._at)
        firsts = np.flatnonzero(np.diff(self._at, prepend=-1))
        stays = np.isin(cuts[:-1], self._gone, invert=True)
        n_stay = int(np.count_nonzero(stays))
        if not _are_long(len(firsts) + n_stay, n_rows):
            return None
        places = np.concatenate([self._at[firsts], cuts[:-1][stays]])
        rows = [
            *map(slice, firsts.tolist(), [*firsts[1:].tolist(), n_new]),
            *map(slice, cuts[:-1][stays].tolist(), cuts[1:][stays].tolist()),
        ]
        numbers = [1] * len(firsts) + [0] * n_stay
        in_place = np.argsort(places, kind="stable")  # what comes is in front
        return [(numbers[i], rows[i]) for i in in_place.tolist()]


def _are_long(n_pieces: int, n_rows: int) -> bool:
    """Whether pieces are long enough, on the average, to be cut out."""
    return n_pieces * _LEAST_ROWS <= n_rows + 10 * _LEAST_ROWS


def spliced_codes(
    splice: Splice, columns: Iterable[tuple[NDArray[Any], Sequence[C]]]
) -> tuple[NDArray[np.int32], list[C]]:
    """Return the spliced column of codes, and their sorted values, none unused."""
    listed = list(columns)
    values = sorted({value for _, codebook in listed for value in codebook})
    code = {value: i for i, value in enumerate(values)}
    codes = splice.of(
        *(
            _recoded(own_codes, [code[value] for value in codebook])
            for own_codes, codebook in listed
        )
    )
    used = np.flatnonzero(_are_used(codes, len(values)))
    new_codes = np.searchsorted(used, np.arange(len(values))).tolist()
    return _recoded(codes, new_codes), [values[i] for i in used.tolist()]


def _are_used(codes: NDArray[np.int32], n: int) -> NDArray[np.bool_]:
    """Return which of the first `n` codes occur, ``(n,)``: mostly all soon do."""
    are_used = np.zeros(n, np.bool_)
    for start in range(0, len(codes), _BLOCK):
        are_used[codes[start : start + _BLOCK]] = True
        others = np.flatnonzero(~are_used)
        if len(others) <= _FEW:  # sooner looked for one by one
            are_used[others] = [
                bool((codes[start:] == code).any()) for code in others.tolist()
            ]
            break
    return are_used


def _recoded(codes: NDArray[Any], new: Sequence[int]) -> NDArray[np.int32]:
    """Return a column with the new code of each; codes that stay are not copied."""
    if new == list(range(len(new))):
        return np.asarray(codes, dtype=np.int32)
    recoded: NDArray[np.int32] = np.asarray(new, dtype=np.int32)[codes]
    return recoded
