"""Indexes in memory over a table of nodes: queried, combined, changed, cut to views."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from copy import copy
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray

from graphret.change import Change
from graphret.contracts import Lock, restriction_of
from graphret.errors import InvalidInput
from graphret.nodes import NodeTable
from graphret.numeric import unique
from graphret.search.fields import NodeText, require_texts
from graphret.search.index import BatchIndex, Matches, remember, top_k
from graphret.stores.base import GraphStore
from graphret.types import Node
from graphret.where import Where, WhereLike

if TYPE_CHECKING:
    from graphret.search.dense import DenseIndex

#: Nodes that are looked at for whether they say anything.
_SAMPLE = 1_000
_QUERIES_KEPT = 16  # whose scores of every node are remembered


class TableIndex(ABC):
    """What is made of the nodes of a table, and follows their changes.

    A state is never changed but replaced, so that a reader sees one state, whatever is
    upserted meanwhile. `scope` holds the labels that it is limited to, `None` for all:
    an upserted node that bears none of them is taken away.
    """

    scope: frozenset[str] | None = None

    @property
    @abstractmethod
    def table(self) -> NodeTable:
        """The nodes."""

    def limited_to(
        self, labels: Collection[str] | None, *, need_texts: bool = True
    ) -> Self:
        """Say which labels it was made of; returns itself.

        With `need_texts`, an `InvalidInput` refuses nodes most of which say nothing.
        """
        self.scope = None if labels is None else frozenset(labels)
        if need_texts and len(self.table):
            places = np.linspace(0, len(self.table) - 1, _SAMPLE).astype(np.int64)
            texts = [leaf.text for leaf in self.leaves()]
            require_texts(texts, self.table.at(unique(places)))
        return self

    @abstractmethod
    def leaves(self) -> list[ArrayIndex]:
        """The indexes that it is made of, or itself where it is made of no other."""

    @abstractmethod
    def changed(self, change: Change, source: GraphStore | None = None) -> Self:
        """Return what is made of the table after a change.

        The fresh nodes are read, and their neighbours looked up in `source`.
        """

    @abstractmethod
    def induced(self, table: NodeTable, positions: NDArray[np.int64]) -> Self:
        """Return what is made of the nodes at `positions` alone, statistics included.

        `table` holds just these nodes.
        """

    # -- change

    @property
    def reads_neighbors(self) -> bool:
        """Whether what is held of a node depends on its neighbours."""
        return any(leaf.text.reads_neighbors for leaf in self.leaves())

    def bind(self, store: GraphStore) -> None:
        """Look neighbours up in a store from now on."""
        for leaf in self.leaves():
            leaf.text = leaf.text.bound(store)

    def upsert(self, nodes: Iterable[Node]) -> None:
        """Add nodes, or replace those of the same id."""
        self.staged(list(nodes), ())()

    def delete(self, ids: Iterable[str]) -> None:
        """Take nodes away; unknown ids are ignored."""
        self.staged((), list(ids))()

    def refresh(self, store: GraphStore) -> None:
        """Bring the index up to date with a store that somebody else wrote to.

        An attached index follows by itself.
        """
        now, before = (
            table_of(store, self.scope),
            {node.id: node for node in self.table},
        )
        fresh = [
            node for node in now if self.reads_neighbors or before.get(node.id) != node
        ]
        self.staged(fresh, before.keys() - set(now.ids), store)()

    def staged(
        self,
        upserts: Sequence[Node],
        deletes: Collection[str],
        source: GraphStore | None = None,
    ) -> Callable[[], None]:
        """Prepare a change, and return the function that puts it in force.

        Neighbours are read from `source`, the store as it will be after the change.
        """
        outside = {
            one.id
            for one in upserts
            if self.scope is not None and self.scope.isdisjoint(one.labels)
        }
        fresh = {node.id: node for node in upserts if node.id not in outside}
        gone = {*deletes, *outside}.difference(fresh)
        change = Change.of(self.table, NodeTable.of(fresh.values()), gone)
        state = self.changed(change, source)
        state.scope = self.scope
        # one assignment, so that a search sees the old state or the new
        return lambda: setattr(self, "__dict__", state.__dict__)

    # -- views

    @property
    def restriction(self) -> Where | None:
        """The condition of the view that this is; `None` where it is none."""
        return self.table.restriction

    def view(self, where: WhereLike) -> Self:
        """Return an index of only the nodes that satisfy `where`.

        Nothing of the other nodes can be read through it.

        Nodes that named a neighbour outside are read anew without it, which for a dense
        index takes its encoder.
        """
        state, condition = copy(self), Where.parse(where)
        restricted = state.table.restricted(condition)
        if restricted is None or condition is None:
            return state
        cut = state.induced(*restricted)
        ids, hidden, stale = (
            cut.table.ids.tolist(),
            Where("$not", children=(condition,)),
            set[str](),
        )
        for leaf in cut.leaves():
            stale |= leaf.text.naming(ids, hidden)
            leaf.text = leaf.text.view(condition)
        cut = cut.changed(Change.reading(cut.table, stale)) if stale else cut
        cut.scope = self.scope
        return cut


class ArrayIndex(TableIndex, BatchIndex):
    """A text index over a `NodeTable` that scores every node of it at once.

    A subclass gives `_scores`, `changed`, `induced` and `text`, which says how a node
    is read.
    """

    text: NodeText
    least: float | None = (
        None  # what a node scores that nothing speaks for, where that is known
    )

    def __init__(self, table: NodeTable) -> None:
        self._table = table
        self._lock = Lock()
        self.forget()

    @property
    def table(self) -> NodeTable:
        return self._table

    def leaves(self) -> list[ArrayIndex]:
        return [self]

    def dense_part(self) -> DenseIndex | None:
        """Return the part that searches by one embedding a node, or `None`.

        `None`, the default, says that there is no such part.
        """
        return None

    def local_index(self) -> Self:
        return copy(self)

    def node_texts(self) -> list[NodeText]:
        return [leaf.text for leaf in self.leaves()]

    @abstractmethod
    def _scores(self, query: str) -> NDArray[np.float32]:
        """Score every node, ``(n,)``."""

    def _search(
        self,
        queries: list[str],
        k: int,
        labels: Collection[str] | None,
        where: Where | None,
    ) -> list[Matches]:
        state = copy(self)
        mask = state.table.mask(where, labels)
        state.prepare(queries)
        ranked = (state.ranked(query, k, mask) for query in queries)
        return [
            Matches(state.table.ids.take(found), scores) for found, scores in ranked
        ]

    def _score(
        self, queries: list[str], ids: Sequence[str]
    ) -> list[NDArray[np.float32]]:
        state = copy(self)
        positions = state.table.positions(ids)
        state.prepare(queries)
        return [state.score_at(query, positions) for query in queries]

    def ranked(
        self, query: str, k: int, mask: NDArray[np.bool_] | None = None
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Return the positions of the `k` best nodes, best first, and their scores.

        Only nodes in `mask` are considered.
        """
        scores = self.scores(query)
        found = top_k(scores, k, mask)
        return found, scores[found]

    def top(
        self, query: str, k: int, mask: NDArray[np.bool_] | None = None
    ) -> NDArray[np.int64]:
        """Return the positions of the `k` best nodes in `mask`, best first."""
        return self.ranked(query, k, mask)[0]

    def score_at(self, query: str, positions: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the scores of the nodes at `positions`, ``(p,)``."""
        return np.asarray(self.scores(query)[positions], dtype=np.float32)

    def scores(self, query: str) -> NDArray[np.float32]:
        """Return the score of every node by position, ``(n,)``.

        The scores for recent queries are remembered.
        """
        known = self._recent.get(query)
        if known is None:
            known = self._scores(query)
            known.flags.writeable = False
        with self._lock:
            remember(self._recent, query, known, _QUERIES_KEPT)
        return known

    def forget(self) -> None:
        """Drop the remembered scores of recent queries."""
        self._recent: dict[str, NDArray[np.float32]] = {}

    def confidence(self, query: str, positions: NDArray[np.int64]) -> float | None:
        """Return how well nodes together answer a query, from 0 to 1.

        It is measured by itself, not against other nodes; `None` says that the index
        cannot tell.
        """
        return None

    def prepare(self, queries: Sequence[str]) -> None:
        """Do at once what a batch of queries needs, such as their embeddings."""
        for leaf in (one for one in self.leaves() if one is not self):
            leaf.prepare(queries)


class CombinedTable(TableIndex):
    """What is made of several indexes over one table, its `members`.

    A copy made for a search reads the members as they are at that time.
    """

    def __init__(self, members: Mapping[str, ArrayIndex]) -> None:
        self.members = dict(members)
        if any(
            member.table.ids is not self.table.ids for member in self.members.values()
        ):
            raise InvalidInput(
                f"{', '.join(members)}: indexes that are combined must share one table"
                " of nodes"
            )

    @property
    def table(self) -> NodeTable:
        return next(iter(self.members.values())).table

    def leaves(self) -> list[ArrayIndex]:
        return [leaf for member in self.members.values() for leaf in member.leaves()]

    def __copy__(self) -> Self:
        return self._of(copy)

    def _of(self, change: Callable[[ArrayIndex], ArrayIndex]) -> Self:
        """Return this with other members."""
        state = object.__new__(type(self))
        state.__dict__ |= self.__dict__ | {
            "members": {name: change(one) for name, one in self.members.items()}
        }
        return state

    def changed(self, change: Change, source: GraphStore | None = None) -> Self:
        return self._of(lambda member: member.changed(change, source))

    def induced(self, table: NodeTable, positions: NDArray[np.int64]) -> Self:
        return self._of(lambda member: member.induced(table, positions))


def table_of(store: GraphStore, labels: Collection[str] | None = None) -> NodeTable:
    """Return the table of a store's nodes, or of those that bear one of `labels`."""
    table = NodeTable.of(node for block in store.nodes(labels) for node in block)
    table.restriction = restriction_of(store)
    return table
