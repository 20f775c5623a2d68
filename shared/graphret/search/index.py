"""The contract of text indexes, and what each of them needs."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeVar, cast, overload, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from graphret.errors import InvalidInput
from graphret.types import Node
from graphret.where import Where, WhereLike

if TYPE_CHECKING:
    from graphret.search.arrays import ArrayIndex
    from graphret.search.fields import NodeText

_GROUP = 64  # scores, of which the highest is compared
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Matches:
    """What a search found: ids and their scores, best first, ties by id."""

    ids: list[str]
    scores: NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.ids)


@runtime_checkable
class TextIndex(Protocol):
    """Finds nodes by text. Every call takes one query or a batch of them.

    An index of your own derives from it. `search` and `score` are as here for
    subclasses of `BatchIndex`; any other index has its own.
    """

    @overload
    def search(
        self,
        query: str,
        k: int,
        *,
        labels: Collection[str] | None = None,
        where: WhereLike = None,
    ) -> Matches: ...
    @overload
    def search(
        self,
        query: list[str],
        k: int,
        *,
        labels: Collection[str] | None = None,
        where: WhereLike = None,
    ) -> list[Matches]: ...
    def search(
        self,
        query: str | list[str],
        k: int,
        *,
        labels: Collection[str] | None = None,
        where: WhereLike = None,
    ) -> Matches | list[Matches]:
        """Return the `k` best nodes that bear one of `labels` and satisfy `where`.

        Where there are fewer, all of them are returned. An `InvalidInput` says that
        `k`, a query or the filter is malformed.
        """
        asked, k, condition = require_queries(query), require_k(k), Where.parse(where)
        found = cast("BatchIndex", self)._search(asked, k, labels, condition)
        return found[0] if isinstance(query, str) else found

    @overload
    def score(self, query: str, ids: Sequence[str]) -> NDArray[np.float32]: ...
    @overload
    def score(
        self, query: list[str], ids: Sequence[str]
    ) -> list[NDArray[np.float32]]: ...
    def score(
        self, query: str | list[str], ids: Sequence[str]
    ) -> NDArray[np.float32] | list[NDArray[np.float32]]:
        """Return the scores of given nodes, in their order.

        An `InvalidInput` names an unknown id.
        """
        found = cast("BatchIndex", self)._score(require_queries(query), ids)
        return found[0] if isinstance(query, str) else found

    def upsert(self, nodes: Iterable[Node]) -> None:
        """Add nodes, or replace those of the same id."""

    def delete(self, ids: Iterable[str]) -> None:
        """Take nodes away; unknown ids are ignored."""

    def view(self, where: WhereLike) -> TextIndex:
        """Return an index of only the nodes that satisfy `where`.

        Nothing of the other nodes can be read through it. It keeps the condition, as a
        `Where`, in the attribute `restriction`: a method takes an index and a store
        only as views of the same condition. One without that attribute counts as no
        view.
        """

    def local_index(self) -> ArrayIndex | None:
        """Return the index as it is now, with its nodes, where it lies in this process.

        `None`, the default, is any other index.
        """
        return None

    def node_texts(self) -> list[NodeText]:
        """Return the ways in which it reads a node; none, the default, if unknown."""
        return []

    def ceiling(self, query: str) -> float | None:
        """Return the highest score that a node could have for a query.

        `None`, the default, where scores have no such bound, or are scaled already.
        """
        return None


class BatchIndex(TextIndex):
    """An index that treats one query as a batch of one.

    A subclass gives `_search` and `_score`, which take batches.
    """

    @abstractmethod
    def _search(
        self,
        queries: list[str],
        k: int,
        labels: Collection[str] | None,
        where: Where | None,
    ) -> list[Matches]:
        """Return the `k` best nodes for each query."""

    @abstractmethod
    def _score(
        self, queries: list[str], ids: Sequence[str]
    ) -> list[NDArray[np.float32]]:
        """Return the scores of given nodes for each query."""


def top_k(
    scores: NDArray[np.float32], k: int, mask: NDArray[np.bool_] | None = None
) -> NDArray[np.int64]:
    """Return the positions of the `k` highest scores among those in `mask`, best first.

    Ties are in the order of their positions.
    """
    allowed = None if mask is None else np.flatnonzero(mask)
    values = scores if allowed is None else scores[allowed]
    kept = _highest(values, k) if k < len(values) else np.arange(len(values))
    order = kept[np.argsort(-values[kept], kind="stable")]
    return np.asarray(order if allowed is None else allowed[order], dtype=np.int64)


def _highest(values: NDArray[np.float32], k: int) -> NDArray[np.int64]:
    """Return the positions of the k highest of more values, ascending.

    Of equal ones the first are returned.
    """
    if _GROUP * k < len(values):
        # k groups reach the bound: most values need not be compared any further
        groups = values[: len(values) // _GROUP * _GROUP].reshape(_GROUP, -1)
        bound = _kth_highest(groups.max(axis=0), k)
        above = np.flatnonzero(values > bound)
        if len(above) >= k:
            return np.asarray(above[_highest(values[above], k)])
    else:
        bound = _kth_highest(values, k)
        above = np.flatnonzero(values > bound)
    level = np.flatnonzero(values == bound)[: k - len(above)]
    return np.sort(np.concatenate([above, level]))


def _kth_highest(values: NDArray[np.float32], k: int) -> np.float32:
    return np.float32(np.partition(values, len(values) - k)[len(values) - k])


def min_max(
    scores: NDArray[np.float32],
    low: float | None = None,
    at: NDArray[np.int64] | None = None,
) -> NDArray[np.float32]:
    """Scale scores to 0 … 1; scores that are all alike become 0.

    `low` is the lowest score, where it is known. With `at` only the scores there are
    returned.
    """
    chosen = scores if at is None else scores[at]
    if not len(scores):
        return chosen
    low, high = float(scores.min()) if low is None else low, float(scores.max())
    if high <= low:
        return np.zeros_like(chosen)
    above = chosen - low if low else chosen  # as every pass over many counts
    return np.asarray(above / (high - low), dtype=np.float32)


def require_queries(queries: str | Iterable[str]) -> list[str]:
    """Return a query or a batch of queries as a list.

    An `InvalidInput` names the first that is not a string.
    """
    asked = (
        [queries]
        if isinstance(queries, str) or not isinstance(queries, Iterable)
        else list(queries)
    )
    for position, query in enumerate(asked):
        if not isinstance(query, str):
            raise InvalidInput(
                f"query {position}: expected a string, got {type(query).__name__}"
            )
    return asked


def require_k(k: int) -> int:
    """Return `k`; raise an `InvalidInput` unless it is a whole number of at least 1."""
    if isinstance(k, bool) or not isinstance(k, (int, np.integer)) or k < 1:
        raise InvalidInput(f"k: expected a whole number of at least 1, got {k!r}")
    return int(k)


def remember(known: dict[str, T], key: str, value: T, most: int) -> None:
    """Put a value last among those that are remembered.

    If that makes more than `most`, the one used longest ago is forgotten.
    """
    known.pop(key, None)
    known[key] = value
    if len(known) > most:
        del known[next(iter(known))]
