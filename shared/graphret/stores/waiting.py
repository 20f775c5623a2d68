"""`Waiting`: writes that were checked, and are put into a graph when it is read."""

from __future__ import annotations

from collections.abc import Iterable

from graphret.change import Change
from graphret.edges import EdgeTable
from graphret.nodes import NodeTable
from graphret.types import Edge, Node
from graphret.validation import checked_edges

# So many may wait in any case, or one for so many nodes and edges of the graph: more
# take more memory than the columns that they will be in.
_FEW, _SHARE = 10_000, 8


class Waiting:
    """Nodes and edges that were upserted and are not in the columns of a graph yet.

    To put one node into the columns of a graph costs as much as to put a thousand: they
    are copied. So what comes is laid aside until somebody reads the graph.
    """

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}
        self.edges: list[Edge] = []

    def __bool__(self) -> bool:
        return bool(self.nodes or self.edges)

    def add(self, graph: NodeTable, nodes: list[Node], edges: Iterable[Edge]) -> None:
        """Lay aside nodes and edges that are upserted into a graph of given nodes.

        An `InvalidInput` names one that is malformed, or an edge whose source or target
        is neither there nor here; nothing is laid aside then.
        """
        fresh = {node.id: node for node in NodeTable.of(nodes)}
        listed = list(checked_edges(edges))
        end_ids = {end for edge in listed for end in (edge.source, edge.target)}
        existing_ids = {end for end in end_ids if end in fresh or end in self.nodes}
        remaining_ids = sorted(end_ids - existing_ids)
        in_graph = zip(remaining_ids, graph.find(remaining_ids).tolist(), strict=True)
        existing_ids.update(end for end, position in in_graph if position >= 0)
        end_table = NodeTable.of(Node(end) for end in existing_ids)
        self.edges.extend(EdgeTable.of(end_table, listed).edges(end_table.ids))
        self.nodes.update(fresh)

    def are_many(self, nodes: NodeTable, edges: EdgeTable) -> bool:
        """Whether more wait than a graph should let wait."""
        most = max(_FEW, (len(nodes) + len(edges)) // _SHARE)
        return len(self.nodes) + len(self.edges) > most

    def put_into(
        self, nodes: NodeTable, edges: EdgeTable
    ) -> tuple[NodeTable, EdgeTable]:
        """Return the columns of a graph with what waits in place of what it equals."""
        if self.nodes:
            change = Change.of(nodes, NodeTable.of(self.nodes.values()))
            if len(change.after) > len(nodes):
                edges = edges.moved(len(change.after), change.places)
            nodes = change.after
        if self.edges:
            edges = edges.merged(EdgeTable.of(nodes, self.edges))
        return nodes, edges
