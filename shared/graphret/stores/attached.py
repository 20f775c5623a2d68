"""Indexes that are attached to a store: what is written to the store reaches them in
the same step.
"""

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
    """What can make a change ready and put it in force later; the indexes of
    `graphret.search` are such.
    """

    @property
    def reads_neighbors(self) -> bool:
        """Whether what it holds of a node depends on the node's neighbours."""

    def bind(self, store: Any) -> None:
        """Look neighbours up in a store from now on."""

    def staged(
        self, upserts: Sequence[Node], deletes: Collection[str], source: Any = None
    ) -> Callable[[], None]:
        """Make ready a change with the store as it will be, and return what puts it in
        force, which cannot fail.
        """


def require_whole(is_view: bool) -> None:
    """Raise an `InvalidInput` if an index would follow a view, or be one: writes of the
    whole store would show.
    """
    if is_view:
        raise InvalidInput(
            "index: a view has no writes to follow; attach the index to the store, and"
            " view the index"
        )


class AttachedIndexes:
    """Gives a store `attach` and `detach`; the store puts each of its writes into
    `followed`.
    """

    _followers: tuple[StagedIndex, ...] = ()
    _is_view = False

    def attach(self, index: Any) -> None:
        """Keep an index in step with this store from now on.

        It must hold the store's nodes as they are now, as those made by ``of_store``
        do. What is upserted and deleted here then reaches it, and nodes whose text
        names a neighbour that changed are read anew. A write is all or none: where an
        index fails, its encoder being down for instance, the store and every index stay
        as they were. What others write to the database does not reach it.

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
            *(known for known in self._followers if known is not index),
            index,
        )

    def _require_writable(self) -> None:
        if self._is_view:
            raise StoreError(
                "a view of a store cannot be written to; write to the store itself"
            )

    def detach(self, index: Any) -> None:
        """Let an index go; one that is not attached is ignored."""
        self._followers = tuple(
            known for known in self._followers if known is not index
        )

    @contextmanager
    def followed(
        self,
        nodes: Sequence[Node] = (),
        edges: Sequence[Edge] = (),
        deletes: Sequence[str] = (),
    ) -> Iterator[Callable[[GraphStore], None]]:
        """Make a write of this store one of its indexes too; the state before is read
        on entry.

        Yields what is to be called with the store as it will be, before the write is
        put in force. The indexes change on leaving, but not by an error.
        """
        followers = self._followers
        nodes, deletes = (
            list({node.id: node for node in nodes}.values()),
            list(dict.fromkeys(deletes)),
        )
        reading = any(index.reads_neighbors for index in followers)
        touched = _touched(self, nodes, edges, deletes) if reading else []
        adopt: list[Callable[[], None]] = []

        def stage(after: GraphStore) -> None:
            adopt.clear()  # a database may try again
            others = (
                [node for node in after.get(touched) if node is not None]
                if touched
                else []
            )
            chosen = (
                (index, [*nodes, *others] if index.reads_neighbors else nodes)
                for index in followers
            )
            adopt.extend(
                index.staged(some, deletes, after)
                for index, some in chosen
                if some or deletes
            )

        yield stage
        for put_in_force in adopt:
            put_in_force()


def _touched(
    store: Any, nodes: Sequence[Node], edges: Sequence[Edge], deletes: Sequence[str]
) -> list[str]:
    """The other nodes whose text may change: a neighbour is renamed or goes, or an edge
    comes.
    """
    ids = [*(node.id for node in nodes), *deletes]
    names = {node.id: node.name for node in store.get(ids) if node is not None}
    changed = [node.id for node in nodes if names.get(node.id, node.name) != node.name]
    changed += [node_id for node_id in deletes if node_id in names]
    touched = {end for edge in edges for end in (edge.source, edge.target)}
    for edge in store.neighbors(changed) if changed else ():
        touched |= {edge.source, edge.target}
    return sorted(touched.difference(ids))
