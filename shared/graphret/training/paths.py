"""Learning which relation paths questions mean (GraphRAFT, section 4.2)."""

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

#: The most questions to train on, and the most paths per question whose ends are
#: compared with the answers.
TRAINED, TRIED = 3_000, 40
#: Questions that a word, or two in a row, must be in; how far weights are held back;
#: and rounds of fitting at most.
_TIMES, _HELD, _ROUNDS = 2, 0.3, 120

_Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class PathChoice:
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
    """Learn which paths questions mean, only from the ids of their correct answers.

    Of the paths around a question's names, the one whose ends match the answers best
    (by F1) is the correct one. At most 3,000 questions are used, drawn at random.

    Parameters
    ----------
    planner
        Its graph, names and aliases; it has no scorer yet.

    Raises
    ------
    InvalidInput
        If no question has a correct answer at the end of a path.
    """
    drawn = random.Random(seed).sample(list(questions), min(len(questions), TRAINED))
    return fit_scorer(
        [
            choice
            for question in drawn
            if (choice := _choice(planner, question)) is not None
        ]
    )


def _choice(planner: PathPlanner, question: LabelledQuestion) -> PathChoice | None:
    """Return the paths around the name that leads to the answers, and the best path."""
    right = [
        node for node in planner.store.get(sorted(question.gold)) if node is not None
    ]
    kinds = {label for node in right for label in node.labels or ("",)}
    around, best = planner.around(question.text, None), (0.0, 0, 0)
    empty: set[tuple[int, int]] = set()
    for number, entity_paths in enumerate(around):
        likely = [
            i
            for i, (_, path) in enumerate(entity_paths.candidates)
            if path[-1].label in kinds
        ][:TRIED]
        for i in likely:
            reached = entity_paths.grounded.ends(entity_paths.candidates[i].path)
            share = (
                2 * len(question.gold & reached) / (len(reached) + len(question.gold))
            )
            best = max(best, (share, -number, -i))
            empty |= set() if reached else {(number, i)}
    share, number, i = best[0], -best[1], -best[2]
    if not share:
        return None
    indices = [
        j for j in range(len(around[number].candidates)) if (number, j) not in empty
    ]
    chosen = [around[number].candidates[j] for j in indices]
    facts = np.pad(
        np.asarray([[candidate.cost] for candidate in chosen]),
        ((0, 0), (0, len(UNTRAINED) - 1)),
    )
    words = masked(
        question.text,
        [
            (entity_paths.mention.start, entity_paths.mention.end)
            for entity_paths in around
        ],
    )
    return PathChoice(
        words, [candidate.path for candidate in chosen], facts, indices.index(i)
    )


def fit_scorer(choices: Sequence[PathChoice]) -> PathScorer:
    """Return the scorer that gives the correct paths the most weight (softmax)."""
    if not choices:
        raise InvalidInput(
            "questions: expected a correct answer at the end of a path, found none"
        )
    words = _frequent_words(choices)
    paths = list(dict.fromkeys(path for choice in choices for path in choice.paths))
    parts = sorted({part for path in paths for part in parts_of_path(path)})
    objective = _Objective(PathScorer(words, parts), choices, paths)
    n_weights = objective.n_weights
    fitted: _Floats = minimize(
        objective,
        np.concatenate([np.zeros(n_weights), UNTRAINED]),
        jac=True,
        method="L-BFGS-B",
        bounds=[(None, None)] * n_weights + [(0.05, None)] * len(UNTRAINED),
        options={"maxiter": _ROUNDS},
    ).x
    return PathScorer(words, parts, fitted[:n_weights], fitted[n_weights:].tolist())


def _frequent_words(choices: Sequence[PathChoice]) -> list[str]:
    """Return the words, or two in a row, that enough questions have."""
    times = Counter(word for choice in choices for word in counted(choice.words))
    least = min(_TIMES, len(choices))
    return sorted(word for word, n in times.items() if n >= least)


class _Objective:
    """The penalised cross-entropy of the right paths, and its gradient.

    The candidates of all questions stand in one row, those of a question side by side.

    Parameters
    ----------
    model
        An untrained scorer, for the features of questions and paths.
    paths
        The distinct candidates.
    """

    def __init__(
        self,
        model: PathScorer,
        choices: Sequence[PathChoice],
        paths: Sequence[tuple[Hop, ...]],
    ) -> None:
        self.shape = model.weights.shape
        self.n_weights = model.weights.size
        self.n_questions = len(choices)
        self.n_paths = len(paths)
        self.part_features = model.parts_of(paths)
        self.word_features = model.rows([choice.words for choice in choices])
        place = {path: i for i, path in enumerate(paths)}
        sizes = np.asarray([len(choice.paths) for choice in choices])
        # of each candidate its question and its path; where a question's begin
        self.question_of = np.repeat(np.arange(self.n_questions), sizes)
        self.path_of = np.asarray(
            [place[path] for choice in choices for path in choice.paths]
        )
        self.starts = np.cumsum(sizes) - sizes
        self.right = self.starts + [choice.best for choice in choices]
        self.facts = np.concatenate([choice.facts for choice in choices])

    def __call__(self, parameters: _Floats) -> tuple[float, _Floats]:
        """Return the loss and its gradient by the weights and those of the facts."""
        weights = parameters[: self.n_weights].reshape(self.shape)
        fact_weights = parameters[self.n_weights :]
        from_untrained = fact_weights - UNTRAINED
        shares = self._shares(weights, fact_weights)
        surprise = -np.log(np.maximum(shares[self.right], 1e-300)).sum()
        penalty = (weights**2).sum() + (from_untrained**2).sum()
        # by the scores, the loss has the slope of what is predicted less what is right
        errors = shares.copy()
        errors[self.right] -= 1
        by_weights = self._by_weights(errors) + _HELD * weights
        by_facts = _HELD * from_untrained - errors @ self.facts
        gradient = np.concatenate([by_weights.ravel(), by_facts])
        return float(surprise + _HELD / 2 * penalty), gradient

    def _shares(self, weights: _Floats, fact_weights: _Floats) -> _Floats:
        """Return the probability of each candidate among those of its question."""
        fits = (self.part_features @ (self.word_features @ weights).T).T
        scores = fits[self.question_of, self.path_of] - self.facts @ fact_weights
        highest = np.maximum.reduceat(scores, self.starts)
        exponentials = np.exp(scores - highest[self.question_of])
        totals = np.add.reduceat(exponentials, self.starts)
        shares: _Floats = exponentials / totals[self.question_of]
        return shares

    def _by_weights(self, errors: _Floats) -> _Floats:
        """Return the slope by the weights from that by the score of each candidate."""
        by_path = np.bincount(
            self.question_of * self.n_paths + self.path_of,
            weights=errors,
            minlength=self.n_questions * self.n_paths,
        ).reshape(self.n_questions, self.n_paths)
        slope: _Floats = self.word_features.T @ (self.part_features.T @ by_path.T).T
        return slope
