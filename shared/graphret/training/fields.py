"""Learning how much each field counts for a question (mFAR, Li et al. 2025: the second retriever of GRASP)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from graphret.errors import InvalidInput
from graphret.grasp.field_weights import FieldWeights, softmax
from graphret.search.hybrid import FieldIndex
from graphret.search.index import min_max
from graphret.training.questions import Question

_CANDIDATES = 50
_SHARPNESS = 20.0  # of the choice among candidates: scores are 0 … 1
_PENALTY = 0.01
_STEPS = 60


def fit_fields(index: FieldIndex, questions: Sequence[Question], *, encoder: Any = None) -> FieldWeights:
    """Learn weights of the scorers of an index from questions and the ids of their right answers.

    For each question the right nodes are told from the hardest others, those that any scorer ranks first: the loss is
    the cross-entropy of choosing a right one.

    Parameters
    ----------
    encoder
        Embeds questions; without one their words are the features.

    Raises
    ------
    InvalidInput
        When none of the right answers is in the index.
    """
    scorers = list(index.members)
    weights = FieldWeights(scorers, np.zeros(len(scorers)), np.zeros((len(scorers), 1)), encoder=encoder)
    asked = [one for one in questions if (index.table.find(list(one.gold)) >= 0).any()]
    if not asked:
        raise InvalidInput("questions: none has a right answer that is in the index")
    features = weights.features([one.text for one in asked])
    pools = [_pool(index, one) for one in asked]
    shape = len(scorers), 1 + features.shape[1]
    inputs = np.hstack([np.ones((len(asked), 1)), features])

    def loss(flat: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        parameters = flat.reshape(shape)
        total, gradient = 0.0, np.zeros(shape)
        for row, (scores, right) in zip(inputs, pools, strict=True):
            shares = softmax(parameters @ row)
            chosen = softmax(_SHARPNESS * shares @ scores)
            total -= float(np.log(max(chosen[right].sum(), 1e-12)))
            wanted = np.where(right, chosen, 0.0) / max(chosen[right].sum(), 1e-12)
            of_shares = _SHARPNESS * scores @ (chosen - wanted)
            gradient += np.outer(shares * (of_shares - shares @ of_shares), row)
        n = len(pools)
        return total / n + _PENALTY * float(flat @ flat), gradient.ravel() / n + 2 * _PENALTY * flat

    found = minimize(loss, np.zeros(shape).ravel(), jac=True, method="L-BFGS-B", options={"maxiter": _STEPS})
    fitted = found.x.reshape(shape)
    return FieldWeights(scorers, fitted[:, 0], fitted[:, 1:], encoder=encoder)


def _pool(index: FieldIndex, question: Question) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """The scores of a question's candidates by each scorer, ``(s, c)``, and which of them are right, ``(c,)``."""
    gold = index.table.find(list(question.gold))
    gold = np.unique(gold[gold >= 0])
    scaled = [min_max(member.scores(question.text)) for member in index.members.values()]
    best = [member.top(question.text, _CANDIDATES) for member in index.members.values()]
    positions = np.unique(np.concatenate([gold, *best]))
    return np.asarray([scores[positions] for scores in scaled], dtype=np.float64), np.isin(positions, gold)
