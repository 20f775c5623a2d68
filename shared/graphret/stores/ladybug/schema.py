"""The schema of a Ladybug database: labels and triples are counted, properties are read from a sample."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from graphret.schema import GraphSchema, SchemaBuilder
from graphret.stores.ladybug.graph import Graph
from graphret.stores.ladybug.tables import EDGE_COLUMNS, NODE_COLUMNS, NODE_RETURNED, PROPERTIES, column_of, edge, node


def read_schema(graph: Graph, sample: int) -> GraphSchema:
    """Return the schema of a graph whose scope is `decided`; see `LadybugStore.schema`."""
    catalog, builder = graph.catalog, SchemaBuilder()
    labels: Counter[str] = Counter()
    in_part: set[str] = set()
    edges_in_part: set[str] = set()
    for table in catalog.nodes.values():
        own = graph.of(table)
        head = f"MATCH ({own.pattern}) WHERE {own.text}"
        counts = graph.session.rows(f"{head} RETURN n.labels, count(*)", own.parameters)
        n = sum(m for _, m in counts)
        for some, m in counts:
            labels.update(dict.fromkeys(some, m))
            in_part.update((some or [""]) if n > sample else ())
        read = map(node, graph.session.rows(f"{head} RETURN {NODE_RETURNED} LIMIT {sample}", own.parameters))
        nodes = [
            replace(one, properties=_columns(one.properties, id=one.id, name=one.name, text=one.text)) for one in read
        ]
        builder.observe_nodes(nodes, times=max(1, round(n / max(1, len(nodes)))))
    triples: Counter[tuple[str, str, str]] = Counter()
    for (source, name, target), n in graph.triples().items():
        relation = catalog.relations[name]
        triples[catalog.nodes[source].label, relation.label, catalog.nodes[target].label] += n
        rows = graph.joined((source, name, target), f"r.weight, r.{PROPERTIES} LIMIT {sample}")
        held = (edge(relation, "", "", *row) for row in rows)
        edges = [
            replace(one, properties=_columns(one.properties, weight=one.weight != 1.0 and one.weight)) for one in held
        ]
        builder.observe_edges(edges, times=max(1, round(n / max(1, len(edges)))))
        edges_in_part.update([relation.label] if n > sample else [])
    relations = [t for t in catalog.relations.values() if any(t.label == name for _, name, _ in triples)]
    tables = {table.label: name for name, table in catalog.nodes.items()}
    return builder.build(
        labels,
        triples,
        sampled_properties=in_part,
        sampled_relation_properties=edges_in_part,
        cypher_labels={label: tables.get(label) for label in sorted(labels) if label and tables.get(label) != label},
        cypher_relations={table.label: table.name for table in relations if table.label != table.name},
        columns={label: [*NODE_COLUMNS] for label in tables if label and label in labels},
        relation_columns={table.label: [*EDGE_COLUMNS] for table in relations},
    )


def _columns(properties: Mapping[str, Any], **own: Any) -> dict[str, Any]:
    """Return properties by the names that queries have for them, and fields that are not empty."""
    fields = {name: value for name, value in own.items() if value}
    return fields | {column_of(name): value for name, value in properties.items()}
