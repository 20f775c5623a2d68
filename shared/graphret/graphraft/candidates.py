"""`Candidate`: a query that exists around a question's entities, as plan and text."""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from typing import Protocol, TypeAlias, runtime_checkable

from graphret.cypher.execution import TIMEOUT
from graphret.errors import InvalidInput
from graphret.graphraft.counts import (
    AnswerCount,
    CountTask,
    Entity,
    counts_in_database,
    counts_in_memory,
    fetch_walked_graph,
)
from graphret.planning import Bindings, GraphPlan, PathSpace
from graphret.planning.path_planner import plan_of
from graphret.planning.paths import MOST_HOPS
from graphret.planning.patterns import Hop, cypher_name, pattern_of
from graphret.stores.base import GraphStore, as_cypher
from graphret.trace import Trace

Path: TypeAlias = "tuple[Hop, ...]"
#: Places of candidates with the probability of each, the best first.
Written: TypeAlias = "list[tuple[int, float]]"
#: The logarithms of the probabilities that another ranking gives candidates.
Prior: TypeAlias = "Sequence[float] | None"


@dataclass(frozen=True)
class Candidate:
    """A query that finds something in the graph (GraphRAFT, section 4.1).

    Parameters
    ----------
    walks
        Paths that meet in what it finds, each with the name that it begins at.
    bindings
        Of each anchor the nodes that it stands for, with the score of each; what else
        the question names as ``named``.
    text
        The pattern that a writer writes: ``(a1:Disease {name:
        "x"})-[:INDICATION]-(T:Drug)``.
    size
        How many nodes it finds.
    hits
        How many of them are among given answers; `None` where none are given.
    """

    walks: Sequence[tuple[str, tuple[Hop, ...]]]
    bindings: Bindings
    text: str
    size: int
    hits: int | None = None

    @cached_property
    def plan(self) -> GraphPlan:
        """What runs; names are among its parameters and never in a query."""
        return plan_of(self.walks)

    @property
    def query(self) -> str:
        """The pattern as a query to read; what runs is the plan."""
        return f"MATCH {self.text} RETURN T.name AS name"


@runtime_checkable
class QueryWriter(Protocol):
    """Ranks the candidates of a question, by writing them with a model or otherwise."""

    name: str

    def rank(
        self,
        question: str,
        candidates: Sequence[Candidate],
        most: int,
        prior: Prior = None,
    ) -> Written:
        """Return the places of the best candidates with their probabilities.

        The best come first, at most so many.

        None where none fits. `prior` is how `GraphRAFT` ranks them by words.
        """
        ...


#: The lengths of walks that meet: the paper's 1-hop, 2-hop and length two between
#: entities (appendix A.2), and beyond it 3-hop and three entities that meet.
TEMPLATES = ((1,), (2,), (1, 1), (1, 1, 1), (3,))


@dataclass(frozen=True)
class GraphRAFTSettings:
    """Which queries are looked for, and how many of them run.

    Parameters
    ----------
    templates
        The lengths of the walks from entities to one target.
    most
        At most so many candidates: those of the fewest hops, then of the fewest
        results.
    results
        A candidate that finds more nodes is left out.
    hub
        A path that finds more nodes is followed no further.
    targets
        The labels that results may have; none for any.
    queries, nodes
        How many of the best may run, until so many nodes are found (section 5.2), or
        `k` where that is more.
    timeout
        Seconds for each query of a database.
    """

    templates: tuple[tuple[int, ...], ...] = TEMPLATES
    most: int = 1_000
    results: int = 100_000
    hub: int = 200
    targets: tuple[str, ...] = ()
    queries: int = 10
    nodes: int = 20
    timeout: float = TIMEOUT

    @classmethod
    def paper(cls) -> GraphRAFTSettings:
        """Return the paper's settings: paths of one and two hops, and pairs of two.

        Every result of a query (appendix A.2), and queries until there are twenty nodes
        (section 5.2).
        """
        every = sys.maxsize
        return cls(
            templates=((1,), (2,), (1, 1)),
            results=every,
            hub=every,
            nodes=20,
        )

    def __post_init__(self) -> None:
        if not self.templates or not all(
            template and all(1 <= hops <= MOST_HOPS for hops in template)
            for template in self.templates
        ):
            raise InvalidInput(
                f"templates: expected tuples of 1 to {MOST_HOPS} hops, got"
                f" {self.templates!r}"
            )


