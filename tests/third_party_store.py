"""A store as somebody else might write it: the contract, and nothing besides."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from graphret.schema import GraphSchema
from graphret.stores.base import GraphStore
from graphret.stores.memory import MemoryStore
from graphret.testing.graphs import edge_key, expected_neighbors
from graphret.types import Edge, EdgeKey, Node
from graphret.where import Where, WhereLike


class ThirdPartyStore(GraphStore):
    """Nodes and edges in dictionaries."""

    def __init__(self, nodes: Iterable[Node] = (), edges: Iterable[Edge] = ()) -> None:
        self._nodes: dict[str, Node] = {}
        self._edges: dict[EdgeKey, Edge] = {}
        self.restriction: Where | None = None
        self.upsert(nodes, edges)

    def schema(self) -> GraphSchema:
        return MemoryStore.of(self._nodes.values(), self._edges.values()).schema()

    def get(self, ids: Sequence[str]) -> list[Node | None]:
        return [self._nodes.get(node_id) for node_id in ids]

    def neighbors(self, ids: Sequence[str], **options: Any) -> list[Edge]:
        nodes, edges = [*self._nodes.values()], [*self._edges.values()]
        return expected_neighbors(nodes, edges, ids, **options)

    def upsert(self, nodes: Iterable[Node] = (), edges: Iterable[Edge] = ()) -> None:
        self._nodes |= {node.id: node for node in nodes}
        self._edges |= {edge.identity: edge for edge in edges}

    def delete(self, ids: Iterable[str]) -> None:
        kept = self._nodes.keys() - set(ids)
        self._nodes = {node_id: self._nodes[node_id] for node_id in kept}
        self.delete_edges(
            [e for e in self._edges.values() if not {e.source, e.target} <= kept]
        )

    def delete_edges(self, edges: Iterable[Edge]) -> None:
        for edge in edges:
            self._edges.pop(edge.identity, None)

    def count(self) -> tuple[int, int]:
        return len(self._nodes), len(self._edges)

    def nodes(
        self, labels: Iterable[str] | None = None, where: WhereLike = None
    ) -> Iterator[list[Node]]:
        condition = Where.parse(where)
        for _, node in sorted(self._nodes.items()):
            labelled = labels is None or not set(labels).isdisjoint(node.labels)
            if labelled and (condition is None or condition.matches(node)):
                yield [node]

    def edges(self, relations: Iterable[str] | None = None) -> Iterator[list[Edge]]:
        for edge in sorted(self._edges.values(), key=edge_key):
            if relations is None or edge.relation in relations:
                yield [edge]

    def view(self, where: WhereLike) -> ThirdPartyStore:
        nodes = {node.id: node for [node] in self.nodes(where=where)}
        ends = ((edge, {edge.source, edge.target}) for [edge] in self.edges())
        edges = [edge for edge, both in ends if both <= nodes.keys()]
        view = ThirdPartyStore(nodes.values(), edges)
        view.restriction = Where.parse(where)
        return view
