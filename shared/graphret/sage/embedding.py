"""The texts of all signals, each embedded once."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphret.errors import InvalidInput
from graphret.nodes import NodeTable
from graphret.sage.knn import Side
from graphret.sage.signals import Signal, role_of, texts_of
from graphret.search.encoder import Encoder
from graphret.search.fields import NodeText
from graphret.search.vectors import check_vectors, normalize
from graphret.storage import Bundle, Parts
from graphret.types import Node

_CONTENT = "content"


@dataclass(frozen=True, eq=False)
class SignalTexts:
    """The distinct texts of nodes, and which each node has.

    Parameters
    ----------
    texts
        The distinct texts.
    hashes
        64 bits for each, ``(u,)``; contents whose vectors are given differ from other texts.
    index
        For each field the position of every node's text, -1 where it has none, ``(n,)``.
    content_of
        The first node of each text that is a content, -1 for other texts, ``(u,)``.
    """

    texts: list[str]
    hashes: NDArray[np.uint64]
    index: dict[str, NDArray[np.int32]]
    content_of: NDArray[np.int64]


def signal_texts(
    nodes: NodeTable,
    signals: Collection[Signal],
    *,
    text: NodeText | None = None,
    at: NDArray[np.int64] | None = None,
    own_contents: bool = False,
) -> SignalTexts:
    """Return the distinct texts that the cosine signals compare.

    Parameters
    ----------
    at
        The nodes to read, all by default; the others have no text in the result.
    own_contents
        Keep contents apart from other texts, since their vectors are given.
    """
    text = text or NodeText()
    wanted: set[tuple[int, str]] = set()
    for signal in signals:
        if signal.measure == "cosine":
            wanted |= {(signal.roles[0], signal.left), (signal.roles[1], signal.right)}
    seen: dict[tuple[bool, str], int] = {}
    index = {name: np.full(len(nodes), -1, np.int32) for name in sorted({name for _, name in wanted})}
    content_of: list[int] = []
    for position, node in _nodes_at(nodes, at):
        role = role_of(node.labels)
        for name, value in texts_of(node, role, text).items():
            if (role, name) in wanted:
                is_content = own_contents and name == _CONTENT
                code = seen.setdefault((is_content, value), len(seen))
                if code == len(content_of):
                    content_of.append(position if is_content else -1)
                index[name][position] = code
    hashes = np.asarray([_hash(*key) for key in seen], dtype=np.uint64)
    return SignalTexts([value for _, value in seen], hashes, index, np.asarray(content_of, dtype=np.int64))


def _nodes_at(nodes: NodeTable, at: NDArray[np.int64] | None) -> Iterator[tuple[int, Node]]:
    if at is not None and len(at) < len(nodes):
        yield from ((position, nodes[position]) for position in at.tolist())
        return
    columns = zip(nodes.ids, nodes.labels.tolist(), nodes.names, nodes.texts, nodes.properties, strict=True)
    for position, (node_id, labels, *rest) in enumerate(columns):
        yield position, Node(node_id, nodes.label_sets[labels], *rest)


def _hash(is_content: bool, value: str) -> int:
    return int.from_bytes(blake2b(value.encode(), digest_size=8, person=b"content" if is_content else b"").digest())


@dataclass(frozen=True, eq=False)
class SignalVectors:
    """The vectors of the distinct texts, unit rows ``(u, d)`` float32, and which each node has for each field."""

    vectors: NDArray[np.float32]
    hashes: NDArray[np.uint64]
    index: dict[str, NDArray[np.int32]]

    @classmethod
    def build(
        cls,
        nodes: NodeTable,
        signals: Collection[Signal],
        encoder: Encoder | None,
        *,
        content_vectors: NDArray[Any] | None = None,
        text: NodeText | None = None,
    ) -> SignalVectors:
        """Embed the texts of all signals in one call; texts without a vector are as if they were missing."""
        empty = cls(np.zeros((0, 0), np.float32), np.zeros(0, np.uint64), {})
        if encoder is None and content_vectors is None:
            return empty
        every = np.arange(len(nodes), dtype=np.int64)
        return empty.changed(nodes, every, np.full(len(nodes), -1), signals, encoder, content_vectors, text)

    def changed(
        self,
        nodes: NodeTable,
        fresh: NDArray[np.int64],
        came_from: NDArray[np.int64],
        signals: Collection[Signal],
        encoder: Encoder | None,
        content_vectors: NDArray[Any] | None = None,
        text: NodeText | None = None,
    ) -> SignalVectors:
        """Return the vectors of a changed table, embedding only texts that are new; without an encoder they have none.

        Parameters
        ----------
        fresh
            The nodes that are new or altered.
        came_from
            The position of every other node before the change, ``(n,)``; -1 for the fresh.
        content_vectors
            Vectors of the nodes' contents, ``(n, d)``; only those of fresh nodes are read.
        """
        content_vectors = None if content_vectors is None else np.asarray(content_vectors)
        given = content_vectors is not None
        if content_vectors is not None and content_vectors.shape[:1] != (len(nodes),):
            raise InvalidInput(f"content_vectors: {len(nodes)} rows are expected, not {content_vectors.shape}")
        found = signal_texts(nodes, signals, text=text, at=fresh, own_contents=given)
        known = {value: i for i, value in enumerate(self.hashes.tolist())}
        code = np.asarray([known.get(value, -1) for value in found.hashes.tolist()], dtype=np.int64)
        missing = np.flatnonzero(code < 0)
        code[missing] = len(self.hashes) + np.arange(len(missing))
        vectors = self._with(_embed(found, missing, encoder, content_vectors, self.vectors.shape[1]))
        index = {}
        for name in found.index.keys() | self.index.keys():
            before = self.index.get(name, np.full(0, -1, np.int32))
            now = np.where(came_from >= 0, before[came_from] if len(before) else -1, -1).astype(np.int32)
            read = found.index[name][fresh] if name in found.index else np.full(len(fresh), -1, np.int32)
            now[fresh] = np.where(read >= 0, code[read] if len(code) else -1, -1)
            index[name] = now
        hashes = np.concatenate([self.hashes, found.hashes[missing]])
        return SignalVectors(vectors, hashes, index)._compact()

    def _with(self, more: NDArray[np.float32]) -> NDArray[np.float32]:
        if not len(self.vectors) or not len(more):
            return more if not len(self.vectors) else self.vectors
        return np.concatenate([self.vectors, more])

    def _compact(self) -> SignalVectors:
        """Drop texts that no node has, and the absent ones (zero vectors)."""
        used = np.zeros(len(self.hashes), bool)
        for column in self.index.values():
            used[column[column >= 0]] = True
        used &= self.vectors.any(axis=1) if len(self.vectors) else False
        new = np.full(len(used) + 1, -1, np.int32)
        new[:-1][used] = np.arange(int(used.sum()), dtype=np.int32)
        index = {name: new[column] for name, column in sorted(self.index.items())}
        if used.all():
            return SignalVectors(self.vectors, self.hashes, index)
        return SignalVectors(self.vectors[used], self.hashes[used], index)

    def side(self, name: str, bearers: NDArray[np.bool_]) -> Side:
        """Return the nodes among `bearers` that have a vector for a field."""
        column = self.index.get(name)
        if column is None:
            return Side(np.zeros(0, np.int64), np.zeros(0, np.int64))
        positions = np.flatnonzero(bearers & (column >= 0))
        return Side(positions, column[positions].astype(np.int64))

    def parts(self) -> Parts:
        """The vectors as they are saved."""
        arrays: dict[str, NDArray[Any]] = {"vectors": self.vectors, "hashes": self.hashes}
        return Parts(arrays | {f"index.{name}": column for name, column in self.index.items()})

    @classmethod
    def from_bundle(cls, bundle: Bundle) -> SignalVectors:
        """Open saved vectors."""
        names = [name for name in bundle.names() if name.startswith("index.")]
        index = {name.removeprefix("index."): bundle.array(name) for name in names}
        return cls(bundle.array("vectors"), bundle.array("hashes"), index)


def _embed(
    found: SignalTexts,
    missing: NDArray[np.int64],
    encoder: Encoder | None,
    content_vectors: NDArray[Any] | None,
    width: int,
) -> NDArray[np.float32]:
    """Return the vectors of texts: given for contents, embedded for others, zero where there is nobody to embed."""
    firsts = found.content_of[missing]
    told = np.flatnonzero(firsts >= 0)
    asked = np.flatnonzero(firsts < 0)
    parts: list[tuple[NDArray[np.int64], NDArray[Any]]] = []
    if len(told) and content_vectors is not None:
        parts.append((told, content_vectors[firsts[told]]))
    if len(asked) and encoder is not None:
        texts = [found.texts[int(i)] for i in missing[asked]]
        parts.append((asked, np.asarray(encoder.encode_documents(texts))))
    expected = width or None
    checked = []
    for where, vectors in parts:
        unit = normalize(check_vectors(vectors, len(where), expected, what="embedding"))
        expected = unit.shape[1]
        checked.append((where, unit))
    if len(checked) == 1 and len(checked[0][0]) == len(missing):
        return checked[0][1]
    out = np.zeros((len(missing), expected or 0), np.float32)
    for where, unit in checked:
        out[where] = unit
    return out
