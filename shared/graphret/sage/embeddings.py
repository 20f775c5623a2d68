"""The embeddings that nodes are compared by: those of their contents, and of every other text once."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from graphret.nodes import NodeTable
from graphret.sage.neighbors import Side
from graphret.sage.signals import CONTENT, Signal, role_of, text_of
from graphret.search.dense import DenseIndex
from graphret.search.vectors import Floats, check_vectors, normalize
from graphret.storage import Bundle, Parts


@dataclass(frozen=True, eq=False)
class Embeddings:
    """The embeddings of the distinct texts of nodes, and which each node has for each field.

    Parameters
    ----------
    vectors
        Unit rows, ``(u, d)``.
    hashes
        64 bits for each text, ``(u,)``; contents differ from other texts.
    rows
        For each field the row of every node's text, -1 where it has none, ``(n,)``.
    """

    vectors: Floats
    hashes: NDArray[np.uint64]
    rows: dict[str, NDArray[np.int32]]

    @classmethod
    def empty(cls) -> Embeddings:
        """No texts of no nodes."""
        return cls(np.zeros((0, 0), np.float32), np.zeros(0, np.uint64), {})

    def changed(
        self, nodes: NodeTable, came_from: NDArray[np.int64], signals: Collection[Signal], dense: DenseIndex
    ) -> Embeddings:
        """Return the embeddings of a changed table: only texts that are new are embedded, all in one call.

        Parameters
        ----------
        came_from
            The position of every node before the change, ``(n,)``; -1 for those that are new or altered.
        signals
            What the nodes are compared by.
        dense
            The embeddings of their contents, and what embeds the other texts.
        """
        wanted = {(s.roles[0], s.left) for s in signals} | {(s.roles[1], s.right) for s in signals}
        rows = {name: np.full(len(nodes), -1, np.int64) for name in sorted({name for _, name in wanted})}
        stay, fresh = np.flatnonzero(came_from >= 0), np.flatnonzero(came_from < 0)
        for name in rows.keys() & self.rows.keys():
            rows[name][stay] = self.rows[name][came_from[stay]]
        places = {value: row for row, value in enumerate(self.hashes.tolist())}
        contents: dict[int, int] = {}  # of a new row the node whose content it is
        texts: dict[int, str] = {}
        for position, node in zip(fresh.tolist(), nodes.at(fresh), strict=True):
            role = role_of(node.labels)
            for name in rows:
                if (role, name) not in wanted or not (value := text_of(node, name, dense.text)):
                    continue
                row = rows[name][position] = places.setdefault(_hash(value, name), len(places))
                if row >= len(self.hashes) and name == CONTENT:
                    contents.setdefault(row, position)
                elif row >= len(self.hashes):
                    texts[row] = value
        vectors = np.zeros((len(places), dense.vectors.shape[1]), np.float32)
        vectors[: len(self.vectors)] = self.vectors.reshape(-1, vectors.shape[1])
        vectors[list(contents)] = dense.vectors[list(contents.values())]
        if texts and dense.encoder is not None:
            embedded = dense.encoder.encode_documents(list(texts.values()))
            vectors[list(texts)] = normalize(check_vectors(embedded, len(texts), vectors.shape[1], what="embedding"))
        used = np.zeros(len(places) + 1, bool)  # the last is that of no text
        for column in rows.values():
            used[column] = True
        used[-1] = False
        moved = np.where(used, np.cumsum(used) - 1, -1).astype(np.int32)
        hashes = np.asarray(list(places), dtype=np.uint64)
        return Embeddings(vectors[used[:-1]], hashes[used[:-1]], {name: moved[column] for name, column in rows.items()})

    def side(self, name: str, bearers: NDArray[np.bool_]) -> Side:
        """Return the nodes among `bearers` that have an embedding for a field."""
        positions = np.flatnonzero(bearers & (self.rows[name] >= 0))
        return Side(positions, self.rows[name][positions].astype(np.int64))

    def parts(self) -> Parts:
        """The embeddings as they are saved."""
        rows = {f"rows.{name}": column for name, column in self.rows.items()}
        return Parts({"vectors": self.vectors, "hashes": self.hashes, **rows})

    @classmethod
    def from_bundle(cls, bundle: Bundle) -> Embeddings:
        """Open saved embeddings."""
        rows = {name.removeprefix("rows."): one for name, one in bundle.arrays.items() if name.startswith("rows.")}
        return cls(bundle.arrays["vectors"], bundle.arrays["hashes"], rows)


def _hash(text: str, field: str) -> int:
    person = b"content" if field == CONTENT else b""
    return int.from_bytes(blake2b(text.encode(), digest_size=8, person=person).digest())
