"""From candidate pairs and thresholds to edges (SAGE, section 2.1 B)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graphret.columns import to_json
from graphret.edges import NO_PART, EdgeTable
from graphret.nodes import NodeTable
from graphret.sage.edge_rows import edge_table
from graphret.sage.embedding import SignalVectors
from graphret.sage.facts import Facts
from graphret.sage.knn import pair_similarities
from graphret.sage.overlap import SHARES_ENTITY, OverlapPairs, kind_name
from graphret.sage.settings import SimilaritySettings, Thresholds, percentile_of
from graphret.sage.signals import DOCUMENT, PAIR_KINDS, TABLE, Signal
from graphret.sage.tables import TableDetails

#: The relation of nodes that are similar; stored once a pair, from the lower position to the higher.
IS_SIMILAR = "IS_SIMILAR"

#: The threshold of the rarity of what two nodes share; it decides on `SHARES_ENTITY` edges.
ENTITY_RARITY = "entity_rarity"

_MOST_NAMES = 8


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

    def __len__(self) -> int:
        return len(self.low)


def evaluate(
    kind: str,
    keys: NDArray[np.int64],
    signals: Sequence[Signal],
    vectors: SignalVectors,
    facts: Facts,
) -> Candidates:
    """Return the value of each signal for pairs given as distinct ascending ``low * n + high``."""
    low, high = np.divmod(keys, max(len(facts.role), 1))
    left, right = low, high
    if kind == "document-table":
        first = facts.role[low] == DOCUMENT
        left, right = np.where(first, low, high), np.where(first, high, low)
    values = {}
    for signal in signals:
        if signal.measure == "cosine":
            values[signal.name] = _cosines(vectors, signal, left, right)
        else:
            values[signal.name] = _overlaps(facts, signal, left, right)
    return Candidates(kind, low, high, values)


def _cosines(
    vectors: SignalVectors, signal: Signal, left: NDArray[np.int64], right: NDArray[np.int64]
) -> NDArray[np.float32]:
    out = np.full(len(left), np.nan, np.float32)
    if signal.left in vectors.index and signal.right in vectors.index:
        i = vectors.index[signal.left][left].astype(np.int64)
        j = vectors.index[signal.right][right].astype(np.int64)
        known = (i >= 0) & (j >= 0)
        out[known] = pair_similarities(vectors.vectors, vectors.vectors, i[known], j[known])
    return out


def _overlaps(facts: Facts, signal: Signal, left: NDArray[np.int64], right: NDArray[np.int64]) -> NDArray[np.float32]:
    """Return how many names are shared, or their share of all names of both; NaN where a side has none."""
    bearers = facts.sets[signal.left]
    known = (bearers.sizes[left] > 0) & (bearers.sizes[right] > 0)
    out = np.full(len(left), np.nan, np.float32)
    i, j = left[known], right[known]
    shared = bearers.shared_counts(i, j)
    if signal.measure == "jaccard":
        shared = np.round(shared / (bearers.sizes[i] + bearers.sizes[j] - shared), 6).astype(np.float32)
    out[known] = shared
    return out


def fit_thresholds(
    candidates: Sequence[Candidates],
    overlap: OverlapPairs,
    percentile: float = 95.0,
    given: Mapping[tuple[str, str], float] | None = None,
) -> Thresholds:
    """Return the percentile of every signal's values over the candidate pairs of its kind.

    "We only keep a similarity edge when its metadata similarity exceeds the 95th percentile of the empirical
    distribution" (SAGE, section 2.1 B). Pairs for which a signal is unknown do not count. A signal that is known for no
    pair has no threshold and makes no edge. Thresholds among `given` are kept as they are.
    """
    values = {(c.kind, name): column for c in candidates for name, column in c.values.items()}
    for code in np.unique(overlap.kind).tolist():
        values[kind_name(code), ENTITY_RARITY] = overlap.rarity[overlap.kind == code]
    fitted = {key: percentile_of(column, percentile) for key, column in values.items() if key not in (given or {})}
    return Thresholds({key: value for key, value in fitted.items() if value is not None} | dict(given or {}))


def passing(candidates: Candidates, thresholds: Mapping[tuple[str, str], float], logic: str) -> NDArray[np.bool_]:
    """Tell which pairs become `IS_SIMILAR` edges, ``(p,)``.

    A signal speaks for a pair if it is at or above its threshold; discrete signals, and texts that occur twice, make
    many values equal to the percentile. For ``or`` it must also be above 0, and shared entities alone are not enough:
    they make `SHARES_ENTITY` edges. For ``and`` every signal that has a threshold must speak for the pair.
    """
    strict = logic == "and"
    kept = np.full(len(candidates), strict and bool(candidates.values))
    for name, column in candidates.values.items():
        threshold = thresholds.get((candidates.kind, name))
        if threshold is None:
            continue
        speaks = column.astype(np.float64) >= threshold
        if strict:
            kept &= speaks
        elif name != "entity_count":
            kept |= speaks & (column > 0)
    if strict and not any((candidates.kind, name) in thresholds for name in candidates.values):
        kept[:] = False
    return kept


def similarity_edges(
    nodes: NodeTable,
    candidates: Sequence[Candidates],
    thresholds: Mapping[tuple[str, str], float],
    settings: SimilaritySettings,
    facts: Facts,
    details: TableDetails,
) -> Iterator[EdgeTable]:
    """Yield the `IS_SIMILAR` edges by kind, one a pair, from the lower position to the higher.

    The weight is the highest of the pair's cosines and Jaccard coefficients that are at or above their thresholds, so
    that it can be read as a similarity; where only counts are, ``c / (1 + c)`` of the highest. Properties: ``signals``
    (every known value), ``shared_entities`` (the rarest 8), for two tables ``columns`` (pairs of joinable ones), for a
    document and a table ``column``, the header of the cell that says a shared entity, its row being the edge's part.
    """
    for group in candidates:
        kept = np.flatnonzero(passing(group, thresholds, settings.logic))
        low, high = group.low[kept], group.high[kept]
        values = {name: column[kept] for name, column in group.values.items()}
        about, parts = _describe(low, high, PAIR_KINDS[group.kind], "shared_entities", facts, details)
        properties = [f'{{"signals":{{{s}}}{rest}}}' for s, rest in zip(_signal_texts(values), about, strict=True)]
        weight = _weights(group.kind, values, thresholds)
        yield edge_table(len(nodes), low, high, IS_SIMILAR, weight, parts, properties)


def overlap_edges(
    nodes: NodeTable,
    overlap: OverlapPairs,
    thresholds: Mapping[tuple[str, str], float],
    facts: Facts,
    details: TableDetails,
) -> Iterator[EdgeTable]:
    """Yield the `SHARES_ENTITY` edges by kind: pairs whose rarity is at or above the percentile of their kind.

    Properties: ``entities`` (the rarest 8), ``count``, and for a document and a table ``column`` as in
    `similarity_edges`. The weight is ``1 - exp(-rarity)``.
    """
    for code in np.unique(overlap.kind).tolist():
        threshold = thresholds.get((kind_name(code), ENTITY_RARITY))
        if threshold is None:
            continue
        pairs = overlap.at((overlap.kind == code) & (overlap.rarity.astype(np.float64) >= threshold))
        counts = facts.sets["entities"].shared_counts(pairs.low, pairs.high)
        about, parts = _describe(pairs.low, pairs.high, (code // 3, code % 3), "entities", facts, details)
        properties = [f'{{"count":{int(c)}{rest}}}' for c, rest in zip(counts.tolist(), about, strict=True)]
        yield edge_table(len(nodes), pairs.low, pairs.high, SHARES_ENTITY, pairs.weight, parts, properties)


def _signal_texts(values: Mapping[str, NDArray[np.float32]]) -> list[str]:
    """Return the known signals of each pair, rounded to four decimals, as the inside of a JSON object."""
    columns = []
    for name, column in values.items():
        rounded = np.round(column.astype(np.float64), 4).tolist()
        columns.append([f'"{name}":{value!r}' if value == value else "" for value in rounded])
    return [",".join(filter(None, row)) for row in zip(*columns, strict=True)]


def _weights(
    kind: str, values: Mapping[str, NDArray[np.float32]], thresholds: Mapping[tuple[str, str], float]
) -> NDArray[np.float32]:
    size = len(next(iter(values.values()))) if values else 0
    best, counted = np.zeros(size, np.float32), np.zeros(size, np.float32)
    for name, column in values.items():
        threshold = thresholds.get((kind, name))
        if threshold is None:
            continue
        spoken = np.where(column.astype(np.float64) >= threshold, column, 0).astype(np.float32)
        if name.endswith("_count"):
            np.maximum(counted, spoken / (1 + spoken), out=counted)
        else:
            np.maximum(best, spoken, out=best)
    return np.where(best > 0, best, counted)


def _describe(
    low: NDArray[np.int64],
    high: NDArray[np.int64],
    roles: tuple[int, int],
    entities_key: str,
    facts: Facts,
    details: TableDetails,
) -> tuple[list[str], tuple[NDArray[np.int32], NDArray[np.int32]]]:
    """Return shared entities and columns of pairs as the tail of a JSON object, and the parts of both ends."""
    parts = np.full((2, len(low)), NO_PART, np.int32)
    entities, about = facts.sets["entities"], []
    names, quoted = entities.names, entities.json
    table_is_high = (facts.role[high] == TABLE).tolist()
    ends = zip(low.tolist(), high.tolist(), strict=True)
    for i, (shared, (one, other)) in enumerate(zip(entities.shared_codes(low, high, _MOST_NAMES), ends, strict=True)):
        text = f',"{entities_key}":[{",".join([quoted[code] for code in shared])}]' if shared else ""
        if roles == (TABLE, TABLE):
            columns = details.joinable(one, other)
            if columns:
                text += f',"columns":{to_json(columns)}'
        elif roles == (DOCUMENT, TABLE) and shared:
            side = int(table_is_high[i])
            parts[side, i], column = details.cell_of((one, other)[side], [names[code] for code in shared])
            if column:
                text += f',"column":{to_json(column)}'
        about.append(text)
    return about, (parts[0], parts[1])
