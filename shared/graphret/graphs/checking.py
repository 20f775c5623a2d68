"""What a store refuses of a graph, found before anything is written, with the place where it was read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from graphret.errors import InvalidInput
from graphret.graphs.builder import Places
from graphret.graphs.tables import GraphTables
from graphret.stores.base import GraphStore
from graphret.stores.memory import MemoryStore
from graphret.types import Edge, Node

T = TypeVar("T")
_BLOCK = 10_000


class _Passing:
    """Goes through items one by one, and knows where the last was read."""

    def __init__(self) -> None:
        self.place = ""

    def through(self, blocks: Iterable[list[T]], places: Places | None) -> Iterator[T]:
        position = 0
        for block in blocks:
            for item in block:
                self.place = "" if places is None else f"{places[position]}: "
                yield item
                position += 1
        self.place = ""


def check_tables(tables: GraphTables, store: GraphStore) -> None:
    """Refuse what the store will, with the file and line where it was read; nothing is written.

    Raises
    ------
    InvalidInput
        Names the place, the node or edge and what of it.
    """
    at = _Passing()
    try:
        _check(
            store,
            at.through(tables.nodes(_BLOCK), tables.node_places),
            at.through(tables.edges(_BLOCK), tables.edge_places),
        )
    except InvalidInput as error:
        raise InvalidInput(f"{at.place}{error}") from error


def check_copy(source: GraphStore, target: GraphStore) -> None:
    """Refuse what `target` will of the nodes and edges of `source`; it is read for that."""
    if hasattr(target, "check"):
        at = _Passing()
        _check(target, at.through(source.nodes(), None), at.through(source.edges(), None))


def _check(store: GraphStore, nodes: Iterator[Node], edges: Iterator[Edge]) -> None:
    if isinstance(store, MemoryStore):
        for node in nodes:
            MemoryStore.of([node])
        for edge in edges:
            MemoryStore.of(map(Node, {edge.source, edge.target}), [edge])
    elif (check := getattr(store, "check", None)) is not None:
        check(nodes, edges)


def placed(error: InvalidInput, block: Sequence[Node | Edge], first: int, places: Places | None) -> str:
    """Return the place and the words of an error that begins with an item of a block, as stores' errors do."""
    said = str(error)
    for i, item in enumerate(block):
        name = f"node {item.id!r}" if isinstance(item, Node) else f"edge {item.source!r} to {item.target!r}"
        if places is not None and said.startswith((f"{name}:", f"{name},", f"{name} ")):
            return f"{places[first + i]}: {said}"
    return said
