"""Choosing settings on labelled questions, and measuring them by cross-validation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphret.errors import InvalidInput

_FOLDS = 5
#: Called with how many questions were asked, and how many there are.
Progress: TypeAlias = Callable[[int, int], object]
#: What chooses the best settings on some questions, and what gives the metrics of
#: questions under settings, ``(n, m)``.
Search: TypeAlias = Callable[[NDArray[Any]], Any]
Values: TypeAlias = Callable[[NDArray[Any], Any], NDArray[np.float64]]


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
