"""How long edges take from given embeddings, next to the bare matrix products."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.figures import Report
from graphret.nodes import NodeTable
from graphret.sage import SimilaritySettings
from graphret.sage.signals import SIGNALS
from graphret.sage.similarity import SimilarityIndex
from graphret.search.dense import DenseIndex
from graphret.types import Node

_BLOCK = 2048
_TOPICS = 200


class _Drawn:
    """Answers with embeddings that are drawn: clusters, as texts about a few hundred topics make them."""

    name = "drawn"

    def __init__(self, d: int) -> None:
        self.dimension = d
        self.centres = np.random.default_rng(0).standard_normal((_TOPICS, d), dtype=np.float32)

    def encode_documents(self, texts: Sequence[str], **options: Any) -> NDArray[np.float32]:
        rng = np.random.default_rng(1)
        vectors = rng.standard_normal((len(texts), self.dimension), dtype=np.float32)
        return vectors + self.centres[rng.integers(0, _TOPICS, len(texts))]

    encode_queries = encode_documents


def corpus(n: int, seed: int = 0) -> NodeTable:
    """Return `n` nodes, three fifths documents and two fifths tables, every text its own, with 8 entities each."""
    rng = np.random.default_rng(seed)
    entities = np.minimum(rng.zipf(1.3, (n, 8)), n)
    nodes = []
    for i in range(n):
        given: dict[str, Any] = {
            "entities": [f"Name {e}" for e in entities[i].tolist()],
            "topic": f"topic {i}",
            "source_id": f"s{i // 4}",
            "chunk_index": i % 4,
        }
        if i % 5 < 3:
            nodes.append(Node(f"n{i:07d}", ("Document",), f"title {i}", f"text {i}", given))
        else:
            given |= {
                "table_header": [f"column {i}", "year"],
                "table_rows": [[f"Name {e}", "1999"] for e in entities[i]],
            }
            given |= {"title": f"table {i}", "description": f"description {i}", "summary": f"summary {i}"}
            nodes.append(Node(f"n{i:07d}", ("Table",), f"table {i}", f"table text {i}", given))
    return NodeTable.of(nodes)


def bare_products(index: SimilarityIndex) -> float:
    """Return the seconds that the products of all signals take, block by block, nothing read off them."""
    buffer = np.empty(_BLOCK * _BLOCK, np.float32)
    embeddings, seconds = index.embeddings, 0.0
    for signal in SIGNALS:
        if (signal.kind, signal.name) in embeddings.neighbors:
            sides = embeddings.sides(signal, index.role)
            left, right = (embeddings.vectors[side.rows] for side in (sides[0], sides[-1]))
            start = time.perf_counter()
            for i in range(0, len(left), _BLOCK):
                for j in range(0, len(right), _BLOCK):
                    a, b = left[i : i + _BLOCK], right[j : j + _BLOCK]
                    np.matmul(a, b.T, out=buffer[: len(a) * len(b)].reshape(len(a), len(b)))
            seconds += time.perf_counter() - start
    return seconds


def edges(report: Report, n: int, d: int, repeats: int = 3) -> None:
    """The part of the speed benchmark: all edges from embeddings, against the bare products of every signal in full."""
    nodes = corpus(n)
    dense = DenseIndex.build(nodes, _Drawn(d))
    bare, whole = [], []
    for _ in range(repeats):
        start = time.perf_counter()
        index = SimilarityIndex.build(nodes, dense, SimilaritySettings())
        made = index.edges()
        whole.append(time.perf_counter() - start)
        bare.append(bare_products(index))
    products, building = statistics.median(bare), statistics.median(whole)
    what = f"edges of {n:,} nodes from embeddings, against the matrix products alone"
    report.add("edges", what, building / products, target=3.0)
    report.counts |= {"edges/nodes": n, "edges/dimension": d, "edges/edges": len(made)}
    report.seconds |= {"edges/products": products, "edges/edges": building}
