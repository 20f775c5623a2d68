"""Indexes that follow a store in Neo4j: what they hold of a node is written in the transaction that writes the node."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from graphret.errors import InvalidInput
from graphret.stores.changes import Written
from graphret.stores.memory import MemoryStore
from graphret.stores.neo4j.reads import Graph
from graphret.stores.neo4j.statements import Plan, Statement, Work
from graphret.types import Edge, Node

_WHERE = Statement("CALL dbms.info() YIELD id AS server CALL db.info() YIELD id, name RETURN server, id, name")


@runtime_checkable
class InDatabase(Protocol):
    """An index that lives in the database beside the nodes."""

    store: Any
    """The `Neo4jStore` that it was made with."""

    @property
    def reads_neighbors(self) -> bool:
        """Whether what it holds of a node depends on the node's neighbours."""
        ...

    def keeps_as(self, other: Any) -> bool:
        """Whether what it keeps beside a node is what another index of its kind keeps there."""
        ...

    def written(self, graph: Graph, nodes: Sequence[Node], source: Any) -> Plan[None]:
        """Write what it holds of nodes that are in the database now; `source` has them and their neighbours."""
        ...


def require_same_database(uri: str, indexes: Sequence[InDatabase]) -> Plan[None]:
    """Raise an `InvalidInput` that names both if an index lies in another database than the one that is asked.

    A name or an address would not tell: a server has several, and most databases are called ``neo4j``.

    Parameters
    ----------
    uri
        Where the database that is asked is, for messages.
    """
    ((*here, name),) = yield _WHERE
    for index in indexes:
        ((*there, other),) = index.store.run(Work(_asked))
        if there != here:
            raise InvalidInput(
                f"index: the store writes to the database {name!r} of {uri} ({here[-1][:8]}…), and the index lies in "
                f"{other!r} of {index.store.options.uri} ({there[-1][:8]}…), which it would not follow; detach it"
            )


def _asked() -> Plan[list[list[Any]]]:
    return (yield _WHERE)


@dataclass(slots=True)
class Step:
    """A write and what the indexes make of it, in one transaction that may be begun anew.

    Parameters
    ----------
    graph
        The graph that is written to.
    followers
        Indexes that are `InDatabase`, and indexes of this process that stage a change before they adopt it.
    nodes, edges, deletes
        What is written and taken away.
    """

    graph: Graph
    followers: Sequence[Any]
    nodes: Sequence[Node] = ()
    edges: Sequence[Edge] = ()
    deletes: Sequence[str] = ()
    _adopt: list[Callable[[], None]] = field(default_factory=list)

    def work(self, begin: Callable[[], Plan[None]]) -> Work[None]:
        """Return `plan` as work to be run."""
        written = Written.of((node.id for node in self.nodes), self.edges, self.deletes)
        return Work(lambda: self.plan(begin()), writes=True, computes=bool(self.followers), written=written)

    def plan(self, work: Plan[None]) -> Plan[None]:
        """Do `work`, then write what indexes in the database hold of the nodes, and make the others ready."""
        self._adopt = []
        reading = any(one.reads_neighbors for one in self.followers)
        touched = (yield from self._touched()) if reading else []
        yield from work
        if not self.followers:
            return
        others = [node for node in (yield from self.graph.get(touched)) if node is not None]
        source = (yield from fetched(self.graph, [*self.nodes, *others])) if reading else MemoryStore()
        for one in self.followers:
            chosen = [*self.nodes, *others] if one.reads_neighbors else list(self.nodes)
            if isinstance(one, InDatabase):
                yield from one.written(self.graph, chosen, source)
            elif chosen or self.deletes:
                self._adopt.append(one.staged(chosen, self.deletes, source))

    def adopt(self) -> None:
        """Put the changes of indexes of this process in force, now that the transaction is through."""
        for adopt in self._adopt:
            adopt()

    def _touched(self) -> Plan[list[str]]:
        """Find the other nodes whose text may change: a neighbour is renamed or goes, or an edge comes."""
        ids = list(dict.fromkeys([*(node.id for node in self.nodes), *self.deletes]))
        before = {node.id: node.name for node in (yield from self.graph.get(ids)) if node is not None}
        changed = [node.id for node in self.nodes if before.get(node.id, node.name) != node.name]
        changed += [node_id for node_id in self.deletes if node_id in before]
        touched = {end for edge in self.edges for end in (edge.source, edge.target)}
        for edge in (yield from self.graph.neighbors(changed, None, None, None, "both", None)):
            touched |= {edge.source, edge.target}
        return sorted(touched.difference(ids))


def fetched(graph: Graph, nodes: Sequence[Node]) -> Plan[MemoryStore]:
    """Read the neighbours of nodes, and return all of them as a store."""
    edges = yield from graph.neighbors([node.id for node in nodes], None, None, None, "both", None)
    known = {node.id: node for node in nodes}
    ends = {end for edge in edges for end in (edge.source, edge.target)}
    for node in (yield from graph.get(sorted(ends.difference(known)))):
        if node is not None:
            known[node.id] = node
    return MemoryStore.of(known.values(), edges)
