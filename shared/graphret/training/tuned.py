"""Choosing settings on labelled questions, and what they are worth on questions that
they were not chosen on.
"""

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
    """Return the best settings by the first metric, then the last, and the metrics,
    whose names are `shown`.

    What a search chooses on four fifths of the questions is measured on the fifth that
    is left. The best search chooses then on all; the default stays where none beats it
    there.
    """
    if questions < 2 * _FOLDS:
        raise InvalidInput(
            f"questions: expected at least {2 * _FOLDS}, got {questions}"
        )
    everything, folds = np.arange(questions), np.arange(questions) % _FOLDS
    found = {"default": values(everything, default)}
    for name, best in searches.items():
        found[name] = np.zeros((questions, len(shown)))
        for fold in range(_FOLDS):
            held = np.flatnonzero(folds == fold)
            found[name][held] = values(held, best(np.flatnonzero(folds != fold)))
    means = {name: 100 * each.mean(axis=0) for name, each in found.items()}
    chosen = max(means, key=lambda name: (means[name][0], means[name][-1]))
    metrics = {
        name: dict(zip(shown, each.round(2).tolist(), strict=True))
        for name, each in means.items()
    }
    settings = searches[chosen](everything) if chosen in searches else default
    return settings, metrics | {"tuned": metrics[chosen]}


def middle(value: NDArray[np.float64]) -> tuple[int, ...]:
    """Return the place of the highest value; of several that nearest to the middle of
    them.
    """
    places = np.argwhere(value >= value.max() - 1e-9)
    return tuple(
        places[((places - places.mean(axis=0)) ** 2).sum(axis=1).argmin()].tolist()
    )
