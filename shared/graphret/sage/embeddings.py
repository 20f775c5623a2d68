"""The embeddings that nodes are compared by, those of their contents and of every other
text once, and who is near.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from graphret.executors import LOCAL, Executor
from graphret.nodes import NodeTable
from graphret.sage.neighbors import Neighbors, Side, changed
from graphret.sage.settings import SimilaritySettings
from graphret.sage.signals import CONTENT, SIGNALS, Signal, role_of, text_of
from graphret.search.dense import DenseIndex
from graphret.search.embedding import embed
from graphret.search.vectors import Floats, check_vectors, normalize
from graphret.storage import Bundle, Parts


@dataclass(frozen=True, eq=False)
class Embeddings:
    """The embeddings of the distinct texts of nodes, which each node has for each
    field, and its nearest neighbours.

    `vectors` are unit rows, ``(u, d)``, and `hashes` 64 bits for the text of each,
    contents apart from other texts; `rows` has for each field the row of every node's
    text, ``(n,)``, -1 where it has none; `neighbors` are by kind of pair and signal.
    """

    vectors: Floats
    hashes: NDArray[np.uint64]
    rows: dict[str, NDArray[np.int32]]
    neighbors: dict[tuple[str, str], Neighbors]

    @classmethod
    def empty(cls) -> Embeddings:
        """No texts of no nodes."""
        return cls(np.zeros((0, 0), np.float32), np.zeros(0, np.uint64), {}, {})

    def changed(
        self,
        nodes: NodeTable,
        came_from: NDArray[np.int64],
        dense: DenseIndex,
        settings: SimilaritySettings,
        executor: Executor = LOCAL,
    ) -> Embeddings:
        """Return the embeddings of a changed table: only texts that are new are
        embedded.

        `came_from` has the position of every node before the change, ``(n,)``, -1 for
        those that are new or altered; `dense` the embeddings of their contents, and
        what embeds the other texts.
        """
        bare = settings.contents_only or dense.encoder is None
        signals = [s for s in SIGNALS if s.left == s.right == CONTENT or not bare]
        wanted = {(s.roles[0], s.left) for s in signals} | {
            (s.roles[1], s.right) for s in signals
        }
        rows = {
            name: np.full(len(nodes), -1, np.int64)
            for name in sorted({name for _, name in wanted})
        }
        stay, new = np.flatnonzero(came_from >= 0), np.flatnonzero(came_from < 0)
        for name in rows.keys() & self.rows.keys():
            rows[name][stay] = self.rows[name][came_from[stay]]
        places = {value: row for row, value in enumerate(self.hashes.tolist())}
        contents: dict[int, int] = {}  # of a new row the node whose content it is
        texts: dict[int, str] = {}
        for position, node in zip(new.tolist(), nodes.at(new), strict=True):
            for name in rows:
                if (role_of(node.labels), name) not in wanted or not (
                    value := text_of(node, name, dense.text)
                ):
                    continue
                row = rows[name][position] = places.setdefault(
                    _hash(value, name), len(places)
                )
                if row >= len(self.hashes) and name == CONTENT:
                    contents.setdefault(row, position)
                elif row >= len(self.hashes):
                    texts[row] = value
        vectors = np.zeros((len(places), dense.vectors.shape[1]), np.float32)
        vectors[: len(self.vectors)] = self.vectors.reshape(-1, vectors.shape[1])
        vectors[list(contents)] = dense.vectors[list(contents.values())]
        if texts and dense.encoder is not None:
            embedded = embed(dense.encoder, list(texts.values()), executor)
            vectors[list(texts)] = normalize(
                check_vectors(embedded, len(texts), vectors.shape[1], what="embedding")
            )
        used = np.isin(
            np.arange(len(places)),
            np.concatenate([np.zeros(0, np.int64), *rows.values()]),
        )
        moved = np.append(np.where(used, np.cumsum(used) - 1, -1), -1).astype(
            np.int32
        )  # the last is that of no text
        now = {name: moved[column] for name, column in rows.items()}
        found = Embeddings(
            vectors[used], np.asarray(list(places), dtype=np.uint64)[used], now, {}
        )
        role = np.asarray([role_of(labels) for labels in nodes.label_sets])[
            nodes.labels
        ]
        for signal in signals:
            sides = found.sides(signal, role)
            old = self.neighbors.get((signal.kind, signal.name), Neighbors.joined([]))
            near = changed(
                old, found.vectors, sides, came_from, settings.neighbors, executor
            )
            found.neighbors[signal.kind, signal.name] = near
        return found

    def sides(self, signal: Signal, role: NDArray[np.int8]) -> list[Side]:
        """Return the nodes that a signal compares, by the embeddings they have: two
        sides, or one that is both.
        """
        sides = []
        for name, own in dict.fromkeys(
            zip((signal.left, signal.right), signal.roles, strict=True)
        ):
            positions = np.flatnonzero((role == own) & (self.rows[name] >= 0))
            sides.append(Side(positions, self.rows[name][positions].astype(np.int64)))
        return sides

    def parts(self) -> Parts:
        """The embeddings as they are saved."""
        parts = Parts({"vectors": self.vectors, "hashes": self.hashes})
        parts.arrays |= {f"rows.{name}": column for name, column in self.rows.items()}
        for (kind, name), near in self.neighbors.items():
            parts.arrays |= {
                f"near.{kind}.{name}.{column}": getattr(near, column)
                for column in _COLUMNS
            }
        return parts

    @classmethod
    def from_bundle(cls, bundle: Bundle) -> Embeddings:
        """Open saved embeddings; the arrays stay on disk until they are read."""
        arrays = bundle.arrays
        rows = {
            name.removeprefix("rows."): one
            for name, one in arrays.items()
            if name.startswith("rows.")
        }
        heads = [
            name.split(".")[1:3]
            for name in arrays
            if name.startswith("near.") and name.endswith(".own")
        ]
        near = {
            (k, name): Neighbors(
                *(arrays[f"near.{k}.{name}.{column}"] for column in _COLUMNS)
            )
            for k, name in heads
        }
        return cls(arrays["vectors"], arrays["hashes"], rows, near)


_COLUMNS = ("own", "other", "similarity")


def _hash(text: str, field: str) -> int:
    person = b"content" if field == CONTENT else b""
    return int.from_bytes(blake2b(text.encode(), digest_size=8, person=person).digest())
