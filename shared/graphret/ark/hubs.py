"""The edges of the hubs of a database, kept in columns, and brought up to date or read again after a write."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from graphret.ark.grouped import Around
from graphret.ark.neighborhood import CAP
from graphret.errors import StoreError
from graphret.stores.base import GraphStore
from graphret.stores.changes import Recording, Written
from graphret.stores.incidence import Incident, rejoined
from graphret.types import Node

#: A node with more edges is read through the calls of the contract, the heaviest of them alone.
LARGEST = 1_000_000
#: Edges that are kept at most, about 20 bytes each and 50 for each neighbour,
KEPT = 2_000_000
#: that are read before anybody asks for them,
PREPARED = 1_000_000
#: for about so many seconds, and nodes or edges of a graph in which hubs are looked for: a million takes about one.
SECONDS, SEARCHED = 2.0, 2_000_000
#: Neighbours that were written, at most, where what is kept is brought up to date and not read again.
WRITTEN = 1_000
#: Neighbours that were shown and are kept at most, and how long their texts may be.
NODES, LONG = 2_000, 10_000


@runtime_checkable
class _Finding(Protocol):
    """A store that can say which of its nodes are hubs."""

    def hubs(self, above: int) -> list[tuple[str, int]]: ...


@dataclass(frozen=True, slots=True)
class Kept:
    """The edges of a hub, and the state of its store in which they were read."""

    state: Hashable
    around: Around


class Hubs:
    """Reads the edges of hubs, and keeps them, and the neighbours that were shown.

    What was kept counts for nothing once the store's state is another, but for the edges of hubs where the store is one
    that knows what it wrote (`Recording`): these are read near what was written alone. A database elsewhere tells its
    state with each answer, so `known` is a guess until `read` has asked it something.
    """

    def __init__(self) -> None:
        self._kept: OrderedDict[str, Kept] = OrderedDict()
        self._shown: OrderedDict[str, tuple[Hashable, Node]] = OrderedDict()
        self._lock = threading.Lock()

    def prepare(self, store: GraphStore, then: Callable[[Around], None]) -> None:
        """Read the largest hubs now, for a few seconds at most, and hand them to `then`.

        Nothing is done for a view, nor of a store that cannot tell its hubs, or that was not asked anything before: a
        server may not be there. What fails here is left to the call that needs it.
        """
        if not isinstance(store, Incident) or not isinstance(store, _Finding) or store.state() is None:
            return
        if getattr(store, "restriction", None) is not None:
            return
        begun, left = time.monotonic(), PREPARED
        with suppress(StoreError):
            for node, edges in store.hubs(CAP) if max(store.count()) <= SEARCHED else ():
                if edges <= left and time.monotonic() - begun < SECONDS:
                    left -= edges
                    found = self._edges(store, node)
                    if found is not None:
                        then(found)

    def known(self, store: GraphStore, node: str) -> Kept | None:
        """Return what is kept of a hub, brought to the state that the store was last seen in where that can be done."""
        if not isinstance(store, Incident):
            return None
        state = store.state()
        with self._lock:
            known = self._kept.get(node)
            if known is not None:
                self._kept.move_to_end(node)
        if known is None or state is None or known.state == state:
            return None if state is None else known
        around = self._renewed(store, node, known) if isinstance(store, Recording) else None
        return self._keep(node, Kept(state, around)) if around is not None and store.state() == state else None

    def of(self, store: GraphStore, node: str) -> Around | None:
        """Return the edges of a hub; `None` of a node that is none, and where the store does not read in columns.

        The caller has just read something of the store.
        """
        if not isinstance(store, Incident):
            return None
        known = self.known(store, node)
        if known is not None:
            return known.around
        return self._edges(store, node) if CAP < store.degree(node) <= LARGEST else None

    def read(self, store: GraphStore, kept: Kept, node: str, others: Sequence[str]) -> list[Node | None] | None:
        """Return a hub and some of its neighbours; `None` where the store is in another state by then.

        It asks the store once, and of the neighbours for those that it was not asked for in this state before.
        """
        state = kept.state
        shown = self._still(store, state, others)
        found = store.get([node, *(one for one in others if one not in shown)])
        if not isinstance(store, Incident) or store.state() != state:
            return None
        shown |= {one.id: one for one in found if one is not None}
        with self._lock:
            for one in others:
                if one in shown and len(shown[one].text) <= LONG:
                    self._shown[one] = state, shown[one]
            while len(self._shown) > NODES:
                self._shown.popitem(last=False)
        return [shown.get(one) for one in (node, *others)]

    def _still(self, store: GraphStore, state: Hashable, others: Sequence[str]) -> dict[str, Node]:
        """Return those of some neighbours that were shown, and were not written since."""
        with self._lock:
            shown = {one: self._shown[one] for one in others if one in self._shown}
        states = {known for known, _ in shown.values()} - {state}
        written = {known: store.written(known) if isinstance(store, Recording) else None for known in states}
        written[state] = Written()
        return {
            one: node
            for one, (known, node) in shown.items()
            if (since := written[known]) is not None and one not in since.nodes
        }

    def _edges(self, store: Incident, node: str) -> Around | None:
        before = store.state()
        links = store.incidence(node)
        if links is None:
            return None
        known = self._kept.get(node)
        found = Around(links, known.around.places if known else None)
        if before is not None and store.state() == before:
            self._keep(node, Kept(before, found))
        return found

    def _renewed(self, store: Recording, node: str, known: Kept) -> Around | None:
        """Return the edges of a hub after writes, of which those near what was written are read."""
        written = store.written(known.state)
        if written is None or node in written.gone or (node, node) in written.pairs:
            return None
        links, view = known.around.links, getattr(store, "restriction", None) is not None
        if node in written.nodes and (view or links.nodes.find([node])[0] >= 0):
            return None  # a view may have hidden it; a loop leads to a node of another label
        linked = {end for pair in written.pairs if node in pair for end in pair} - {node}
        if view:
            linked |= written.nodes - {node}
        near = sorted(written.nodes - {node})  # who is no neighbour is none by being written, and a neighbour stays one
        near = [one for one, at in zip(near, links.nodes.find(near).tolist(), strict=True) if at >= 0]
        others = linked.union(one for one in near if one in written.gone)
        if len(others) + len(near) > WRITTEN:
            return None
        edges = store.neighbors(sorted(linked), where={"id": node}) if linked else []
        ends = {end for edge in edges for end in (edge.source, edge.target)} - {node}
        read = sorted((ends - links.reached(ends)).union(near) - (written.gone - ends))
        found = [one for one in store.get(read) if one is not None] if read else []
        joined = rejoined(links, node, others, edges, found)
        return known.around.elsewhere() if joined is links else Around(joined, known.around.places)

    def _keep(self, node: str, kept: Kept) -> Kept:
        with self._lock:
            self._kept[node] = kept
            self._kept.move_to_end(node)
            while sum(len(one.around.links) for one in self._kept.values()) > KEPT:
                self._kept.popitem(last=False)
        return kept
