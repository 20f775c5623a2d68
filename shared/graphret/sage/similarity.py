"""Edges between nodes that are alike (SAGE, section 2.1 B): candidates, a percentile
for each signal, OR or AND.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import combinations_with_replacement
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphret.edges import NO_ROW, EdgeTable, joined
from graphret.executors import LOCAL, Executor
from graphret.nodes import NodeTable
from graphret.sage.embeddings import Embeddings
from graphret.sage.entities import EntityIncidence, overlapping_pairs
from graphret.sage.settings import SimilaritySettings
from graphret.sage.signals import DOCUMENT, ROLES, SIGNALS, TABLE, Signal, role_of
from graphret.sage.structure import sources_of
from graphret.search.dense import DenseIndex
from graphret.search.nearest import pair_similarities
from graphret.storage import Bundle, Parts
from graphret.text import normalize_name

#: The least value of each signal that makes an edge, by kind of pair: ``{kind: {signal:
#: value}}``.
Thresholds: TypeAlias = Mapping[str, Mapping[str, float]]
#: By what a cell says, with spaces around, its row, counted within the segment, and its
#: header.
Cells: TypeAlias = dict[str, tuple[int, str]]

#: The relation of nodes that are similar; stored once a pair, from the lower position
#: to the higher.
IS_SIMILAR = "IS_SIMILAR"
#: The relation of nodes that share entities, and the one signal that decides on it.
SHARES_ENTITY, ENTITY_RARITY = "SHARES_ENTITY", "entity_rarity"

_MOST_NAMES = 8  # that an edge tells
_CACHED = 1 << 14  # tables


@dataclass(frozen=True, eq=False)
class CandidatePairs:
    """The pairs of nodes of one kind that are considered for edges of a relation, and
    what each signal says of them.

    `low` and `high` are positions, ``(p,)``, ascending; `values` has float32 ``(p,)``
    for each signal, NaN where a side lacks the field.
    """

    relation: str
    kind: str
    low: NDArray[np.int64]
    high: NDArray[np.int64]
    values: dict[str, NDArray[np.float32]]


def fit_thresholds(
    candidates: Iterable[CandidatePairs], percentile: float, given: Thresholds
) -> dict[str, dict[str, float]]:
    """Return the percentile of every signal's values over the candidate pairs of its
    kind.

    "We only keep a similarity edge when its metadata similarity exceeds the 95th
    percentile of the empirical distribution" (SAGE, section 2.1 B). Pairs for which a
    signal is unknown do not count. A signal that is known for no pair has no threshold
    and makes no edge. Thresholds among `given` are kept as they are.
    """
    fitted = {kind: dict(values) for kind, values in given.items()}
    for group in candidates:
        for name, column in group.values.items():
            known = column[~np.isnan(column)].astype(np.float64)
            if len(known) and name not in fitted.setdefault(group.kind, {}):
                fitted[group.kind][name] = float(np.percentile(known, percentile))
    return {kind: values for kind, values in fitted.items() if values}


def weights(
    values: Mapping[str, NDArray[np.float32]],
    thresholds: Mapping[str, float],
    logic: str,
) -> NDArray[np.float32]:
    """Return the weights of the edges that pairs of one kind become, ``(p,)``; 0 for a
    pair that becomes none.

    A signal speaks for a pair if it is above 0 and at or above its threshold; texts
    that occur twice make many values equal to the percentile. For ``or`` one suffices,
    for ``and`` all that have a threshold must speak. The weight is the highest that
    speaks, so that it can be read as a similarity, and of a rarity ``1 -
    exp(-rarity)``.
    """
    limits = {name: limit for name, limit in thresholds.items() if name in values}
    best = np.zeros(len(next(iter(values.values()))), np.float32)
    every = np.full(len(best), True)
    for name, limit in limits.items():
        spoken = np.where(
            values[name].astype(np.float64) >= limit, values[name], np.float32(0)
        )
        np.maximum(best, spoken, out=best)
        every &= spoken > 0
    if logic == "and":
        best[~every] = 0
    return -np.expm1(-best) if ENTITY_RARITY in values else best


@dataclass(frozen=True, eq=False)
class SimilarityIndex:
    """What `IS_SIMILAR` and `SHARES_ENTITY` edges are computed from, over a table of
    nodes.

    Never changed once made. What `changed` returns has the edges of an index that was
    built with all its nodes and the same thresholds, as long as the search is exact
    (`graphret.search.dense.HNSW_ABOVE`).

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
        cls,
        nodes: NodeTable,
        dense: DenseIndex | None,
        settings: SimilaritySettings,
        executor: Executor = LOCAL,
    ) -> SimilarityIndex:
        """Embed the texts of all signals, and find the nearest neighbours by each; see
        `changed`.
        """
        return cls(NodeTable.of([]), settings).changed(nodes, (), dense, executor)

    def changed(
        self,
        nodes: NodeTable,
        fresh: Collection[str],
        dense: DenseIndex | None,
        executor: Executor = LOCAL,
    ) -> SimilarityIndex:
        """Return the index of another table of nodes, with the same thresholds.

        Only texts that were not known are embedded; only the neighbours of nodes that
        are fresh or lost a neighbour are looked up again. Entities, and what is
        computed from them, are read anew. `fresh` are the ids of nodes that may differ
        from before; those that are new need not be named. `dense` has the embeddings of
        the nodes' contents after the change, and embeds other texts; without one there
        are only shared entities.
        """
        given, embeddings = (
            self.thresholds if len(self.nodes) else {},
            Embeddings.empty(),
        )
        if dense is not None:
            came_from = nodes.places_in(self.nodes, fresh)
            embeddings = self.embeddings.changed(
                nodes, came_from, dense, self.settings, executor
            )
        return SimilarityIndex(nodes, self.settings, embeddings, given)

    # -- what makes edges

    @cached_property
    def role(self) -> NDArray[np.int8]:
        """The role of each node, ``(n,)``."""
        return np.asarray(
            [role_of(labels) for labels in self.nodes.label_sets], np.int8
        )[self.nodes.labels]

    @cached_property
    def entities(self) -> EntityIncidence:
        """Who bears which entities."""
        found = (given.get("entities") or () for given in self.nodes.properties)
        named = [
            (
                [one]
                if isinstance(one, str)
                else [name for name in one if isinstance(name, str)]
            )
            for one in found
        ]
        return EntityIncidence.of(named, self.settings.entity_cap)

    @cached_property
    def candidates(self) -> list[CandidatePairs]:
        """The pairs that are considered, with all their signals, by kind.

        For `SHARES_ENTITY` they are those that share entities; for `IS_SIMILAR` these
        and the nearest neighbours by each signal of the kind.
        """
        source, _ = sources_of(self.nodes)
        low, high, rarity = overlapping_pairs(
            self.entities, self.role, source, self.settings.neighbors
        )
        roles = np.sort(np.stack([self.role[low], self.role[high]]), axis=0)
        found = []
        for one, other in combinations_with_replacement(range(len(ROLES)), 2):
            kind, of_kind = (
                f"{ROLES[one]}-{ROLES[other]}",
                (roles[0] == one) & (roles[1] == other),
            )
            if of_kind.any():
                values = {ENTITY_RARITY: rarity[of_kind]}
                found.append(
                    CandidatePairs(
                        SHARES_ENTITY, kind, low[of_kind], high[of_kind], values
                    )
                )
            if any(signal.kind == kind for signal in SIGNALS):
                found.append(self._similar(kind, low[of_kind], high[of_kind]))
        return [group for group in found if len(group.low)]

    def _similar(
        self, kind: str, low: NDArray[np.int64], high: NDArray[np.int64]
    ) -> CandidatePairs:
        """Return the candidates of a kind: pairs that are given, and the nearest
        neighbours by its signals.
        """
        n = len(self.nodes)
        keys = [low * n + high]
        for (of_kind, _), near in self.embeddings.neighbors.items():
            if of_kind == kind:
                ends = np.stack([near.own, near.other]).astype(np.int64)
                keys.append(ends.min(axis=0) * n + ends.max(axis=0))
        low, high = np.divmod(np.unique(np.concatenate(keys)), max(n, 1))
        # the left side of a document and a table is the document, all other kinds are
        # of one role
        turned = (kind == "document-table") & (self.role[low] != DOCUMENT)
        left, right = np.where(turned, high, low), np.where(turned, low, high)
        values = {
            s.name: self._cosines(s, left, right) for s in SIGNALS if s.kind == kind
        }
        return CandidatePairs(IS_SIMILAR, kind, low, high, values)

    def _cosines(
        self, signal: Signal, left: NDArray[np.int64], right: NDArray[np.int64]
    ) -> NDArray[np.float32]:
        """Return the value of a signal for each pair, ``(p,)``; NaN where a side lacks
        the text.
        """
        rows, none = self.embeddings.rows, np.full(len(self.nodes), -1)
        i, j = rows.get(signal.left, none)[left], rows.get(signal.right, none)[right]
        known = (i >= 0) & (j >= 0)
        out = np.full(len(left), np.nan, np.float32)
        out[known] = pair_similarities(
            self.embeddings.vectors, self.embeddings.vectors, i[known], j[known]
        )
        return out

    @cached_property
    def thresholds(self) -> dict[str, dict[str, float]]:
        """The thresholds in force: those given, and for signals without one the
        percentile over the candidates.
        """
        return fit_thresholds(self.candidates, self.settings.percentile, self.given)

    # -- edges

    def edges(self) -> EdgeTable:
        """Return the edges, each from the lower position to the higher.

        Properties of `IS_SIMILAR`: ``signals`` (every known value), ``shared_entities``
        (the rarest 8), for a document and a table ``column``, the header of the cell
        that says a shared entity, its row being the edge's row. Of `SHARES_ENTITY`:
        ``entities`` (the rarest 8), ``count``, and ``column`` as before.
        """
        cells = lru_cache(maxsize=_CACHED)(
            lambda table: _cells_of(self.nodes.properties[table])
        )
        return joined(
            len(self.nodes), [self._edges(group, cells) for group in self.candidates]
        )

    def _edges(self, group: CandidatePairs, cells: Callable[[int], Cells]) -> EdgeTable:
        """Return the edges of those candidates of one kind that become some."""
        weight = weights(
            group.values, self.thresholds.get(group.kind, {}), self.settings.logic
        )
        kept = np.flatnonzero(weight)
        low, high = group.low[kept], group.high[kept]
        shared = [*self.entities.shared_names(low, high)]
        properties = self._properties(group, kept, shared)
        rows, second = np.full(len(low), NO_ROW, np.int32), self.role[high] == TABLE
        if group.kind == "document-table":
            tables = np.where(second, high, low).tolist()
            for i, names in enumerate(shared):
                rows[i], column = _cell_of(cells(tables[i]), names[:_MOST_NAMES])
                properties[i] |= {"column": column} if column else {}
        codes, parts = (
            np.zeros(len(low), np.int16),
            [np.where(side, rows, NO_ROW) for side in (~second, second)],
        )
        named = [group.relation]
        return EdgeTable.build(
            len(self.nodes),
            low,
            high,
            codes,
            named,
            weight[kept],
            parts[0],
            parts[1],
            properties,
        )

    def _properties(
        self,
        group: CandidatePairs,
        kept: NDArray[np.int64],
        shared: Sequence[list[str]],
    ) -> list[dict[str, Any]]:
        """Return what edges say of themselves, given the entities that the nodes of
        each share.
        """
        if group.relation == SHARES_ENTITY:
            return [
                {"count": len(names), "entities": names[:_MOST_NAMES]}
                for names in shared
            ]
        rows = (
            np.stack([*group.values.values()], axis=1)[kept]
            .astype(np.float64)
            .round(4)
            .tolist()
        )
        pairs = (zip(group.values, row, strict=True) for row in rows)
        known = (
            {"signals": {name: value for name, value in row if value == value}}
            for row in pairs
        )
        entities = (
            {"shared_entities": names[:_MOST_NAMES]} if names else {}
            for names in shared
        )
        return [
            {**signals, **names} for signals, names in zip(known, entities, strict=True)
        ]

    # -- on disk

    def parts(self) -> Parts:
        """The index as it is saved, without its nodes."""
        parts = self.embeddings.parts()
        parts.meta["thresholds"] = self.thresholds
        return parts

    @classmethod
    def from_bundle(
        cls, bundle: Bundle, nodes: NodeTable, settings: SimilaritySettings
    ) -> SimilarityIndex:
        """Open a saved index over its nodes."""
        return cls(
            nodes, settings, Embeddings.from_bundle(bundle), bundle.meta["thresholds"]
        )


def _cells_of(given: Mapping[str, Any]) -> Cells:
    """Return the cells of a table given by its properties; of those that say the same
    the first.
    """
    header = [str(one) for one in given.get("table_header") or ()]
    cells: Cells = {}
    for i, row in enumerate(given.get("table_rows") or ()):
        for j, cell in enumerate(row):
            if key := normalize_name(str(cell)):
                cells.setdefault(f" {key} ", (i, header[j] if j < len(header) else ""))
    return cells


def _cell_of(cells: Cells, names: Sequence[str]) -> tuple[int, str]:
    """Return the row and the column of the first of `names` that a cell says; `NO_ROW`
    and no column where none does.

    A cell that is the name goes before one that contains it.
    """
    wanted = [f" {normalize_name(name)} " for name in names]
    if said := next((name for name in wanted if name in cells), None):
        return cells[said]
    return next(
        (at for name in wanted for text, at in cells.items() if name in text),
        (NO_ROW, ""),
    )
