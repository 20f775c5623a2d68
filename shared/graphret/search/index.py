"""The contract of text indexes, and what those held in memory share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Protocol, Self, overload, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from graphret.contracts import Lock, require_direct, restriction_of
from graphret.errors import InvalidInput
from graphret.nodes import NodeTable
from graphret.search.fields import NodeSource, NodeText
from graphret.types import Node
from graphret.where import Where, WhereLike

_QUERIES_KEPT = 16  # whose scores of every node are remembered
_RUN = 64


@dataclass(frozen=True, slots=True)
class Matches:
    """What a search found: ids and their scores, best first, ties by id."""

    ids: list[str]
    scores: NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.ids)


@runtime_checkable
class TextIndex(Protocol):
    """Finds nodes by text. Every call takes one query or a batch of them."""

    @overload
    def search(
        self, query: str, k: int, *, labels: Collection[str] | None = None, where: WhereLike = None
    ) -> Matches: ...
    @overload
    def search(
        self, query: list[str], k: int, *, labels: Collection[str] | None = None, where: WhereLike = None
    ) -> list[Matches]: ...
    def search(
        self, query: str | list[str], k: int, *, labels: Collection[str] | None = None, where: WhereLike = None
    ) -> Matches | list[Matches]:
        """Return the `k` best nodes that bear one of `labels` and satisfy `where`: `k`, or all there are."""
        ...

    @overload
    def score(self, query: str, ids: Sequence[str]) -> NDArray[np.float32]: ...
    @overload
    def score(self, query: list[str], ids: Sequence[str]) -> list[NDArray[np.float32]]: ...
    def score(self, query: str | list[str], ids: Sequence[str]) -> NDArray[np.float32] | list[NDArray[np.float32]]:
        """Return the scores of given nodes, in their order."""
        ...

    def upsert(self, nodes: Iterable[Node]) -> None:
        """Add nodes, or replace those of the same id."""
        ...

    def delete(self, ids: Iterable[str]) -> None:
        """Take nodes away; unknown ids are ignored."""
        ...

    def view(self, where: WhereLike) -> TextIndex:
        """Return an index of only the nodes that satisfy `where`; nothing of the others can be read through it.

        It keeps the condition, as a `Where`, in the attribute `restriction`: a method takes an index and a store only
        as views of the same condition. One without that attribute counts as no view.
        """
        ...


class BatchIndex(ABC):
    """Asks for one query as for a batch of one: a subclass gives `_search` and `_score`, which take batches."""

    @abstractmethod
    def _search(self, queries: list[str], k: int, labels: Collection[str] | None, where: Where | None) -> list[Matches]:
        """Return the `k` best nodes for each query."""

    @abstractmethod
    def _score(self, queries: list[str], ids: Sequence[str]) -> list[NDArray[np.float32]]:
        """Return the scores of given nodes for each query."""

    @overload
    def search(
        self, query: str, k: int, *, labels: Collection[str] | None = None, where: WhereLike = None
    ) -> Matches: ...
    @overload
    def search(
        self, query: list[str], k: int, *, labels: Collection[str] | None = None, where: WhereLike = None
    ) -> list[Matches]: ...
    def search(
        self, query: str | list[str], k: int, *, labels: Collection[str] | None = None, where: WhereLike = None
    ) -> Matches | list[Matches]:
        """Return the `k` best nodes that bear one of `labels` and satisfy `where`: `k`, or all there are.

        Raises
        ------
        InvalidInput
            When `k` is below 1, a query is not a string or the filter is malformed.
        """
        found = self._search(require_queries(query), require_k(k), labels, Where.parse(where))
        return found[0] if isinstance(query, str) else found

    @overload
    def score(self, query: str, ids: Sequence[str]) -> NDArray[np.float32]: ...
    @overload
    def score(self, query: list[str], ids: Sequence[str]) -> list[NDArray[np.float32]]: ...
    def score(self, query: str | list[str], ids: Sequence[str]) -> NDArray[np.float32] | list[NDArray[np.float32]]:
        """Return the scores of given nodes, in their order; an `InvalidInput` names an unknown id."""
        found = self._score(require_queries(query), ids)
        return found[0] if isinstance(query, str) else found


class ArrayIndex(BatchIndex):
    """A text index over a `NodeTable` that scores every node of it at once.

    A subclass gives `_scores`, `changed`, `induced` and `text`, which says how a node is read. A state is never changed
    but replaced, so that a search sees one state, whatever is upserted meanwhile.

    `scope` holds the labels that the index is limited to: an upserted node that bears none of them is taken away.
    `None` limits nothing.
    """

    text: NodeText
    scope: frozenset[str] | None = None

    def __init__(self, table: NodeTable) -> None:
        self._table = table
        self._lock = Lock()
        self.forget()

    @property
    def table(self) -> NodeTable:
        """The nodes."""
        return self._table

    @abstractmethod
    def _scores(self, query: str) -> NDArray[np.float32]:
        """Score every node, ``(n,)``."""

    @abstractmethod
    def changed(self, table: NodeTable, fresh: Collection[str]) -> Self:
        """Return the index of another table, reading only the nodes that are new or in `fresh`."""

    @abstractmethod
    def induced(self, table: NodeTable, positions: NDArray[np.int64]) -> Self:
        """Return the index of the nodes at `positions` alone, statistics included; `table` holds just them."""

    def texts(self) -> list[NodeText]:
        """The ways in which this index reads nodes."""
        return [self.text]

    def with_texts(self, change: Callable[[NodeText], NodeText]) -> Self:
        """Return this index, nothing of it read anew, with every way in which it reads nodes changed."""
        state = copy(self)
        state.text = change(self.text)
        return state

    # -- asking

    def _search(self, queries: list[str], k: int, labels: Collection[str] | None, where: Where | None) -> list[Matches]:
        state = copy(self)
        mask = state.table.mask(where, labels)
        state.prepare(queries)
        ranked = (state.ranked(query, k, mask) for query in queries)
        return [Matches(state.table.ids.take(found), scores) for found, scores in ranked]

    def _score(self, queries: list[str], ids: Sequence[str]) -> list[NDArray[np.float32]]:
        state = copy(self)
        positions = state.table.positions(ids)
        state.prepare(queries)
        return [state.score_at(query, positions) for query in queries]

    def ranked(
        self, query: str, k: int, mask: NDArray[np.bool_] | None = None
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Return the positions of the `k` best nodes among those in `mask`, best first, and their scores."""
        scores = self.scores(query)
        found = top_k(scores, k, mask)
        return found, scores[found]

    def top(self, query: str, k: int, mask: NDArray[np.bool_] | None = None) -> NDArray[np.int64]:
        """Return the positions of the `k` best nodes among those in `mask`, best first."""
        return self.ranked(query, k, mask)[0]

    def score_at(self, query: str, positions: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the scores of the nodes at `positions`, ``(p,)``."""
        return np.asarray(self.scores(query)[positions], dtype=np.float32)

    def scores(self, query: str) -> NDArray[np.float32]:
        """Return the score of every node by position, ``(n,)``; those of recent queries are remembered."""
        with self._lock:
            known = self._recent.get(query)
        if known is None:
            known = self._scores(query)
            known.flags.writeable = False
        with self._lock:
            self._recent[query] = known
            self._recent.move_to_end(query)
            while len(self._recent) > _QUERIES_KEPT:
                self._recent.popitem(last=False)
        return known

    def forget(self) -> None:
        """Drop the remembered scores of recent queries."""
        self._recent: OrderedDict[str, NDArray[np.float32]] = OrderedDict()

    def confidence(self, query: str, positions: NDArray[np.int64]) -> float | None:
        """Return how well nodes together answer a query, 0 … 1 whatever else there is; `None` where it cannot say."""
        return None

    def prepare(self, queries: Sequence[str]) -> None:
        """Do at once what a batch of queries needs, such as their embeddings."""
        return

    # -- change

    @property
    def reads_neighbors(self) -> bool:
        """Whether what is held of a node depends on its neighbours."""
        return any(text.reads_neighbors for text in self.texts())

    def bind(self, store: NodeSource) -> None:
        """Look neighbours up in a store from now on."""
        self._adopt(self.with_texts(lambda text: text.bound(store)))

    def upsert(self, nodes: Iterable[Node]) -> None:
        """Add nodes, or replace those of the same id."""
        self.staged(list(nodes), ())()

    def delete(self, ids: Iterable[str]) -> None:
        """Take nodes away; unknown ids are ignored."""
        self.staged((), list(ids))()

    def refresh(self, store: NodeSource) -> None:
        """Bring the index up to date with a store that somebody else wrote to; an attached index follows by itself."""
        now, before = table_of(store, self.scope), {node.id: node for node in self.table}
        fresh = [node for node in now if self.reads_neighbors or before.get(node.id) != node]
        self.staged(fresh, before.keys() - set(now.ids), store)()

    def staged(
        self, upserts: Sequence[Node], deletes: Collection[str], source: NodeSource | None = None
    ) -> Callable[[], None]:
        """Make ready a change, and return what puts it in force, which cannot fail; until then nothing shows.

        `source` is the store as it will be, where neighbours are then looked up.
        """
        return self.staged_as(self.changed_table(upserts, deletes), [node.id for node in upserts], source)

    def changed_table(self, upserts: Sequence[Node], deletes: Collection[str]) -> NodeTable:
        """Return the table as a change would leave it."""
        scope = self.scope
        inside = [node for node in upserts if scope is None or not scope.isdisjoint(node.labels)]
        outside = [] if scope is None else [node.id for node in upserts if scope.isdisjoint(node.labels)]
        return self.table.changed(inside, {*deletes, *outside})

    def staged_as(
        self, table: NodeTable, fresh: Collection[str], source: NodeSource | None = None
    ) -> Callable[[], None]:
        """Do as `staged` where the table that a change leaves is known, so that several indexes share it."""
        reader = self if source is None else self.with_texts(lambda text: text.bound(source))
        other = reader.changed(table, fresh)
        if source is not None:
            own = iter(self.texts())
            other = other.with_texts(lambda _: next(own))
        return lambda: self._adopt(other)

    def _adopt(self, other: Self) -> None:
        state = dict(other.__dict__)
        if self.scope is not None:
            state["scope"] = self.scope
        self.__dict__ = state  # one assignment, so that a search sees the old state or the new

    # -- views

    @property
    def restriction(self) -> Where | None:
        """The condition of the view that this is; `None` where it is none."""
        return self.table.restriction

    def view(self, where: WhereLike) -> Self:
        """Return an index of only the nodes that satisfy `where`; nothing of the others can be read through it.

        Nodes that named a neighbour outside are read anew without it, which for a dense index takes its encoder.
        """
        state, condition = copy(self), Where.parse(where)
        restricted = state.table.restricted(condition)
        if restricted is None or condition is None:
            return state
        cut = state.induced(*restricted)
        ids, hidden = cut.table.ids.tolist(), Where("$not", children=(condition,))
        stale = set().union(*(text.naming(ids, hidden) for text in state.texts()))
        cut = cut.with_texts(lambda text: text.bound(text.source.view(condition)) if text.source is not None else text)
        cut = cut.changed(cut.table, sorted(stale)) if stale else cut
        cut.scope = state.scope
        return cut


class CombinedIndex(ArrayIndex):
    """An index whose score is made of those of others, its `members`, over one table of nodes.

    Members are read as they are when a search begins: one that follows a store by itself is followed.
    """

    def __init__(self, members: Mapping[str, ArrayIndex]) -> None:
        self.members = dict(members)
        if any(member.table.ids is not self.table.ids for member in self.members.values()):
            raise InvalidInput(f"{', '.join(members)}: indexes that are combined must share one table of nodes")
        super().__init__(self.table)

    @property
    def table(self) -> NodeTable:
        """The nodes."""
        return next(iter(self.members.values())).table

    def __copy__(self) -> Self:
        state = object.__new__(type(self))
        state.__dict__ = self.__dict__ | {"members": {name: copy(member) for name, member in self.members.items()}}
        return state

    def scores(self, query: str) -> NDArray[np.float32]:
        if self._table is not self.table:  # a member was changed by itself
            self._table = self.table
            self.forget()
        return super().scores(query)

    def _of(self, change: Callable[[ArrayIndex], ArrayIndex]) -> Self:
        """Return this index with other members."""
        state = copy(self)
        CombinedIndex.__init__(state, {name: change(member) for name, member in state.members.items()})
        return state

    def prepare(self, queries: Sequence[str]) -> None:
        for member in self.members.values():
            member.prepare(queries)

    def texts(self) -> list[NodeText]:
        return [text for member in self.members.values() for text in member.texts()]

    def with_texts(self, change: Callable[[NodeText], NodeText]) -> Self:
        return self._of(lambda member: member.with_texts(change))

    def changed(self, table: NodeTable, fresh: Collection[str]) -> Self:
        again = list(fresh)
        return self._of(lambda member: member.changed(table, again))

    def induced(self, table: NodeTable, positions: NDArray[np.int64]) -> Self:
        return self._of(lambda member: member.induced(table, positions))


def table_of(store: NodeSource, labels: Collection[str] | None = None) -> NodeTable:
    """Return the table of a store's nodes, or of those that bear one of `labels`."""
    require_direct(store)
    table = NodeTable.of(node for block in store.nodes(labels) for node in block)
    table.restriction = restriction_of(store)
    return table


def top_k(scores: NDArray[np.float32], k: int, mask: NDArray[np.bool_] | None = None) -> NDArray[np.int64]:
    """Return the positions of the `k` highest scores among those in `mask`, best first, ties by position."""
    allowed = None if mask is None else np.flatnonzero(mask)
    values = scores if allowed is None else scores[allowed]
    if k < len(values):
        floor = _highest(values, k)
        above = np.flatnonzero(values > floor)
        level = np.flatnonzero(values == floor)[: k - len(above)]
        kept = np.concatenate([above, level])
        kept.sort()
    else:
        kept = np.arange(len(values))
    order = kept[np.argsort(-values[kept], kind="stable")]
    return np.asarray(order if allowed is None else allowed[order], dtype=np.int64)


def _highest(values: NDArray[np.float32], k: int) -> np.float32:
    """Return the k-th highest of values, of which there are more than k."""
    if _RUN * k < len(values):  # k runs have their highest at this bound or above: most values need not be compared
        tops = values[: len(values) // _RUN * _RUN].reshape(-1, _RUN).max(axis=1)
        bound = np.partition(tops, len(tops) - k)[len(tops) - k]
        above = values[values > bound]
        return np.float32(bound) if len(above) < k else np.float32(np.partition(above, len(above) - k)[len(above) - k])
    return np.float32(np.partition(values, len(values) - k)[len(values) - k])


def min_max(scores: NDArray[np.float32]) -> NDArray[np.float32]:
    """Scale scores to 0 … 1; scores that are all alike become 0."""
    if not len(scores):
        return scores
    low, high = float(scores.min()), float(scores.max())
    if high <= low:
        return np.zeros_like(scores)
    return np.asarray((scores - low) / (high - low), dtype=np.float32)


def require_queries(queries: str | Iterable[str]) -> list[str]:
    """Return a query or a batch as a list, and raise an `InvalidInput` that names the first that is not a string."""
    if isinstance(queries, str):
        return [queries]
    asked = list(queries) if isinstance(queries, Iterable) else [queries]
    for position, query in enumerate(asked):
        if not isinstance(query, str):
            raise InvalidInput(f"query {position}: a string is expected, not {type(query).__name__}")
    return asked


def require_k(k: int) -> int:
    """Return `k`, and raise an `InvalidInput` when it is not a whole number of at least 1."""
    if isinstance(k, bool) or not isinstance(k, (int, np.integer)) or k < 1:
        raise InvalidInput(f"k: a whole number of at least 1 is expected, not {k!r}")
    return int(k)
