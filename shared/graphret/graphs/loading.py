"""A graph goes into a store: whole into memory, in batches into a database, from where an earlier try had come."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

from graphret._contracts import require_direct
from graphret.errors import InvalidInput
from graphret.graphs.checking import REFUSED, check_copy, check_tables, placed, refuse_placed
from graphret.graphs.counting import Identities
from graphret.graphs.journal import Journal
from graphret.graphs.places import Places
from graphret.graphs.resuming import resumed
from graphret.graphs.tables import GraphTables
from graphret.graphs.writing import Progress, no_progress
from graphret.stores.base import GraphStore
from graphret.stores.memory import MemoryStore
from graphret.types import Node

if TYPE_CHECKING:
    from graphret.stores.ladybug import LadybugStore

#: How many nodes, and how many edges, are written in one transaction.
NODE_BATCH, EDGE_BATCH = 10_000, 20_000
_ROWS = ("source_row", "target_row")


@dataclass(frozen=True, slots=True)
class Loaded:
    """What was written: how many nodes and edges, and how many of them an earlier, interrupted try had written.

    `merged` counts the edges that were read besides, of which a later one took the place.
    """

    nodes: int
    edges: int
    resumed_nodes: int = 0
    resumed_edges: int = 0
    merged: int = 0


def load_tables(
    tables: GraphTables, store: GraphStore, *, journal: Journal | None = None, progress: Progress = no_progress
) -> Loaded:
    """Write a graph into a store, over what has its ids.

    Parameters
    ----------
    tables
        The graph.
    store
        Where to. A `MemoryStore`, and an empty `LadybugStore`, take it in one step; any other in transactions
        of `NODE_BATCH` nodes, then of `EDGE_BATCH` edges, once it has been asked (`check`, where it has that) whether
        it refuses one of them.
    journal
        Remembers the batches that are in the store. With one, a second call after an interruption goes on behind them,
        or from the first node, and the first edge, of them that is not there any more: they are read, not written.

    Raises
    ------
    InvalidInput, StoreMismatch
        Names the file and line, or position, of what the store refuses, where they are known; nothing is then written,
        unless only the database itself could tell, when the batches before then stay.
    StoreError
        What the store raises: it holds the batches before then.
    """
    require_direct(store)
    if isinstance(store, MemoryStore) or _loads_whole(store):
        try:
            if isinstance(store, MemoryStore):
                nodes, edges = tables.nodes(NODE_BATCH), tables.edges(EDGE_BATCH)
                store.upsert(chain.from_iterable(nodes), chain.from_iterable(edges))
            else:
                store.load(memory_store(tables, double=True))
        except REFUSED as error:
            refuse_placed(error, tables, store)
        return Loaded(*tables.count())
    check_tables(tables, store)
    grouped = tables.grouped()
    return _write(
        store,
        tables.count(),
        lambda at: grouped.nodes(NODE_BATCH, at),
        lambda at: grouped.edges(EDGE_BATCH, at),
        journal,
        progress,
        (grouped.node_places, grouped.edge_places),
    )


def copy(
    source: GraphStore, target: GraphStore, *, journal: Journal | None = None, progress: Progress = no_progress
) -> Loaded:
    """Copy every node and edge of one store into another, over what has their ids, in blocks.

    Of parallel edges, which a database that something else wrote may have, the target keeps the last that was read.

    Parameters
    ----------
    source, target
        Any two stores. The source must not change meanwhile.
    journal
        See `load_tables`; blocks that are in the target are then read, in the source too, and not written again.

    Raises
    ------
    InvalidInput
        Names what the target refuses; nothing is then written, see `load_tables`.
    StoreError
        What the stores raise.
    """
    require_direct(source, "source")
    require_direct(target, "target")
    if isinstance(source, MemoryStore) and _loads_whole(target):
        target.load(source)
        return Loaded(*source.count())
    seen = Identities()
    if isinstance(target, MemoryStore):
        target.upsert(chain.from_iterable(source.nodes()), chain.from_iterable(seen.counted(source.edges())))
        n, m = source.count()
        return Loaded(n, m - seen.merged(), merged=seen.merged())
    check_copy(source, target)
    done = _write(
        target,
        source.count(),
        lambda at: _from(_distinct(source.nodes()), at, NODE_BATCH),
        lambda at: _from(seen.counted(source.edges()), at, EDGE_BATCH),
        journal,
        progress,
    )
    return replace(done, edges=done.edges - seen.merged(), merged=seen.merged())


def _loads_whole(store: GraphStore) -> TypeGuard[LadybugStore]:
    """Whether a store takes a whole graph in one step and one transaction."""
    from graphret.stores.ladybug import LadybugStore

    return isinstance(store, LadybugStore) and store.count() == (0, 0)


def _write(
    store: GraphStore,
    total: tuple[int, int],
    nodes: Any,
    edges: Any,
    journal: Journal | None,
    progress: Progress,
    places: tuple[Places | None, Places | None] = (None, None),
) -> Loaded:
    """Write blocks of nodes and then of edges, each from a position on."""

    def write(block: list[Any], first: int, where: Places | None, **given: Any) -> None:
        try:
            store.upsert(**given)
        except REFUSED as error:
            stays = f"; {n:,} nodes and {m:,} edges that were written before it stay" if n else ""
            raise type(error)(placed(error, block, first, where) + stays) from error

    n, m = resumed(store, total, nodes, edges, journal)
    before = n, m
    for node_block in nodes(n):
        write(node_block, n, places[0], nodes=node_block)
        n += len(node_block)
        if journal is not None:
            journal.write(n, m)
        progress("nodes", n, total[0])
    for edge_block in edges(m):
        write(edge_block, m, places[1], edges=edge_block)
        m += len(edge_block)
        if journal is not None:
            journal.write(n, m)
        progress("edges", m, total[1])
    if journal is not None:
        journal.close()
    return Loaded(n, m, *before)


def _distinct(blocks: Iterable[list[Node]]) -> Iterator[list[Node]]:
    """Go through nodes by id, and refuse two of one id, which something else may have written."""
    last: str | None = None
    for block in blocks:
        for node in block:
            if node.id == last:
                raise InvalidInput(f"node {node.id!r}: two nodes of the source have this id")
            last = node.id
        yield block


def _from(blocks: Iterable[list[Any]], at: int, size: int) -> Iterator[list[Any]]:
    """Go through blocks from an item on, in blocks of `size`."""
    waiting: list[Any] = []
    for block in blocks:
        if at >= len(block):
            at -= len(block)
            continue
        waiting += block[at:]
        at = 0
        while len(waiting) >= size:
            yield waiting[:size]
            waiting = waiting[size:]
    if waiting:
        yield waiting


def memory_store(tables: GraphTables, *, double: bool = False) -> MemoryStore:
    """Make a `MemoryStore` of a graph, column by column; with `double`, weights are not rounded to single precision."""
    own = tables.edge_properties
    rows = [_rows(own, key) for key in _ROWS]
    if own is not None and any(row is not None for row in rows):
        own = [{key: value for key, value in one.items() if key not in _ROWS} for one in own]
    return MemoryStore.from_arrays(
        tables.ids,
        names=tables.names,
        texts=tables.texts,
        labels=tables.labels,
        label_sets=tables.label_sets or (("Node",),),
        properties=tables.properties,
        source=tables.source,
        target=tables.target,
        relation=tables.relation,
        relations=tables.relations,
        weight=tables.weight,
        source_row=rows[0],
        target_row=rows[1],
        edge_properties=own,
        double=double,
    )


def _rows(properties: Sequence[Mapping[str, Any]] | None, key: str) -> NDArray[np.int64] | None:
    if properties is None or not any(key in own for own in properties):
        return None
    return np.asarray([own.get(key, -1) for own in properties], dtype=np.int64)
