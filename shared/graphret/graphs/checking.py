"""What a store refuses of a graph, found before anything is written, with the place where it was read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NoReturn, TypeVar

from graphret.errors import InvalidInput, StoreMismatch
from graphret.graphs.places import Places
from graphret.graphs.tables import GraphTables
from graphret.stores.base import GraphStore
from graphret.stores.memory import MemoryStore
from graphret.types import Edge, Node

#: What a store raises of a node or an edge; the second where what has its label or relation is not graphret's.
REFUSED = (InvalidInput, StoreMismatch)

T = TypeVar("T", Node, Edge)
_BLOCK = 10_000


class _Passing:
    """Goes through items one by one, and knows where the last was read."""

    def __init__(self) -> None:
        self._last: tuple[Node | Edge, Places, int] | None = None

    def through(self, blocks: Iterable[list[T]], places: Places | None) -> Iterator[T]:
        position = 0
        for block in blocks:
            for item in block:
                self._last = None if places is None else (item, places, position)
                yield item
                position += 1
        self._last = None

    def placed(self, error: Exception) -> Exception:
        """Return an error about the last item with the place of it."""
        if self._last is None:
            return error
        item, places, position = self._last
        return type(error)(_placed(str(error), item, places, position))


def check_tables(tables: GraphTables, store: GraphStore) -> None:
    """Refuse what the store will, with the place where it was read; nothing is written.

    Raises
    ------
    InvalidInput, StoreMismatch
        Names the place, the node or edge and what of it.
    """
    at = _Passing()
    try:
        _check(
            store,
            at.through(tables.nodes(_BLOCK), tables.node_places),
            at.through(tables.edges(_BLOCK), tables.edge_places),
        )
    except REFUSED as error:
        raise at.placed(error) from error


def refuse_placed(error: Exception, tables: GraphTables, store: GraphStore) -> NoReturn:
    """Raise what the store refused of a graph with the place where it was read, if that can be told."""
    check_tables(tables, store)
    for blocks, places in ((tables.nodes(_BLOCK), tables.node_places), (tables.edges(_BLOCK), tables.edge_places)):
        first = 0
        for block in blocks:
            if (said := placed(error, block, first, places)) != str(error):
                raise type(error)(said) from error
            first += len(block)
    raise error


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


def placed(error: Exception, block: Sequence[Node | Edge], first: int, places: Places | None) -> str:
    """Return the place and the words of an error that begins with an item of a block, as stores' errors do."""
    said = str(error)
    if places is None:
        return said
    for i, item in enumerate(block, first):
        name = _name(item)
        if said.startswith((f"{name}:", f"{name},", f"{name} ")):
            return _placed(said, item, places, i)
    return said


def _placed(said: str, item: Node | Edge, places: Places, position: int) -> str:
    return f"{places.at(position, said.removeprefix(_name(item)))}: {said}"


def _name(item: Node | Edge) -> str:
    return f"node {item.id!r}" if isinstance(item, Node) else f"edge {item.source!r} to {item.target!r}"
