"""Learning which paths of relations questions mean, from questions and answers alone
(GraphRAFT, section 4.2).
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from graphret.errors import InvalidInput
from graphret.planning.path_planner import PathPlanner
from graphret.planning.patterns import Hop
from graphret.planning.scorer import (
    UNTRAINED,
    PathScorer,
    counted,
    masked,
    parts_of_path,
)
from graphret.training.questions import LabelledQuestion

#: Questions that are learned of at most, and paths whose ends are compared with the
#: answers of each.
TRAINED, TRIED = 3_000, 40
#: Questions that a word, or two in a row, must be in; how far weights are held back;
#: and rounds of fitting at most.
_TIMES, _HELD, _ROUNDS = 2, 0.3, 120

_Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Choice:
    """A question and the paths around its names, as they are scored.

    Parameters
    ----------
    words
        The question's words, `NAME` in place of names.
    paths
        The candidates.
    facts
        For each what `UNTRAINED` weighs, ``(paths, 3)``.
    best
        The right one.
    """

    words: Sequence[str]
    paths: Sequence[tuple[Hop, ...]]
    facts: _Floats
    best: int = 0


def train_paths(
    planner: PathPlanner, questions: Sequence[LabelledQuestion], seed: int = 0
) -> PathScorer:
    """Learn which paths questions mean from nothing but the ids of their right answers.

    Of the paths around a question's names that whose ends are the right answers most of
    all (by F1) is the right one. At most 3,000 questions are read, drawn at random.

    Parameters
    ----------
    planner
        Its graph, names and aliases; it has no scorer yet.

    Raises
    ------
    InvalidInput
        When no question has a right answer at the end of a path.
    """
    drawn = random.Random(seed).sample(list(questions), min(len(questions), TRAINED))
    return fit_scorer(
        [choice for one in drawn if (choice := _choice(planner, one)) is not None]
    )


def _choice(planner: PathPlanner, question: LabelledQuestion) -> Choice | None:
    """The paths around the name of a question from which a path leads to its answers,
    and which that is.
    """
    right = [
        node for node in planner.store.get(sorted(question.gold)) if node is not None
    ]
    kinds = {label for node in right for label in node.labels or ("",)}
    around, best = planner.around(question.text, None), (0.0, 0, 0)
    empty: set[tuple[int, int]] = set()
    for number, one in enumerate(around):
        likely = [
            i for i, (_, path) in enumerate(one.candidates) if path[-1].label in kinds
        ][:TRIED]
        for i in likely:
            ends = one.grounded.ends(one.candidates[i].path)
            share = 2 * len(question.gold & ends) / (len(ends) + len(question.gold))
            best = max(best, (share, -number, -i))
            empty |= set() if ends else {(number, i)}
    share, number, i = best[0], -best[1], -best[2]
    if not share:
        return None
    kept = [
        j for j in range(len(around[number].candidates)) if (number, j) not in empty
    ]
    chosen = [around[number].candidates[j] for j in kept]
    facts = np.pad(
        np.asarray([[one.cost] for one in chosen]), ((0, 0), (0, len(UNTRAINED) - 1))
    )
    words = masked(
        question.text, [(one.mention.start, one.mention.end) for one in around]
    )
    return Choice(words, [one.path for one in chosen], facts, kept.index(i))


def fit_scorer(choices: Sequence[Choice]) -> PathScorer:
    """Return the scorer that gives the right paths of some questions the most weight
    among the others (softmax).
    """
    if not choices:
        raise InvalidInput(
            "questions: none of them has a right answer at the end of a path"
        )
    times = Counter(one for choice in choices for one in counted(choice.words))
    words = sorted(one for one, n in times.items() if n >= min(_TIMES, len(choices)))
    distinct = list(dict.fromkeys(path for choice in choices for path in choice.paths))
    parts = sorted({part for path in distinct for part in parts_of_path(path)})
    model = PathScorer(words, parts)
    place = {path: i for i, path in enumerate(distinct)}
    has, rows = (
        model.parts_of(distinct),
        model.rows([choice.words for choice in choices]),
    )
    sizes = np.asarray([len(choice.paths) for choice in choices])
    starts, asked = np.cumsum(sizes) - sizes, np.repeat(np.arange(len(choices)), sizes)
    which = np.asarray([place[path] for choice in choices for path in choice.paths])
    facts, right = (
        np.concatenate([c.facts for c in choices]),
        starts + [c.best for c in choices],
    )
    cells, n = model.weights.size, len(choices)

    def loss(flat: _Floats) -> tuple[float, _Floats]:
        weights, held = (
            flat[:cells].reshape(model.weights.shape),
            flat[cells:] - UNTRAINED,
        )
        scores = (has @ (rows @ weights).T).T[asked, which] - facts @ flat[cells:]
        scores = np.exp(scores - np.maximum.reduceat(scores, starts)[asked])
        shares = scores / np.add.reduceat(scores, starts)[asked]
        wrong = shares.copy()
        wrong[right] -= 1
        by_path = np.bincount(
            asked * len(distinct) + which, weights=wrong, minlength=n * len(distinct)
        )
        slope = rows.T @ (has.T @ by_path.reshape(n, -1).T).T + _HELD * weights
        total = -np.log(np.maximum(shares[right], 1e-300)).sum() + _HELD / 2 * (
            (weights**2).sum() + (held**2).sum()
        )
        return float(total), np.concatenate(
            [slope.ravel(), _HELD * held - wrong @ facts]
        )

    begin = np.concatenate([np.zeros(cells), UNTRAINED])
    bounds = [(None, None)] * cells + [(0.05, None)] * len(UNTRAINED)
    found = minimize(
        loss,
        begin,
        jac=True,
        method="L-BFGS-B",
        bounds=bounds,
        options={"maxiter": _ROUNDS},
    ).x
    return PathScorer(words, parts, found[:cells], found[cells:].tolist())
