"""Taking edges away, which the contract of stores does with their nodes alone."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from graphret.errors import StoreError
from graphret.stores.base import GraphStore
from graphret.types import Edge

_ROWS = ("source_row", "target_row")


def identity(edge: Edge) -> tuple[Any, ...]:
    """Return what identifies an edge in a store: source, relation, target and rows."""
    return edge.source, edge.relation, edge.target, *(edge.properties.get(row) for row in _ROWS)


def delete_edges(store: GraphStore, edges: Iterable[Edge]) -> None:
    """Take edges away, known by their identity; those that are not there are ignored.

    A store that has a method of this name does it itself, in one write, as graphret's own do. From any other the
    sources are taken away and written again, with everything else that touches them: two writes, of which a reader may
    see the first alone.

    Raises
    ------
    StoreError
        When the second write failed, and failed again: the sources are then missing, and the message names them.
    """
    gone = {identity(edge): edge for edge in edges}
    own = getattr(store, "delete_edges", None)
    if own is not None:
        own(list(gone.values()))
        return
    sources = sorted({edge.source for edge in gone.values()})
    nodes = [node for node in store.get(sources) if node is not None] if sources else []
    if not nodes:
        return
    touching = store.neighbors([node.id for node in nodes])
    kept = [edge for edge in touching if identity(edge) not in gone]
    if len(kept) == len(touching):
        return
    store.delete([node.id for node in nodes])
    try:
        store.upsert(nodes, kept)
    except Exception:
        try:
            store.upsert(nodes, kept)
        except Exception as error:
            names = ", ".join(repr(node.id) for node in nodes[:10])
            raise StoreError(f"{len(nodes)} nodes were taken away and could not be written again: {names}") from error
