"""Training a ranking on labelled questions: LambdaMART over coverage's features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphret.errors import InvalidInput, MissingDependency
from graphret.expansion import Coverage, Frontier
from graphret.ranker import LearnedRanking, features_of
from graphret.sage import SageGraph
from graphret.sage.state import SageState
from graphret.training.questions import LabelledQuestion
from graphret.training.tuned import Progress, cross_validated

#: Where recall is taken; the ranking is chosen by the mean.
SHOWN_AT = (2, 5, 10, 20)
#: The weight of coverage's score beside the model's: none, and as where trees only
#: correct it.
_WEIGHTS = {"model alone": 0.0, "coverage and model": 10.0}
#: Small trees, held back: a few hundred questions are little. Positives within the
#: first 20 count (LambdaMART).
_TREES = {
    "objective": "lambdarank",
    "lambdarank_truncation_level": 20,
    "num_leaves": 6,
    "learning_rate": 0.1,
    "min_data_in_leaf": 20,
    "lambda_l2": 5.0,
    "bagging_fraction": 0.8,
    "bagging_freq": 1,
    "feature_fraction": 0.5,
    "num_threads": 1,
    "deterministic": True,
    "force_row_wise": True,
    "verbose": -1,
    "seed": 0,
}
_ROUNDS = 80  # and fewer of less than 240 questions


@dataclass(frozen=True)
class _RankingCase:
    """A question: features and positions of its candidates, and each answer's nodes."""

    rows: NDArray[np.float64]
    scores: NDArray[Any]
    positions: NDArray[np.int64]
    gold: Sequence[NDArray[np.int64]]

    @property
    def right(self) -> NDArray[np.bool_]:
        """The candidates that are answers."""
        return np.isin(self.positions, np.concatenate(self.gold))


def train_ranking(
    graph: SageGraph,
    questions: Sequence[LabelledQuestion],
    inner: Coverage | None = None,
    *,
    depth: int = 150,
    progress: Progress = lambda done, of: None,
) -> tuple[LearnedRanking | None, dict[str, dict[str, float]]]:
    """Train a ranking; return it, or `None` if no better, and the metrics in percent.

    Cross-validation decides. ``graph.ranking = trained`` makes it the graph's ranking,
    which `SageGraph.save` stores.

    Parameters
    ----------
    questions
        Their answers are ids of nodes, or of documents, tables and records, for which
        any node made of them stands.
    inner
        What finds and ranks candidates; `Coverage` by default.
    depth
        How many candidates of a question the model sees.

    Raises
    ------
    InvalidInput
        If there are fewer than ten questions, or an answer is not in the graph.
    """
    try:
        import lightgbm
    except ImportError as error:
        raise MissingDependency("lightgbm", "train", "training a ranking") from error
    inner = inner or Coverage()
    names, cases = _cases(graph.state, questions, inner, depth, progress)

    def fitted(chosen: NDArray[Any], weight: float) -> LearnedRanking:
        training = [cases[place] for place in chosen.tolist()]
        learned = [case for case in training if case.right.any()]
        if not learned:
            raise InvalidInput(
                f"questions: none has an answer among its first {depth} candidates"
            )
        rounds = min(_ROUNDS, 20 + len(training) // 4)
        booster = lightgbm.train(_TREES, _lightgbm_data(learned, weight), rounds)
        return LearnedRanking(booster.model_to_string(), names, weight, depth, inner)

    def values(
        chosen: NDArray[Any], ranking: LearnedRanking | None
    ) -> NDArray[np.float64]:
        return np.stack([_values(cases[place], ranking) for place in chosen.tolist()])

    searches = {
        name: partial(fitted, weight=weight) for name, weight in _WEIGHTS.items()
    }
    shown = ("mean recall", *(f"recall@{k}" for k in SHOWN_AT), "hit@1", "mrr")
    ranking, metrics = cross_validated(len(questions), None, searches, values, shown)
    return ranking and replace(ranking, metrics=metrics), metrics


def _cases(
    state: SageState,
    questions: Sequence[LabelledQuestion],
    inner: Coverage,
    depth: int,
    progress: Progress,
) -> tuple[tuple[str, ...], list[_RankingCase]]:
    """Return the names of the features, and each question with its candidates."""
    answers = _answers_of(state, questions)
    if state.index.dense is not None:
        state.index.dense.prepare([question.text for question in questions])
    names: tuple[str, ...] = ()
    cases: list[_RankingCase] = []
    for done, question in enumerate(questions, 1):
        seeds = state.index.top(question.text, inner.n_seeds(max(SHOWN_AT)))
        frontier = Frontier(question.text, state.graph, state.index, seeds)
        ranked, pairs, together = inner.cover(frontier)
        columns = features_of(frontier, ranked, pairs, together, depth)
        names = tuple(columns)
        rows = LearnedRanking("", names).rows(columns)
        gold = [answers[answer] for answer in question.gold]
        cases.append(
            _RankingCase(rows, columns["score"], ranked.positions[:depth], gold)
        )
        progress(done, len(questions))
    return names, cases


def _lightgbm_data(cases: Sequence[_RankingCase], weight: float) -> Any:
    """Return cases as LightGBM reads them, each a group that starts from coverage."""
    import lightgbm

    return lightgbm.Dataset(
        np.concatenate([case.rows for case in cases]),
        np.concatenate([case.right for case in cases]).astype(int),
        group=[len(case.rows) for case in cases],
        init_score=weight * np.concatenate([case.scores for case in cases]),
    )


def _values(case: _RankingCase, ranking: LearnedRanking | None) -> NDArray[np.float64]:
    """Return a question's metrics under a ranking, or for the candidates' own order."""
    scores = (
        -np.arange(len(case.rows))
        if ranking is None
        else ranking.scores(case.rows, case.scores)
    )
    first = case.positions[np.argsort(-scores, kind="stable")]
    is_answer = np.stack([np.isin(first, nodes) for nodes in case.gold])
    recall = [is_answer[:, :k].any(axis=1).mean() for k in SHOWN_AT]
    right = np.flatnonzero(is_answer.any(axis=0))
    hit, rank = (right[0] == 0, 1 / (1 + right[0])) if len(right) else (0.0, 0.0)
    return np.asarray([np.mean(recall), *recall, hit, rank])


def _answers_of(
    state: SageState, questions: Sequence[LabelledQuestion]
) -> dict[str, NDArray[np.int64]]:
    """Return the nodes of each answer; refuse one that is not in the graph."""
    nodes = state.nodes_of(set().union(*(question.gold for question in questions)))
    if unknown := [answer for answer, node_ids in nodes.items() if not node_ids]:
        raise InvalidInput(
            f"{unknown[0]!r}: the graph has no such document, table, record or node"
        )
    return {
        answer: state.graph.nodes.find(sorted(node_ids))
        for answer, node_ids in nodes.items()
    }
