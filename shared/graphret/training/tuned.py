"""Choosing settings on labelled questions, and measuring them by cross-validation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from graphret.errors import InvalidInput

_FOLDS = 5
#: The metrics of a ranking, as `ranking_values` gives them.
SHOWN = ("hit@1", "hit@5", "recall@20", "mrr")
#: Called with how many questions were asked, and how many there are.
Progress: TypeAlias = Callable[[int, int], object]
#: What chooses the best settings on some questions, and what gives the metrics of
#: questions under settings, ``(n, m)``.
Search: TypeAlias = Callable[[NDArray[Any]], Any]
Values: TypeAlias = Callable[[NDArray[Any], Any], NDArray[np.float64]]
T = TypeVar("T")


def cross_validated(
    questions: int,
    default: Any,
    searches: Mapping[str, Search],
    values: Values,
    shown: Sequence[str],
) -> tuple[Any, dict[str, dict[str, float]]]:
    """Return the best settings by the first metric, then the last, and the metrics.

    Their names are `shown`. Settings that a search chooses on four fifths of the
    questions are measured on the remaining fifth. The best search then chooses on all;
    the default stays if no search beats it.
    """
    if questions < 2 * _FOLDS:
        raise InvalidInput(
            f"questions: expected at least {2 * _FOLDS}, got {questions}"
        )
    everything, folds = np.arange(questions), np.arange(questions) % _FOLDS
    values_by_name = {"default": values(everything, default)}
    for name, best in searches.items():
        values_by_name[name] = np.zeros((questions, len(shown)))
        for fold in range(_FOLDS):
            left_out = np.flatnonzero(folds == fold)
            values_by_name[name][left_out] = values(
                left_out, best(np.flatnonzero(folds != fold))
            )
    means = {
        name: 100 * measured.mean(axis=0) for name, measured in values_by_name.items()
    }
    chosen = max(means, key=lambda name: (means[name][0], means[name][-1]))
    metrics = {
        name: dict(zip(shown, measured.round(2).tolist(), strict=True))
        for name, measured in means.items()
    }
    settings = searches[chosen](everything) if chosen in searches else default
    return settings, metrics | {"tuned": metrics[chosen]}


def middle(value: NDArray[np.float64]) -> tuple[int, ...]:
    """Return the place of the highest value, of ties that nearest to their middle."""
    places = np.argwhere(value >= value.max() - 1e-9)
    return tuple(
        places[((places - places.mean(axis=0)) ** 2).sum(axis=1).argmin()].tolist()
    )


def divided(items: Sequence[T], share: float) -> tuple[list[T], list[T]]:
    """Return what is kept apart, a share of the items, and what is learned of."""
    n_apart = round(share * len(items))
    if share and not n_apart:
        raise InvalidInput(
            f"test: expected a share of at least one question, got {share} of"
            f" {len(items)}"
        )
    return list(items[:n_apart]), list(items[n_apart:])


def ranking_values(ranked: Sequence[str], gold: AbstractSet[str]) -> tuple[float, ...]:
    """Return the metrics of a ranking, as `SHOWN` names them."""
    first = first_right(ranked, gold)
    n_found = len(gold & {*ranked[:20]})
    return first == 1, first <= 5, n_found / len(gold), 1 / first


def percent_of(
    values: Sequence[Sequence[float]] | NDArray[np.float64],
) -> dict[str, float]:
    """Return the means of `ranking_values` over questions, in percent."""
    means = 100 * np.asarray(values, dtype=np.float64).mean(axis=0)
    return dict(zip(SHOWN, means.round(2).tolist(), strict=True))


def first_right(ranked: Sequence[str], gold: AbstractSet[str]) -> float:
    """Return the rank of the first right answer, infinite where there is none."""
    return next(
        (float(rank) for rank, node in enumerate(ranked, 1) if node in gold), np.inf
    )
