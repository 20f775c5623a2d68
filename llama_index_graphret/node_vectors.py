"""The embeddings that LlamaIndex gives the nodes of a property graph, as an index."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from graphret.errors import InvalidInput
from graphret.nodes import NodeTable
from graphret.search.dense import DenseIndex
from graphret.search.index import Matches
from graphret.stores.base import GraphStore
from graphret.types import Node
from graphret.where import WhereLike

_QUERY = "\0given"


class NodeVectors:
    """Search over the embeddings that nodes keep in a property, read from the store when they are first asked for.

    Parameters
    ----------
    store
        Where the nodes are.
    key
        The property that holds the embedding.
    """

    def __init__(self, store: GraphStore, key: str) -> None:
        self.store = store
        self.key = key
        self._index: DenseIndex | None = None
        self._lock = threading.Lock()

    def forget(self) -> None:
        """Read the embeddings anew when they are next asked for."""
        with self._lock:
            self._index = None

    def search(self, embedding: Sequence[float], k: int, where: WhereLike = None) -> Matches:
        """Return the `k` nodes whose embeddings are nearest by cosine among those that satisfy `where`."""
        with self._lock:
            if self._index is None:
                self._index = self._read()
            index = self._index
        if not len(index.table):
            return Matches([], np.zeros(0, dtype=np.float32))
        return index.with_query(_QUERY, embedding).search(_QUERY, k, where=where)

    def _read(self) -> DenseIndex:
        nodes: dict[str, Node] = {}
        vectors: dict[str, Any] = {}
        width: int | None = None
        for block in self.store.nodes(where={self.key: {"$exists": True}}):
            for node in block:
                vector = np.asarray(node.properties[self.key], dtype=np.float32)
                if vector.ndim != 1 or (width is not None and len(vector) != width):
                    raise InvalidInput(f"node {node.id!r}: its embedding has {vector.size} numbers, others {width}")
                width, vectors[node.id] = len(vector), vector
                rest = {key: value for key, value in node.properties.items() if key != self.key}
                nodes[node.id] = replace(node, properties=rest)
        table = NodeTable.of(nodes.values())
        rows = np.asarray([vectors[node_id] for node_id in table.ids], dtype=np.float32)
        return DenseIndex.build(table, None, vectors=rows.reshape(len(table), width or 0))
