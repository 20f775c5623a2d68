"""How many nodes the paths around entities find (GraphRAFT, figure 1).

In memory by a join for each hop and a product where paths meet, in a database by an
aggregating query for each template.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from graphret.errors import GraphretError
from graphret.numeric import unique
from graphret.planning.patterns import Hop
from graphret.planning.templates import SEPARATOR, TemplateQuery
from graphret.schema import GraphSchema
from graphret.stores.base import CypherStore, GraphStore
from graphret.stores.memory import Graph, fetch_graph
from graphret.trace import Trace
from graphret.types import Edge, EdgeKey

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
        What labels they have; an empty one for none.
    place
        Where the question names it, ``(start, end)``; entities of one place are
        readings of one name.
    """

    name: str
    nodes: Mapping[str, float]
    labels: tuple[str, ...]
    place: tuple[int, int]


class EntityPath(NamedTuple):
    """A path from an entity, given by its number, to nodes of a label."""

    entity: int
    label: str
    path: tuple[Hop, ...] = ()

    def on(self, relation: str, outgoing: bool, label: str) -> EntityPath:
        """Return the walk that is one hop longer."""
        return EntityPath(
            self.entity, label, (*self.path, Hop(relation, outgoing, self.label, label))
        )


class AnswerCount(NamedTuple):
    """How many nodes walks meet in, and how many of these are given answers."""

    walks: tuple[EntityPath, ...]
    size: int
    hits: int


class CountTask(NamedTuple):
    """What to count: the ends of walks from entities, and the answers among them.

    Templates are lengths of walks that meet: ``(2,)`` is the paper's 2-hop, ``(1, 1)``
    its length-two path between entities. A path that finds more nodes than `hub` is
    followed no further.
    """

    entities: Sequence[Entity]
    paths: Collection[tuple[Hop, ...]]
    templates: Sequence[tuple[int, ...]]
    hub: int
    answers: Collection[str]

    @property
    def longest(self) -> int:
        """How many hops the longest walk of a template has."""
        return max(map(max, self.templates))

    @property
    def named(self) -> list[str]:
        """The nodes that the question names, never on the way to an answer."""
        return [node_id for entity in self.entities for node_id in entity.nodes]

    def meet(self, walks: Sequence[EntityPath], other: EntityPath) -> bool:
        """Whether another walk may meet others: at their label, from elsewhere.

        Walks of one length are in the order of their places.
        """
        places = [
            (self.entities[walk.entity].place, len(walk.path))
            for walk in (*walks, other)
        ]
        *before, (place, length) = places
        apart = all(
            at < place if long == length else at != place for at, long in before
        )
        return apart and walks[0].label == other.label


def counts_in_memory(graph: Graph, task: CountTask) -> Iterator[AnswerCount]:
    """Count what walks find; those that find nothing are left out."""
    n, right = len(graph.nodes), _among(graph, task.answers)
    levels = _levels(graph, task, task.longest)
    reached = [_matrix([*level.values()], n) for level in levels]
    for first, *more in task.templates:
        met, where = [(walk,) for walk in levels[first]], reached[first]
        for length in more:
            further, pairs = (
                [*levels[length]],
                zip(*(where @ reached[length].T).tocoo().coords, strict=True),
            )
            meeting = [(i, j) for i, j in pairs if task.meet(met[i], further[j])]
            rows, columns = np.asarray(meeting, dtype=np.int64).reshape(-1, 2).T
            met, where = (
                [(*met[i], further[j]) for i, j in meeting],
                where[rows].multiply(reached[length][columns]).tocsr(),
            )
        yield from map(
            AnswerCount, met, where.sum(axis=1).tolist(), (where @ right).tolist()
        )


def fetch_walked_graph(store: GraphStore, task: CountTask) -> Graph:
    """Read all that the walks of a task pass, one call of `neighbors` for each hop."""
    edges: dict[EdgeKey, Edge] = {}
    graph = fetch_graph(store, task.named, ())
    for hops in range(task.longest):
        level = _levels(graph, task, hops)[-1]
        reached = [level[walk] for walk in _followed(level, task.hub)]
        positions = unique(np.empty(0, np.int64), *reached)
        relations = {path[hops].relation for path in task.paths if len(path) > hops}
        incident = store.neighbors(
            list(graph.nodes.ids.take(positions)), relations=relations
        )
        edges.update((edge.identity, edge) for edge in incident)
        ids = {end for edge in edges.values() for end in (edge.source, edge.target)}
        graph = fetch_graph(store, ids.union(task.named), edges.values())
    return graph


def _levels(graph: Graph, task: CountTask, hops: int) -> list[dict[EntityPath, _Array]]:
    """The walks of none to so many hops, with the nodes where each stands."""
    is_named = _among(graph, task.named)
    levels = [_begin(graph, task)]
    for _ in range(hops):
        levels.append(_onward(graph, task, levels[-1], is_named))
    return levels


def _followed(level: Mapping[EntityPath, _Array], hub: int) -> list[EntityPath]:
    """The walks that are followed further."""
    return [walk for walk, nodes in level.items() if len(nodes) <= hub or not walk.path]


