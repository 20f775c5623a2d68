"""How many nodes the paths around some entities find: in memory a join for each hop, and a product where they meet."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from graphret.planning import Hop
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
    """A path from an entity, given by its number, to nodes of a label."""

    entity: int
    label: str
    path: tuple[Hop, ...] = ()

    def on(self, relation: str, outgoing: bool, label: str) -> Walk:
        """Return the walk that is one hop longer."""
        return Walk(self.entity, label, (*self.path, Hop(relation, outgoing, self.label, label)))


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
    entities, paths
        Where walks begin, and the paths that there may be from nodes of their labels.
    templates
        The lengths of walks that meet: ``(2,)`` is the paper's 2-hop, ``(1, 1)`` its length-two path between entities.
    hub
        A path that finds more nodes is followed no further.
    answers
        The ids of which hits are counted.
    """

    entities: Sequence[Entity]
    paths: Collection[tuple[Hop, ...]]
    templates: Sequence[tuple[int, ...]]
    hub: int
    answers: Collection[str]

    @property
    def named(self) -> list[str]:
        """The nodes that the question names, which are no answers, nor on the way to one."""
        return [node_id for entity in self.entities for node_id in entity.nodes]

    def meet(self, walks: Sequence[Walk], other: Walk) -> bool:
        """Whether one more walk meets others: at a label, and from other places; those of one length in their order."""
        place = self.entities[other.entity].place
        for walk in walks:
            before = self.entities[walk.entity].place
            if before == place or (len(walk.path) == len(other.path) and before > place):
                return False
        return walks[0].label == other.label


def counts_in_memory(graph: Graph, task: Task) -> Iterator[Count]:
    """Count what walks find; those that find nothing are left out."""
    right = _among(graph, task.answers)
    levels = [_begins(graph, task)]
    for _ in range(max(map(max, task.templates))):
        levels.append(_onward(graph, task, levels[-1]))
    ends = {length: _matrix(levels[length], len(graph.nodes)) for template in task.templates for length in template}
    for first, *more in task.templates:
        met, where = [(walk,) for walk in levels[first]], ends[first]
        for length in more:
            others, pairs = list(levels[length]), (where @ ends[length].T).tocoo()
            both = [(i, j) for i, j in zip(*pairs.coords, strict=True) if task.meet(met[i], others[j])]
            rows, columns = np.asarray(both, dtype=np.int64).reshape(-1, 2).T
            met, where = [(*met[i], others[j]) for i, j in both], where[rows].multiply(ends[length][columns]).tocsr()
        yield from map(Count, met, where.sum(axis=1).tolist(), (where @ right).tolist())


def _among(graph: Graph, ids: Collection[str]) -> NDArray[np.bool_]:
    positions, mask = graph.nodes.find(list(ids)), np.zeros(len(graph.nodes), dtype=bool)
    mask[positions[positions >= 0]] = True
    return mask


def _matrix(level: Mapping[Walk, _Array], n: int) -> sp.csr_array:
    """Where walks lead, ``(walks, n)``."""
    indptr = np.cumsum([0, *map(len, level.values())])
    nodes = np.concatenate([np.empty(0, np.int64), *level.values()])
    return sp.csr_array((np.ones(len(nodes), np.int64), nodes, indptr), shape=(len(level), n))


def _begins(graph: Graph, task: Task) -> dict[Walk, _Array]:
    """The walks that have not begun yet, with the nodes where they stand."""
    found = {}
    for number, entity in enumerate(task.entities):
        own = graph.nodes.find(list(entity.nodes))
        own = own[own >= 0]
        for label in entity.labels:
            fits = graph.nodes.fits(own, None, [label] if label else None)
            found[Walk(number, label)] = own if fits is None else own[fits]
    return found


def _onward(graph: Graph, task: Task, level: Mapping[Walk, _Array]) -> dict[Walk, _Array]:
    """The walks that are one hop longer, with the nodes that they lead to."""
    nodes, edges, named = graph.nodes, graph.edges, _among(graph, task.named)
    walks = [walk for walk, ends in level.items() if len(ends) <= task.hub or not walk.path]
    at = np.concatenate([np.empty(0, np.int64), *(level[walk] for walk in walks)])
    of = np.repeat(np.arange(len(walks)), [len(level[walk]) for walk in walks])
    shape, keys = (len(walks), len(edges.relations), 2, len(nodes.label_sets), len(nodes)), []
    for outgoing, other in ((True, edges.target), (False, edges.source)):
        edge, which = edges.incident_each(at, "out" if outgoing else "in")
        edge, which = (one[~named[other[edge]]] for one in (edge, which))
        way, to = np.full(len(edge), int(outgoing)), other[edge]
        keys.append(np.ravel_multi_index((of[which], edges.relation[edge], way, nodes.labels[to], to), shape))
    key = np.sort(np.concatenate(keys))  # which is faster than the hashes of `np.unique`
    kind, ends = np.divmod(key[np.diff(key, prepend=-1) > 0], max(len(nodes), 1))
    firsts = np.flatnonzero(np.diff(kind, prepend=-1))
    kinds = zip(*(one.tolist() for one in np.unravel_index(kind[firsts], shape[:-1])), strict=True)
    found, untyped = defaultdict[Walk, list[_Array]](list), ("",) if () in nodes.label_sets else ()
    for (walk, relation, outgoing, labels), some in zip(kinds, np.split(ends, firsts[1:]), strict=False):
        for label in (*nodes.label_sets[labels], *untyped):  # a path to nodes of no label is one to any
            longer = walks[walk].on(edges.relations[relation], bool(outgoing), label)
            if longer.path in task.paths:
                found[longer].append(some)
    return {walk: np.concatenate(some) for walk, some in found.items()}
