"""What tests of several folders share."""

from __future__ import annotations

import hashlib
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphret.sage import SageGraph


class HashingEncoder:
    """Embeds a text as the sum of a fixed random vector for each of its words: real cosines, no model."""

    name = "hashing-48"
    dimension = 48

    def __init__(self) -> None:
        self.encoded: list[str] = []

    def encode_queries(self, texts: list[str]) -> NDArray[np.float32]:
        return np.stack([self._embed(text) for text in texts]) if texts else np.zeros((0, self.dimension), np.float32)

    def encode_documents(self, texts: list[str], *, progress: object = None) -> NDArray[np.float32]:
        self.encoded.extend(texts)
        return self.encode_queries(texts)

    def _embed(self, text: str) -> NDArray[np.float32]:
        total = np.zeros(self.dimension)
        for word in text.lower().split():
            total += _vector_of(word, self.dimension)
        norm = np.linalg.norm(total)
        return (total / norm if norm else total).astype(np.float32)


@cache
def _vector_of(word: str, dimension: int) -> NDArray[np.float64]:
    seed = int.from_bytes(hashlib.blake2b(word.encode(), digest_size=8).digest(), "big")
    return np.random.default_rng(seed).standard_normal(dimension)


def edges_of(graph: SageGraph) -> list[dict[str, Any]]:
    """Every edge as values that compare."""
    return [edge.to_dict() for edge in graph.edges.edges(graph.nodes.ids)]
