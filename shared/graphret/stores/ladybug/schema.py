"""The schema of a Ladybug database: labels and triples are counted, properties are read from a sample."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, TypeVar

from graphret.schema import GraphSchema, SchemaBuilder
from graphret.stores.ladybug.graph import Graph
from graphret.stores.ladybug.tables import EDGE_COLUMNS, NODE_COLUMNS, Table, literal, quoted
from graphret.types import Edge, Node

T = TypeVar("T", Node, Edge)


def read_schema(graph: Graph, sample: int) -> GraphSchema:
    """Return the schema of a graph whose scope is `decided`; see `LadybugStore.schema`."""
    catalog, builder = graph.catalog, SchemaBuilder()
    labels: Counter[str] = Counter()
    in_part: set[str] = set()
    edges_in_part: set[str] = set()
    for table in catalog.nodes.values():
        own = graph.of(table)
        head = f"MATCH ({own.pattern}) WHERE {own.text}"
        borne = "n.labels" if catalog.native else f"[{literal(table.label)}]"
        counts = graph.session.rows(f"{head} RETURN {borne}, count(*)", own.parameters)
        n = sum(m for _, m in counts)
        for some, m in counts:
            labels.update(dict.fromkeys(some, m))
            in_part.update((some or [""]) if n > sample else ())
        rows = graph.session.rows(f"{head} RETURN {catalog.returned(table)} LIMIT {sample}", own.parameters)
        read = [catalog.node(table, row) for row in rows]
        nodes = [
            _in_cypher(table, node, zip(catalog.own, (node.id, node.name, node.text), strict=True)) for node in read
        ]
        builder.observe_nodes(nodes, times=max(1, round(n / max(1, len(nodes)))))
    triples: Counter[tuple[str, str, str]] = Counter()
    for (source, name, target), n in graph.triples().items():
        relation = catalog.relations[name]
        triples[catalog.nodes[source].label, relation.label, catalog.nodes[target].label] += n
        returned = ", ".join(["0", *(f"r.{quoted(column)}" for column in relation.columns)])
        found = graph.joined((source, name, target), f"{returned} LIMIT {sample}")
        held = (catalog.edge(relation, "", "", dict(zip(relation.columns, row[1:], strict=True))) for row in found)
        edges = [_in_cypher(relation, edge, [("weight", edge.weight != 1.0 and edge.weight)]) for edge in held]
        builder.observe_edges(edges, times=max(1, round(n / max(1, len(edges)))))
        edges_in_part.update([relation.label] if n > sample else [])
    relations = [t for t in catalog.relations.values() if any(t.label == name for _, name, _ in triples)]
    tables = {table.label: name for name, table in catalog.nodes.items()}
    readable = EDGE_COLUMNS.keys() if catalog.native else {"weight"}
    return builder.build(
        labels,
        triples,
        sampled_properties=in_part,
        sampled_relation_properties=edges_in_part,
        cypher_labels={label: tables.get(label) for label in sorted(labels) if label and tables.get(label) != label},
        cypher_relations={table.label: table.name for table in relations if table.label != table.name},
        columns={label: NODE_COLUMNS for label in tables if catalog.native and label and label in labels},
        relation_columns={table.label: readable for table in relations if "weight" in table.own},
    )


def _in_cypher(table: Table, item: T, own: Iterable[tuple[str | None, Any]]) -> T:
    """Return a node or an edge with properties as queries name them, and fields of its own among them."""
    fields = {column: value for column, value in own if column and value}
    named = {table.properties.get(name, name): value for name, value in item.properties.items()}
    return replace(item, properties=fields | named)
