"""Ways to find entities, compared by the best query around them (GraphRAFT).

See section 5.4 and figure 5.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from graphret.errors import InvalidInput
from graphret.evaluation.metrics import paired_bootstrap, percent
from graphret.evaluation.runner import Progress
from graphret.graphraft import CandidateFinder, Entity, EntityNamer, GraphRAFTSettings
from graphret.graphraft.entities import mentioned_entities, nearest_entities
from graphret.llm import ChatError, ChatModel
from graphret.planning import PathPlanner
from graphret.search.index import TextIndex
from graphret.training import LabelledQuestion

#: Finds the entities of a question.
FindEntities: TypeAlias = Callable[[str], list[Entity]]

#: Numbers of nearest nodes that are tried (figure 5: 2NN and 5NN).
NEIGHBORS = (2, 5)
#: The row of the names that are found without a model, which gains are over.
NAMES = "names"
#: The metrics in percent, and the other columns with their decimal places.
SHARES = ("good", "all", "recall", "best")
PLACES = {"size": 0, "entities": 1, "seconds": 3}
#: The columns of the table; a terminal has no room for all.
SHOWN = ("good", "recall", "best", "size", "entities")


@dataclass(frozen=True, slots=True)
class BestQuery:
    """The query around some entities with the most answers, then the fewest nodes.

    Parameters
    ----------
    entities
        How many there are.
    hits, size
        How many answers it finds, and how many nodes; 0 where there is no query.
    recall
        `hits` as a share of the answers.
    seconds
        How long it took to find the entities.
    """

    entities: int
    hits: int
    size: int
    recall: float
    seconds: float


def bench_linking(
    planner: PathPlanner,
    index: TextIndex,
    questions: Sequence[LabelledQuestion],
    *,
    model: ChatModel | None = None,
    neighbors: Sequence[int] = NEIGHBORS,
    settings: GraphRAFTSettings = GraphRAFTSettings(),
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Compare ways to find the entities of a question.

    They are the names that the planner spots, a model that names them, and the nodes
    nearest to the question.

    Parameters
    ----------
    planner
        Spots names, and links those that the model gives.
    index
        Finds the nearest nodes: by embeddings where it has some, else by words.
    questions
        Questions with the ids of their answers.
    model
        A chat model, for the row ``model``.
    neighbors
        Numbers of nearest nodes, a row each.
    settings
        Which queries are looked for.
    progress
        Called as the work goes on.

    Returns
    -------
    dict
        ``rows``, ``intervals`` (gains over ``names``, ``baseline``), ``counts``,
        ``shown``, ``places`` and ``notes``, for `render`. Of each way: ``good``, the
        share of questions for which a query exists that finds an answer (figure 5a);
        ``all``, one that finds every answer; ``recall`` of the best query; ``best``,
        questions for which no other way has a query with more hits (5b); ``size``, the
        median number of nodes that the best query finds if it finds every answer (5c);
        ``entities`` and ``seconds`` of a question.
    """
    if not questions:
        raise InvalidInput("questions: expected at least one, got none")
    finder = CandidateFinder(planner.store, planner.space, settings)
    local = index.local_index()
    dense = None if local is None else local.dense_part()
    failures: list[str] = []
    best: dict[str, list[BestQuery]] = {}
    ways = _ways(planner, dense or index, model, neighbors, failures)
    for name, find in ways.items():
        best[name] = []
        for number, question in enumerate(questions):
            if progress is not None:
                progress(name, number, len(questions))
            best[name].append(_best_query(finder, find, question))
        if progress is not None:
            progress(name, len(questions), len(questions))
    return _result(best, dense is not None, failures)


def _ways(
    planner: PathPlanner,
    index: TextIndex,
    model: ChatModel | None,
    neighbors: Sequence[int],
    failures: list[str],
) -> dict[str, FindEntities]:
    """Return what finds entities, by row; failures of the model are noted."""
    ways: dict[str, FindEntities] = {NAMES: partial(mentioned_entities, planner)}
    if model is not None:
        namer = EntityNamer(model, planner.store, planner.names)
        ways["model"] = partial(_named_by_model, namer, failures)
    for n in neighbors:
        ways[f"{n} nearest"] = partial(nearest_entities, planner.store, index, n=n)
    return ways


def _named_by_model(
    namer: EntityNamer, failures: list[str], question: str
) -> list[Entity]:
    """Return the entities that a model names; none where it fails."""
    try:
        reply = namer.ask(question).run()
    except ChatError as error:
        failures.append(f"{question!r}: {error}")
        return []
    return namer.link(question, reply.value.names)


def _best_query(
    finder: CandidateFinder, find: FindEntities, question: LabelledQuestion
) -> BestQuery:
    start = time.perf_counter()
    entities = find(question.text)
    seconds = time.perf_counter() - start
    found = [
        (candidate.hits or 0, candidate.size)
        for candidate in finder.find(entities, question.gold)
    ]
    hits, size = max(found, key=lambda one: (one[0], -one[1]), default=(0, 0))
    return BestQuery(len(entities), hits, size, hits / len(question.gold), seconds)


def _result(
    best: Mapping[str, Sequence[BestQuery]], by_meaning: bool, failures: Sequence[str]
) -> dict[str, Any]:
    """Return what `bench_linking` does."""
    most = np.max([[one.hits for one in own] for own in best.values()], axis=0)
    columns: dict[str, dict[str, np.ndarray[Any, Any]]] = {}
    for name, own in best.items():
        hits = np.asarray([one.hits for one in own])
        recall = np.asarray([one.recall for one in own])
        columns[name] = {
            "good": hits > 0,
            "all": recall == 1,
            "recall": recall,
            "best": (hits == most) & (hits > 0),
        }
    rows, intervals = {}, {}
    for name, own in best.items():
        sizes = [one.size for one in own if one.recall == 1]
        rows[name] = {
            **{share: percent(columns[name][share].mean()) for share in SHARES},
            **({"size": float(np.median(sizes))} if sizes else {}),
            "entities": float(np.mean([one.entities for one in own])),
            "seconds": round(float(np.median([one.seconds for one in own])), 6),
        }
        if name != NAMES:
            intervals[name] = {
                share: paired_bootstrap(columns[name][share], columns[NAMES][share])
                for share in SHARES
            }
    how = "embeddings" if by_meaning else "words, since there is no encoder"
    notes = [f"nearest nodes are those by {how}; gains are over {NAMES}"]
    if failures:
        notes.append(f"the model failed on {len(failures)}, first {failures[0]}")
    return {
        "name": "linking",
        "rows": rows,
        "intervals": intervals,
        "baseline": NAMES,
        "counts": {"questions": len(next(iter(best.values())))},
        "shown": [*SHOWN],
        "places": PLACES,
        "notes": notes,
    }
