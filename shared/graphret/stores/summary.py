"""The schema of a graph of columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from graphret.edges import EdgeTable
from graphret.nodes import NodeTable
from graphret.schema import GraphSchema, SchemaBuilder
from graphret.types import Edge, Node

#: At most so many nodes of each set of labels, and edges of each relation, are read for their properties,
SAMPLE = 2000
#: and about so many in all, where there are many sets or relations.
_IN_ALL = 100_000
_LEAST = 20
_BLOCK = 1 << 20


def graph_schema(nodes: NodeTable, edges: EdgeTable, sample: int = SAMPLE) -> GraphSchema:
    """Return the schema of a graph; its counts are exact, properties are read from a sample spread evenly over it."""
    builder = SchemaBuilder()
    node_sample = _sample(nodes.labels, len(nodes.label_sets), sample)
    edge_sample = _sample(edges.relation, len(edges.relations), sample)
    for at, times in node_sample:
        labels = nodes.label_sets[int(nodes.labels[at[0]])]
        builder.observe_nodes((Node("-", labels, properties=own) for own in nodes.properties.take(at)), times)
    for at, times in edge_sample:
        relation = edges.relations[int(edges.relation[at[0]])]
        builder.observe_edges((Edge("-", relation, "-", 1.0, own) for own in edges.properties.take(at)), times=times)
    read = [sum(len(at) for at, _ in chosen) for chosen in (node_sample, edge_sample)]
    return builder.build(nodes.label_counts(), triples(nodes, edges), sampled=read != [len(nodes), len(edges)])


def triples(nodes: NodeTable, edges: EdgeTable) -> Counter[tuple[str, str, str]]:
    """Count the edges by the primary label of their source, their relation and the primary label of their target."""
    primary, of_set = _primary(nodes.label_sets)
    labels = of_set[nodes.labels]
    shape = len(primary), len(edges.relations), len(primary)
    counts: Counter[tuple[str, str, str]] = Counter()
    for start in range(0, len(edges), _BLOCK):
        block = slice(start, start + _BLOCK)
        key = np.ravel_multi_index(
            (labels[edges.source[block]], edges.relation[block].astype(np.int64), labels[edges.target[block]]), shape
        )
        found, n = np.unique(key, return_counts=True)
        for source, relation, target, count in zip(
            *(codes.tolist() for codes in np.unravel_index(found, shape)), n.tolist(), strict=True
        ):
            counts[primary[source], edges.relations[relation], primary[target]] += count
    return counts


def _primary(label_sets: Sequence[tuple[str, ...]]) -> tuple[list[str], NDArray[np.int64]]:
    first = [labels[0] if labels else "" for labels in label_sets]
    names = sorted(set(first))
    return names, np.asarray([names.index(label) for label in first], dtype=np.int64)


def _sample(codes: NDArray[np.integer], n_codes: int, most: int) -> list[tuple[NDArray[np.int64], int]]:
    """Return positions of each code, evenly spread, and for how many each of them stands."""
    size = min(most, max(_LEAST, _IN_ALL // max(n_codes, 1)))
    order = np.argsort(codes, kind="stable")
    ends = np.cumsum(np.bincount(codes, minlength=n_codes)).tolist()
    groups = []
    for start, end in zip([0, *ends[:-1]], ends, strict=True) if len(codes) else ():
        n = end - start
        if n:
            chosen = np.arange(n) if n <= size else np.arange(size) * n // size
            groups.append((order[start + chosen], max(1, round(n / len(chosen)))))
    return groups
