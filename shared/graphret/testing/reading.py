"""Reading stores in tests: all of what they hold, in one order, and what the contract says of reads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any

from graphret.schema import GraphSchema
from graphret.stores.base import GraphStore
from graphret.types import Edge, Node
from graphret.where import Where, WhereLike

_ROWS = ("source_row", "target_row")


def edge_key(edge: Edge) -> tuple[Any, ...]:
    """Return the place of an edge in the order that stores keep: source, target, relation, rows."""
    return edge.source, edge.target, edge.relation, *(edge.properties.get(row, -1) for row in _ROWS)


def expected_neighbors(
    nodes: Sequence[Node],
    edges: Sequence[Edge],
    ids: Sequence[str],
    *,
    relations: Collection[str] | None = None,
    labels: Collection[str] | None = None,
    where: WhereLike = None,
    direction: str = "both",
    limit: int | None = None,
) -> list[Edge]:
    """Say what `GraphStore.neighbors` must return, from the words of its contract, one edge at a time."""
    by_id, condition = {node.id: node for node in nodes}, Where.parse(where)

    def fits(node_id: str) -> bool:
        node = by_id[node_id]
        return (labels is None or not set(labels).isdisjoint(node.labels)) and (
            condition is None or condition.matches(node)
        )

    chosen: set[int] = set()
    for anchor in dict.fromkeys(i for i in ids if i in by_id):
        own = [
            i
            for i, edge in enumerate(edges)
            if (relations is None or edge.relation in relations)
            and (
                (direction != "in" and edge.source == anchor and fits(edge.target))
                or (direction != "out" and edge.target == anchor and fits(edge.source))
            )
        ]
        own.sort(key=lambda i: (-edges[i].weight, edge_key(edges[i])))
        chosen.update(own[:limit])
    return sorted((edges[i] for i in chosen), key=edge_key)


def check_schema(schema: GraphSchema, nodes: Sequence[Node], edges: Sequence[Edge], *, primary: bool = False) -> None:
    """Hold a schema against the graph: what it does not say was read in part is whole, and nothing is made up.

    Parameters
    ----------
    primary
        Whether an edge counts under the primary labels of its ends alone, as in Ladybug.
    """
    counted = Counter(label for node in nodes for label in set(node.labels))
    under = {node.id: (node.labels[:1] if primary else (*set(node.labels),)) or ("",) for node in nodes}
    triples = Counter((s, e.relation, t) for e in edges for s in under[e.source] for t in under[e.target])
    labels = {label: n for label, n in schema.labels.items() if n}
    relations = {triple: n for triple, n in schema.relations.items() if n}
    assert labels.keys() <= counted.keys()
    assert relations.keys() <= triples.keys()
    if not schema.sampled_names:
        assert labels == counted
        assert set(schema.relation_names) == {edge.relation for edge in edges}
    doubtful = schema.sampled_relations
    assert {t for t in triples if t[1] not in doubtful} == {t for t in relations if t[1] not in doubtful}
    if not schema.sampled:
        assert relations == triples
    for label in counted.keys() - schema.sampled_properties:
        own = {key for node in nodes if label in node.labels for key in node.properties}
        assert own - {"name"} <= schema.properties.get(label, {}).keys()  # a store may call that one otherwise
    for relation in {edge.relation for edge in edges} - schema.sampled_relation_properties:
        own = {key for edge in edges if edge.relation == relation for key in edge.properties} - set(_ROWS)
        assert own <= schema.relation_properties.get(relation, {}).keys()


def all_nodes(store: GraphStore, **options: Any) -> list[Node]:
    """Return the nodes of a store in one list."""
    return [node for block in store.nodes(**options) for node in block]


def all_edges(store: GraphStore, **options: Any) -> list[Edge]:
    """Return the edges of a store in one list, in order."""
    return sorted((edge for block in store.edges(**options) for edge in block), key=edge_key)