def _among(graph: Graph, ids: Collection[str]) -> NDArray[np.bool_]:
    positions, mask = (
        graph.nodes.find(list(ids)),
        np.zeros(len(graph.nodes), dtype=bool),
    )
    mask[positions[positions >= 0]] = True
    return mask


def _matrix(reached: Sequence[_Array], n: int) -> sp.csr_array:
    """Where walks lead, ``(walks, n)``."""
    nodes = np.concatenate([np.empty(0, np.int64), *reached])
    return sp.csr_array(
        (np.ones(len(nodes), np.int64), nodes, np.cumsum([0, *map(len, reached)])),
        shape=(len(reached), n),
    )


def _begin(graph: Graph, task: CountTask) -> dict[EntityPath, _Array]:
    """The walks that have not begun yet, with the nodes where they stand."""
    begun = {}
    for number, entity in enumerate(task.entities):
        positions = graph.nodes.find(list(entity.nodes))
        positions = positions[positions >= 0]
        for label in entity.labels:
            fits = graph.nodes.fits(positions, None, [label] if label else None)
            begun[EntityPath(number, label)] = (
                positions if fits is None else positions[fits]
            )
    return begun


def _onward(
    graph: Graph,
    task: CountTask,
    level: Mapping[EntityPath, _Array],
    is_named: NDArray[np.bool_],
) -> dict[EntityPath, _Array]:
    """The walks that are one hop longer, with the nodes that they lead to."""
    nodes, edges = graph.nodes, graph.edges
    walks = _followed(level, task.hub)
    of, begin = _matrix([level[walk] for walk in walks], len(nodes)).nonzero()
    shape, keys = (
        (len(walks), len(edges.relations), 2, len(nodes.label_sets), len(nodes)),
        [],
    )
    for outgoing, other in ((True, edges.target), (False, edges.source)):
        edge, which = edges.incident_each(begin, "out" if outgoing else "in")
        edge, which = (array[~is_named[other[edge]]] for array in (edge, which))
        way, to = np.full(len(edge), int(outgoing)), other[edge]
        keys.append(
            np.ravel_multi_index(
                (of[which], edges.relation[edge], way, nodes.labels[to], to), shape
            )
        )
    key = np.sort(
        np.concatenate(keys)
    )  # which is faster than the hashes of `np.unique`
    kind, targets = np.divmod(key[np.diff(key, prepend=-1) > 0], max(len(nodes), 1))
    firsts = np.flatnonzero(np.diff(kind, prepend=-1))
    kinds = zip(
        *(column.tolist() for column in np.unravel_index(kind[firsts], shape[:-1])),
        strict=True,
    )
    longer_walks, untyped = (
        defaultdict[EntityPath, list[_Array]](list),
        ("",) if () in nodes.label_sets else (),
    )
    for (walk, relation, outgoing, labels), some in zip(
        kinds, np.split(targets, firsts[1:]), strict=False
    ):
        # a path to nodes of no label is one to any
        for label in (*nodes.label_sets[labels], *untyped):
            longer = walks[walk].on(edges.relations[relation], bool(outgoing), label)
            if longer.path in task.paths:
                longer_walks[longer].append(some)
    return {walk: np.concatenate(some) for walk, some in longer_walks.items()}


def counts_in_database(
    store: CypherStore,
    schema: GraphSchema,
    task: CountTask,
    timeout: float | None,
    trace: Trace,
) -> Iterator[AnswerCount]:
    """Count what walks find by one query for each template.

    One that fails, or takes longer than `timeout` seconds, is left out.
    """
    keyed = [
        (str(number), "{:09} {:09}".format(*entity.place), entity)
        for number, entity in enumerate(task.entities)
    ]
    parameters: dict[str, Any] = {
        "begins": [
            {"id": node_id, "key": key, "place": at}
            for key, at, entity in keyed
            for node_id in entity.nodes
        ],
        "followed": [
            f"{key}{SEPARATOR}{label}"
            for key, _, entity in keyed
            for label in entity.labels
        ],
        "named": task.named,
        "answers": sorted(task.answers),
    }
    relations = {name: relation for relation, name in schema.cypher_relations.items()}
    untyped = any("" in (hop.start, hop.label) for path in task.paths for hop in path)
    singles = [(length,) for length in range(1, task.longest + 1)]
    for template in [
        *singles,
        *(several for several in task.templates if len(several) > 1),
    ]:
        query = TemplateQuery(store, template, untyped=untyped)
        try:
            rows = store.query(
                query.text, parameters | query.parameters, timeout=timeout
            ).rows
        except GraphretError as error:
            trace.note(
                "fallback",
                failed=f"paths {template}",
                error=f"{type(error).__name__}: {error}",
            )
            continue
        for *keys, size, hits in rows:
            walks = tuple(_walk(key, relations) for key in keys)
            if any(walk.path not in task.paths for walk in walks):
                continue
            if len(keys) == 1 and size <= task.hub:
                parameters["followed"].append(keys[0])
            if template in task.templates:
                yield AnswerCount(walks, size, hits)


def _walk(key: str, relations: dict[str, str]) -> EntityPath:
    """The walk of a key, its relations as the schema calls them."""
    entity, label, *parts = key.split(SEPARATOR)
    walk = EntityPath(int(entity), label)
    for arrow, relation, end in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
        walk = walk.on(relations.get(relation, relation), arrow == ">", end)
    return walk
