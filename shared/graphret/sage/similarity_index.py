"""`SimilarityIndex`: what the similarity half of a SAGE graph is computed from, kept so that it can be changed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import cached_property
from hashlib import blake2b
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphret.edges import EdgeTable
from graphret.errors import CorruptIndex, InvalidInput
from graphret.nodes import NodeTable
from graphret.sage.edge_rows import join
from graphret.sage.embedding import SignalVectors
from graphret.sage.facts import Facts
from graphret.sage.knn import NearestTable, Side, nearest_nodes, updated
from graphret.sage.overlap import OverlapPairs, overlap_pairs
from graphret.sage.settings import SimilaritySettings, Thresholds
from graphret.sage.signals import PAIR_KINDS, ROLES, Signal, chosen_signals
from graphret.sage.similarity import Candidates, evaluate, fit_thresholds, overlap_edges, similarity_edges
from graphret.sage.structure import structure_edges
from graphret.sage.tables import TableDetails
from graphret.search.encoder import CallableEncoder, Encoder, as_encoder
from graphret.search.fields import NodeText
from graphret.storage import Bundle, Parts
from graphret.types import Edge, Node

#: A table of neighbours: kind of pair, signal, and whose neighbours: 0 for the left side, 1 for the right.
TableKey: TypeAlias = tuple[str, str, int]


class SimilarityIndex:
    """Vectors, tables of nearest neighbours and thresholds over a table of nodes (SAGE, section 2.1 B).

    Never changed once made. What `changed` returns has the edges of an index that was built with all its nodes and the
    same thresholds, as long as the search is exact (`SimilaritySettings.hnsw_above`).
    """

    def __init__(
        self,
        nodes: NodeTable,
        settings: SimilaritySettings,
        vectors: SignalVectors,
        tables: Mapping[TableKey, NearestTable],
        thresholds: Mapping[tuple[str, str], float] | None = None,
        *,
        text: NodeText | None = None,
        encoder: Encoder | None = None,
        encoder_name: str | None = None,
    ) -> None:
        self.nodes = nodes
        self.text = text or NodeText()
        self.settings = settings
        self.vectors = vectors
        self.tables = dict(tables)
        self.encoder = encoder
        self.encoder_name = encoder.name if encoder is not None else encoder_name
        self._given = dict(thresholds or {})

    @classmethod
    def build(
        cls,
        nodes: NodeTable | Iterable[Node],
        encoder: Any = None,
        settings: SimilaritySettings | None = None,
        *,
        content_vectors: NDArray[Any] | None = None,
        thresholds: Mapping[tuple[str, str], float] | None = None,
        text: NodeText | None = None,
    ) -> SimilarityIndex:
        """Embed the texts of all signals in one call, and find the nearest neighbours by each.

        Parameters
        ----------
        nodes
            The nodes, with metadata among their properties.
        encoder
            What embeds texts; without one there are only shared entities and structure.
        content_vectors
            Vectors of the nodes' contents where they are known, such as those of a `DenseIndex`, ``(n, d)``.
        thresholds
            Thresholds to use; those that are missing are fitted.
        text
            How a node becomes the text that is its content.

        Raises
        ------
        InvalidInput
            When a vector is not finite or of another width.
        """
        nodes = nodes if isinstance(nodes, NodeTable) else NodeTable.of(nodes)
        settings, encoder, vectors = settings or SimilaritySettings(), as_encoder(encoder), SignalVectors.empty()
        if encoder is not None or content_vectors is not None:
            signals = chosen_signals(settings.signals)
            vectors = vectors.changed(nodes, np.full(len(nodes), -1), signals, encoder, content_vectors, text)
        index = cls(nodes, settings, vectors, {}, thresholds, text=text, encoder=encoder)
        for signal in index._cosines():
            index._find(signal)
        return index

    # -- what it is made of

    @cached_property
    def facts(self) -> Facts:
        """The role, the source and the names of every node."""
        return Facts.of(self.nodes, self.settings.entity_cap)

    @cached_property
    def overlap(self) -> OverlapPairs:
        """The pairs of nodes that share entities."""
        return overlap_pairs(self.facts, self.settings.neighbors)

    @cached_property
    def candidates(self) -> list[Candidates]:
        """The pairs that are considered, with all their signals, by kind.

        They are the nearest neighbours by each signal of the kind, and the pairs that share entities.
        """
        signals = chosen_signals(self.settings.signals)
        return [
            evaluate(kind, keys, [s for s in signals if s.kind == kind], self.vectors, self.facts)
            for kind in PAIR_KINDS
            if len(keys := self._pairs(kind))
        ]

    @cached_property
    def thresholds(self) -> Thresholds:
        """The thresholds in force: those given, and for signals without one the percentile over the candidates."""
        return fit_thresholds(self.candidates, self.overlap, self.settings.percentile, self._given)

    def edges(self, explicit: Iterable[Edge] = ()) -> EdgeTable:
        """Return all edges: `IS_SIMILAR`, `SHARES_ENTITY`, `NEXT`, `SAME_SOURCE`, and explicit ones as given."""
        details = TableDetails(self.nodes)
        similar = similarity_edges(self.nodes, self.candidates, self.thresholds, self.settings, self.facts, details)
        sharing = overlap_edges(self.nodes, self.overlap, self.thresholds, self.facts, details)
        return join(len(self.nodes), [*similar, *sharing, structure_edges(self.nodes, explicit, facts=self.facts)])

    def _pairs(self, kind: str) -> NDArray[np.int64]:
        """Return the candidate pairs of a kind as ascending ``low * n + high``."""
        n, roles = len(self.nodes), PAIR_KINDS[kind]
        sharing = self.overlap.at(self.overlap.kind == min(roles) * len(ROLES) + max(roles))
        keys = [sharing.low * n + sharing.high]
        for (table_kind, name, turn), table in self.tables.items():
            if table_kind == kind:
                signal = next(s for s in self._cosines() if (s.kind, s.name) == (kind, name))
                row, other, _ = table.neighbors()
                own = self._sides(signal)[turn].positions[row]
                keys.append(np.minimum(own, other) * n + np.maximum(own, other))
        distinct = np.unique(np.concatenate(keys))
        if self.settings.within_source or not n:
            return distinct
        return distinct[~self.facts.same_source(*np.divmod(distinct, n))]

    # -- change

    def refit(self) -> SimilarityIndex:
        """Return the same index with thresholds fitted to the nodes it has now."""
        return self._with(self.nodes, self.vectors, self.tables, {})

    def changed(
        self, nodes: NodeTable, fresh: Collection[str], *, content_vectors: NDArray[Any] | None = None
    ) -> SimilarityIndex:
        """Return the index of another table of nodes, with the same thresholds.

        Only texts that were not known are embedded; only the neighbours of nodes that are new, whose text is another,
        or that lost a neighbour are looked up again. Entities, and what is computed from them, are read anew.

        Parameters
        ----------
        nodes
            The nodes after the change.
        fresh
            Ids of nodes whose texts may be others than before; nodes that are new need not be named.
        content_vectors
            Vectors of the contents of `nodes`, ``(n, d)``; only rows of nodes that are fresh are read.

        Raises
        ------
        InvalidInput
            When there are texts to embed and the index was opened without its encoder.
        """
        before, came_from = self.nodes.find(nodes.ids), nodes.places_in(self.nodes, fresh)
        vectors = self.vectors
        if self.encoder is not None or content_vectors is not None or vectors.index:
            encoder = self.encoder or (_absent(self.encoder_name) if self.encoder_name else None)
            signals = chosen_signals(self.settings.signals)
            vectors = vectors.changed(nodes, came_from, signals, encoder, content_vectors, self.text)
        index = self._with(nodes, vectors, {}, self.thresholds)
        for signal in index._cosines():
            index._update(signal, self, before)
        return index

    def _with(
        self,
        nodes: NodeTable,
        vectors: SignalVectors,
        tables: Mapping[TableKey, NearestTable],
        thresholds: Mapping[tuple[str, str], float],
    ) -> SimilarityIndex:
        of = {"text": self.text, "encoder": self.encoder, "encoder_name": self.encoder_name}
        return SimilarityIndex(nodes, self.settings, vectors, tables, thresholds, **of)  # type: ignore[arg-type]

    # -- tables of neighbours

    def _cosines(self) -> list[Signal]:
        if not self.vectors.index:
            return []
        return [s for s in chosen_signals(self.settings.signals) if s.measure == "cosine"]

    def _sides(self, signal: Signal) -> list[Side]:
        """The left and the right side of a signal; one alone where both are the same."""
        ends = dict.fromkeys(zip((signal.left, signal.right), signal.roles, strict=True))
        return [self.vectors.side(name, self.facts.role == role) for name, role in ends]

    @property
    def _options(self) -> dict[str, int]:
        return {"block_mb": self.settings.block_mb, "hnsw_above": self.settings.hnsw_above}

    def _find(self, signal: Signal) -> None:
        sides, m = self._sides(signal), self.settings.neighbors
        for turn, side in enumerate(sides):
            found = nearest_nodes(self.vectors.vectors, side, sides[-1 - turn], m, **self._options)
            self.tables[signal.kind, signal.name, turn] = found

    def _update(self, signal: Signal, old: SimilarityIndex, before: NDArray[np.int64]) -> None:
        """Bring the tables of a signal over from an older index; `before` has each node's position there or -1."""
        sides, old_sides = self._sides(signal), old._sides(signal)
        ends = list(zip((signal.left, signal.right), signal.roles, strict=True))
        origins = [self._origin(old, before, name, role) for name, role in ends[: len(sides)]]
        for turn, (rows, targets) in enumerate(zip(sides, sides[::-1], strict=True)):
            key = (signal.kind, signal.name, turn)
            if key not in old.tables:
                self._find(signal)
                return
            theirs = origins[-1 - turn]
            row_of, moved = np.full((2, len(old.nodes) + 1), -1, np.int64)
            row_of[old_sides[turn].positions] = np.arange(len(old_sides[turn]))
            moved[theirs[theirs >= 0]] = np.flatnonzero(theirs >= 0)
            self.tables[key] = updated(
                old.tables[key],
                self.vectors.vectors,
                rows,
                targets,
                row_of[origins[turn][rows.positions]],
                moved,
                theirs[targets.positions] < 0,
                self.settings.neighbors,
                **self._options,
            )

    def _origin(self, old: SimilarityIndex, before: NDArray[np.int64], name: str, role: int) -> NDArray[np.int64]:
        """Return the position before of each node with the same text and role as then, -1 for the others, ``(n,)``."""
        origin = np.full(len(self.nodes), -1, np.int64)
        now, then = self.vectors.index.get(name), old.vectors.index.get(name)
        if now is not None and then is not None:
            at = np.flatnonzero((before >= 0) & (now >= 0) & (self.facts.role == role))
            at = at[(then[before[at]] >= 0) & (old.facts.role[before[at]] == role)]
            same = self.vectors.hashes[now[at]] == old.vectors.hashes[then[before[at]]]
            origin[at[same]] = before[at[same]]
        return origin

    # -- on disk

    def parts(self) -> Parts:
        """The index as it is saved, without its nodes."""
        parts = Parts(
            meta={
                "settings": self.settings.to_dict(),
                "thresholds": self.thresholds.to_dict(),
                "encoder": self.encoder_name,
                "nodes": _fingerprint(self.nodes),
            }
        )
        for key, table in self.tables.items():
            name = ".".join(map(str, key))
            parts.arrays |= {f"{name}.positions": table.positions, f"{name}.similarities": table.similarities}
        parts.add("vectors", self.vectors.parts())
        return parts

    @classmethod
    def from_bundle(
        cls, bundle: Bundle, nodes: NodeTable, encoder: Any = None, text: NodeText | None = None
    ) -> SimilarityIndex:
        """Open a saved index over its nodes; its arrays stay on disk until they are read.

        Raises
        ------
        InvalidInput
            When the encoder is not the one that the vectors are from.
        CorruptIndex
            When the nodes are not those that the index was saved with.
        """
        meta, encoder = bundle.meta, as_encoder(encoder)
        if encoder is not None and meta["encoder"] not in (None, encoder.name):
            raise InvalidInput(f"encoder: the index was built with {meta['encoder']!r}, not with {encoder.name!r}")
        if meta["nodes"] != _fingerprint(nodes):
            raise CorruptIndex(f"{bundle.folder}: the similarity index belongs to other nodes")
        tables: dict[TableKey, NearestTable] = {}
        for name in bundle.arrays:
            head, _, last = name.rpartition(".")
            if last == "positions":
                kind, signal, turn = head.split(".")
                found = NearestTable(bundle.arrays[name], bundle.arrays[f"{head}.similarities"])
                tables[kind, signal, int(turn)] = found
        settings, thresholds = SimilaritySettings.from_dict(meta["settings"]), Thresholds.from_dict(meta["thresholds"])
        vectors, of = SignalVectors.from_bundle(bundle.sub("vectors")), {"text": text, "encoder": encoder}
        return cls(nodes, settings, vectors, tables, thresholds, encoder_name=meta["encoder"], **of)


def _absent(name: str) -> Encoder:
    """Stands in for the encoder that an index was opened without."""

    def refuse(texts: list[str]) -> Any:
        raise InvalidInput(f"encoder: {len(texts)} texts are new, and the index was opened without {name!r}")

    return CallableEncoder(refuse, name=name)


def _fingerprint(nodes: NodeTable) -> str:
    digest = blake2b(digest_size=8)
    for node_id in nodes.ids:
        digest.update(node_id.encode() + b"\0")
    return digest.hexdigest()
