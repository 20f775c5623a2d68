"""Edges between nodes that are alike (SAGE, section 2.1 B).

Candidates become edges by a percentile for each signal, combined by OR or AND.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from itertools import combinations_with_replacement
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphret.change import Change
from graphret.edges import NO_ROW, EdgeTable, joined
from graphret.executors import LOCAL, Executor
from graphret.nodes import NodeTable
from graphret.numeric import flags, marked, unique
from graphret.sage.embeddings import Embeddings
from graphret.sage.entities import (
    Entities,
    EntityIncidence,
    normalized,
    overlapping,
)
from graphret.sage.facts import NodeFacts
from graphret.sage.neighbors import Neighbors, pair_numbers
from graphret.sage.relinked import Relinked
from graphret.sage.settings import SimilaritySettings
from graphret.sage.sharing import Sharing
from graphret.sage.signals import DOCUMENT, ROLES, SIGNALS, TABLE, Signal, roles_of
from graphret.search.dense import DenseIndex
from graphret.search.nearest import pair_similarities
from graphret.storage import Bundle, Parts

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
    """The candidate pairs of one kind for a relation, and each signal's values.

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
    """Return the percentile of each signal's values over its kind's candidate pairs.

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
    """Return the weights of the edges that pairs of one kind become, ``(p,)``.

    A pair that becomes none has weight 0. A signal speaks for a pair if it is above 0
    and at or above its threshold; texts that occur twice make many values equal to the
    percentile. For ``or`` one suffices, for ``and`` all that have a threshold must
    speak. The weight is the highest that speaks, so that it can be read as a
    similarity, and of a rarity ``1 - exp(-rarity)``.
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


@dataclass(frozen=True)
class Fitted:
    """Thresholds, and to how many nodes they were fitted.

    Both stay as nodes come and go.
    """

    n_nodes: int
    thresholds: Thresholds


