"""Edges between nodes that are alike (SAGE, section 2.1 B): candidates, a percentile for each signal, OR or AND."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import combinations_with_replacement
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphret.columns import Records, text_array, to_json
from graphret.edges import NO_PART, EdgeTable, joined
from graphret.executors import LOCAL, Executor, pair_similarities
from graphret.nodes import NodeTable
from graphret.sage.embeddings import Embeddings
from graphret.sage.entities import Bearers, overlapping_pairs
from graphret.sage.settings import SimilaritySettings
from graphret.sage.signals import DOCUMENT, PAIR_KINDS, ROLES, SETS, SIGNALS, TABLE, Signal, role_of, set_of
from graphret.sage.structure import sources_of
from graphret.search.dense import DenseIndex
from graphret.storage import Bundle, Parts
from graphret.text import normalize_name

#: The least value of each signal that makes an edge, by kind of pair: ``{kind: {signal: value}}``.
Thresholds: TypeAlias = Mapping[str, Mapping[str, float]]

#: The relation of nodes that are similar; stored once a pair, from the lower position to the higher.
IS_SIMILAR = "IS_SIMILAR"
#: The relation of nodes that share entities, and the one signal that decides on it.
SHARES_ENTITY, ENTITY_RARITY = "SHARES_ENTITY", "entity_rarity"

_MOST_NAMES = 8  # that an edge tells
_CACHED = 1 << 14  # tables


@dataclass(frozen=True, eq=False)
class Candidates:
    """The pairs of one kind that are considered, and the value of every signal for each of them.

    Parameters
    ----------
    relation, kind
        The relation of the edges that they become, and the kind of pair.
    low, high
        Positions, the lower first, ``(p,)``, in ascending order.
    values
        For each signal its values, ``(p,)`` float32; NaN where a side lacks the field.
    """

    relation: str
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


@dataclass(frozen=True, eq=False)
class SimilarityIndex:
    """What `IS_SIMILAR` and `SHARES_ENTITY` edges are computed from, over a table of nodes.

    Never changed once made. What `changed` returns has the edges of an index that was built with all its nodes and the
    same thresholds, as long as the search is exact (`graphret.sage.neighbors.HNSW_ABOVE`).

    Parameters
    ----------
    nodes
        The nodes, with metadata among their properties.
    embeddings
        What they are compared by, and the nearest neighbours of each.
    given
        Thresholds to use; those that are missing are fitted.
    """

    nodes: NodeTable
    settings: SimilaritySettings
    embeddings: Embeddings = field(default_factory=Embeddings.empty)
    given: Thresholds = field(default_factory=dict)

    @classmethod
    def build(
        cls, nodes: NodeTable, dense: DenseIndex | None, settings: SimilaritySettings, executor: Executor = LOCAL
    ) -> SimilarityIndex:
        """Embed the texts of all signals, and find the nearest neighbours by each.

        Parameters
        ----------
        dense
            The embeddings of the nodes' contents, and what embeds other texts; without one there are only shared
            entities.
        """
        return cls(NodeTable.of([]), settings).changed(nodes, (), dense, executor)

    def changed(
        self, nodes: NodeTable, fresh: Collection[str], dense: DenseIndex | None, executor: Executor = LOCAL
    ) -> SimilarityIndex:
        """Return the index of another table of nodes, with the same thresholds.

        Only texts that were not known are embedded; only the neighbours of nodes that are fresh or lost a neighbour are
        looked up again. Entities, and what is computed from them, are read anew.

        Parameters
        ----------
        nodes
            The nodes after the change.
        fresh
            Ids of nodes that may differ from before; nodes that are new need not be named.
        dense
            The embeddings of the nodes' contents after the change.
        """
        given, embeddings = self.thresholds if len(self.nodes) else {}, Embeddings.empty()
        if dense is not None:
            came_from = nodes.places_in(self.nodes, fresh)
            embeddings = self.embeddings.changed(nodes, came_from, dense, self.settings, executor)
        return SimilarityIndex(nodes, self.settings, embeddings, given)

    # -- what makes edges

    @cached_property
    def role(self) -> NDArray[np.int8]:
        """The role of each node, ``(n,)``."""
        return np.asarray([role_of(labels) for labels in self.nodes.label_sets], np.int8)[self.nodes.labels]

    @cached_property
    def sets(self) -> dict[str, Bearers]:
        """Who bears which entities, events and relationships."""
        named = [[set_of(given, name) for name in SETS] for given in self.nodes.properties]
        caps = [self.settings.entity_cap if name == "entities" else len(named) for name in SETS]
        return {name: Bearers.of([own[i] for own in named], caps[i]) for i, name in enumerate(SETS)}

    @cached_property
    def candidates(self) -> list[Candidates]:
        """The pairs that are considered, with all their signals, by kind.

        For `SHARES_ENTITY` they are those that share entities; for `IS_SIMILAR` these and the nearest neighbours by
        each signal of the kind.
        """
        source, _ = sources_of(self.nodes)
        low, high, rarity = overlapping_pairs(self.sets["entities"], self.role, source, self.settings.neighbors)
        roles = np.sort(np.stack([self.role[low], self.role[high]]), axis=0)
        found = []
        for one, other in combinations_with_replacement(range(len(ROLES)), 2):
            kind, of_kind = f"{ROLES[one]}-{ROLES[other]}", (roles[0] == one) & (roles[1] == other)
            if of_kind.any():
                values = {ENTITY_RARITY: rarity[of_kind]}
                found.append(Candidates(SHARES_ENTITY, kind, low[of_kind], high[of_kind], values))
            if kind in PAIR_KINDS:
                found.append(self._similar(kind, low[of_kind], high[of_kind]))
        return [group for group in found if len(group.low)]

    def _similar(self, kind: str, low: NDArray[np.int64], high: NDArray[np.int64]) -> Candidates:
        """Return the candidates of a kind: pairs that are given, and the nearest neighbours by its signals."""
        n = len(self.nodes)
        keys = [low * n + high]
        for (of_kind, _), near in self.embeddings.neighbors.items():
            if of_kind == kind:
                ends = np.stack([near.own, near.other]).astype(np.int64)
                keys.append(ends.min(axis=0) * n + ends.max(axis=0))
        low, high = np.divmod(np.unique(np.concatenate(keys)), max(n, 1))
        # the left side of a document and a table is the document, all other kinds are of one role
        turned = (kind == "document-table") & (self.role[low] != DOCUMENT)
        left, right = np.where(turned, high, low), np.where(turned, low, high)
        values = {s.name: self._values(s, left, right) for s in SIGNALS if s.kind == kind}
        return Candidates(IS_SIMILAR, kind, low, high, values)

    def _values(self, signal: Signal, left: NDArray[np.int64], right: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the value of a signal for each pair, ``(p,)``; NaN where a side lacks the field."""
        out = np.full(len(left), np.nan, np.float32)
        if signal.measure == "cosine":
            rows, none = self.embeddings.rows, np.full(len(self.nodes), -1)
            i, j = rows.get(signal.left, none)[left], rows.get(signal.right, none)[right]
            known = (i >= 0) & (j >= 0)
            out[known] = pair_similarities(self.embeddings.vectors, self.embeddings.vectors, i[known], j[known])
            return out
        bearers = self.sets[signal.left]
        known = (bearers.sizes[left] > 0) & (bearers.sizes[right] > 0)
        i, j = left[known], right[known]
        shared = bearers.shared_counts(i, j)
        if signal.measure == "jaccard":
            shared = np.round(shared / (bearers.sizes[i] + bearers.sizes[j] - shared), 6).astype(np.float32)
        out[known] = shared
        return out

    @cached_property
    def thresholds(self) -> dict[str, dict[str, float]]:
        """The thresholds in force: those given, and for signals without one the percentile over the candidates."""
        return fit_thresholds(self.candidates, self.settings.percentile, self.given)

    # -- edges

    def edges(self) -> EdgeTable:
        """Return the edges, each from the lower position to the higher.

        Properties of `IS_SIMILAR`: ``signals`` (every known value), ``shared_entities`` (the rarest 8), for two tables
        ``columns`` (pairs of the same header), for a document and a table ``column``, the header of the cell that says
        a shared entity, its row being the edge's part. Of `SHARES_ENTITY`, whose weight is ``1 - exp(-rarity)``:
        ``entities`` (the rarest 8), ``count``, and ``column`` as before.
        """
        tables = _Tables(self.nodes)
        return joined(len(self.nodes), [self._edges(group, tables) for group in self.candidates])

    def _edges(self, group: Candidates, tables: _Tables) -> EdgeTable:
        """Return the edges of those candidates of one kind that pass."""
        thresholds, entities = self.thresholds.get(group.kind, {}), self.sets["entities"]
        kept = np.flatnonzero(passing(group, thresholds, self.settings.logic))
        low, high = group.low[kept], group.high[kept]
        values = {name: column[kept] for name, column in group.values.items()}
        if group.relation == SHARES_ENTITY:
            key, known = "entities", [f'"count":{count:.0f}' for count in entities.shared_counts(low, high).tolist()]
        else:
            key, known = "shared_entities", [f'"signals":{{{text}}}' for text in _signal_texts(values)]
        parts = np.full((2, len(low)), NO_PART, np.int32)
        sides = (self.role[high] == TABLE).astype(int).tolist()
        pairs = zip(known, low.tolist(), high.tolist(), entities.shared_names(low, high, _MOST_NAMES), strict=True)
        properties = []
        for i, (text, one, other, names) in enumerate(pairs):
            text += f',"{key}":{to_json(names)}' if names else ""
            if group.kind == "table-table" and (columns := tables.same_columns(one, other)):
                text += f',"columns":{to_json(columns)}'
            elif group.kind == "document-table" and names:
                parts[sides[i], i], column = tables.cell_of((one, other)[sides[i]], names)
                text += f',"column":{to_json(column)}' if column else ""
            properties.append(f"{{{text}}}")
        codes, records = np.zeros(len(low), np.int16), Records(text_array(properties))
        weight = weights(values, thresholds)
        return EdgeTable.build(len(self.nodes), low, high, codes, [group.relation], weight, parts[0], parts[1], records)

    # -- on disk

    def parts(self) -> Parts:
        """The index as it is saved, without its nodes."""
        parts = self.embeddings.parts()
        parts.meta["thresholds"] = self.thresholds
        return parts

    @classmethod
    def from_bundle(cls, bundle: Bundle, nodes: NodeTable, settings: SimilaritySettings) -> SimilarityIndex:
        """Open a saved index over its nodes."""
        return cls(nodes, settings, Embeddings.from_bundle(bundle), bundle.meta["thresholds"])


