"""`SimilarityIndex`: what the similarity half of a SAGE graph is computed from, kept so that it can be changed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
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
from graphret.sage.knn import NearestTable, Side, nearest_both, nearest_nodes, updated
from graphret.sage.overlap import OverlapPairs, overlap_pairs
from graphret.sage.settings import SimilaritySettings, Thresholds
from graphret.sage.signals import PAIR_KINDS, ROLES, Signal, chosen_signals
from graphret.sage.similarity import Candidates, evaluate, fit_thresholds, overlap_tables, similarity_tables
from graphret.sage.structure import structure_edges
from graphret.sage.tables import TableDetails
from graphret.search.encoder import Encoder, as_encoder
from graphret.search.fields import NodeText
from graphret.storage import Bundle, Parts
from graphret.types import Edge, Node

#: A table of neighbours: kind of pair, signal, and whose neighbours: 0 for the left side, 1 for the right.
TableKey: TypeAlias = tuple[str, str, int]


class SimilarityIndex:
    """Vectors, tables of nearest neighbours and thresholds over a table of nodes (SAGE, section 2.1 B).

    Never changed once made. An index after `changed`, `added` or `removed` has the edges of one that was built with all
    its nodes and the same thresholds, as long as the search is exact (`SimilaritySettings.hnsw_above`).
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
        settings, encoder = settings or SimilaritySettings(), as_encoder(encoder) if encoder is not None else None
        signals = chosen_signals(settings.signals)
        vectors = SignalVectors.build(nodes, signals, encoder, content_vectors=content_vectors, text=text)
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
        return join(
            len(self.nodes),
            [
                *similarity_tables(self.nodes, self.candidates, self.thresholds, self.settings, self.facts, details),
                *overlap_tables(self.nodes, self.overlap, self.thresholds, self.facts, details),
                structure_edges(self.nodes, explicit, facts=self.facts),
            ],
        )

    def refit(self) -> SimilarityIndex:
        """Return the same index with thresholds fitted to the nodes it has now."""
        return self._with(self.nodes, self.vectors, self.tables, {})

    # -- change

    def added(self, nodes: Iterable[Node], *, content_vectors: NDArray[Any] | None = None) -> SimilarityIndex:
        """Return the index with nodes added or replaced, and the same thresholds.

        Parameters
        ----------
        content_vectors
            Vectors of the contents of `nodes`, in their order.
        """
        nodes = list(nodes)
        table = self.nodes.changed(nodes)
        whole = None
        if content_vectors is not None:
            whole = np.zeros((len(table), np.shape(content_vectors)[1]), np.float32)
            whole[table.positions([node.id for node in nodes])] = content_vectors
        return self.changed(table, [node.id for node in nodes], content_vectors=whole)

    def removed(self, ids: Iterable[str]) -> SimilarityIndex:
        """Return the index without some nodes, and the same thresholds; unknown ids are ignored."""
        return self.changed(self.nodes.changed((), set(ids)), ())

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
        again = set(fresh)
        before = self.nodes.find(nodes.ids)
        same = np.asarray([i not in again for i in nodes.ids], dtype=bool) & (before >= 0)
        new = np.flatnonzero(~same)
        vectors = self.vectors
        if self.encoder is not None or content_vectors is not None or vectors.index:
            came_from = np.where(same, before, -1)
            signals = chosen_signals(self.settings.signals)
            encoder = self.encoder or _absent(self.encoder_name)
            vectors = vectors.changed(nodes, new, came_from, signals, encoder, content_vectors, self.text)
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
        return SimilarityIndex(
            nodes,
            self.settings,
            vectors,
            tables,
            thresholds,
            text=self.text,
            encoder=self.encoder,
            encoder_name=self.encoder_name,
        )

    # -- tables of neighbours

    def _cosines(self) -> list[Signal]:
        if not self.vectors.index:
            return []
        return [s for s in chosen_signals(self.settings.signals) if s.measure == "cosine"]

    def _sides(self, signal: Signal) -> tuple[Side, Side]:
        left, right = (
            self.vectors.side(name, self.facts.role == role)
            for name, role in zip((signal.left, signal.right), signal.roles, strict=True)
        )
        symmetric = signal.left == signal.right and signal.roles[0] == signal.roles[1]
        return left, left if symmetric else right

    @property
    def _options(self) -> dict[str, int]:
        return {"block_mb": self.settings.block_mb, "hnsw_above": self.settings.hnsw_above}

    def _find(self, signal: Signal) -> None:
        left, right = self._sides(signal)
        m, key = self.settings.neighbors, (signal.kind, signal.name)
        if left is right:
            self.tables[*key, 0] = nearest_nodes(self.vectors.vectors, left, left, m, **self._options)
        else:
            both = nearest_both(self.vectors.vectors, left, right, m, **self._options)
            self.tables[*key, 0], self.tables[*key, 1] = both

    def _update(self, signal: Signal, old: SimilarityIndex, before: NDArray[np.int64]) -> None:
        """Bring the tables of a signal over from an older index; `before` has each node's position there or -1."""
        sides, old_sides = self._sides(signal), old._sides(signal)
        origins = [
            self._origin(old, before, name, role)
            for name, role in zip((signal.left, signal.right), signal.roles, strict=True)
        ]
        for turn in range(1 if sides[0] is sides[1] else 2):
            key = (signal.kind, signal.name, turn)
            if key not in old.tables:
                self._find(signal)
                return
            rows, targets = sides[turn], sides[1 - turn]
            row_of = np.full(len(old.nodes) + 1, -1, np.int64)
            row_of[old_sides[turn].positions] = np.arange(len(old_sides[turn]))
            moved = np.full(len(old.nodes), -1, np.int64)
            kept = np.flatnonzero(origins[1 - turn] >= 0)
            moved[origins[1 - turn][kept]] = kept
            self.tables[key] = updated(
                old.tables[key],
                self.vectors.vectors,
                rows,
                targets,
                row_of[origins[turn][rows.positions]],
                moved,
                origins[1 - turn][targets.positions] < 0,
                self.settings.neighbors,
                **self._options,
            )

    def _origin(self, old: SimilarityIndex, before: NDArray[np.int64], name: str, role: int) -> NDArray[np.int64]:
        """Return the position before of each node with the same text and role as then, -1 for the others, ``(n,)``."""
        now, then = self.vectors.index.get(name), old.vectors.index.get(name)
        if now is None or then is None or not len(then):
            return np.full(len(self.nodes), -1, np.int64)
        earlier = then[before]
        same = (before >= 0) & (now >= 0) & (earlier >= 0)
        same &= (self.facts.role == role) & (old.facts.role[before] == role)
        at = np.flatnonzero(same)
        same[at] = self.vectors.hashes[now[at]] == old.vectors.hashes[earlier[at]]
        return np.where(same, before, -1)

    def _pairs(self, kind: str) -> NDArray[np.int64]:
        """Return the candidate pairs of a kind as ascending ``low * n + high``."""
        n = len(self.nodes)
        roles = PAIR_KINDS[kind]
        mine = self.overlap.at(self.overlap.kind == min(roles) * len(ROLES) + max(roles))
        keys = [mine.low * n + mine.high]
        for signal in self._cosines():
            if signal.kind != kind:
                continue
            sides = self._sides(signal)
            for turn in (0, 1):
                table = self.tables.get((kind, signal.name, turn))
                if table is not None:
                    rows, others = table.pairs()
                    rows = sides[turn].positions[rows]
                    keys.append(np.minimum(rows, others) * n + np.maximum(rows, others))
        distinct = np.concatenate(keys)
        distinct.sort()
        distinct = distinct[np.flatnonzero(np.diff(distinct, prepend=-1))]
        if self.settings.within_source or not n:
            return distinct
        return distinct[~self.facts.same_source(*np.divmod(distinct, n))]

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
        for (kind, name, turn), table in self.tables.items():
            parts.arrays[f"{kind}.{name}.{turn}.positions"] = table.positions
            parts.arrays[f"{kind}.{name}.{turn}.similarities"] = table.similarities
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
        meta = bundle.meta
        encoder = as_encoder(encoder) if encoder is not None else None
        if encoder is not None and meta["encoder"] not in (None, encoder.name):
            raise InvalidInput(f"encoder: the index was built with {meta['encoder']!r}, not with {encoder.name!r}")
        if meta["nodes"] != _fingerprint(nodes):
            raise CorruptIndex(f"{bundle.folder}: the similarity index belongs to other nodes")
        tables: dict[TableKey, NearestTable] = {}
        for name in bundle.names():
            if name.endswith(".positions"):
                kind, signal, turn, _ = name.split(".")
                head = name.removesuffix(".positions")
                tables[kind, signal, int(turn)] = NearestTable(bundle.array(name), bundle.array(f"{head}.similarities"))
        return cls(
            nodes,
            SimilaritySettings.from_dict(meta["settings"]),
            SignalVectors.from_bundle(bundle.sub("vectors")),
            tables,
            Thresholds.from_dict(meta["thresholds"]),
            text=text,
            encoder=encoder,
            encoder_name=meta["encoder"],
        )


class _Absent:
    """Stands in for an encoder that an index was opened without."""

    def __init__(self, name: str) -> None:
        self.name = name

    def encode_documents(self, texts: Sequence[str], **options: Any) -> NDArray[np.float32]:
        raise InvalidInput(f"encoder: {len(texts)} texts are new, and the index was opened without {self.name!r}")

    encode_queries = encode_documents


def _absent(name: str | None) -> Any:
    return None if name is None else _Absent(name)


def _fingerprint(nodes: NodeTable) -> str:
    digest = blake2b(digest_size=8)
    for node_id in nodes.ids:
        digest.update(node_id.encode() + b"\0")
    return digest.hexdigest()
