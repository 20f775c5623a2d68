"""Which candidate pairs get an edge: a percentile for each signal, OR or AND over signals (SAGE, section 2.1 B)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

#: The least value of each signal that makes an edge, by kind of pair: ``{kind: {signal: value}}``.
Thresholds: TypeAlias = Mapping[str, Mapping[str, float]]

#: The rarity of what two nodes share, a signal of its own: it decides on `SHARES_ENTITY` edges.
ENTITY_RARITY = "entity_rarity"


@dataclass(frozen=True, eq=False)
class Candidates:
    """The pairs of one kind that are considered, and the value of every signal for each of them.

    Parameters
    ----------
    kind
        The kind of pair.
    low, high
        Positions, the lower first, ``(p,)``, in ascending order.
    values
        For each signal its values, ``(p,)`` float32; NaN where a side lacks the field.
    """

    kind: str
    low: NDArray[np.int64]
    high: NDArray[np.int64]
    values: dict[str, NDArray[np.float32]]


def fit_thresholds(
    candidates: Iterable[Candidates], percentile: float, given: Thresholds
) -> dict[str, dict[str, float]]:
    """Return the percentile of every signal's values over the candidate pairs of its kind.

    "We only keep a similarity edge when its metadata similarity exceeds the 95th percentile of the empirical
    distribution" (SAGE, section 2.1 B). Pairs for which a signal is unknown do not count. A signal that is known for no
    pair has no threshold and makes no edge. Thresholds among `given` are kept as they are.
    """
    fitted = {kind: dict(values) for kind, values in given.items()}
    for group in candidates:
        for name, column in group.values.items():
            known = column[~np.isnan(column)].astype(np.float64)
            if len(known) and name not in fitted.setdefault(group.kind, {}):
                fitted[group.kind][name] = float(np.percentile(known, percentile))
    return {kind: values for kind, values in fitted.items() if values}


def passing(candidates: Candidates, thresholds: Mapping[str, float], logic: str) -> NDArray[np.bool_]:
    """Tell which pairs become edges by the thresholds of their kind, ``(p,)``.

    A signal speaks for a pair if it is at or above its threshold; discrete signals, and texts that occur twice, make
    many values equal to the percentile. For ``or`` it must also be above 0, and shared entities alone are not enough:
    they make `SHARES_ENTITY` edges. For ``and`` every signal that has a threshold must speak for the pair.
    """
    limits = {name: limit for name, limit in thresholds.items() if name in candidates.values}
    every, some = np.full(len(candidates.low), bool(limits)), np.zeros(len(candidates.low), bool)
    for name, limit in limits.items():
        column = candidates.values[name]
        speaks = column.astype(np.float64) >= limit
        every &= speaks
        if name != "entity_count":
            some |= speaks & (column > 0)
    return every if logic == "and" else some


def weights(values: Mapping[str, NDArray[np.float32]], thresholds: Mapping[str, float]) -> NDArray[np.float32]:
    """Return the weights of pairs of one kind, ``(p,)``.

    That is the highest of a pair's cosines and Jaccard coefficients that are at or above their thresholds, so that it
    can be read as a similarity; where only counts are, ``c / (1 + c)`` of the highest; and ``1 - exp(-rarity)``.
    """
    if ENTITY_RARITY in values:
        return np.asarray(-np.expm1(-values[ENTITY_RARITY]), dtype=np.float32)
    size = len(next(iter(values.values()), ()))
    best, counted = np.zeros(size, np.float32), np.zeros(size, np.float32)
    for name in values.keys() & thresholds.keys():
        spoken = np.where(values[name].astype(np.float64) >= thresholds[name], values[name], 0).astype(np.float32)
        if name.endswith("_count"):
            np.maximum(counted, spoken / (1 + spoken), out=counted)
        else:
            np.maximum(best, spoken, out=best)
    return np.where(best > 0, best, counted)
