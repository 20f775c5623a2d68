"""Nearest neighbours among nodes, of which several may have the same text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from graphret.change import Change
from graphret.edges import row_starts
from graphret.executors import LOCAL, Executor
from graphret.numeric import flags, gathered, ranges, spans, unique
from graphret.search.nearest import Pairs, Products, nearest_rows
from graphret.search.vectors import Floats

#: The columns of `Neighbors`.
COLUMNS = ("own", "other", "similarity")

_SIDES: tuple[Literal["left"], Literal["right"]] = ("left", "right")


@dataclass(frozen=True, eq=False)
class Side:
    """One side of a comparison: nodes, and the row of each node's embedding.

    Both are ``(p,)``, the nodes ascending. Nodes with the same text share a row.
    """

    positions: NDArray[np.int64]
    rows: NDArray[np.int64]

    def at(self, chosen: NDArray[np.bool_]) -> Side:
        """Return a part of the side."""
        return Side(self.positions[chosen], self.rows[chosen])


@dataclass(frozen=True, eq=False)
class Neighbors:
    """The nearest neighbours of nodes, by node, the best first, ties by position.

    `own` and `other` are positions, ``(p,)``, `similarity` cosines above 0, rounded to
    six decimals, ``(p,)``.
    """

    own: NDArray[np.int32]
    other: NDArray[np.int32]
    similarity: Floats

    @classmethod
    def joined(cls, parts: Sequence[Neighbors]) -> Neighbors:
        """Return the neighbours of all parts, in the order of the parts."""
        none = np.zeros(0, np.int32)
        own, other = (
            np.concatenate([none, *(getattr(part, name) for part in parts)])
            for name in ("own", "other")
        )
        return cls(
            own,
            other,
            np.concatenate(
                [np.zeros(0, np.float32), *(part.similarity for part in parts)]
            ),
        )

    def best(self, m: int) -> Neighbors:
        """Return the `m` best of each node, in order."""
        return self.at(np.lexsort((self.other, -self.similarity, self.own))).first(m)

    def first(self, m: int) -> Neighbors:
        """Return the first `m` of each node where they are in order."""
        return self.at(
            np.arange(len(self.own)) - np.searchsorted(self.own, self.own) < m
        )

    def least(self, n_nodes: int, m: int) -> Floats:
        """Return how similar another must be to be among a node's `m` best, ``(n,)``.

        It is 0 for a node that has fewer.
        """
        least = np.full(n_nodes, 2.0, np.float32)
        np.minimum.at(least, self.own, self.similarity)
        least[np.bincount(self.own, minlength=n_nodes) < m] = 0.0
        return least

    def again(self, change: Change) -> NDArray[np.int64]:
        """Return the nodes that are fresh, or lost a neighbour or its text."""
        own = change.moved[self.own[change.moved[self.other] < 0]]
        return unique(change.fresh, own[own >= 0])

    def rows_of(self, nodes: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return where the neighbours of some nodes are, ascending as these are."""
        wanted = nodes.astype(self.own.dtype)
        first, last = (np.searchsorted(self.own, wanted, side) for side in _SIDES)
        return spans(first, last - first)

    def at(self, chosen: NDArray[Any]) -> Neighbors:
        """Return some of the pairs."""
        return Neighbors(self.own[chosen], self.other[chosen], self.similarity[chosen])


def pair_numbers(
    one: NDArray[Any], other: NDArray[Any], n_nodes: int
) -> NDArray[np.int64]:
    """Return a number for each pair of nodes, the same in either direction, ``(p,)``.

    Divided by `n_nodes` it gives the lower position, and as the remainder the higher.
    """
    ends = np.stack([one, other]).astype(np.int64)
    numbers: NDArray[np.int64] = ends.min(axis=0) * n_nodes + ends.max(axis=0)
    return numbers


