"""How much of a load that was interrupted is in the store: what its journal says, as far as that still holds."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator

import numpy as np

from graphret.graphs.counting import key_of
from graphret.graphs.journal import Journal
from graphret.stores.base import GraphStore
from graphret.types import Edge, Node


def resumed(
    store: GraphStore,
    total: tuple[int, int],
    nodes: Callable[[int], Iterator[list[Node]]],
    edges: Callable[[int], Iterator[list[Edge]]],
    journal: Journal | None,
) -> tuple[int, int]:
    """Return how many nodes and edges need not be written again: those before the first that is not in the store.

    What the journal claims is read from the store, which takes a fraction of the time of writing it: since the load was
    interrupted, anyone may have taken some of it away, and have added as much.

    Parameters
    ----------
    store
        Where they are written.
    total
        How many nodes and edges are to be written.
    nodes, edges
        Go through them in blocks, from a position on.
    journal
        What an earlier try wrote.
    """
    n, m = journal.read() if journal is not None else (0, 0)
    if not n or n > total[0] or m > total[1]:
        return 0, 0
    return _nodes(store, nodes, n), _edges(store, edges, m)


def _nodes(store: GraphStore, nodes: Callable[[int], Iterator[list[Node]]], n: int) -> int:
    there = 0
    for block in nodes(0):
        held = store.get([node.id for node in block[: n - there]])
        if None in held:
            return there + held.index(None)
        there += len(held)
        if there == n:
            break
    return there


def _edges(store: GraphStore, edges: Callable[[int], Iterator[list[Edge]]], m: int) -> int:
    """Return how many edges are there, of which those of the same relations are read once, in no order of ours."""
    claimed, relations = array("q"), set()
    for block in edges(0) if m else ():
        for edge in block[: m - len(claimed)]:
            claimed.append(key_of(edge))
            relations.add(edge.relation)
        if len(claimed) == m:
            break
    if not claimed:
        return 0
    held = array("q", (key_of(edge) for block in store.edges(relations) for edge in block))
    sought, found = (np.frombuffer(keys, dtype=np.int64) for keys in (claimed, held))
    missing = np.flatnonzero(~np.isin(sought, found))
    return int(missing[0]) if len(missing) else len(claimed)
