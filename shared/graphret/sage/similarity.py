"""`SimilarityIndex`: what the similarity half of a SAGE graph is computed from, kept so that it can be changed."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from graphret.columns import Records, text_array, to_json
from graphret.edges import NO_PART, EdgeTable, joined
from graphret.nodes import NodeTable
from graphret.sage.embeddings import Embeddings
from graphret.sage.facts import Facts
from graphret.sage.neighbors import Neighbors, changed, pair_similarities
from graphret.sage.overlap import SHARES_ENTITY, overlap_pairs
from graphret.sage.settings import SimilaritySettings
from graphret.sage.signals import CONTENT, DOCUMENT, PAIR_KINDS, SIGNALS, TABLE, Signal
from graphret.sage.structure import structure_edges
from graphret.sage.tables import TableDetails
from graphret.sage.thresholds import Candidates, Thresholds, fit_thresholds, passing, weights
from graphret.search.dense import DenseIndex
from graphret.storage import Bundle, Parts

#: The relation of nodes that are similar; stored once a pair, from the lower position to the higher.
IS_SIMILAR = "IS_SIMILAR"

_MOST_NAMES = 8  # that an edge tells


@dataclass(frozen=True, eq=False)
class SimilarityIndex:
    """Embeddings, nearest neighbours and thresholds over a table of nodes (SAGE, section 2.1 B).

    Never changed once made. What `changed` returns has the edges of an index that was built with all its nodes and the
    same thresholds, as long as the search is exact (`graphret.sage.neighbors.HNSW_ABOVE`).

    Parameters
    ----------
    nodes
        The nodes, with metadata among their properties.
    neighbors
        The nearest neighbours by each cosine, by kind of pair and signal.
    given
        Thresholds to use; those that are missing are fitted.
    """

    nodes: NodeTable
    settings: SimilaritySettings
    embeddings: Embeddings
    neighbors: dict[tuple[str, str], Neighbors]
    given: Thresholds

    @classmethod
    def build(
        cls,
        nodes: NodeTable,
        dense: DenseIndex | None,
        settings: SimilaritySettings,
        thresholds: Thresholds | None = None,
    ) -> SimilarityIndex:
        """Embed the texts of all signals, and find the nearest neighbours by each.

        Parameters
        ----------
        dense
            The embeddings of the nodes' contents, and what embeds other texts; without one there are only shared
            entities and structure.
        """
        none = cls(NodeTable.of([]), settings, Embeddings.empty(), {}, thresholds or {})
        return none._over(nodes, (), dense)

    def changed(self, nodes: NodeTable, fresh: Collection[str], dense: DenseIndex | None) -> SimilarityIndex:
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
        return replace(self, given=self.thresholds)._over(nodes, fresh, dense)

    def refit(self) -> SimilarityIndex:
        """Return the same index with thresholds fitted to the nodes it has now."""
        return replace(self, given={})

    def _over(self, nodes: NodeTable, fresh: Collection[str], dense: DenseIndex | None) -> SimilarityIndex:
        """Return the index of another table of nodes, with the thresholds that are given."""
        came_from = nodes.places_in(self.nodes, fresh)
        signals, embeddings = [], Embeddings.empty()
        if dense is not None:
            bare = self.settings.contents_only or dense.encoder is None
            cosines = (signal for signal in SIGNALS if signal.measure == "cosine")
            signals = [s for s in cosines if not bare or s.left == s.right == CONTENT]
            embeddings = self.embeddings.changed(nodes, came_from, signals, dense)
        index, nobody = replace(self, nodes=nodes, embeddings=embeddings, neighbors={}), Neighbors.joined([])
        for signal in signals:
            ends = dict.fromkeys(zip((signal.left, signal.right), signal.roles, strict=True))  # one if they are alike
            sides = [embeddings.side(name, index.facts.role == role) for name, role in ends]
            key = signal.kind, signal.name
            old, m = self.neighbors.get(key, nobody), self.settings.neighbors
            index.neighbors[key] = changed(old, embeddings.vectors, sides, came_from, len(self.nodes), m)
        return index

    # -- what makes edges

    @cached_property
    def facts(self) -> Facts:
        """The role, the source and the names of every node."""
        return Facts.of(self.nodes, self.settings.entity_cap)

    @cached_property
    def overlap(self) -> list[Candidates]:
        """The pairs of nodes that share entities, by kind."""
        return overlap_pairs(self.facts, self.settings.neighbors)

    @cached_property
    def candidates(self) -> list[Candidates]:
        """The pairs that are considered, with all their signals, by kind.

        They are the nearest neighbours by each signal of the kind, and the pairs that share entities.
        """
        found = []
        for kind in PAIR_KINDS:
            low, high = self._pairs(kind)
            if len(low):
                # the left side of a document and a table is the document, all other kinds are of one role
                turned = (kind == "document-table") & (self.facts.role[low] != DOCUMENT)
                left, right = np.where(turned, high, low), np.where(turned, low, high)
                values = {s.name: self._values(s, left, right) for s in SIGNALS if s.kind == kind}
                found.append(Candidates(kind, low, high, values))
        return found

    @cached_property
    def thresholds(self) -> dict[str, dict[str, float]]:
        """The thresholds in force: those given, and for signals without one the percentile over the candidates."""
        return fit_thresholds([*self.candidates, *self.overlap], self.settings.percentile, self.given)

    def _pairs(self, kind: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the distinct pairs of a kind: the lower positions, ascending, and the higher."""
        n = len(self.nodes)
        keys = [np.zeros(0, np.int64), *(one.low * n + one.high for one in self.overlap if one.kind == kind)]
        for (of_kind, _), found in self.neighbors.items():
            if of_kind == kind:
                ends = np.stack([found.own, found.other]).astype(np.int64)
                keys.append(ends.min(axis=0) * n + ends.max(axis=0))
        low, high = np.divmod(np.unique(np.concatenate(keys)), max(n, 1))
        return low, high

    def _values(self, signal: Signal, left: NDArray[np.int64], right: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the value of a signal for each pair, ``(p,)``; NaN where a side lacks the field."""
        out = np.full(len(left), np.nan, np.float32)
        if signal.measure == "cosine":
            rows, none = self.embeddings.rows, np.full(len(self.nodes), -1)
            i, j = rows.get(signal.left, none)[left], rows.get(signal.right, none)[right]
            known = (i >= 0) & (j >= 0)
            out[known] = pair_similarities(self.embeddings.vectors, i[known], j[known])
            return out
        bearers = self.facts.sets[signal.left]
        known = (bearers.sizes[left] > 0) & (bearers.sizes[right] > 0)
        i, j = left[known], right[known]
        shared = bearers.shared_counts(i, j)
        if signal.measure == "jaccard":
            shared = np.round(shared / (bearers.sizes[i] + bearers.sizes[j] - shared), 6).astype(np.float32)
        out[known] = shared
        return out

    # -- edges

    def edges(self) -> EdgeTable:
        """Return all edges that follow from the nodes: `IS_SIMILAR`, `SHARES_ENTITY`, `NEXT` and `SAME_SOURCE`.

        An edge of two nodes that are alike leads from the lower position to the higher. Properties of `IS_SIMILAR`:
        ``signals`` (every known value), ``shared_entities`` (the rarest 8), for two tables ``columns`` (pairs of
        joinable ones), for a document and a table ``column``, the header of the cell that says a shared entity, its row
        being the edge's part. Of `SHARES_ENTITY`, whose weight is ``1 - exp(-rarity)``: ``entities`` (the rarest 8),
        ``count``, and ``column`` as before.
        """
        details = TableDetails(self.nodes)
        found = [self._edges(IS_SIMILAR, "shared_entities", group, details) for group in self.candidates]
        found += [self._edges(SHARES_ENTITY, "entities", group, details) for group in self.overlap]
        return joined(len(self.nodes), [*found, structure_edges(self.facts)])

    def _edges(self, relation: str, entities_key: str, group: Candidates, details: TableDetails) -> EdgeTable:
        """Return the edges of those candidates of one kind that pass."""
        thresholds, entities = self.thresholds.get(group.kind, {}), self.facts.sets["entities"]
        kept = np.flatnonzero(passing(group, thresholds, self.settings.logic))
        low, high = group.low[kept], group.high[kept]
        values = {name: column[kept] for name, column in group.values.items()}
        if relation == SHARES_ENTITY:
            known = [f'"count":{count:.0f}' for count in entities.shared_counts(low, high).tolist()]
        else:
            known = [f'"signals":{{{text}}}' for text in _signal_texts(values)]
        parts = np.full((2, len(low)), NO_PART, np.int32)
        sides = (self.facts.role[high] == TABLE).astype(int).tolist()
        pairs = zip(known, low.tolist(), high.tolist(), entities.shared_codes(low, high, _MOST_NAMES), strict=True)
        properties = []
        for i, (text, one, other, shared) in enumerate(pairs):
            names = [entities.names[code] for code in shared]
            text += f',"{entities_key}":{to_json(names)}' if names else ""
            if group.kind == "table-table" and (columns := details.joinable(one, other)):
                text += f',"columns":{to_json(columns)}'
            elif group.kind == "document-table" and names:
                parts[sides[i], i], column = details.cell_of((one, other)[sides[i]], names)
                text += f',"column":{to_json(column)}' if column else ""
            properties.append(f"{{{text}}}")
        codes, records = np.zeros(len(low), np.int16), Records(text_array(properties))
        weight = weights(values, thresholds)
        return EdgeTable.build(len(self.nodes), low, high, codes, [relation], weight, parts[0], parts[1], records)

    # -- on disk

    def parts(self) -> Parts:
        """The index as it is saved, without its nodes."""
        parts = Parts(meta={"thresholds": self.thresholds})
        for (kind, name), found in self.neighbors.items():
            columns = {"own": found.own, "other": found.other, "similarity": found.similarity}
            parts.arrays |= {f"{kind}.{name}.{column}": array for column, array in columns.items()}
        parts.add("embeddings", self.embeddings.parts())
        return parts

    @classmethod
    def from_bundle(cls, bundle: Bundle, nodes: NodeTable, settings: SimilaritySettings) -> SimilarityIndex:
        """Open a saved index over its nodes; its arrays stay on disk until they are read."""
        heads = [name.removesuffix(".own") for name in bundle.arrays if name.endswith(".own")]
        neighbors = {}
        for head in heads:
            kind, name = head.split(".")
            columns = (bundle.arrays[f"{head}.{column}"] for column in ("own", "other", "similarity"))
            neighbors[kind, name] = Neighbors(*columns)
        embeddings = Embeddings.from_bundle(bundle.sub("embeddings"))
        return cls(nodes, settings, embeddings, neighbors, bundle.meta["thresholds"])


def _signal_texts(values: Mapping[str, NDArray[np.float32]]) -> list[str]:
    """Return the known signals of each pair, rounded to four decimals, as the inside of a JSON object."""
    columns: list[Sequence[str]] = []
    for name, column in values.items():
        rounded = np.round(column.astype(np.float64), 4).tolist()
        columns.append([f'"{name}":{value!r}' if value == value else "" for value in rounded])
    return [",".join(filter(None, row)) for row in zip(*columns, strict=True)]
