"""Indexes that follow a store in Neo4j: what they hold of a node is written in the transaction that writes the node."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, Protocol, runtime_checkable

from graphret.stores.memory import MemoryStore
from graphret.stores.neo4j.reads import CHUNK, Graph
from graphret.stores.neo4j.statements import Plan
from graphret.types import Edge, Node

#: What puts a change of an index of this process in force, once the transaction is through.
Adopt = Callable[[], None]


@runtime_checkable
class InDatabase(Protocol):
    """An index that lives in the database beside the nodes."""

    @property
    def reads_neighbors(self) -> bool:
        """Whether what it holds of a node depends on the node's neighbours."""
        ...

    def written(self, graph: Graph, nodes: Sequence[Node], source: Any) -> Plan[None]:
        """Write what it holds of nodes that are in the database now; `source` has them and their neighbours."""
        ...


def followed(
    graph: Graph,
    followers: Sequence[Any],
    work: Plan[None],
    nodes: Sequence[Node] = (),
    edges: Sequence[Edge] = (),
    deletes: Sequence[str] = (),
) -> Plan[list[Adopt]]:
    """Do `work`, and in the same transaction what the indexes make of it.

    Parameters
    ----------
    followers
        Those that are `InDatabase`, and indexes of this process that stage a change before they adopt it.
    nodes, edges, deletes
        What `work` writes and takes away.

    Returns
    -------
    list of callables
        To be called when the transaction is through.
    """
    if not followers:
        yield from work
        return []
    reading = any(one.reads_neighbors for one in followers)
    touched = (yield from _touched(graph, nodes, edges, deletes)) if reading else []
    yield from work
    others = [node for node in (yield from graph.get(touched)) if node is not None]
    source = (yield from fetched(graph, [*nodes, *others])) if reading else MemoryStore()
    adopt: list[Adopt] = []
    for one in followers:
        chosen = [*nodes, *others] if one.reads_neighbors else list(nodes)
        if isinstance(one, InDatabase):
            yield from one.written(graph, chosen, source)
        elif chosen or deletes:
            adopt.append(one.staged(chosen, deletes, source))
    return adopt


def fetched(graph: Graph, nodes: Sequence[Node]) -> Plan[MemoryStore]:
    """Read the neighbours of nodes, and return all of them as a store."""
    edges = yield from graph.neighbors([node.id for node in nodes], None, None, None, "both", None)
    known = {node.id: node for node in nodes}
    ends = {end for edge in edges for end in (edge.source, edge.target)}
    for node in (yield from graph.get(sorted(ends.difference(known)))):
        if node is not None:
            known[node.id] = node
    return MemoryStore.of(known.values(), edges)


def _touched(graph: Graph, nodes: Sequence[Node], edges: Sequence[Edge], deletes: Collection[str]) -> Plan[list[str]]:
    """Find the other nodes whose text may change: a neighbour is renamed or goes, or an edge comes."""
    ids = list(dict.fromkeys([*(node.id for node in nodes), *deletes]))
    before = {}
    for start in range(0, len(ids), CHUNK):
        for node in (yield from graph.get(ids[start : start + CHUNK])):
            if node is not None:
                before[node.id] = node.name
    changed = [node.id for node in nodes if before.get(node.id, node.name) != node.name]
    changed += [node_id for node_id in deletes if node_id in before]
    touched = {end for edge in edges for end in (edge.source, edge.target)}
    if changed:
        for edge in (yield from graph.neighbors(changed, None, None, None, "both", None)):
            touched |= {edge.source, edge.target}
    return sorted(touched.difference(ids))