class _Tables:
    """What edges of tables say about rows and columns (SAGE, section 2.1: edge metadata for traversal)."""

    def __init__(self, nodes: NodeTable) -> None:
        self._nodes = nodes
        self._read = lru_cache(maxsize=_CACHED)(self._read_table)
        self._normalize = lru_cache(maxsize=1 << 18)(normalize_name)

    def same_columns(self, left: int, right: int) -> list[list[str]]:
        """Return the columns of the same header in two tables; `graphret.sage.joins` compares their values."""
        ours, theirs = self._read(left)[0], self._read(right)[0]
        return [[header, theirs[key]] for key, header in ours.items() if key and key in theirs]

    def cell_of(self, table: int, names: Sequence[str]) -> tuple[int, str]:
        """Return the row, counted within the segment, and the column of the first of `names` that a cell says.

        A cell that is the name goes before one that contains it; `NO_PART` and an empty column where none does.
        """
        cells, wanted = self._read(table)[1], [f" {self._normalize(name)} " for name in names]
        if said := next((name for name in wanted if name in cells), None):
            return cells[said]
        return next((at for name in wanted for text, at in cells.items() if name in text), (NO_PART, ""))

    def _read_table(self, position: int) -> tuple[dict[str, str], dict[str, tuple[int, str]]]:
        """The headers of a table by their words, and row and header of the first cell of each text, spaces around."""
        given = self._nodes.properties[position]
        header = [str(one) for one in given.get("table_header") or ()]
        headers: dict[str, str] = {}
        for one in header:
            headers.setdefault(self._normalize(one), one)
        cells: dict[str, tuple[int, str]] = {}
        for i, row in enumerate(given.get("table_rows") or ()):
            for j, cell in enumerate(row):
                if key := self._normalize(str(cell)):
                    cells.setdefault(f" {key} ", (i, header[j] if j < len(header) else ""))
        return headers, cells


def _signal_texts(values: Mapping[str, NDArray[np.float32]]) -> list[str]:
    """Return the known signals of each pair, rounded to four decimals, as the inside of a JSON object."""
    columns: list[Sequence[str]] = []
    for name, column in values.items():
        rounded = np.round(column.astype(np.float64), 4).tolist()
        columns.append([f'"{name}":{value!r}' if value == value else "" for value in rounded])
    return [",".join(filter(None, row)) for row in zip(*columns, strict=True)]
