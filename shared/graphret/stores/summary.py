"""The schema of a graph of columns."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from graphret._edge_order import ranges
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
_DENSE = 1 << 22  # as many kinds of triples can be counted in one array


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
    """Count the edges by a label of their source, their relation and a label of their target.

    An edge counts under every pair of the labels of its ends, as it answers a query for each of them; a node without
    a label counts as one whose label is empty.
    """
    names, labels, indptr = _labels(nodes.label_sets)
    between_sets = len(nodes.label_sets), len(edges.relations), len(nodes.label_sets)
    between_labels = len(names), len(edges.relations), len(names)
    counts: Counter[tuple[str, str, str]] = Counter()
    for start in range(0, len(edges), _BLOCK):
        block = slice(start, start + _BLOCK)
        ends = nodes.labels[edges.source[block]], nodes.labels[edges.target[block]]
        key = np.ravel_multi_index((ends[0], edges.relation[block], ends[1]), between_sets)
        found, n = _summed(key, None, between_sets)  # few sets of labels, many edges
        sources, relations, targets = np.unravel_index(found, between_sets)
        of_source = np.repeat(np.arange(len(found)), np.diff(indptr)[sources])
        of_both = np.repeat(np.arange(len(of_source)), np.diff(indptr)[targets[of_source]])
        pair = (
            labels[ranges(indptr, sources)][of_both],
            relations[of_source][of_both],
            labels[ranges(indptr, targets[of_source])],
        )
        distinct, sums = _summed(np.ravel_multi_index(pair, between_labels), n[of_source][of_both], between_labels)
        for source, relation, target, count in zip(
            *(codes.tolist() for codes in np.unravel_index(distinct, between_labels)), sums.tolist(), strict=True
        ):
            counts[names[source], edges.relations[relation], names[target]] += count
    return counts


def _summed(
    keys: NDArray[np.int64], weights: NDArray[np.int64] | None, shape: tuple[int, ...]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the distinct keys, and for each the sum of its weights, or how often it comes."""
    if (size := math.prod(shape)) <= _DENSE:
        sums = np.bincount(keys, weights, minlength=size)
        distinct = np.flatnonzero(sums)
        return distinct, sums[distinct].astype(np.int64)
    distinct, place = np.unique(keys, return_inverse=True)
    return distinct, np.bincount(place, weights).astype(np.int64)


def _labels(label_sets: Sequence[tuple[str, ...]]) -> tuple[list[str], NDArray[np.int64], NDArray[np.int64]]:
    """The names of labels, those of each set by their place among the names, and where each set begins."""
    sets = [list(dict.fromkeys(labels)) or [""] for labels in label_sets]
    names = sorted({label for labels in sets for label in labels})
    code = {label: i for i, label in enumerate(names)}
    codes = np.asarray([code[label] for labels in sets for label in labels], dtype=np.int64)
    return names, codes, np.cumsum([0, *map(len, sets)])


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
