"""The schema of a graph of columns."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from graphret.columns import to_numpy
from graphret.edges import EdgeTable
from graphret.nodes import NodeTable
from graphret.schema import GraphSchema, SchemaBuilder
from graphret.types import Edge, Node

#: Of at most `SAMPLE` nodes of each set of labels, and edges of each relation, the properties are read, of so many in
#: all, each set giving one at least.
SAMPLE, READ = 2_000, 10_000
#: What a query of a database that graphret makes of a graph may read beside the properties of a node, and of an edge.
_NODE_FIELDS, _EDGE_FIELDS = ("id", "name", "text"), ("weight", "source_row", "target_row")


def graph_schema(nodes: NodeTable, edges: EdgeTable) -> GraphSchema:
    """Return the schema of a graph.

    Labels and triples are counted exactly; an edge counts under every pair of the labels of its ends. Properties are
    read from a sample, the same each time, of at most 2,000 nodes of each set of labels and edges of each relation,
    10,000 of either in all. The schema says which labels and relations were read in part.
    """
    builder = SchemaBuilder()
    labels_in_part: set[str] = set()
    relations_in_part: set[str] = set()
    for code, at, n in _samples(nodes.labels, len(nodes.label_sets)):
        labels, times = nodes.label_sets[code], round(n / len(at))
        builder.observe_nodes([Node("-", labels, properties=own) for own in nodes.properties.take(at)], times)
        labels_in_part.update((labels or ("",)) if n > len(at) else ())
    for code, at, n in _samples(edges.relation, len(edges.relations)):
        relation, times = edges.relations[code], round(n / len(at))
        builder.observe_edges([Edge("-", relation, "-", 1.0, own) for own in edges.properties.take(at)], times=times)
        relations_in_part.update([relation] if n > len(at) else [])
    borne_by = dict(nodes.label_counts())
    return builder.build(
        borne_by,
        _triples(nodes, edges),
        sampled_properties=labels_in_part,
        sampled_relation_properties=relations_in_part,
        columns=dict.fromkeys(borne_by, _NODE_FIELDS),
        relation_columns=dict.fromkeys(edges.relations, _EDGE_FIELDS),
    )


def _samples(codes: NDArray[np.int32], n_codes: int) -> Iterator[tuple[int, NDArray[np.int64], int]]:
    """Go through the codes that there are, each with positions that have it, evenly spread, and how many have it."""
    most = min(SAMPLE, max(1, READ // max(1, n_codes)))
    order = np.argsort(codes, kind="stable")
    counts = np.bincount(codes, minlength=n_codes)
    ends = np.cumsum(counts)
    for code in np.flatnonzero(counts).tolist():
        n = int(counts[code])
        taken = min(n, most)
        yield code, order[ends[code] - n + np.arange(taken) * n // taken], n


def _triples(nodes: NodeTable, edges: EdgeTable) -> dict[tuple[str, str, str], int]:
    """Count the edges by a label of their source, their relation and a label of their target.

    A node without a label counts as one whose label is empty.
    """
    shape = len(nodes.label_sets), len(edges.relations), len(nodes.label_sets)
    kinds = (nodes.labels[edges.source].astype(np.int64) * shape[1] + edges.relation) * shape[2]
    kinds += nodes.labels[edges.target]
    found = pc.value_counts(pa.array(kinds))
    triples: dict[tuple[str, str, str], int] = {}
    for kind, n in zip(to_numpy(found.field("values")), found.field("counts").tolist(), strict=True):
        source, relation, target = np.unravel_index(kind, shape)
        ends = (dict.fromkeys(nodes.label_sets[end] or ("",)) for end in (source, target))
        for one, other in product(*ends):
            key = one, edges.relations[relation], other
            triples[key] = triples.get(key, 0) + n
    return dict(sorted(triples.items()))
