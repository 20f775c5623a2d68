"""Indexes that are attached to a store, and updated with each of its writes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol, runtime_checkable

from graphret.contracts import restriction_of
from graphret.errors import InvalidInput, StoreError
from graphret.stores.base import GraphStore
from graphret.types import Edge, Node


@runtime_checkable
class StagedIndex(Protocol):
    """An index that prepares a change and commits it later, as in `graphret.search`."""

    @property
    def reads_neighbors(self) -> bool:
        """Whether a node's entry depends on the node's neighbours."""

    def bind(self, store: Any) -> None:
        """Look neighbours up in a store from now on."""

    def staged(
        self, upserts: Sequence[Node], deletes: Collection[str], source: Any = None
    ) -> Callable[[], None]:
        """Prepare a change of the store; return its commit, which cannot fail."""


def require_whole(is_view: bool) -> None:
    """Refuse a view as the index or its store: the whole store's writes would show."""
    if is_view:
        raise InvalidInput(
            "index: a view cannot be attached or attached to; attach the index to the"
            " store, and use a view of the index"
        )


class AttachedIndexes:
    """Gives a store `attach` and `detach`; the store wraps its writes in `followed`."""

    _followers: tuple[StagedIndex, ...] = ()
    _is_view = False

    def attach(self, index: Any) -> None:
        """Keep an index in step with this store from now on.

        It must contain the store's current nodes, as indexes made by ``of_store`` do.
        Upserts and deletes of this store then reach it, and nodes whose text names a
        changed neighbour are indexed again. A write is all or nothing: if an index
        fails, for example because its encoder is down, the store and every index stay
        as they were. Writes by other programs do not reach it.

        Parameters
        ----------
        index
            An index of `graphret.search`, or a `Linker`. An `InvalidInput` refuses
            anything else, and a view.
        """
        require_whole(self._is_view or restriction_of(index) is not None)
        if not isinstance(index, StagedIndex):
            raise InvalidInput(
                "index: expected one of graphret.search, or a Linker, got"
                f" {type(index).__name__}"
            )
        index.bind(self)
        self._followers = (
            *(follower for follower in self._followers if follower is not index),
            index,
        )

    def _require_writable(self) -> None:
        if self._is_view:
            raise StoreError(
                "a view of a store cannot be written to; write to the store itself"
            )

    def detach(self, index: Any) -> None:
        """Detach an index; one that is not attached is ignored."""
        self._followers = tuple(
            follower for follower in self._followers if follower is not index
        )

    @contextmanager
    def followed(
        self,
        nodes: Sequence[Node] = (),
        edges: Sequence[Edge] = (),
        deletes: Sequence[str] = (),
    ) -> Iterator[Callable[[GraphStore], None]]:
        """Apply a write of this store to its indexes too.

        The previous state is read on entry. Yields a function to call with the store as
        it will be, before the write is committed. The indexes change on exit, unless an
        error was raised.
        """
        followers = self._followers
        nodes, deletes = (
            list({node.id: node for node in nodes}.values()),
            list(dict.fromkeys(deletes)),
        )
        reading = any(index.reads_neighbors for index in followers)
        touched = _touched(self, nodes, edges, deletes) if reading else []
        commits: list[Callable[[], None]] = []

        def stage(after: GraphStore) -> None:
            commits.clear()  # a database may retry
            neighbors = (
                [node for node in after.get(touched) if node is not None]
                if touched
                else []
            )
            upserts_by_index = (
                (index, [*nodes, *neighbors] if index.reads_neighbors else nodes)
                for index in followers
            )
            commits.extend(
                index.staged(upserts, deletes, after)
                for index, upserts in upserts_by_index
                if upserts or deletes
            )

        yield stage
        for commit in commits:
            commit()


def _touched(
    store: Any, nodes: Sequence[Node], edges: Sequence[Edge], deletes: Sequence[str]
) -> list[str]:
    """Return the other nodes whose text a write may change through a neighbour."""
    ids = [*(node.id for node in nodes), *deletes]
    names = {node.id: node.name for node in store.get(ids) if node is not None}
    changed = [node.id for node in nodes if names.get(node.id, node.name) != node.name]
    changed += [node_id for node_id in deletes if node_id in names]
    touched = {end for edge in edges for end in (edge.source, edge.target)}
    for edge in store.neighbors(changed) if changed else ():
        touched |= {edge.source, edge.target}
    return sorted(touched.difference(ids))
