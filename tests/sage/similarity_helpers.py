"""What the tests of the similarity graph share: an encoder without a model, and small corpora."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphret.edges import EdgeTable
from graphret.nodes import NodeTable
from graphret.sage.similarity_index import SimilarityIndex
from graphret.types import Node


class HashEncoder:
    """Adds up a fixed vector for every word; counts its calls and texts."""

    name = "hash"
    dimension = 32

    def __init__(self) -> None:
        self.calls = 0
        self.texts: list[str] = []

    def encode_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.calls += 1
        self.texts += texts
        return np.asarray([self._vector(text) for text in texts], dtype=np.float32).reshape(-1, self.dimension)

    encode_queries = encode_documents

    def _vector(self, text: str) -> NDArray[np.float64]:
        words = [np.random.default_rng(zlib.crc32(w.encode())).standard_normal(self.dimension) for w in text.split()]
        total = np.sum(words, axis=0) if words else np.zeros(self.dimension)
        return total / (np.linalg.norm(total) or 1.0)


def document(id_: str, text: str, topic: str = "", entities: Sequence[str] = (), **properties: Any) -> Node:
    return Node(id_, ("Document",), "", text, {"topic": topic, "entities": list(entities), **properties})


def table(
    id_: str,
    title: str,
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    entities: Sequence[str] = (),
    **properties: Any,
) -> Node:
    given = {"table_header": list(header), "table_rows": [list(row) for row in rows], "entities": list(entities)}
    return Node(id_, ("Table",), title, title, {"title": title, **given, **properties})


def record(id_: str, name: str, text: str, entities: Sequence[str] = ()) -> Node:
    return Node(id_, ("Product",), name, text, {"entities": list(entities)})


def as_set(edges: EdgeTable, nodes: NodeTable) -> list[tuple[Any, ...]]:
    """Edges as values that compare."""
    return [
        (e.source, e.relation, e.target, round(e.weight, 6), repr(sorted(e.properties.items())))
        for e in edges.edges(nodes.ids)
    ]


def added(index: SimilarityIndex, nodes: Sequence[Node], content_vectors: Any = None) -> SimilarityIndex:
    """The index with nodes added or replaced; `content_vectors` are theirs, in their order."""
    table, ids, whole = index.nodes.changed(nodes), [node.id for node in nodes], None
    if content_vectors is not None:
        whole = np.zeros((len(table), np.shape(content_vectors)[1]), np.float32)
        whole[table.positions(ids)] = content_vectors
    return index.changed(table, ids, content_vectors=whole)


def removed(index: SimilarityIndex, ids: Sequence[str]) -> SimilarityIndex:
    """The index without some nodes."""
    return index.changed(index.nodes.changed((), set(ids)), ())
