"""The schema of a graph of columns."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from graphret.edges import EdgeTable
from graphret.nodes import NodeTable
from graphret.schema import GraphSchema, SchemaBuilder
from graphret.schema.builder import SAMPLE
from graphret.storage import Records
from graphret.types import Edge, Node

#: Of at most `SAMPLE` nodes of each set of labels, and edges of each relation, the properties are read, of
#: so many in all, each set giving one at least while that lasts,
_IN_ALL = 10_000
#: and about so many values, of nodes that have many properties or labels.
_VALUES = 50_000
_PROBED = 100
#: Edges are counted one by one where there are no more than this, as in a `LadybugStore`, and their kinds (the sets of
#: labels squared, times the relations) are no more than `DENSE`: one array then holds them all. Ten million take 0.2 s.
COUNTED, DENSE = 10_000_000, 1 << 22
#: Of more kinds edges are counted where there are no more than this; as many take as long.
SPARSE = 500_000
#: Of so many triples all are listed, of more each kind of edges gives a share.
TRIPLES = 250_000
#: Where edges are not counted about so many are drawn, some of each relation: where there can be no more kinds than
#: `TRIPLES`, and where there can.
DRAWN, DRAWN_SPARSE = 1_000_000, 50_000
#: What a query of a database that graphret makes of a graph may read beside the properties of a node, and of an edge.
_NODE_FIELDS, _EDGE_FIELDS = ("id", "name", "text"), ("weight", "source_row", "target_row")
_BLOCK = 1 << 20
_SEED = 0x9E3779B97F4A7C15  # not 0, by which test data are often made: these would be drawn by what they hold

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Triples = dict[tuple[str, str, str], int]


@dataclass(frozen=True, slots=True)
class LabelSets:
    """Sets of labels by number: those of set `i` are the places in `names` from ``codes[indptr[i]]`` on."""

    names: list[str]
    codes: Ints
    indptr: Ints

    @classmethod
    def of(cls, label_sets: Sequence[tuple[str, ...]]) -> LabelSets:
        """Number the labels of sets by name; one without a label has the empty one."""
        listed = [labels or ("",) for labels in label_sets]
        names = sorted(set(chain.from_iterable(listed)))
        code = {label: i for i, label in enumerate(names)}
        codes = np.asarray([code[label] for label in chain.from_iterable(listed)], dtype=np.int64)
        of_set = np.repeat(np.arange(len(listed)), [len(labels) for labels in listed])
        distinct = np.unique(of_set * max(1, len(names)) + codes)  # a set may name a label twice
        of_set, codes = np.divmod(distinct, max(1, len(names)))
        return cls(names, codes, np.searchsorted(of_set, np.arange(len(listed) + 1)))

    def counts(self, of_sets: Ints) -> dict[str, int]:
        """How many nodes bear each label, by how many have each set."""
        sums = np.bincount(self.codes, np.repeat(of_sets, np.diff(self.indptr)), len(self.names)).astype(np.int64)
        return {name: n for name, n in zip(self.names, sums.tolist(), strict=True) if n and name}


@dataclass(frozen=True, slots=True)
class _Kinds:
    """Kinds of edges by the sets of labels of their ends and by relation, and for how many edges each stands."""

    source: Ints
    relation: Ints
    target: Ints
    n: Floats


def graph_schema(nodes: NodeTable, edges: EdgeTable, sample: int = SAMPLE) -> GraphSchema:
    """Return the schema of a graph, in less than a second for 10⁷ edges.

    Labels are counted exactly, and so are triples, but for a large graph: one of more than `COUNTED` edges, or of more
    than `SPARSE` that may be of more kinds than `DENSE`, or with more triples than `TRIPLES`. There they are estimated
    from edges drawn at random by a fixed seed, of each relation some, or all. Properties are read from a sample, of at
    most `sample` nodes of each set of labels and edges of each relation. The schema says which labels and relations
    were read in part; the name of none is missing.
    """
    builder = SchemaBuilder()
    labels = LabelSets.of(nodes.label_sets)
    of_sets = np.bincount(nodes.labels, minlength=len(nodes.label_sets))
    borne = float(of_sets @ np.diff(labels.indptr)) / max(1, len(nodes))
    some, weights = _read(nodes.labels, of_sets, nodes.properties, sample, borne)
    for at, own, n in zip(nodes.labels[some].tolist(), nodes.properties.take(some), weights, strict=True):
        builder.observe_nodes([Node("-", nodes.label_sets[at], properties=own)], n)
    of_relations = np.bincount(edges.relation, minlength=len(edges.relations))
    others, weights = _read(edges.relation, of_relations, edges.properties, sample, 1.0)
    for at, own, n in zip(edges.relation[others].tolist(), edges.properties.take(others), weights, strict=True):
        builder.observe_edges([Edge("-", edges.relations[at], "-", 1.0, own)], times=n)
    counted, in_part = triples(nodes, edges, labels)
    borne_by = labels.counts(of_sets)
    sets = (nodes.label_sets[i] or ("",) for i in _in_part(nodes.labels[some], of_sets))
    return builder.build(
        borne_by,
        counted,
        sampled_relations=in_part,
        sampled_properties=set(chain.from_iterable(sets)),
        sampled_relation_properties=[edges.relations[i] for i in _in_part(edges.relation[others], of_relations)],
        columns=dict.fromkeys(borne_by, _NODE_FIELDS),
        relation_columns={
            name: _EDGE_FIELDS for name, n in zip(edges.relations, of_relations.tolist(), strict=False) if n
        },
    )


def _in_part(read: NDArray[np.integer], counts: Ints) -> list[int]:
    """The codes of which not all were read."""
    found: list[int] = np.flatnonzero(np.bincount(read, minlength=len(counts)) < counts).tolist()
    return found


def triples(nodes: NodeTable, edges: EdgeTable, labels: LabelSets | None = None) -> tuple[Triples, list[str]]:
    """Count the edges by a label of their source, their relation and a label of their target.

    An edge counts under every pair of the labels of its ends, as it answers a query for each of them; a node without
    a label counts as one whose label is empty.

    Returns
    -------
    counts
        By triple, in order.
    in_part
        The relations of which the counts are estimated from some of the edges. A rare triple of theirs may be missing.
    """
    labels = labels or LabelSets.of(nodes.label_sets)
    shape = len(nodes.label_sets), len(edges.relations), len(nodes.label_sets)
    dense = math.prod(shape) <= (DENSE if len(edges) > SPARSE else min(DENSE, 4 * len(edges)))
    if len(edges) <= (COUNTED if dense else SPARSE):
        kinds = _counted(nodes, edges, shape, dense)
        if _pairs(kinds, labels).sum() <= TRIPLES:
            return _by_labels(kinds, labels, edges.relations), []
    of_relations = np.bincount(edges.relation, minlength=len(edges.relations))
    each = max(1, (DRAWN if math.prod(shape) <= TRIPLES else DRAWN_SPARSE) // max(1, len(edges.relations)))
    kinds = _drawn_edges(nodes, edges, shape, of_relations, each)
    least = 0 if _pairs(kinds, labels).sum() > TRIPLES else each
    in_part = np.flatnonzero(of_relations > least).tolist()
    return _by_labels(kinds, labels, edges.relations), [edges.relations[i] for i in in_part]


def _counted(nodes: NodeTable, edges: EdgeTable, shape: tuple[int, int, int], dense: bool) -> _Kinds:
    """Count all edges."""
    sums = np.zeros(math.prod(shape), dtype=np.int64) if dense else None
    keys = np.empty(0, dtype=np.int64)
    for start in range(0, len(edges), _BLOCK):
        key = _kinds_of(nodes, edges, slice(start, start + _BLOCK), shape)
        if sums is not None:
            sums += np.bincount(key, minlength=len(sums))
        else:
            keys = np.concatenate([keys, key])
    if sums is None:
        found, n = np.unique(keys, return_counts=True)
    else:
        found = np.flatnonzero(sums)
        n = sums[found]
    source, relation, target = np.unravel_index(found, shape)
    return _Kinds(source, relation, target, n.astype(np.float64))


def _drawn_edges(
    nodes: NodeTable, edges: EdgeTable, shape: tuple[int, int, int], of_relations: Ints, each: int
) -> _Kinds:
    """Count so many edges of each relation, each for as many as there are for one that was drawn."""
    at, n = _drawn(edges.relation, of_relations, each)
    found, which = np.unique(_kinds_of(nodes, edges, at, shape), return_inverse=True)
    source, relation, target = np.unravel_index(found, shape)
    return _Kinds(source, relation, target, np.bincount(which, n).astype(np.float64))


def _kinds_of(nodes: NodeTable, edges: EdgeTable, at: slice | Ints, shape: tuple[int, int, int]) -> Ints:
    """The kind of edges as one number: sets of labels and relation as places in `shape`."""
    key = nodes.labels[edges.source[at]].astype(np.int64)
    key *= shape[1]
    key += edges.relation[at]
    key *= shape[2]
    key += nodes.labels[edges.target[at]]
    return key


def _pairs(kinds: _Kinds, labels: LabelSets) -> Ints:
    """How many pairs of labels the edges of each kind count under."""
    size = np.diff(labels.indptr)
    return np.asarray(size[kinds.source] * size[kinds.target])


def _by_labels(kinds: _Kinds, labels: LabelSets, relations: Sequence[str]) -> Triples:
    """Sum up kinds of edges under the pairs of their labels, or under some of the pairs where there are very many."""
    size, pairs = np.diff(labels.indptr), _pairs(kinds, labels)
    taken = pairs if pairs.sum() <= TRIPLES else np.minimum(pairs, max(1, TRIPLES // len(pairs)))
    of = np.repeat(np.arange(len(pairs)), taken)
    place = np.arange(len(of)) - np.repeat(np.cumsum(taken) - taken, taken)
    if taken is not pairs:  # one at random from each of as many equal stretches as are taken
        place = np.floor((place + np.random.default_rng(_SEED).random(len(of))) * (pairs / taken)[of]).astype(np.int64)
    first, second = np.divmod(place, size[kinds.target[of]])
    shape = len(labels.names), len(relations), len(labels.names)
    triple = (
        labels.codes[labels.indptr[kinds.source[of]] + first],
        kinds.relation[of],
        labels.codes[labels.indptr[kinds.target[of]] + second],
    )
    key = (triple[0] * shape[1] + triple[1]) * shape[2] + triple[2]
    distinct, which = np.unique(key, return_inverse=True)
    sums = np.maximum(1, np.rint(np.bincount(which, (kinds.n * pairs / taken)[of]))).astype(np.int64)
    names, (source, relation, target) = labels.names, np.unravel_index(distinct, shape)
    rows = np.stack([source, relation, target, sums], axis=1).tolist()
    return {(names[s], relations[r], names[t]): n for s, r, t, n in rows}


def _read(
    codes: NDArray[np.integer], counts: Ints, properties: Records, most: int, owners: float
) -> tuple[Ints, list[int]]:
    """Choose what is read for its properties: positions, and how many nodes or edges each stands for."""
    at, n = _drawn(codes, counts, min(most, max(1, _IN_ALL // max(1, int((counts > 0).sum())))))
    probe = _spread(at, _PROBED)
    values = owners * max(1.0, sum(map(len, properties.take(probe))) / max(1, len(probe)))
    kept = _spread(np.arange(len(at)), min(_IN_ALL, max(_PROBED, int(_VALUES / max(1.0, values)))))
    return at[kept], np.maximum(1, np.rint(n[kept])).astype(np.int64).tolist()


def _spread(positions: Ints, most: int) -> Ints:
    """Some of the positions, evenly spread."""
    return positions if len(positions) <= most else positions[np.arange(most) * len(positions) // most]


def _drawn(codes: NDArray[np.integer], counts: Ints, each: int) -> tuple[Ints, Floats]:
    """Draw up to `each` positions of every code; return them by code, and how many of the code each stands for."""
    if (counts > each).any():  # some too many at random, since to sort all takes longer, and of these `each`
        share = np.minimum(1.0, (2 * each + 20) / np.maximum(1, counts)).astype(np.float32)
        random = np.random.default_rng(_SEED).random(len(codes), dtype=np.float32)
        at = np.flatnonzero(random < share[codes])
    else:
        at = np.arange(len(codes))
    at = at[np.argsort(codes[at], kind="stable")]
    code = codes[at]
    there = np.bincount(code, minlength=len(counts))
    taken = np.minimum(there, each)
    rank = np.arange(len(at)) - (np.cumsum(there) - there)[code]
    step = rank * taken[code] // np.maximum(1, there[code])
    kept = (rank == 0) | (step > (rank - 1) * taken[code] // np.maximum(1, there[code]))
    return at[kept], (counts / np.maximum(1, taken))[code[kept]]