def changed(
    old: Neighbors,
    vectors: Floats,
    sides: Sequence[Side],
    change: Change,
    again: NDArray[np.int64],
    m: int,
    executor: Executor,
    products: Products | None,
) -> tuple[Neighbors, NDArray[np.int64]]:
    """Return the neighbours after a change, and which nodes have others than before.

    Where the search is exact, they are those that a search of all nodes finds.

    The nodes in `again` are looked up again (see `Neighbors.again`), the others merge
    what is new; `products` may have those of their texts. The rows of `vectors`,
    ``(u, d)``, are unit ones, or zero ones, which find nothing and are never found. Of
    two `sides` each is the other's targets; there is one where both are the same.
    """
    n = len(change.after)
    fresh, is_sought = flags(change.fresh, n), flags(again, n)
    own, other = (gathered(change.moved, side) for side in (old.own, old.other))
    stay = np.flatnonzero((own >= 0) & (other >= 0))
    stay = stay[~is_sought[own[stay]]]
    known = Neighbors(own[stay], other[stay], old.similarity[stay])
    least = known.least(n, m)
    looked_up, nearer = [], []
    for rows, targets in zip(sides, sides[::-1], strict=True):
        lost = is_sought[rows.positions]
        find = partial(nearest, vectors, m=m, executor=executor, products=products)
        looked_up.append(find(rows.at(lost), targets))
        new = targets.at(fresh[targets.positions])
        nearer.append(find(rows.at(~lost), new, least=least))
    came = Neighbors.joined(nearer)
    merged = flags(came.own, n)
    some = merged[known.own]
    best = Neighbors.joined([known.at(some), came]).best(m)
    after = Neighbors.joined([known.at(~some), best, *looked_up])
    order = np.argsort(after.own, kind="stable")  # each node's are in order
    return after.at(order), np.flatnonzero(is_sought | merged)


def nearest(
    vectors: Floats,
    rows: Side,
    targets: Side,
    m: int,
    executor: Executor = LOCAL,
    least: Floats | None = None,
    products: Products | None = None,
) -> Neighbors:
    """Return the `m` nearest target nodes of each row node by cosine, never itself.

    Every distinct text is compared once, however many nodes bear it. Left out are those
    below the node's `least`, by position; `products` may have what is compared.
    """
    if not len(rows.rows) or not len(targets.rows):
        return Neighbors.joined([])
    asked, of_row = np.unique(rows.rows, return_inverse=True)
    least_of_row = np.zeros(len(of_row), np.float32)
    if least is not None:
        least_of_row = least[rows.positions]
    least_of_text = np.full(len(asked), 2.0, np.float32)
    np.minimum.at(least_of_text, of_row, least_of_row)
    order = np.argsort(targets.rows, kind="stable")
    texts, starts = np.unique(targets.rows[order], return_index=True)
    bearers = targets.positions[order].astype(
        np.int32
    )  # of each text in turn, ascending
    counts = np.minimum(np.diff(np.append(starts, len(order))), m + 1)
    of_text = Neighbors.joined([])
    shards: Iterable[Iterable[Pairs]]
    if products is not None:
        shards = [[products.nearest(asked, texts, m + 1, least_of_text)]]
    else:
        compared = vectors[asked], vectors[texts]
        shards = nearest_rows(*compared, m + 1, executor, least_of_text)
    for shard in shards:
        tables = [of_text]
        for row, text, value in shard:
            # The m nodes wanted are among the first m + 1 bearers of each text; one of
            # these may be the row itself.
            repeats = counts[text]
            offset = np.arange(int(repeats.sum())) - np.repeat(
                np.cumsum(repeats) - repeats, repeats
            )
            nodes = bearers[np.repeat(starts[text], repeats) + offset]
            found = Neighbors(
                np.repeat(row.astype(np.int32), repeats),
                nodes,
                np.repeat(value, repeats),
            )
            tables.append(found.best(m + 1))
        of_text = Neighbors.joined(tables).best(m + 1)
    first = row_starts(of_text.own, len(asked))
    at = ranges(first, of_row)
    own = np.repeat(rows.positions, np.diff(first)[of_row]).astype(np.int32)
    found = Neighbors(own, of_text.other[at], of_text.similarity[at])
    if least is not None:
        found = found.at(found.similarity >= least[found.own])
    return found.at(found.own != found.other).first(m)