@dataclass(frozen=True, eq=False)
class SimilarityIndex:
    """What `IS_SIMILAR` and `SHARES_ENTITY` edges over a node table are computed from.

    Never changed once made. The edges after `changed` are those of an index that was
    built with all its nodes and the same thresholds, as long as the search is exact
    (`graphret.search.dense.HNSW_ABOVE`). They lead from the lower position to the
    higher. Properties of `IS_SIMILAR`: ``signals`` (every known value),
    ``shared_entities`` (the rarest 8), for a document and a table ``column``, the
    header of the cell that says a shared entity, its row being the edge's row. Of
    `SHARES_ENTITY`: ``entities`` (the rarest 8), ``count``, and ``column`` as before.

    Parameters
    ----------
    nodes
        The nodes, with metadata among their properties.
    entities
        Who bears which entities.
    source
        What tells the item that each node was made from, ``(n,)``.
    embeddings
        What they are compared by, and the nearest neighbours of each.
    sharing
        With whom each node shares the rarest entities.
    fitted
        The thresholds; `None` until there are nodes.
    """

    nodes: NodeTable
    settings: SimilaritySettings
    entities: Entities = field(default_factory=Entities)
    source: NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, np.int32))
    embeddings: Embeddings = field(default_factory=Embeddings.empty)
    sharing: Sharing = field(
        default_factory=lambda: Sharing.of(Neighbors.joined([]), 0)
    )
    fitted: Fitted | None = None

    @classmethod
    def build(
        cls,
        nodes: NodeTable,
        dense: DenseIndex | None,
        settings: SimilaritySettings,
        executor: Executor = LOCAL,
    ) -> tuple[SimilarityIndex, Relinked]:
        """Embed the texts of all signals, and find the nearest neighbours by each.

        See `changed`.
        """
        change = Change.whole(nodes)
        facts, entities = NodeFacts().changed(change), Entities().changed(change)
        empty = cls(change.before, settings)
        return empty.changed(change, facts, entities, dense, executor)

    def changed(
        self,
        change: Change,
        facts: NodeFacts,
        entities: Entities,
        dense: DenseIndex | None,
        executor: Executor = LOCAL,
    ) -> tuple[SimilarityIndex, Relinked]:
        """Return the index after a change, and the edges that it makes anew.

        The thresholds stay the same. Only texts that were not known are embedded; only
        the neighbours of nodes that are fresh or lost a neighbour are looked up again,
        and only the edges of nodes whose neighbours differ. `dense` has the embeddings
        of the nodes' contents after the change, and embeds other texts; without one
        there are only shared entities.
        """
        embeddings, others = Embeddings.empty(), change.fresh
        if dense is not None:
            embeddings, others = self.embeddings.changed(
                change, dense, self.settings, executor
            )
        cap = self.settings.entity_cap
        sharers = entities.whose_names_changed(self.entities, change, cap)
        n_nodes, again = len(change.after), unique(others, sharers)
        after = replace(
            self,
            nodes=change.after,
            entities=entities,
            source=facts.source,
            embeddings=embeddings,
            fitted=self.fitted or Fitted(n_nodes, {}),
        )
        named = entities.bearers(cap, again)
        sharing = self.sharing.changed(change, again, after._shared(again, named))
        return replace(after, sharing=sharing)._connected(again, named)

    def refitted(self) -> tuple[SimilarityIndex, Relinked]:
        """Return the index with thresholds fitted to its nodes, and its edges."""
        every = np.arange(len(self.nodes))
        fresh = replace(self, fitted=Fitted(len(self.nodes), {}))
        named = self.entities.bearers(self.settings.entity_cap, every)
        sharing = Sharing.of(fresh._shared(every, named), len(self.nodes))
        return replace(fresh, sharing=sharing)._connected(every, named)

    def _shared(self, again: NDArray[np.int64], named: EntityIncidence) -> Neighbors:
        """Return with whom some nodes share entities, given who bears theirs."""
        return overlapping(
            named,
            self.role,
            self.source,
            self.settings.neighbors,
            again,
            self._fitted.n_nodes,
        )

    def _connected(
        self, again: NDArray[np.int64], named: EntityIncidence
    ) -> tuple[SimilarityIndex, Relinked]:
        """Return the index with missing thresholds fitted, and the edges of some nodes.

        A threshold is missing where nothing was known of any pair. `named` says who
        bears the entities of these nodes.
        """
        candidates = self._candidates(again, named.bearers)
        known = self._fitted
        thresholds = fit_thresholds(
            candidates, self.settings.percentile, known.thresholds
        )
        after = replace(self, fitted=Fitted(known.n_nodes, thresholds))
        cells = lru_cache(maxsize=_CACHED)(
            lambda table: _cells_of(self.nodes.properties[table])
        )
        n_nodes = len(self.nodes)
        edges = joined(
            n_nodes, [after._edges(group, named, cells) for group in candidates]
        )
        relations, ends = (IS_SIMILAR, SHARES_ENTITY), ("source", "target")
        return after, Relinked(relations, flags(again, n_nodes), edges, ends)

    @property
    def thresholds(self) -> Thresholds:
        """The thresholds in force."""
        return self._fitted.thresholds

    @property
    def _fitted(self) -> Fitted:
        return self.fitted or Fitted(len(self.nodes), {})

    # -- what makes edges

    @cached_property
    def role(self) -> NDArray[np.int8]:
        """The role of each node, ``(n,)``."""
        return roles_of(self.nodes)

    @property
    def candidates(self) -> list[CandidatePairs]:
        """The pairs that are considered, with all their signals, by kind."""
        every = np.arange(len(self.nodes))
        return self._candidates(every, every)

    def _candidates(
        self, again: NDArray[np.int64], bearers: NDArray[np.int64]
    ) -> list[CandidatePairs]:
        """Return the pairs of some nodes with all that are considered.

        For `SHARES_ENTITY` they are those that share entities; for `IS_SIMILAR` these
        and the nearest neighbours by each signal of the kind. `bearers` bear names of
        these nodes: no other node shares one with them.
        """
        near = self.sharing.at(unique(again, bearers))
        pairs, at = self._pairs(near, again)
        keys, first = np.unique(pairs, return_index=True)
        rarity = near.similarity[at[first]]
        low, high = np.divmod(keys, max(len(self.nodes), 1))
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
                found.append(self._similar(kind, keys[of_kind], again))
        return [group for group in found if len(group.low)]

    def _pairs(
        self, near: Neighbors, asked: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return a number for each pair of neighbours asked for, and where it is.

        A pair is asked for if one of its nodes is.
        """
        proposed = marked(flags(asked, len(self.nodes)), near.other)
        at = unique(near.rows_of(asked), proposed)
        return pair_numbers(near.own[at], near.other[at], len(self.nodes)), at

    def _similar(
        self, kind: str, shared: NDArray[np.int64], asked: NDArray[np.int64]
    ) -> CandidatePairs:
        """Return the candidates of a kind among the pairs of nodes that are asked for.

        They are the pairs that share entities, and the nearest neighbours by the
        signals of the kind.
        """
        keys = [shared]
        for (of_kind, _), near in self.embeddings.neighbors.items():
            if of_kind == kind:
                keys.append(self._pairs(near, asked)[0])
        pairs = unique(*keys)
        low, high = np.divmod(pairs, max(len(self.nodes), 1))
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
        """Return the value of a signal for each pair, ``(p,)``.

        It is NaN where a side lacks the text.
        """
        rows, none = self.embeddings.rows, np.full(len(self.nodes), -1)
        i, j = rows.get(signal.left, none)[left], rows.get(signal.right, none)[right]
        known = (i >= 0) & (j >= 0)
        out = np.full(len(left), np.nan, np.float32)
        out[known] = pair_similarities(
            self.embeddings.vectors, self.embeddings.vectors, i[known], j[known]
        )
        return out

    def _edges(
        self,
        group: CandidatePairs,
        named: EntityIncidence,
        cells: Callable[[int], Cells],
    ) -> EdgeTable:
        """Return the edges of those candidates of one kind that become some."""
        weight = weights(
            group.values, self.thresholds.get(group.kind, {}), self.settings.logic
        )
        kept = np.flatnonzero(weight)
        if not len(kept):
            return EdgeTable.empty(len(self.nodes))
        low, high = group.low[kept], group.high[kept]
        shared = [*named.shared_names(low, high)]
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
        return EdgeTable.build(
            len(self.nodes),
            low,
            high,
            codes,
            [group.relation],
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
        """Return the properties of each edge, given the entities its ends share."""
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
        """The index as it is saved, without its nodes, entities and edges."""
        parts = self.embeddings.parts()
        parts.add("sharing", self.sharing.parts())
        parts.meta |= {"n_nodes": self._fitted.n_nodes, "thresholds": self.thresholds}
        return parts

    @classmethod
    def from_bundle(
        cls,
        bundle: Bundle,
        nodes: NodeTable,
        settings: SimilaritySettings,
        facts: NodeFacts,
        entities: Entities,
    ) -> SimilarityIndex:
        """Open a saved index over its nodes."""
        return cls(
            nodes,
            settings,
            entities,
            facts.source,
            Embeddings.from_bundle(bundle),
            Sharing.from_bundle(bundle.sub("sharing")),
            Fitted(bundle.meta["n_nodes"], bundle.meta["thresholds"]),
        )


def _cells_of(given: Mapping[str, Any]) -> Cells:
    """Return the cells of a table given by its properties.

    Of cells that say the same, the first is kept.
    """
    header = [str(one) for one in given.get("table_header") or ()]
    cells: Cells = {}
    for i, row in enumerate(given.get("table_rows") or ()):
        for j, cell in enumerate(row):
            if key := normalized(str(cell)):
                cells.setdefault(f" {key} ", (i, header[j] if j < len(header) else ""))
    return cells


def _cell_of(cells: Cells, names: Sequence[str]) -> tuple[int, str]:
    """Return the row and the column of the first of `names` that a cell says.

    They are `NO_ROW` and no column where no cell says one. A cell that is the name goes
    before one that contains it.
    """
    wanted = [f" {normalized(name)} " for name in names]
    if said := next((name for name in wanted if name in cells), None):
        return cells[said]
    return next(
        (at for name in wanted for text, at in cells.items() if name in text),
        (NO_ROW, ""),
    )
