"""The embeddings of the texts that nodes are compared by, and who is near."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from graphret.change import Change
from graphret.executors import LOCAL, Executor
from graphret.numeric import unique
from graphret.sage.neighbors import COLUMNS, Neighbors, Side, changed
from graphret.sage.settings import SimilaritySettings
from graphret.sage.signals import (
    CONTENT,
    SIGNALS,
    Signal,
    role_of,
    roles_of,
    text_of,
)
from graphret.search.dense import DenseIndex
from graphret.search.embedding import embed
from graphret.search.fields import NodeText
from graphret.search.nearest import Products
from graphret.search.vectors import Floats, check_vectors, normalize
from graphret.storage import Bundle, Parts
from graphret.types import Node


@dataclass(frozen=True, eq=False)
class Embeddings:
    """The embeddings of distinct texts, whose nodes have them, and who is near.

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
        change: Change,
        dense: DenseIndex,
        settings: SimilaritySettings,
        executor: Executor = LOCAL,
    ) -> tuple[Embeddings, NDArray[np.int64]]:
        """Return the embeddings after a change, and the nodes whose neighbours changed.

        Only new texts are embedded. `dense` has the embeddings of the nodes' contents,
        and embeds the other texts.
        """
        nodes = change.after
        bare = settings.contents_only or dense.encoder is None
        signals = [s for s in SIGNALS if s.left == s.right == CONTENT or not bare]
        texts = _Texts(self, len(nodes), signals)
        texts.keep(change.came_from)
        for position, node in zip(change.fresh.tolist(), change.nodes, strict=True):
            texts.add(position, node, dense.text)
        embeddings, others = texts.embedded(dense, executor), [change.fresh]
        # a node whose metadata alone are others keeps its neighbours
        reread, role = change.only(texts.differing(change)), roles_of(nodes)
        near = {
            signal: self.neighbors.get((signal.kind, signal.name), Neighbors.joined([]))
            for signal in signals
        }
        again = {signal: near[signal].again(reread) for signal in signals}
        looked_up = unique(reread.fresh, *again.values())
        products = embeddings.products(looked_up)
        for signal in signals:
            embeddings.neighbors[signal.kind, signal.name], differ = changed(
                near[signal],
                embeddings.vectors,
                embeddings.sides(signal, role),
                reread,
                again[signal],
                settings.neighbors,
                executor,
                products,
            )
            others.append(differ)
        return embeddings, unique(*others)

    def texts_of(
        self, positions: NDArray[np.int64]
    ) -> tuple[NDArray[np.uint64], Floats]:
        """Return the hashes and the vectors of the texts that some nodes have."""
        used = self._used(positions)
        return self.hashes[used], self.vectors[used]

    def products(self, positions: NDArray[np.int64]) -> Products | None:
        """Return the products of the texts of a few nodes with all texts."""
        return Products.of(self.vectors, self._used(positions))

    def _used(self, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the rows of the texts that some nodes have, ascending."""
        rows = [column[positions] for column in self.rows.values()]
        used = unique(np.zeros(0, np.int32), *rows)
        return used[used >= 0].astype(np.int64)

    def knowing(self, hashes: NDArray[np.uint64], vectors: Floats) -> Embeddings:
        """Return these embeddings with others at hand, which a change then takes."""
        new = ~np.isin(hashes, self.hashes)
        before = self.vectors.reshape(-1, vectors.shape[1])
        return replace(
            self,
            vectors=np.concatenate([before, vectors[new]]),
            hashes=np.concatenate([self.hashes, hashes[new]]),
        )

    def sides(self, signal: Signal, role: NDArray[np.int8]) -> list[Side]:
        """Return the nodes that a signal compares: two sides, or one that is both."""
        fields = signal.left, signal.right
        sides: list[Side] = []
        for side_role, field in dict.fromkeys(zip(signal.roles, fields, strict=True)):
            rows = self.rows[field]
            positions = np.flatnonzero((role == side_role) & (rows >= 0))
            sides.append(Side(positions, rows[positions].astype(np.int64)))
        return sides

    def parts(self) -> Parts:
        """The embeddings as they are saved."""
        parts = Parts({"vectors": self.vectors, "hashes": self.hashes})
        parts.arrays |= {f"rows.{name}": column for name, column in self.rows.items()}
        for (kind, name), near in self.neighbors.items():
            parts.arrays |= {
                f"near.{kind}.{name}.{column}": getattr(near, column)
                for column in COLUMNS
            }
        return parts

    @classmethod
    def from_bundle(cls, bundle: Bundle) -> Embeddings:
        """Open saved embeddings; the arrays stay on disk until they are read."""
        arrays = bundle.arrays
        rows = {
            name.removeprefix("rows."): column
            for name, column in arrays.items()
            if name.startswith("rows.")
        }
        heads = [
            name.split(".")[1:3]
            for name in arrays
            if name.startswith("near.") and name.endswith(".own")
        ]
        near = {
            (kind, name): Neighbors(
                *(arrays[f"near.{kind}.{name}.{column}"] for column in COLUMNS)
            )
            for kind, name in heads
        }
        return cls(arrays["vectors"], arrays["hashes"], rows, near)


class _Texts:
    """The texts of the nodes of a changed table, each by the row of its embedding.

    Rows of the embeddings before the change stay where they are, new ones follow;
    `embedded` leaves out those that no node has any more.
    """

    def __init__(
        self, before: Embeddings, n_nodes: int, signals: Sequence[Signal]
    ) -> None:
        self.before = before
        #: Which fields are compared, of nodes of each role.
        self.compared: set[tuple[int, str]] = set()
        for signal in signals:
            fields = signal.left, signal.right
            self.compared.update(zip(signal.roles, fields, strict=True))
        #: For each field the row of every node's text, ``(n,)``, -1 for none.
        self.rows = {
            field: np.full(n_nodes, -1, np.int64)
            for field in sorted({field for _, field in self.compared})
        }
        #: The row of each text, by its hash.
        self.row_by_hash = {
            value: row for row, value in enumerate(before.hashes.tolist())
        }
        #: By new row, the node whose content it is, or else the text.
        self.new_contents: dict[int, int] = {}
        self.new_texts: dict[int, str] = {}

    def keep(self, came_from: NDArray[np.int64]) -> None:
        """Take over the texts of the nodes that were there before, unaltered."""
        kept = np.flatnonzero(came_from >= 0)
        for field in self.rows.keys() & self.before.rows.keys():
            self.rows[field][kept] = self.before.rows[field][came_from[kept]]

    def add(self, position: int, node: Node, content: NodeText) -> None:
        """Take the texts of a node that is new or altered."""
        role = role_of(node.labels)
        for field, rows in self.rows.items():
            if (role, field) not in self.compared:
                continue
            text = text_of(node, field, content)
            if not text:
                continue
            row = self.row_by_hash.setdefault(_hash(text, field), len(self.row_by_hash))
            rows[position] = row
            if row < len(self.before.hashes):
                continue
            if field == CONTENT:
                self.new_contents.setdefault(row, position)
            else:
                self.new_texts[row] = text

    def differing(self, change: Change) -> NDArray[np.int64]:
        """Return the fresh nodes that are new, or have another role or text."""
        was = change.origins[change.fresh]
        altered, origins = change.fresh[was >= 0], was[was >= 0]
        differs = roles_of(change.before)[origins] != roles_of(change.after)[altered]
        for field, rows in self.rows.items():
            before = self.before.rows.get(field, np.full(len(change.before), -1))
            differs |= rows[altered] != before[origins]
        return unique(change.fresh[was < 0], altered[differs])

    def embedded(self, dense: DenseIndex, executor: Executor) -> Embeddings:
        """Return the embeddings of the texts that nodes have, with no neighbours yet.

        Those of new contents are `dense`'s own.
        """
        n_rows, dimension = len(self.row_by_hash), dense.vectors.shape[1]
        before = self.before.vectors.reshape(-1, dimension)
        new = np.zeros((n_rows - len(before), dimension), np.float32)
        contents = np.asarray([*self.new_contents], np.int64) - len(before)
        new[contents] = dense.vectors[[*self.new_contents.values()]]
        if self.new_texts and dense.encoder is not None:
            texts = [*self.new_texts.values()]
            found = embed(dense.encoder, texts, executor)
            found = check_vectors(found, len(texts), dimension, what="embedding")
            new[np.asarray([*self.new_texts]) - len(before)] = normalize(found)
        used = np.zeros(n_rows + 1, dtype=bool)
        for rows in self.rows.values():
            used[rows] = True
        used[-1] = False  # there is no text in row -1
        moved = np.where(used, np.cumsum(used) - 1, -1).astype(np.int32)
        hashes = np.asarray([*self.row_by_hash], dtype=np.uint64)
        stay = slice(len(before)) if used[: len(before)].all() else used[: len(before)]
        return Embeddings(
            np.concatenate([before[stay], new]),
            hashes[used[:-1]],
            {field: moved[rows] for field, rows in self.rows.items()},
            {},
        )


def _hash(text: str, field: str) -> int:
    person = b"content" if field == CONTENT else b""
    return int.from_bytes(blake2b(text.encode(), digest_size=8, person=person).digest())
