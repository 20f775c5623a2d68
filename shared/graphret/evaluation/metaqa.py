"""MetaQA (Zhang et al. 2018): questions of one to three hops over films."""

from __future__ import annotations

import itertools
import random
import re
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from graphret.ark import Ark, ArkRun, ArkSettings
from graphret.ark.scripted import ScriptedExplorer
from graphret.errors import InvalidInput, RetrievalFailed
from graphret.evaluation.metrics import hit_at_k, mrr, percent, recall_at_k
from graphret.evaluation.paths import written_among
from graphret.evaluation.runner import Progress
from graphret.graphraft import GraphRAFT
from graphret.graphraft.candidates import Candidate, Prior, Written
from graphret.graphraft.writer import Writer
from graphret.graphs import read_metaqa
from graphret.graphs.example import ALIASES
from graphret.graphs.metaqa import OBJECTS
from graphret.grasp import Grasp
from graphret.index_retriever import IndexRetriever
from graphret.llm import ChatModel
from graphret.planning import PathPlanner
from graphret.retriever import Retriever
from graphret.search.bm25 import BM25Index
from graphret.stores import MemoryStore
from graphret.stores.base import require_limit
from graphret.training import train_paths
from graphret.training.questions import LabelledQuestion

HOPS = (1, 2, 3)
METHODS = ("ark", "grasp", "graphraft")
SHOWN = ("hit@1", "hit@5", "recall@20", "mrr", "calls", "steps")

_K = 20

_ENTITY = re.compile(r"\[(.*?)\]")
_CALLED = {"tags": "tag", "imdbrating": "rating", "imdbvotes": "votes"}
_RELATIONS = {label.lower(): relation for relation, label in OBJECTS.items()}


@dataclass(frozen=True, slots=True)
class MetaQuestion:
    """A question of MetaQA without its brackets, its entity's id and the answers' ids.

    `path` has the relations from the entity to the answers, each with whether it is
    followed from its source to its target; it is empty where the data does not tell.
    """

    text: str
    entity: str
    gold: frozenset[str]
    path: tuple[tuple[str, bool], ...] = ()


def load_questions(
    data: str | Path,
    hops: int,
    split: str = "dev",
    *,
    limit: int | None = None,
    seed: int = 0,
) -> list[MetaQuestion]:
    """Read the questions of one number of hops, in the layout of the public release.

    The file is ordered by type of question, so that `limit` questions are drawn from it
    at random, the same for the same `seed`, and come in its order.

    Raises
    ------
    InvalidInput
        When the file is not there, a line is not as it should be, or the types of
        questions are not as many.
    """
    path = Path(data) / f"{hops}-hop" / "vanilla" / f"qa_{split}.txt"
    kinds = Path(data) / f"{hops}-hop" / f"qa_{split}_qtype.txt"
    lines = _lines(path)
    typed = _lines(kinds) if kinds.exists() else [""] * len(lines)
    if len(typed) != len(lines):
        raise InvalidInput(
            f"{kinds}: expected a type for each of {len(lines)} questions, got"
            f" {len(typed)}"
        )
    places: Sequence[int] = range(len(lines))
    if (most := require_limit(limit)) is not None and most < len(lines):
        places = sorted(random.Random(seed).sample(places, most))
    return [
        _question(lines[place], typed[place], f"{path}, line {place + 1}")
        for place in places
    ]


def _lines(path: Path) -> list[str]:
    try:
        return [
            line
            for line in path.read_text(encoding="utf-8").splitlines()
            if line.strip()
        ]
    except (OSError, ValueError) as error:
        raise InvalidInput(f"{path}: {error}") from error


def _question(line: str, kind: str, where: str) -> MetaQuestion:
    bracketed, tab, answers = line.partition("\t")
    entity = _ENTITY.search(bracketed)
    gold = frozenset(answer for answer in answers.split("|") if answer)
    if not tab or entity is None or not gold:
        raise InvalidInput(
            f"{where}: expected a question with an [entity], a tab and answers joined"
            " by '|'"
        )
    return MetaQuestion(
        _ENTITY.sub(r"\1", bracketed),
        entity[1],
        gold,
        path_of(kind, where) if kind else (),
    )


def path_of(kind: str, where: str = "type of question") -> tuple[tuple[str, bool], ...]:
    """Return the relations to follow for a type, such as ``movie_to_actor_to_movie``.

    Examples
    --------
    >>> path_of("movie_to_actor_to_movie")
    (('starred_actors', True), ('starred_actors', False))
    """
    roles = [_CALLED.get(role, role) for role in kind.strip().split("_to_")]
    path = []
    for source, target in itertools.pairwise(roles):
        relation = _RELATIONS.get(target if source == "movie" else source)
        if relation is None or (source == "movie") == (target == "movie"):
            raise InvalidInput(f"{where}: expected a type of question, got {kind!r}")
        path.append((relation, source == "movie"))
    return tuple(path)


