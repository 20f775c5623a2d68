"""The parts of the speed benchmark; each adds its figures to a report."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import synthetic
from benchmarks.figures import Report, peak_memory, timed
from graphret.corpus import Document, read
from graphret.expansion import RANKINGS, Expand
from graphret.expansion.frontier import Frontier
from graphret.nodes import NodeTable
from graphret.sage import SageGraph, SimilaritySettings
from graphret.sage.similarity import SimilarityIndex
from graphret.search.dense import DenseIndex
from graphret.search.encoder import default_encoder
from graphret.search.hybrid import HybridIndex
from graphret.stores.memory import MemoryStore
from graphret.types import Node

N = 20_000
K = 20
DIMENSION = 384
QUESTIONS = 200
#: So often each import is timed.
IMPORTS = 9


def imports(report: Report) -> None:
    """``import graphret`` next to ``import numpy``, in fresh processes taking turns."""

    def once(statement: str) -> float:
        code = (
            f"import time; t = time.perf_counter(); {statement};"
            " print(time.perf_counter() - t)"
        )
        return float(
            subprocess.run(
                [sys.executable, "-c", code], check=True, capture_output=True, text=True
            ).stdout
        )

    statements = ("import graphret", "from graphret import SageGraph", "import numpy")
    rounds = [[once(statement) for statement in statements] for _ in range(IMPORTS)]
    medians = [statistics.median(column) for column in zip(*rounds, strict=True)]
    report.add(
        "import",
        "`import graphret` against `import numpy`",
        medians[0] / medians[2],
        target=2.0,
    )
    report.add(
        "import SageGraph",
        "`from graphret import SageGraph`, the same",
        medians[1] / medians[2],
    )


def edges(report: Report, n: int = N) -> None:
    """Edges from given embeddings, which are clustered.

    Texts about a few hundred topics make such clusters.
    """
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((200, DIMENSION), dtype=np.float32)
    vectors = (
        rng.standard_normal((n, DIMENSION), dtype=np.float32)
        + centres[rng.integers(0, len(centres), n)]
    )
    entities = np.minimum(rng.zipf(1.3, (n, 8)), n).tolist()
    nodes = NodeTable.of(
        Node(
            f"n{i:07d}",
            ("Document",),
            text=f"text {i}",
            properties={"entities": [f"Name {e}" for e in entity_ids]},
        )
        for i, entity_ids in enumerate(entities)
    )
    dense, built = DenseIndex.build(nodes, None, vectors=vectors), []
    seconds = timed(
        lambda: built.append(
            SimilarityIndex.build(nodes, dense, SimilaritySettings())[1].edges
        )
    )
    report.counts |= {
        "edges/nodes": n,
        "edges/dimension": DIMENSION,
        "edges/edges": len(built[0]),
    }
    report.add(
        "edges",
        f"similarity edges of {n:,} nodes from embeddings",
        seconds,
        unit="s",
        target=30.0,
    )


def encoder(report: Report, n: int = 192, rounds: int = 3) -> None:
    """The embedding rate next to plain sentence-transformers, on one warm model.

    The figure is the median of the rounds' ratios.
    """
    ours = default_encoder()
    texts = [item.text for item in _items() if isinstance(item, Document)][:n]
    mixed = [
        text * (1 + i % 4) for i, text in enumerate(texts)
    ]  # texts of different lengths, as in a corpus
    ours.encode_documents(mixed[:9])
    sides = [
        lambda: ours.loaded().encode(mixed, show_progress_bar=False),
        lambda: ours.encode_documents(mixed),
    ]
    seconds = [[timed(side) for side in sides] for _ in range(rounds)]
    what = "texts per second, against `SentenceTransformer.encode`"
    ratio = statistics.median(plain / own for plain, own in seconds)
    report.add("encoder", what, ratio, target=1.15, at_least=True)
    report.counts["encoder/texts"] = n


def build(report: Report) -> None:
    """A graph without encoder, from files to files."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "corpus.jsonl")
        kept = {"id", "title", "text", "section", "header", "rows"}
        with source.open("w", encoding="utf-8") as file:
            for item in _items():
                file.write(
                    json.dumps(
                        {
                            key: value
                            for key, value in asdict(item).items()
                            if key in kept
                        }
                    )
                    + "\n"
                )
        rounds = []
        for _ in range(3):
            start = time.perf_counter()
            graph = SageGraph.build(read([source]), encoder=None)
            graph.save(Path(folder, "graph"))
            rounds.append(time.perf_counter() - start)
    report.counts |= {"build/nodes": len(graph), "build/edges": len(graph.edges)}
    seconds = statistics.median(rounds)
    report.add(
        "build",
        f"`build` of {N:,} nodes from files, no encoder",
        seconds,
        unit="s",
        target=30.0,
    )


