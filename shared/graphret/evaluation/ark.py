"""ARK's agents, measured part by part (ARK, section 5 and appendix A).

The parts are their number and steps, their operations, how their selections are merged
and how they use their tools.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from graphret.ark import Ark, ArkRun, ArkSession, ArkSettings
from graphret.ark.prompt import EXPLORE, SEARCH
from graphret.ark.settings import Exploration
from graphret.errors import InvalidInput
from graphret.evaluation.metrics import hit_at_k, mrr, percent, recall_at_k
from graphret.evaluation.runner import Progress
from graphret.fusion import vote
from graphret.training.questions import LabelledQuestion

#: How selections become one ranking (table 3): by votes, one agent's behind the
#: other's, or all of them in any order.
Merge: TypeAlias = Literal["voting", "ordering", "random"]
_SHOWN = ("hit@1", "recall@20", "mrr")


def merged(
    sessions: Sequence[ArkSession], how: Merge = "voting", seed: int = 0
) -> list[str]:
    """Return what agents selected as one ranking (ARK, table 3)."""
    if how == "voting":
        return [voted.id for voted in vote([session.selection for session in sessions])]
    union = list(
        dict.fromkeys(node for session in sessions for node in session.selection)
    )
    if how == "random":
        random.Random(seed).shuffle(union)
    return union


def bench_ark(
    ark_of: Callable[[ArkSettings], Ark],
    questions: Sequence[LabelledQuestion],
    *,
    agents: Sequence[int] = (1, 2, 3),
    steps: Sequence[int] = (20,),
    explorations: Sequence[Exploration] = ("full",),
    seed: int = 0,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Measure agents of each number, number of steps and set of operations.

    For a number of steps and a set of operations, the most agents run once, each to its
    end; fewer are the first of these. That is exact, since agents know nothing of each
    other (section 3.2).

    Parameters
    ----------
    ark_of
        Makes the agents of settings, with a model and a graph.
    agents, steps, explorations
        What is tried: the map of figure 2, with ``(1, 3)`` agents and ``(10, 30)``
        steps that of table 8, and the operations of table 2.

    Returns
    -------
    dict
        ``rows``: ``"3 agents, 20 steps"`` with ``hit@1``, ``recall@20`` and ``mrr`` in
        percent, and for the most agents and steps the merges of table 3. ``seconds``
        has for each how long a question took, agents running at once. ``tools`` is
        `tool_use` of each set of operations, with the most steps.
    """
    if not questions:
        raise InvalidInput("questions: expected at least one, got none")
    rows: dict[str, dict[str, float]] = {}
    seconds: dict[str, float] = {}
    tools: dict[str, Any] = {}
    gold = {question.text: question.gold for question in questions}
    began, most = time.perf_counter(), max(agents)
    for exploration in explorations:
        part = "" if exploration == "full" else f", {exploration}"
        for limit in sorted(steps):
            settings = ArkSettings(
                most, limit, early_stop=False, exploration=exploration
            )
            name = f"{limit} steps{part}"
            runs = _explored(ark_of(settings), questions, name, progress)
            for n in agents:
                sessions_of_runs = [run.sessions[:n] for run in runs]
                row = f"{n} agent{'s' * (n > 1)}, {name}"
                rows[row] = _measured(map(merged, sessions_of_runs), questions)
                slowest = [
                    max(session.seconds for session in agent_sessions)
                    for agent_sessions in sessions_of_runs
                ]
                seconds[row] = round(float(np.mean(slowest)), 4)
        tools[exploration] = tool_use(runs, gold)
        for how in get_args(Merge)[1:]:
            ranked = [merged(run.sessions, how, seed) for run in runs]
            rows[f"{most} agents, {name}, {how}"] = _measured(ranked, questions)
    seconds["all"] = round(time.perf_counter() - began, 2)
    counts = {"questions": len(questions)}
    return {
        "name": "ark",
        "rows": rows,
        "counts": counts,
        "seconds": seconds,
        "tools": tools,
    }


def _explored(
    ark: Ark,
    questions: Sequence[LabelledQuestion],
    name: str,
    progress: Progress | None,
) -> list[ArkRun]:
    runs = []
    for number, question in enumerate(questions, 1):
        runs.append(ark.explore(question.text))
        if progress is not None:
            progress(name, number, len(questions))
    return runs


def _measured(
    ranked: Iterable[Sequence[str]], questions: Sequence[LabelledQuestion]
) -> dict[str, float]:
    """Return the metrics of rankings in percent."""
    values = [
        (
            hit_at_k(ids, question.gold, 1),
            recall_at_k(ids, question.gold, 20),
            mrr(ids, question.gold),
        )
        for ids, question in zip(ranked, questions, strict=True)
    ]
    means = map(percent, np.asarray(values).mean(axis=0))
    return dict(zip(_SHOWN, means, strict=True))


def tool_use(
    runs: Sequence[ArkRun], gold: Mapping[str, frozenset[str]] | None = None
) -> dict[str, dict[str, Any]]:
    """Return how agents used their tools, of recorded runs too.

    Of ``all`` trajectories and, where right answers are known, of the ``successful``
    ones, with one among their first five, and of the others, ``failed``: how many there
    are; the share of searches among searches and explorations (figure 3); of
    trajectories the share that only searched (table 9), and that searched again after
    their first step (table 10), in percent; and how many made so many explorations
    (figure 5). Calls that could not be run do not count.

    Parameters
    ----------
    gold
        The right answers by question. A run of a question that is not there is refused.
    """
    pairs = [(run.question, session) for run in runs for session in run.sessions]
    groups = {"all": [session for _, session in pairs]}
    if gold is not None:
        if unknown := next((text for text, _ in pairs if text not in gold), None):
            raise InvalidInput(
                f"runs: expected runs of the questions, got one of {unknown!r}"
            )
        right = [
            hit_at_k(merged([session]), gold[text], 5) == 1 for text, session in pairs
        ]
        groups["successful"] = [
            session for (_, session), hit in zip(pairs, right, strict=True) if hit
        ]
        groups["failed"] = [
            session for (_, session), hit in zip(pairs, right, strict=True) if not hit
        ]
    return {name: _use(sessions) for name, sessions in groups.items() if sessions}


def _use(sessions: Sequence[ArkSession]) -> dict[str, Any]:
    """Return the use of tools in some trajectories."""
    calls = [
        [
            Counter(call.tool for call in step.calls if not call.failed)
            for step in session.steps
        ]
        for session in sessions
    ]
    searches = [sum(step[SEARCH] for step in steps) for steps in calls]
    explored = [sum(step[EXPLORE] for step in steps) for steps in calls]
    searched_again = [any(step[SEARCH] for step in steps[1:]) for steps in calls]
    all_calls = sum(searches) + sum(explored)
    return {
        "trajectories": len(sessions),
        "search_share": _percent(sum(searches), all_calls),
        "only_search": _percent(sum(n == 0 for n in explored), len(sessions)),
        "searched_again": _percent(sum(searched_again), len(sessions)),
        "explorations": {str(n): m for n, m in sorted(Counter(explored).items())},
    }


def _percent(part: int, of: int) -> float:
    return percent(part / of) if of else 0.0
