"""The contract of graph stores. Every call takes a batch."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Protocol, runtime_checkable

from graphret.types import Edge, GraphSchema, Node
from graphret.where import WhereLike


@runtime_checkable
class GraphStore(Protocol):
    """Holds nodes and edges."""

    def schema(self) -> GraphSchema:
        """Return the labels and relations with their counts."""
        ...

    def get(self, ids: Sequence[str]) -> list[Node | None]:
        """Return nodes by id, `None` for those that are not here."""
        ...

    def neighbors(
        self,
        ids: Sequence[str],
        *,
        relations: Collection[str] | None = None,
        labels: Collection[str] | None = None,
        where: WhereLike = None,
        direction: str = "both",
        limit: int | None = None,
    ) -> list[Edge]:
        """Return the edges that touch the nodes.

        Parameters
        ----------
        ids
            The nodes; unknown ids are ignored.
        relations
            Only edges of these relations.
        labels, where
            Only edges whose other end bears one of the labels and satisfies the condition.
        direction
            ``out``, ``in`` or ``both``, seen from the nodes.
        limit
            At most this many edges for each of the nodes, the heaviest first.
        """
        ...

    def upsert(self, nodes: Iterable[Node] = (), edges: Iterable[Edge] = ()) -> None:
        """Add nodes and edges, or replace those of the same identity; an edge's ends must exist."""
        ...

    def delete(self, ids: Iterable[str]) -> None:
        """Take nodes away, and every edge that touches them; unknown ids are ignored."""
        ...

    def count(self) -> tuple[int, int]:
        """Return how many nodes and how many edges there are."""
        ...

    def view(self, where: WhereLike) -> GraphStore:
        """Return the store as far as nodes satisfy `where`; nothing of the others can be read through it."""
        ...
