"""A build on two local Ray workers against one process, and the driver's share."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from benchmarks import synthetic
from benchmarks.figures import Report, timed
from graphret.corpus import Document, to_nodes
from graphret.executors import LOCAL, Executor, LocalExecutor, RayExecutor, blocks
from graphret.sage import SageGraph
from graphret.search.embedding import embed
from graphret.search.encoder import default_encoder
from graphret.search.nearest import _saved_graph, _Search

N, TEXTS, ROUNDS = 20_000, 2_048, 2
DIMENSION = 384
_STORE = 1 << 30


def build(report: Report) -> None:
    """Build 20,000 embedded nodes here, on a cluster, and from finished blocks."""
    nodes, vectors = _given(N)
    started: list[RayExecutor] = []
    with tempfile.TemporaryDirectory() as folder:
        start_up = timed(
            lambda: started.append(RayExecutor(num_cpus=2, object_store_memory=_STORE))
        )
        keeping = RayExecutor(blocks=folder)
        local, cluster, driver, counting = [], [], [], _Counting()
        for nth in range(ROUNDS):
            local.append(timed(lambda: _built(nodes, vectors, LOCAL)))
            cluster.append(
                timed(
                    lambda n=nth: _built(
                        nodes, vectors, keeping if n == 0 else started[0]
                    )
                )
            )  # type: ignore[misc]
            driver.append(timed(lambda: _built(nodes, vectors, keeping)))
        edges = _built(nodes, vectors, counting)
    _shut_down()
    report.counts |= {"ray/nodes": N, "ray/edges": edges, "ray/blocks": counting.blocks}
    ratio = statistics.median(cluster) / statistics.median(local)
    report.add(
        "ray build",
        f"Ray, 2 local workers: the build of {N:,} nodes against one process",
        ratio,
        target=1.5,
    )
    report.add(
        "ray one process", "the same in one process", statistics.median(local), unit="s"
    )
    report.add("ray start-up", "starting Ray, not included", start_up, unit="s")
    what = "the driver's time per node: a build from finished blocks"
    report.add("ray driver", what, 1e6 * statistics.median(driver) / N, unit="µs")
    per_node = 1e6 * sum(counting.seconds.values()) / N
    report.add(
        "ray workers",
        "the workers' time per node: metadata, links, exact neighbours",
        per_node,
        unit="µs",
    )
    for name, seconds in counting.seconds.items():
        report.notes.append(f"ray: {name}: {1e6 * seconds / N:.0f} µs a node")


def embedding(report: Report) -> None:
    """Texts a second of two workers against one process on both cores."""
    texts = [item.text for item in synthetic.items(TEXTS) if isinstance(item, Document)]
    encoder = default_encoder()
    executor, rates = (
        RayExecutor(num_cpus=2, object_store_memory=_STORE),
        dict[str, list[float]](),
    )
    for on in (LOCAL, executor):  # models are loaded
        embed(
            encoder if on is LOCAL else default_encoder(),
            [f"{i}" for i in range(4 * blocks.BLOCK)],
            on,
        )
    fresh = default_encoder()
    for _ in range(ROUNDS):
        for name, on, one in (("local", LOCAL, encoder), ("ray", executor, fresh)):
            seconds = timed(lambda e=on, model=one: embed(model, texts, e))  # type: ignore[misc]
            rates.setdefault(name, []).append(len(texts) / seconds)
    _shut_down()
    local, cluster = (statistics.median(rates[name]) for name in ("local", "ray"))
    report.counts["ray/texts"] = len(texts)
    what = "texts embedded per second by 2 workers, against one process with both cores"
    report.add("ray embedding", what, cluster / local, target=0.9, at_least=True)
    report.add(
        "ray texts", "the same, texts of 70 words per second", cluster, unit="a second"
    )


def shard(report: Report, n: int = 100_000, n_queries: int = 4_096) -> None:
    """A shard of HNSW on one core: the cost of a row when built and when searched."""
    _, vectors = _given(n, texts=False)
    graphs: list[Any] = []
    seconds = timed(lambda: graphs.append(_saved_graph(vectors)))
    search = _Search(vectors, 21, graphs[0])
    floors = np.zeros(n_queries, np.float32)
    search((vectors[:2], floors[:2]))
    report.counts |= {"ray/rows of a shard": n, "ray/bytes of a shard": len(graphs[0])}
    report.add(
        "ray shard",
        f"a row of a shard of HNSW of {n:,}, made by one core",
        1000 * seconds / n,
        unit="ms",
    )
    searched = 1000 * timed(lambda: search((vectors[:n_queries], floors))) / n_queries
    report.add(
        "ray shard search",
        "finding its 21 nearest neighbours in such a shard (`OMP_NUM_THREADS=1`)",
        searched,
        unit="ms",
    )


def ray(report: Report) -> None:
    """All of it."""
    for part in (build, embedding, shard):
        part(report)


class _Counting(LocalExecutor):
    """Runs blocks here, and counts them and their seconds."""

    def __init__(self) -> None:
        self.blocks, self.seconds = 0, dict[str, float]()

    def map(
        self,
        function: Callable[[Any], Any],
        blocks: Iterable[Any],
        *,
        gpu: bool = False,
    ) -> Iterator[Any]:
        name = f"{type(function).__module__}.{type(function).__qualname__}"
        for block in blocks:
            start = time.perf_counter()
            result = function(block)
            self.seconds[name] = (
                self.seconds.get(name, 0.0) + time.perf_counter() - start
            )
            self.blocks += 1
            yield result


def _given(n: int, texts: bool = True) -> tuple[list[Any], Any]:
    """Nodes of a synthetic corpus, and clustered embeddings."""
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((200, DIMENSION), dtype=np.float32)
    vectors = (
        rng.standard_normal((n, DIMENSION), dtype=np.float32)
        + centres[rng.integers(0, len(centres), n)]
    )
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return (to_nodes(synthetic.items(n), chunker=None) if texts else []), vectors


def _built(nodes: list[Any], vectors: Any, executor: Executor) -> int:
    return len(
        SageGraph.from_nodes(
            nodes, encoder=None, vectors=vectors, executor=executor
        ).edges
    )


def _shut_down() -> None:
    import ray

    ray.shutdown()