def bench_metaqa(
    data: str | Path,
    split: str = "dev",
    limit: int | None = None,
    *,
    method: str = "ark",
    hops: Sequence[int] = HOPS,
    aliases: str | Path | None = None,
    train: float | None = None,
    writer: str | Path | None = None,
    model: ChatModel | None = None,
    settings: ArkSettings = ArkSettings(),
    seed: int = 0,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Measure exploring agents, or plans, on MetaQA's questions.

    The brackets are removed, and the number of hops is not given.

    Parameters
    ----------
    data, split
        A folder in MetaQA's layout, and which of its questions.
    limit
        Questions of each number of hops, drawn at random; all by default.
    method
        ``ark``; ``grasp``: plans of the planner, fused with a search; or ``graphraft``:
        the best of all queries.
    hops
        Which numbers of hops.
    aliases
        A file of what people call relations and labels; ``ark`` has that of the example
        graph by default.
    train
        The share of the training questions that the planner learns from; none by
        default.
    writer
        What ``graphret train writer`` wrote, for ``graphraft``, with a row of the same
        writer without constraints; without a writer paths are ranked with no model.
    model
        A chat model that drives the agent, plans for ``grasp``, or names entities and
        reasons for ``graphraft``; none by default.
    settings
        How the agent explores; it is always one.
    seed
        Of the draw.

    Returns
    -------
    dict
        ``name``, ``rows`` (``1-hop/ark`` and so on, and ``1-hop/bm25``, which searches
        for the question as it is), ``counts``, ``seconds`` and ``shown``, the metrics
        in the order of a table. ``calls`` and ``steps`` are means a question.
    """
    if method not in METHODS:
        raise InvalidInput(
            f"method: expected one of {', '.join(METHODS)}, got {method!r}"
        )
    if not hops or not set(hops) <= set(HOPS):
        raise InvalidInput(
            f"hops: expected some of {', '.join(map(str, HOPS))}, got {list(hops)!r}"
        )
    start = time.perf_counter()
    chosen_hops = list(dict.fromkeys(hops))
    questions = {
        n: load_questions(data, n, split, limit=limit, seed=seed) for n in chosen_hops
    }
    store = read_metaqa(data).store()
    loaded = time.perf_counter()
    index = BM25Index.of_store(store)
    bench = _MetaQA(store, index, model, progress or (lambda stage, done, total: None))
    bench.seconds = {"load": loaded - start, "index": time.perf_counter() - loaded}
    if method == "ark":
        shown = list(SHOWN)
        note = "the agents are driven by rules, not by a language model"
        for n in chosen_hops:
            bench.measure_ark(n, questions[n], aliases or ALIASES, settings)
    else:
        shown = list(SHOWN[:4])
        note = "plans are made without a language model"
        planner = PathPlanner(store, aliases=aliases)
        if train is not None:
            learned = _training_questions(data, chosen_hops, train, seed)
            planner.scorer = train_paths(planner, learned, seed)
            bench.counts["trained_on"] = len(learned)
        path_writer = None if writer is None else Writer.load(writer)
        for n in chosen_hops:
            bench.measure_planner(n, questions[n], method, planner, path_writer)
    bench.seconds["total"] = time.perf_counter() - start
    return {
        "name": "metaqa",
        "rows": bench.rows,
        "counts": bench.counts,
        "seconds": {name: round(value, 6) for name, value in bench.seconds.items()},
        "shown": shown,
        "notes": [note if model is None else f"{model.name} is asked"],
    }


def _training_questions(
    data: str | Path, hops: Sequence[int], share: float, seed: int
) -> list[LabelledQuestion]:
    """Draw a share of the training questions of each number of hops."""
    questions: list[LabelledQuestion] = []
    for n in hops:
        available = len(_lines(Path(data) / f"{n}-hop" / "vanilla" / "qa_train.txt"))
        limit = max(1, round(share * available))
        sampled = load_questions(data, n, "train", limit=limit, seed=seed)
        questions += [
            LabelledQuestion(question.text, question.gold) for question in sampled
        ]
    return questions


class _MetaQA:
    """The rows of the benchmark, as retrievers are measured over the graph of films."""

    def __init__(
        self,
        store: MemoryStore,
        index: BM25Index,
        model: ChatModel | None,
        report: Progress,
    ) -> None:
        self.store = store
        self.index = index
        self.model = model
        self.report = report
        nodes, edges = store.count()
        self.rows: dict[str, dict[str, float]] = {}
        self.counts = {"nodes": nodes, "edges": edges}
        self.seconds: dict[str, float] = {}

    def measure_ark(
        self,
        n: int,
        questions: Sequence[MetaQuestion],
        aliases: str | Path,
        settings: ArkSettings,
    ) -> None:
        """Measure one agent; where rules drive it, one that fails is an error."""
        runs: list[ArkRun] = []
        ark = Ark(
            self.model or ScriptedExplorer(aliases=aliases),
            self.store,
            self.index,
            settings=replace(settings, n_agents=1),
            on_run=runs.append,
        )
        self._measure_search(n, questions)
        self._measure(f"{n}-hop/ark", ark, questions)
        self.rows[f"{n}-hop/ark"] |= _effort(runs, strict=self.model is None)

    def measure_planner(
        self,
        n: int,
        questions: Sequence[MetaQuestion],
        method: str,
        planner: PathPlanner,
        writer: Writer | None,
    ) -> None:
        """Measure plans, and with a writer also what it writes without constraints."""
        self._measure_search(n, questions)
        ours: Retriever
        if method == "grasp":
            ours = Grasp(self.model or planner, self.store, self.index)
        else:
            ours = GraphRAFT(
                self.store,
                self.index,
                planner=planner,
                writer=writer,
                entities=self.model,
                reasoner=self.model,
            )
            if writer is not None:
                free = GraphRAFT(
                    self.store,
                    self.index,
                    planner=planner,
                    writer=_UnconstrainedWriter(writer),
                )
                self._measure(f"{n}-hop/graphraft, free", free, questions)
        self._measure(f"{n}-hop/{method}", ours, questions)
        self.seconds[f"plan_{n}-hop"] = _plan_seconds(planner, questions)

    def _measure_search(self, n: int, questions: Sequence[MetaQuestion]) -> None:
        """Measure a search for the questions as they are."""
        search = IndexRetriever(self.index, self.store)
        self._measure(f"{n}-hop/bm25", search, questions)
        self.counts[f"{n}-hop/questions"] = len(questions)

    def _measure(
        self, row: str, retriever: Retriever, questions: Sequence[MetaQuestion]
    ) -> None:
        measured = _measure(row, retriever, questions, self.report)
        self.rows[row], self.seconds[f"query_{row}"] = measured


def _effort(runs: Sequence[ArkRun], *, strict: bool) -> dict[str, float]:
    """Return the mean calls and steps of a question; if `strict`, a failure raises."""
    calls, steps = [], []
    for run in runs:
        for session in run.sessions:
            if strict and session.failed:
                raise RetrievalFailed(
                    f"{session.question!r}: agent {session.agent + 1}: {session.error}"
                )
        agent_steps = [step for session in run.sessions for step in session.steps]
        calls.append(sum(len(step.calls) for step in agent_steps))
        steps.append(len(agent_steps))
    return {
        "calls": round(statistics.mean(calls), 2),
        "steps": round(statistics.mean(steps), 2),
    }


class _UnconstrainedWriter:
    """A writer without constraints: what it writes counts if it is a candidate."""

    name = "free"

    def __init__(self, writer: Writer) -> None:
        self.writer = writer

    def rank(
        self,
        question: str,
        candidates: Sequence[Candidate],
        most: int,
        prior: Prior = None,
    ) -> Written:
        (texts,) = self.writer.write([question])
        places = written_among([candidate.text for candidate in candidates], texts)[
            :most
        ]
        return [(place, 1 / len(places)) for place in places]


def _plan_seconds(planner: PathPlanner, questions: Sequence[MetaQuestion]) -> float:
    """The median time of a plan, processor time, over at most 200 questions."""
    seconds = []
    for question in questions[:: max(1, len(questions) // 200)]:
        start = time.process_time()
        planner.plan(question.text)
        seconds.append(time.process_time() - start)
    return statistics.median(seconds)


def _measure(
    row: str, retriever: Retriever, questions: Sequence[MetaQuestion], report: Progress
) -> tuple[dict[str, float], float]:
    values: dict[str, list[float]] = {
        name: [] for name in ("hit@1", "hit@5", "recall@20", "mrr")
    }
    seconds = []
    for nth, question in enumerate(questions):
        if nth % 20 == 0:
            report(row, nth, len(questions))
        start = time.perf_counter()
        ranked = retriever.retrieve(question.text, _K).ids
        seconds.append(time.perf_counter() - start)
        values["hit@1"].append(hit_at_k(ranked, question.gold, 1))
        values["hit@5"].append(hit_at_k(ranked, question.gold, 5))
        values["recall@20"].append(recall_at_k(ranked, question.gold, _K))
        values["mrr"].append(mrr(ranked, question.gold))
    report(row, len(questions), len(questions))
    return {
        name: percent(statistics.mean(measured)) for name, measured in values.items()
    }, statistics.median(seconds)


def path_ends(store: MemoryStore, question: MetaQuestion) -> set[str]:
    """Return the nodes at the end of a question's own relations, without its entity."""
    frontier = {question.entity}
    for relation, outgoing in question.path:
        existing = [node.id for node in store.get(sorted(frontier)) if node is not None]
        edges = (
            store.neighbors(
                existing, relations=[relation], direction="out" if outgoing else "in"
            )
            if existing
            else []
        )
        frontier = {edge.target if outgoing else edge.source for edge in edges} - {
            question.entity
        }
    return frontier
