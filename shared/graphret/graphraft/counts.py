"""How many nodes the paths around some entities find: in memory by a join for each hop, of all paths at once."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphret.edges import ranges
from graphret.graphraft.path_tree import Path, PathTree, Step
from graphret.stores.memory import Graph

_Array: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Entity:
    """What a question names: nodes of one name.

    Parameters
    ----------
    name
        What they are called.
    nodes
        Their ids, with the score of each.
    labels
        What labels they bear; an empty one for none.
    place
        Where the question names it, ``(start, end)``; entities of one place are readings of one name.
    """

    name: str
    nodes: Mapping[str, float]
    labels: tuple[str, ...]
    place: tuple[int, int]


class Walk(NamedTuple):
    """A path from an entity, given by its number."""

    entity: int
    path: Path


class Count(NamedTuple):
    """How many nodes walks find that meet in them, and how many of these are among given answers."""

    walks: tuple[Walk, ...]
    size: int
    hits: int


@dataclass(frozen=True, slots=True)
class Task:
    """What is to be counted.

    Parameters
    ----------
    entities, tree
        Where walks begin, and the paths that there may be from nodes of their labels.
    templates
        The lengths of walks that meet: ``(2,)`` is the paper's 2-hop, ``(1, 1)`` its length-two path between entities.
    hub
        A path that finds more nodes is followed no further.
    answers
        The ids of which hits are counted.
    """

    entities: Sequence[Entity]
    tree: PathTree
    templates: Sequence[tuple[int, ...]]
    hub: int
    answers: Collection[str] = ()

    @property
    def places(self) -> list[int]:
        """The place of each entity in the question, by its rank; walks of one length meet in this order."""
        ranks = {place: rank for rank, place in enumerate(sorted({one.place for one in self.entities}))}
        return [ranks[one.place] for one in self.entities]

    @property
    def named(self) -> list[str]:
        """The nodes that the question names, which are no answers, nor on the way to one."""
        return [node_id for entity in self.entities for node_id in entity.nodes]


class _Rows(NamedTuple):
    """Walks, by their numbers, and the nodes that they lead to, by their positions; distinct."""

    walk: _Array
    node: _Array


def counts_in_memory(graph: Graph, task: Task) -> Iterator[Count]:
    """Count what walks find; those that find nothing are left out."""
    right = _among(graph.nodes.find(list(task.answers)), len(graph.nodes))
    walks: list[Walk] = []
    levels: list[_Rows] = []
    for rows in islice(_levels(graph, task), max(map(max, task.templates))):
        there = _distinct(rows.walk)
        levels.append(_Rows(np.searchsorted(there, rows.walk) + len(walks), rows.node))
        walks += [Walk(n, task.tree.paths[at]) for n, at in (divmod(one, len(task.tree)) for one in there.tolist())]
    labels = {label: code for code, label in enumerate(sorted({walk.path[-1].label for walk in walks}))}
    about = np.asarray([(task.places[w.entity], labels[w.path[-1].label], len(w.path)) for w in walks]).reshape(-1, 3).T
    for template in task.templates:
        met, rows = _meeting(template, levels, about)
        sizes = np.bincount(rows.walk, minlength=len(met))
        hits = np.bincount(rows.walk, weights=right[rows.node], minlength=len(met))
        for i in np.flatnonzero(sizes).tolist():
            yield Count(tuple(walks[j] for j in met[i].tolist()), int(sizes[i]), int(hits[i]))


def _among(positions: _Array, n: int) -> NDArray[np.bool_]:
    mask = np.zeros(n, dtype=bool)
    mask[positions[positions >= 0]] = True
    return mask


def _distinct(keys: _Array) -> _Array:
    keys = np.sort(keys)  # which is faster than the hashes of `np.unique`
    return keys[np.diff(keys, prepend=-1) > 0]


def _levels(graph: Graph, task: Task) -> Iterator[_Rows]:
    """Go through the lengths of paths: where all paths of one length lead, a walk being ``entity * paths + path``."""
    nodes, edges, tree, n = graph.nodes, graph.edges, task.tree, max(len(graph.nodes), 1)
    named = _among(nodes.find(task.named), n)
    begins = [np.empty((2, 0), dtype=np.int64)]
    for number, entity in enumerate(task.entities):
        own = nodes.find(list(entity.nodes))
        own = own[own >= 0]
        for label in entity.labels:
            if label in tree.roots:
                fits = nodes.fits(own, None, [label] if label else None)
                at = own if fits is None else own[fits]
                begins.append(np.stack([np.full(len(at), number * len(tree) + tree.roots[label]), at]))
    rows = _Rows(*np.concatenate(begins, axis=1))
    starts, steps = _steps_of(tree.steps, tuple(edges.relations), tuple(nodes.label_sets))
    while True:
        found = []
        for outgoing in (True, False):
            edge, which = edges.incident_each(rows.node, "out" if outgoing else "in")
            other = (edges.target if outgoing else edges.source)[edge].astype(np.int64)
            kind = (edges.relation[edge].astype(np.int64) * 2 + outgoing) * len(nodes.label_sets) + nodes.labels[other]
            times = starts[kind + 1] - starts[kind]
            walk, other = np.repeat(rows.walk[which], times), np.repeat(other, times)
            child = tree.child(walk, steps[ranges(starts, kind)])
            kept = (child >= 0) & ~named[other]
            found.append(child[kept] * n + other[kept])
        rows = _Rows(*np.divmod(_distinct(np.concatenate(found)), n))
        yield rows
        small = np.bincount(rows.walk, minlength=1)[rows.walk] <= task.hub
        rows = _Rows(rows.walk[small], rows.node[small])


@lru_cache(maxsize=64)
def _steps_of(
    steps: tuple[Step, ...], relations: tuple[str, ...], label_sets: tuple[tuple[str, ...], ...]
) -> tuple[_Array, _Array]:
    """The steps that an edge of a relation in a direction to a node of a set of labels may be, in rows of a table."""
    rows = [
        [i for i, step in enumerate(steps) if step[:2] == (name, outgoing) and (not step[2] or step[2] in labels)]
        for name in relations
        for outgoing in (False, True)
        for labels in label_sets
    ]
    return np.cumsum([0, *map(len, rows)]), np.asarray([i for row in rows for i in row], dtype=np.int64)


def _meeting(template: Sequence[int], levels: Sequence[_Rows], about: _Array) -> tuple[_Array, _Rows]:
    """Return which walks of some lengths meet, ``(m, walks)``, and where: a sparse product of the nodes of each."""
    place, label, lengths = about
    met, rows = np.arange(len(place))[:, None], levels[template[0] - 1]
    for length in template[1:]:
        more = levels[length - 1]
        order = np.argsort(more.node, kind="stable")
        first, last = (np.searchsorted(more.node[order], rows.node, side=side) for side in ("left", "right"))
        times = last - first
        at = np.arange(times.sum()) + np.repeat(first - np.cumsum(times) + times, times)
        one, other, node = np.repeat(rows.walk, times), more.walk[order][at], np.repeat(rows.node, times)
        met_now = one * max(len(place), 1) + other
        pairs = _distinct(met_now)
        number = np.searchsorted(pairs, met_now)
        one, other = np.divmod(pairs, max(len(place), 1))
        met = np.column_stack([met[one], other])
        before, now = place[met[:, :-1]], place[other][:, None]
        apart = np.where(lengths[met[:, :-1]] == length, before < now, before != now).all(axis=1)
        kept = (apart & (label[met[:, 0]] == label[other]))[number]
        rows = _Rows(number[kept], node[kept])
    return met, rows
