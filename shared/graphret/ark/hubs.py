"""The edges of the hubs of a database, kept in columns for as long as nothing is written."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Protocol, runtime_checkable

from graphret.ark.neighborhood import CAP
from graphret.stores.base import GraphStore
from graphret.stores.incidence import Incidence, Incident

#: A node with more edges is read through the calls of the contract, the heaviest of them alone.
LARGEST = 1_000_000
#: Edges that are kept at most, about 20 bytes each and 30 for each neighbour,
KEPT = 2_000_000
#: that are read before anybody asks for them,
PREPARED = 1_000_000
#: and that a graph has in which hubs are looked for at all: a million takes about a second.
SEARCHED = 2_000_000


@runtime_checkable
class _Finding(Protocol):
    """A store that can say which of its nodes are hubs."""

    def hubs(self, above: int) -> list[tuple[str, int]]: ...


class Hubs:
    """Reads the edges of hubs, and keeps them.

    What was kept counts for nothing once the store's state is another. A database elsewhere tells its state with each
    answer: the caller has just read something of it.
    """

    def __init__(self) -> None:
        self._kept: OrderedDict[str, tuple[Hashable, Incidence]] = OrderedDict()
        self._lock = threading.Lock()

    def prepare(self, store: GraphStore, then: Callable[[Incidence], None]) -> None:
        """Read the largest hubs now, where the store can tell them at once and is no view, and hand them to `then`."""
        if not isinstance(store, Incident) or not isinstance(store, _Finding):
            return
        if getattr(store, "restriction", None) is not None or store.count()[1] > SEARCHED:
            return
        left = PREPARED
        for node, edges in store.hubs(CAP):
            if edges <= left:
                left -= edges
                links = self._read(store, node)
                if links is not None:
                    then(links)

    def of(self, store: GraphStore, node: str) -> Incidence | None:
        """Return the edges of a hub; `None` of a node that is none, and where the store does not read in columns."""
        if not isinstance(store, Incident):
            return None
        state = store.state()
        with self._lock:
            known = self._kept.get(node)
            if known is not None and state is not None and known[0] == state:
                self._kept.move_to_end(node)
                return known[1]
        if not CAP < store.degree(node) <= LARGEST:
            return None
        return self._read(store, node)

    def _read(self, store: Incident, node: str) -> Incidence | None:
        before = store.state()
        found = store.incidence(node)
        if found is None or before is None or store.state() != before:
            return found
        with self._lock:
            self._kept[node] = before, found
            self._kept.move_to_end(node)
            while sum(len(links) for _, links in self._kept.values()) > KEPT:
                self._kept.popitem(last=False)
        return found
