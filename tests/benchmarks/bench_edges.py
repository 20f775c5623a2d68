"""How long edges take from given embeddings, next to the bare matrix products, and how much memory 100,000 nodes take.

``python -m benchmarks.bench_edges [--n 20000] [--d 384] [--json FILE]``
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import TESTS
from graphret.edges import EdgeTable
from graphret.nodes import NodeTable
from graphret.sage.embedding import signal_texts
from graphret.sage.settings import SimilaritySettings
from graphret.sage.signals import chosen_signals
from graphret.sage.similarity_index import SimilarityIndex
from graphret.types import Node

_BLOCK = 2048
_TOPICS = 200


class _Given:
    """Answers with embeddings that were drawn before: clusters, as texts about a few hundred topics make them."""

    name = "given"

    def __init__(self, n: int, d: int, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        self.dimension = d
        centres = rng.standard_normal((_TOPICS, d), dtype=np.float32)
        vectors = rng.standard_normal((n, d), dtype=np.float32)
        vectors += centres[rng.integers(0, _TOPICS, n)]
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        self.vectors = vectors

    def encode_documents(self, texts: Sequence[str], **options: Any) -> NDArray[np.float32]:
        return self.vectors[: len(texts)]

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
    seconds = 0.0
    for signal in index._cosines():
        left, right = (index.vectors.vectors[side.index] for side in index._sides(signal))
        start = time.perf_counter()
        for i in range(0, len(left), _BLOCK):
            for j in range(0, len(right), _BLOCK):
                a, b = left[i : i + _BLOCK], right[j : j + _BLOCK]
                np.matmul(a, b.T, out=buffer[: len(a) * len(b)].reshape(len(a), len(b)))
        seconds += time.perf_counter() - start
    return seconds


def build(nodes: NodeTable, encoder: _Given) -> tuple[SimilarityIndex, EdgeTable, float]:
    """Build index and edges; return them and the seconds."""
    start = time.perf_counter()
    index = SimilarityIndex.build(nodes, encoder)
    edges = index.edges()
    return index, edges, time.perf_counter() - start


def measure(n: int = 20_000, d: int = 384, *, repeats: int = 3, n_memory: int = 100_000) -> dict[str, Any]:
    """Return medians of seconds, their ratio, and the peak resident memory of building `n_memory` nodes.

    Returns
    -------
    dict
        ``name``; ``rows``: ``{"edges": {"ratio": …, "peak_gib": …}}``, the ratio being that of building all edges to
        the bare products of every signal in full; ``counts``; ``seconds``.
    """
    nodes = corpus(n)
    encoder = _Given(_text_count(nodes), d)
    bare, whole, change = [], [], []
    for _ in range(repeats):
        index, edges, seconds = build(nodes, encoder)
        whole.append(seconds)
        bare.append(bare_products(index))
        start = time.perf_counter()
        index.changed(index.nodes.changed((), set(list(nodes.ids)[: n // 100])), ()).edges()
        change.append(time.perf_counter() - start)
    result: dict[str, Any] = {
        "name": "edges",
        "rows": {"edges": {"ratio": round(float(np.median(whole) / np.median(bare)), 2)}},
        "counts": {
            "nodes": n,
            "dimension": d,
            "candidates": sum(map(len, index.candidates)),
            "edges": len(edges),
        },
        "seconds": {
            "products": round(float(np.median(bare)), 2),
            "edges": round(float(np.median(whole)), 2),
            "one percent removed": round(float(np.median(change)), 2),
        },
    }
    if n_memory:
        command = [
            sys.executable,
            "-m",
            "benchmarks.bench_edges",
            "--once",
            "--n",
            str(n_memory),
            "--d",
            str(d),
        ]
        child = json.loads(subprocess.run(command, cwd=TESTS, check=True, capture_output=True, text=True).stdout)
        result["rows"]["edges"]["peak_gib"] = child["peak_gib"]
        result["counts"] |= {"nodes, memory": n_memory, "edges, memory": child["edges"]}
        result["seconds"]["edges, memory"] = child["seconds"]
    return result


def _text_count(nodes: NodeTable) -> int:
    return len(signal_texts(nodes, chosen_signals(SimilaritySettings().signals)).texts)


def _once(n: int, d: int) -> dict[str, Any]:
    nodes = corpus(n)
    _, edges, seconds = build(nodes, _Given(_text_count(nodes), d))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return {"peak_gib": round(peak / (1 << 30), 2), "edges": len(edges), "seconds": round(seconds, 1)}


def main() -> None:
    """Run the benchmark and print, or write, its JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=20_000)
    parser.add_argument("--d", type=int, default=384)
    parser.add_argument("--n-memory", type=int, default=100_000)
    parser.add_argument("--once", action="store_true", help="build once and print the peak memory")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    found = _once(options.n, options.d) if options.once else measure(options.n, options.d, n_memory=options.n_memory)
    text = json.dumps(found, indent=2)
    if options.json:
        options.json.write_text(text + "\n")
    else:
        print(text)


if __name__ == "__main__":
    main()
