"""What a ranking is measured by on labelled questions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from graphret.errors import InvalidInput
from graphret.sage.state import SageState
from graphret.training.questions import Question


def answers_of(state: SageState, questions: Sequence[Question]) -> dict[str, NDArray[np.int64]]:
    """Return the nodes that are each answer; an `InvalidInput` names one that the graph does not have."""
    nodes = state.nodes_of(set().union(*(question.gold for question in questions)))
    if unknown := [answer for answer, own in nodes.items() if not own]:
        raise InvalidInput(f"{unknown[0]!r}: the graph has no such document, table, record or node")
    return {answer: state.graph.nodes.find(sorted(own)) for answer, own in nodes.items()}


def metrics_of(answers: NDArray[np.int64], gold: Sequence[NDArray[np.int64]]) -> NDArray[np.float64]:
    """Return recall, Hit@1 and reciprocal rank of several rankings, ``(v, 3)``."""
    found = np.stack([np.isin(answers, nodes) for nodes in gold])
    right = np.asarray(found.any(axis=0))
    first = np.where(right.any(axis=1), right.argmax(axis=1), np.inf)
    return np.stack([found.any(axis=2).mean(axis=0), first == 0, 1 / (1 + first)], axis=1)
