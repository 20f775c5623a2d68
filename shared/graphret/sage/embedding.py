"""The texts of all signals, each embedded once."""

from __future__ import annotations

from collections.abc import Collection, Iterable
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
        The first node of each text that is a content with a given vector, -1 for other texts, ``(u,)``.
    """

    texts: list[str]
    hashes: NDArray[np.uint64]
    index: dict[str, NDArray[np.int32]]
    content_of: NDArray[np.int64]


def signal_texts(
    nodes: NodeTable,
    signals: Iterable[Signal],
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
    cosines = [signal for signal in signals if signal.measure == "cosine"]
    wanted = {(s.roles[0], s.left) for s in cosines} | {(s.roles[1], s.right) for s in cosines}
    seen: dict[tuple[bool, str], int] = {}
    index = {name: np.full(len(nodes), -1, np.int32) for name in sorted({name for _, name in wanted})}
    content_of: list[int] = []
    places = range(len(nodes)) if at is None else at.tolist()
    for position, node in zip(places, nodes if at is None else nodes.at(at), strict=True):
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


def _hash(is_content: bool, value: str) -> int:
    return int.from_bytes(blake2b(value.encode(), digest_size=8, person=b"content" if is_content else b"").digest())


@dataclass(frozen=True, eq=False)
class SignalVectors:
    """The vectors of the distinct texts, unit rows ``(u, d)`` float32, and which each node has for each field."""

    vectors: NDArray[np.float32]
    hashes: NDArray[np.uint64]
    index: dict[str, NDArray[np.int32]]

    @classmethod
    def empty(cls) -> SignalVectors:
        """No vectors of no nodes."""
        return cls(np.zeros((0, 0), np.float32), np.zeros(0, np.uint64), {})

    def changed(
        self,
        nodes: NodeTable,
        came_from: NDArray[np.int64],
        signals: Collection[Signal],
        encoder: Encoder | None,
        content_vectors: NDArray[Any] | None = None,
        text: NodeText | None = None,
    ) -> SignalVectors:
        """Return the vectors of a changed table, embedding only texts that are new, all in one call.

        Texts that nobody embeds are as if they were missing.

        Parameters
        ----------
        came_from
            The position of every node before the change, ``(n,)``; -1 for those that are new or altered.
        content_vectors
            Vectors of the nodes' contents, ``(n, d)``; only those of new or altered nodes are read.
        """
        if content_vectors is not None and np.shape(content_vectors)[:1] != (len(nodes),):
            raise InvalidInput(f"content_vectors: {len(nodes)} rows are expected, not {np.shape(content_vectors)}")
        fresh = np.flatnonzero(came_from < 0)
        found = signal_texts(nodes, signals, text=text, at=fresh, own_contents=content_vectors is not None)
        known = {value: i for i, value in enumerate(self.hashes.tolist())}
        code = np.asarray([known.get(value, -1) for value in found.hashes.tolist()], dtype=np.int64)
        missing = np.flatnonzero(code < 0)
        code[missing] = len(known) + np.arange(len(missing))
        more = _embed(found, missing, encoder, content_vectors, self.vectors.shape[1])
        vectors = np.concatenate([self.vectors, more]) if len(self.vectors) and len(more) else more
        vectors = vectors if len(more) else self.vectors
        index = {}
        for name in sorted(found.index.keys() | self.index.keys()):
            index[name] = now = np.full(len(nodes), -1, np.int64)
            if name in self.index:
                now[came_from >= 0] = self.index[name][came_from[came_from >= 0]]
            if name in found.index:
                read = found.index[name][fresh]
                now[fresh] = np.append(code, -1)[read]  # the last for those that have no text
        used = np.zeros(len(vectors) + 1, bool)  # what no node has any more goes, as does what nobody embedded
        for column in index.values():
            used[column] = True
        used[:-1] &= vectors.any(axis=1)
        used[-1] = False
        place = np.where(used, np.cumsum(used) - 1, -1).astype(np.int32)
        hashes = np.concatenate([self.hashes, found.hashes[missing]])
        kept = {name: place[column] for name, column in index.items()}
        return SignalVectors(vectors[used[:-1]], hashes[used[:-1]], kept)

    def side(self, name: str, bearers: NDArray[np.bool_]) -> Side:
        """Return the nodes among `bearers` that have a vector for a field."""
        column = self.index.get(name, np.full(len(bearers), -1))
        positions = np.flatnonzero(bearers & (column >= 0))
        return Side(positions, column[positions].astype(np.int64))

    def parts(self) -> Parts:
        """The vectors as they are saved."""
        arrays: dict[str, NDArray[Any]] = {"vectors": self.vectors, "hashes": self.hashes}
        return Parts(arrays | {f"index.{name}": column for name, column in self.index.items()})

    @classmethod
    def from_bundle(cls, bundle: Bundle) -> SignalVectors:
        """Open saved vectors."""
        names = [name for name in bundle.arrays if name.startswith("index.")]
        index = {name.removeprefix("index."): bundle.arrays[name] for name in names}
        return cls(bundle.arrays["vectors"], bundle.arrays["hashes"], index)


def _embed(
    found: SignalTexts,
    missing: NDArray[np.int64],
    encoder: Encoder | None,
    content_vectors: NDArray[Any] | None,
    width: int,
) -> NDArray[np.float32]:
    """Return the vectors of texts: given for contents, embedded for others, zero where there is nobody to embed."""
    firsts = found.content_of[missing]
    told, asked = np.flatnonzero(firsts >= 0), np.flatnonzero(firsts < 0)
    given: list[tuple[NDArray[np.int64], Any]] = []
    if len(told) and content_vectors is not None:
        given.append((told, np.asarray(content_vectors)[firsts[told]]))
    if len(asked) and encoder is not None:
        given.append((asked, encoder.encode_documents([found.texts[i] for i in missing[asked].tolist()])))
    out = np.zeros((len(missing), width), np.float32)
    for rows, vectors in given:
        unit = normalize(check_vectors(vectors, len(rows), out.shape[1] or None, what="embedding"))
        out = out if out.shape[1] else np.zeros((len(missing), unit.shape[1]), np.float32)
        out[rows] = unit
    return out
