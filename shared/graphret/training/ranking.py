"""Choosing SAGE's ranking on labelled questions: seeds and neighbours, BM25 and cosine, and its own weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphret.errors import InvalidInput
from graphret.expansion import Coverage, Frontier, Paper, Propagate
from graphret.sage import SageRetriever
from graphret.sage.state import SageState
from graphret.search import HybridIndex
from graphret.search.index import top_k
from graphret.training.questions import Question
from graphret.training.tuned import Progress, Tuned, cross_validated, middle

_TENTHS = tuple(step / 10 for step in range(16))
_MIX: dict[str, Sequence[Any]] = {"alpha": _TENTHS[:11:2]}  # the paper has 0.6 (appendix E), and of k and k′ the sum
_WALKED: dict[str, Sequence[Any]] = {"walked": (10, 25, 50)}
#: What is tried of each ranking beside the settings that it has; the shares of BM25 where there is an encoder.
GRIDS: Mapping[str, Mapping[str, Sequence[Any]]] = {
    "coverage": {"weight": (0, 0.5, 1, 2, 3, 4, 6, 8, 12, 16), **_MIX, **_WALKED, "lexical_share": (0.6, 0.8, 1.0)},
    "propagate": {"inherit": _TENTHS, **_MIX, **_WALKED},
    "paper": {"seed_share": _TENTHS[1:11], **_MIX, "use_metadata": (False, True)},
}


def tune_ranking(
    retriever: SageRetriever, questions: Sequence[Question], k: int = 10, *, progress: Progress = lambda done, of: None
) -> Tuned:
    """Choose the settings of a ranking by recall among the first `k` hits, then MRR, in cross-validation.

    An `InvalidInput` says that there are fewer than ten questions, or that an answer is not in the graph.

    Parameters
    ----------
    retriever
        What ``SageGraph.retriever(ranking)`` returns: its graph, and one of the three rankings, which is the default.
    questions
        Their answers are ids of nodes, or of documents, tables and records, for which any node made of them stands.
    """
    state, ranking = retriever.graph.state, retriever.ranking
    if not isinstance(ranking, Coverage | Propagate | Paper):
        raise InvalidInput(f"ranking: one of {', '.join(GRIDS)} is expected, not {ranking.name!r}")
    index, answers = state.index, answers_of(state, questions)
    usual = vars(ranking) | ({"alpha": index.alpha} if ranking.alpha is None else {})
    tried = [one for one in GRIDS[ranking.name].items() if index.dense or one[0] not in ("alpha", "lexical_share")]
    axes = {name: sorted({*values, usual[name]}) for name, values in tried}
    mixed = {alpha: HybridIndex(index.lexical, index.dense, alpha=alpha) for alpha in axes.get("alpha", ())}
    found = np.zeros((len(questions), *map(len, axes.values()), 3))
    for row, question in enumerate(questions):
        gold = [answers[answer] for answer in question.gold]
        for at in np.ndindex(*found.shape[2:-1]):
            one = replace(ranking, **{name: axes[name][i] for name, i in zip([*axes][1:], at, strict=True)})
            frontier = Frontier(question.text, state.graph, mixed.get(one.alpha or 0.0, index), np.zeros(0, np.int64))
            found[(row, slice(None), *at)] = metrics_of(_answers(one, *next(iter(axes.items())), frontier, k), gold)
        progress(row + 1, len(questions))
    default = tuple(values.index(usual[name]) for name, values in axes.items())
    best = {"grid": lambda rows: middle(found[rows, ..., 0].mean(axis=0))}
    shown = (f"recall@{k}", "hit@1", "mrr")
    place, metrics = cross_validated(len(questions), default, best, lambda rows, at: found[(rows, *at)], shown)
    chosen = replace(ranking, **{name: axes[name][i] for name, i in zip(axes, place, strict=True)})
    heat = 100 * found[(..., *place[2:], 0)].mean(axis=0)
    return Tuned(chosen, metrics, heat, dict([*axes.items()][:2]), len(questions))


def answers_of(state: SageState, questions: Sequence[Question]) -> dict[str, NDArray[np.int64]]:
    """Return the nodes that are each answer; an `InvalidInput` names one that the graph does not have."""
    nodes = state.nodes_of(set().union(*(question.gold for question in questions)))
    if unknown := [answer for answer, own in nodes.items() if not own]:
        raise InvalidInput(f"{unknown[0]!r}: the graph has no such document, table, record or node")
    return {answer: state.graph.nodes.find(sorted(own)) for answer, own in nodes.items()}


def _answers(ranking: Any, name: str, values: Sequence[Any], frontier: Frontier, k: int) -> NDArray[np.int64]:
    """Return the first hits by a ranking with each value of one of its settings, ``(v, k)``."""
    index, query = frontier.index, frontier.query
    if name in ("weight", "inherit"):  # scores are linear in these: one ranking gives those of all values
        begun = replace(frontier, seeds=index.top(query, ranking.n_seeds(k)))
        ranked = replace(ranking, **{name: 1.0}).rank(begun, k)
        order = np.argsort(ranked.positions)
        positions, own = ranked.positions[order], begun.own(ranked.positions[order])
        return np.stack([positions[top_k(own + value * (ranked.scores[order] - own), k)] for value in values])
    flat, rows = index.top(query, k), []
    for one in (replace(ranking, **{name: value}) for value in values):
        ranked = one.rank(replace(frontier, seeds=flat[: one.n_seeds(k)]), k)
        rows.append(list(dict.fromkeys([*ranked.positions.tolist(), *flat.tolist()]))[:k])
    return np.asarray(rows)


def metrics_of(answers: NDArray[np.int64], gold: Sequence[NDArray[np.int64]]) -> NDArray[np.float64]:
    """Return recall, Hit@1 and reciprocal rank of several rankings, ``(v, 3)``."""
    found = np.stack([np.isin(answers, nodes) for nodes in gold])
    right = np.asarray(found.any(axis=0))
    first = np.where(right.any(axis=1), right.argmax(axis=1), np.inf)
    return np.stack([found.any(axis=2).mean(axis=0), first == 0, 1 / (1 + first)], axis=1)
