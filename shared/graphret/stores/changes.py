"""What a store wrote since a state that it was in, so that what was read then can be brought up to date."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol, Self, runtime_checkable

from graphret.stores.base import GraphStore
from graphret.types import Edge

_KEPT = 64


@dataclass(frozen=True, slots=True)
class Written:
    """Where a graph may be different after writes.

    Parameters
    ----------
    nodes
        Nodes that are different, came or went.
    pairs
        The source and the target of edges that are different, or came or went by themselves.
    gone
        Of the nodes those that went, with all their edges; they may be back.
    """

    nodes: frozenset[str] = frozenset()
    pairs: frozenset[tuple[str, str]] = frozenset()
    gone: frozenset[str] = frozenset()

    @classmethod
    def of(cls, nodes: Iterable[str] = (), edges: Iterable[Edge] = (), deletes: Iterable[str] = ()) -> Self:
        """Return what a call of a store writes: nodes by id, edges, and nodes by id that go."""
        gone = frozenset(deletes)
        return cls(gone.union(nodes), frozenset((edge.source, edge.target) for edge in edges), gone)

    def __or__(self, other: Written) -> Written:
        return Written(self.nodes | other.nodes, self.pairs | other.pairs, self.gone | other.gone)


@runtime_checkable
class Recording(GraphStore, Protocol):
    """A store that remembers its latest writes, and knows where something else may have written."""

    def written(self, since: Any) -> Written | None:
        """Return what was written since a state of the store; `None` where that is not known."""
        ...


class Changes:
    """The number of the state that a store is in, and what was written in each of the last; one thread writes."""

    def __init__(self) -> None:
        self._count = 0
        self._under_way = False
        self._last: tuple[tuple[int, Written | None], ...] = ()

    @property
    def state(self) -> int | None:
        """A number that stays the same until something is written; `None` while something is."""
        return None if self._under_way else self._count

    @contextmanager
    def writing(self, written: Written | None = None) -> Iterator[None]:
        """Change the state: what is read until the end may be from before or after.

        Parameters
        ----------
        written
            What is written at most; `None` if it may be anything.
        """
        self._under_way = True
        self._last = (*self._last[1 - _KEPT :], (self._count + 1, written))
        self._count += 1
        try:
            yield
        finally:
            self._under_way = False

    def since(self, state: int) -> Written | None:
        """Return what was written since a state; `None` where that is not known."""
        last = self._last
        total = Written()
        for number, written in last:
            if number > state:
                if written is None:
                    return None
                total |= written
        first = last[0][0] if last else self._count + 1
        return total if first <= state + 1 else None