def expansion(report: Report) -> None:
    """One expansion, without and with the search for seeds.

    The question's embedding is given.
    """
    graph, index, questions = _graph()
    store = MemoryStore(graph.state.graph)
    limits = {"coverage": 5.0, "propagate": 1.0, "paper": 1.0}
    for name, make in RANKINGS.items():
        expand = Expand(None, store, index, ranking=make())
        alone, total = [], []
        for question in questions:
            _forget(index)
            total.append(timed(partial(expand.retrieve, question, K)))
            seeds = index.top(question, expand.ranking.n_seeds(K))
            start = time.perf_counter()
            ranked = expand.ranking.rank(
                Frontier(question, graph.state.graph, index, seeds), K
            )
            graph.nodes.at(ranked.positions[:K])
            alone.append(time.perf_counter() - start)
        first, second = (
            1000 * statistics.median(seconds[20:]) for seconds in (alone, total)
        )  # caches warm up
        what = f"one expansion, `{name}`, {N:,} nodes, top {K}"
        report.add(f"expansion {name}", what, first, unit="ms", target=limits.get(name))
        report.add(
            f"expansion {name} with seeds",
            f"the same, including the search for seeds, `{name}`",
            second,
            unit="ms",
        )
    counted = {
        "nodes": len(graph),
        "edges": len(graph.edges),
        "questions": len(questions),
    }
    report.counts |= {f"expansion/{name}": n for name, n in counted.items()}


def scale(
    report: Report, small: int = 10_000, large: int = 1_000_000, degree: int = 10
) -> None:
    """One expansion in a graph a hundred times as large."""
    seconds: dict[int, dict[str, float]] = {}
    questions = synthetic.array_questions(60)
    for n in (small, large):
        graph, index = synthetic.arrays(n, degree)
        spent: dict[str, list[float]] = {name: [] for name in RANKINGS}
        for question in questions:
            index.scores(question)
            for name, make in RANKINGS.items():
                ranking = make()
                frontier = Frontier(
                    question, graph, index, index.top(question, ranking.n_seeds(K))
                )
                ranking.rank(frontier, K)
                start = time.perf_counter()
                ranked = ranking.rank(frontier, K)
                graph.nodes.at(ranked.positions[:K])
                spent[name].append(time.perf_counter() - start)
        seconds[n] = {name: statistics.median(values) for name, values in spent.items()}
        report.counts |= {
            f"scale/nodes, {n:,}": len(graph.nodes),
            f"scale/edges, {n:,}": len(graph.edges),
        }
        del graph, index
    for name in RANKINGS:
        what = (
            f"one expansion over {large:,} nodes and {large * degree:,} edges against"
            f" {small:,} nodes, `{name}`"
        )
        report.add(
            f"scale {name}",
            what,
            seconds[large][name] / seconds[small][name],
            target=3.0,
        )
    report.add(
        "scale memory",
        "peak memory of this process with that graph",
        peak_memory() / (1 << 30),
        unit="GiB",
        target=24.0,
    )


def _forget(index: HybridIndex) -> None:
    for cache in (index, index.lexical, index.dense):
        if cache is not None:
            cache.forget()


@lru_cache(maxsize=1)
def _items() -> list[Any]:
    return synthetic.items(N)


@lru_cache(maxsize=1)
def _graph() -> tuple[SageGraph, HybridIndex, Sequence[str]]:
    """A graph of the synthetic corpus, an index with random vectors, and questions.

    The questions have random vectors too.
    """
    graph = SageGraph.build(_items(), encoder=None, chunker=None)
    rng = np.random.default_rng(0)
    vectors = rng.standard_normal((len(graph), DIMENSION)).astype(np.float32)
    dense = DenseIndex.build(graph.nodes, None, vectors=vectors)
    questions = synthetic.questions(_items(), QUESTIONS)
    for question in questions:
        dense.remember(question, rng.standard_normal(DIMENSION))
    return graph, HybridIndex(graph.index.lexical, dense), questions