class CandidateFinder:
    """Finds the queries that exist around entities, with counts (section 4.1).

    In memory all paths of one length are followed at once, in a database one
    aggregating query counts what the paths of a template find; of any other store the
    edges on the way are read first. All find the same.

    Parameters
    ----------
    store
        The graph; no view of a database.
    space
        The kinds of paths that it has, such as ``PathPlanner(store).space``.
    """

    def __init__(
        self,
        store: GraphStore,
        space: PathSpace,
        settings: GraphRAFTSettings | None = None,
    ) -> None:
        self.store, self.settings = store, settings or GraphRAFTSettings()
        self.database = as_cypher(store)
        self.schema = None if self.database is None else self.database.schema()
        self._hops = frozenset(space.hops)
        self._paths = lru_cache(maxsize=64)(partial(_paths, space))

    def find(
        self,
        entities: Sequence[Entity],
        answers: Collection[str] | None = None,
        trace: Trace | None = None,
    ) -> list[Candidate]:
        """Return the candidates around entities, those of the fewest hops first.

        Then by the number of results.

        Parameters
        ----------
        answers
            The ids of which each candidate's hits are counted.
        trace
            Where it is noted if a database fails or is too slow for a template, whose
            candidates are then missing.
        """
        chosen, labels = (
            self.settings,
            tuple(sorted({label for entity in entities for label in entity.labels})),
        )
        places = len({entity.place for entity in entities})
        templates = [
            template for template in chosen.templates if len(template) <= places
        ]
        if not templates:
            return []
        paths = self._paths(labels)
        task = CountTask(entities, paths, templates, chosen.hub, answers or ())
        counts = self._counts(task, trace or Trace())
        fits = [
            count
            for count in counts
            if count.size <= chosen.results
            and (not chosen.targets or count.walks[0].label in chosen.targets)
        ]
        fits.sort(
            key=lambda count: (sum(len(walk.path) for walk in count.walks), count.size)
        )
        candidates = [
            self._candidate(count, task, paths, answers is not None)
            for count in fits[: chosen.most]
        ]
        return sorted(
            candidates,
            key=lambda candidate: (
                sum(len(path) for _, path in candidate.walks),
                candidate.size,
                candidate.text,
            ),
        )

    def shown(self, candidate: Candidate) -> str:
        """Return a candidate's query to paste into a console of the database.

        It has the database's own names of labels, relations and properties.
        """
        if self.schema is None:
            return candidate.query
        labels, relations = self.schema.cypher_labels, self.schema.cypher_relations

        def written(hop: Hop) -> Hop:
            return Hop(
                relations.get(hop.relation, hop.relation),
                hop.outgoing,
                labels.get(hop.start) or hop.start,
                labels.get(hop.label) or hop.label,
            )

        walks = [(name, tuple(map(written, path))) for name, path in candidate.walks]
        pattern = pattern_of(walks, {*map(written, self._hops)}, self._name_condition)
        key = self._name_key(walks[0][1][-1].label)
        return f"MATCH {pattern} RETURN T.{cypher_name(key)} AS name"

    def _name_condition(self, label: str, name: str) -> str:
        """Write which property of a label's nodes is a name: numbers as such."""
        assert self.schema is not None
        key = self._name_key(label)
        about = self.schema.properties.get(label, {}).get(key)
        number = about is not None and about.type in ("INTEGER", "FLOAT")
        value = name if number else json.dumps(name, ensure_ascii=False)
        return f"{cypher_name(key)}: {value}"

    def _name_key(self, label: str) -> str:
        assert self.schema is not None
        return self.schema.cypher_names.get(label, "name")

    def _counts(self, task: CountTask, trace: Trace) -> Iterator[AnswerCount]:
        if self.database is not None and self.schema is not None:
            timeout = self.settings.timeout
            return counts_in_database(self.database, self.schema, task, timeout, trace)
        graph = self.store.local_graph()
        if graph is None:
            graph = fetch_walked_graph(self.store, task)
        return counts_in_memory(graph, task)

    def _candidate(
        self,
        count: AnswerCount,
        task: CountTask,
        paths: Mapping[Path, Path],
        counted: bool,
    ) -> Candidate:
        # one text for what meets, whichever walk was counted first
        ordered = sorted(count.walks, key=lambda walk: (len(walk.path), walk.entity))
        entity_paths = [
            (task.entities[walk.entity], paths[walk.path]) for walk in ordered
        ]
        walks = [(entity.name, path) for entity, path in entity_paths]
        bindings = {
            f"a{number}": entity.nodes
            for number, (entity, _) in enumerate(entity_paths, 1)
        }
        # what else the question names is no answer either: see GraphPlan.apart
        if len(ordered) < len(task.entities):
            bindings["named"] = dict.fromkeys(task.named, 0.0)
        return Candidate(
            walks,
            bindings,
            pattern_of(walks, self._hops),
            count.size,
            count.hits if counted else None,
        )


def _paths(space: PathSpace, labels: tuple[str, ...]) -> dict[Path, Path]:
    """The possible paths from nodes of some labels, by their hops one after another.

    In a path that a space has a hop may begin at another label than the one before
    leads to: one person, two parts.
    """
    paths: dict[Path, Path] = {}
    for path in map(space.path, space.table(labels)):
        labels_along = [path[0].start, *(hop.label for hop in path)]
        paths.setdefault(
            tuple(
                hop._replace(start=at)
                for hop, at in zip(path, labels_along, strict=False)
            ),
            path,
        )
    return paths
