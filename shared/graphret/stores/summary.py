"""The schema of a graph of columns."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from graphret.edges import EdgeTable
from graphret.nodes import NodeTable
from graphret.schema import GraphSchema, SchemaBuilder
from graphret.types import Edge, Node

#: Of at most `SAMPLE` nodes of each set of labels, and edges of each relation, the properties are read, of so many in
#: all, each set giving one at least while that lasts.
SAMPLE, READ = 2_000, 10_000
#: Kinds of edges are counted in one array where there can be no more of them (the sets of labels squared, times the
#: relations), which takes 0.2 s for ten million edges; of more kinds edges are sorted.
DENSE = 1 << 22
#: So many kinds of edges are listed, of more the most frequent.
KINDS = 50_000
#: What a query of a database that graphret makes of a graph may read beside the properties of a node, and of an edge.
_NODE_FIELDS, _EDGE_FIELDS = ("id", "name", "text"), ("weight", "source_row", "target_row")

Ints = NDArray[np.int64]


def graph_schema(nodes: NodeTable, edges: EdgeTable, sample: int = SAMPLE) -> GraphSchema:
    """Return the schema of a graph.

    Labels and triples are counted exactly; an edge counts under every pair of the labels of its ends. Properties are
    read from a sample, the same each time, of at most `sample` nodes of each set of labels and edges of each relation,
    10,000 of either in all. The schema says which labels and relations were read in part. Of more than 50,000 kinds of
    edges (labels, relation, labels) the rare ones are left out, but for one of each relation.
    """
    builder = SchemaBuilder()
    of_sets = np.bincount(nodes.labels, minlength=len(nodes.label_sets))
    for code, at, times in _samples(nodes.labels, of_sets, sample):
        labels = nodes.label_sets[code]
        builder.observe_nodes([Node("-", labels, properties=own) for own in nodes.properties.take(at)], times)
    of_relations = np.bincount(edges.relation, minlength=len(edges.relations))
    for code, at, times in _samples(edges.relation, of_relations, sample):
        relation = edges.relations[code]
        builder.observe_edges([Edge("-", relation, "-", 1.0, own) for own in edges.properties.take(at)], times=times)
    triples, cut = _triples(nodes, edges)
    borne_by = dict(nodes.label_counts())
    read_of_set, read_of_relation = _each(of_sets, sample), _each(of_relations, sample)
    partly = (labels or ("",) for labels, n in zip(nodes.label_sets, of_sets, strict=True) if n > read_of_set)
    return builder.build(
        borne_by,
        triples,
        sampled_relations=cut,
        sampled_properties=set(chain.from_iterable(partly)),
        sampled_relation_properties=[
            name for name, n in zip(edges.relations, of_relations, strict=True) if n > read_of_relation
        ],
        columns=dict.fromkeys(borne_by, _NODE_FIELDS),
        relation_columns=dict.fromkeys(edges.relations, _EDGE_FIELDS),
    )


def _each(counts: Ints, most: int) -> int:
    """How many of each code are read."""
    return min(most, max(1, READ // max(1, int((counts > 0).sum()))))


def _samples(codes: NDArray[np.integer], counts: Ints, most: int) -> list[tuple[int, Ints, int]]:
    """Choose positions of each code, evenly spread, and say for how many each stands."""
    order = np.argsort(codes, kind="stable")
    ends = np.cumsum(counts)
    each, chosen = _each(counts, most), np.argsort(-counts, kind="stable")[:READ].tolist()
    found = []
    for code in chosen:
        n = int(counts[code])
        taken = min(n, each)
        if taken:
            at = order[ends[code] - n + np.arange(taken) * n // taken]
            found.append((code, at, max(1, round(n / taken))))
    return sorted(found, key=lambda one: one[0])


def _triples(nodes: NodeTable, edges: EdgeTable) -> tuple[dict[tuple[str, str, str], int], list[str]]:
    """Count the edges by a label of their source, their relation and a label of their target.

    A node without a label counts as one whose label is empty. Returns the counts, in order, and the relations of which
    some were left out.
    """
    shape = len(nodes.label_sets), len(edges.relations), len(nodes.label_sets)
    kind = (nodes.labels[edges.source].astype(np.int64) * shape[1] + edges.relation) * shape[2]
    kind += nodes.labels[edges.target]
    if math.prod(shape) <= DENSE:
        counts = np.bincount(kind)
        found = np.flatnonzero(counts)
        counts = counts[found]
    else:
        found, counts = np.unique(kind, return_counts=True)
    sources, relations, targets = np.unravel_index(found, shape) if len(found) else (found, found, found)
    cut: list[str] = []
    if len(found) > KINDS:
        order = np.argsort(-counts, kind="stable")
        first = np.unique(relations[order], return_index=True)[1]
        kept = np.union1d(order[:KINDS], order[first])
        cut = [edges.relations[i] for i in np.unique(np.delete(relations, kept)).tolist()]
        sources, relations, targets, counts = sources[kept], relations[kept], targets[kept], counts[kept]
    triples: dict[tuple[str, str, str], int] = {}
    for source, relation, target, n in zip(*(c.tolist() for c in (sources, relations, targets, counts)), strict=True):
        for one in _labels(nodes.label_sets[source]):
            for other in _labels(nodes.label_sets[target]):
                key = one, edges.relations[relation], other
                triples[key] = triples.get(key, 0) + n
    return dict(sorted(triples.items())), cut


def _labels(own: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(own)) or [""]
