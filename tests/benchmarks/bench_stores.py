"""`MemoryStore` on a synthetic graph of a million nodes and ten million edges."""

from __future__ import annotations

import statistics
import tempfile
import time
from typing import Any

import numpy as np

from benchmarks import synthetic
from benchmarks.figures import Report, timed
from graphret.stores.memory import MemoryStore
from graphret.types import Edge, Node

LABELS, RELATIONS = 10, 20
_ASKED = 100
_ROUNDS = 60
_WRITES = 10


def columns(n_nodes: int, degree: int, seed: int = 0) -> dict[str, Any]:
    """Return the columns of a graph: shuffled ids, `degree` edges from each node."""
    rng = np.random.default_rng(seed)
    m = n_nodes * degree
    return {
        "ids": _ids(rng.permutation(n_nodes)),
        "names": [f"name of {i}" for i in range(n_nodes)],
        "labels": rng.integers(LABELS, size=n_nodes, dtype=np.int32),
        "label_sets": [(f"Label{i}",) for i in range(LABELS)],
        "properties": [{"year": 1900 + i % 120} for i in range(n_nodes)],
        "source": rng.integers(n_nodes, size=m, dtype=np.int32),
        "target": rng.integers(n_nodes, size=m, dtype=np.int32),
        "relation": rng.integers(RELATIONS, size=m, dtype=np.int16),
        "relations": [f"RELATION_{i}" for i in range(RELATIONS)],
        "weight": rng.random(m, dtype=np.float32),
    }


def stores(report: Report, n_nodes: int = 1_000_000, degree: int = 10) -> None:
    """The part of the speed benchmark."""
    graph_columns = columns(n_nodes, degree)
    ids = graph_columns["ids"]
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        store = synthetic.store_of(**graph_columns)
        built = time.perf_counter() - start
        store.save(folder)
        n, m = store.count()
        del store
        rng = np.random.default_rng(1)
        id_batches = [_ids(rng.integers(n_nodes, size=_ASKED)) for _ in range(_ROUNDS)]
        filters: dict[str, Any] = {
            "relations": [f"RELATION_{i}" for i in range(RELATIONS // 2)],
            "labels": [f"Label{i}" for i in range(LABELS // 2)],
        }
        start = time.perf_counter()
        store = MemoryStore.load(folder)
        store.neighbors(id_batches[0], **filters)
        opened = time.perf_counter() - start
        neighbors = [
            timed(lambda ids=ids: store.neighbors(ids, **filters)) for ids in id_batches
        ]  # type: ignore[misc]
        new = [
            (
                f"new{i}",
                [Edge(f"new{i}", "RELATION_0", other) for other in ids[:degree]],
            )
            for i in range(_WRITES)
        ]
        written = [
            timed(lambda i=id_, e=edges: store.upsert([Node(i)], e))
            for id_, edges in new
        ]  # type: ignore[misc]
        put_in = timed(lambda: store.neighbors(ids[:1]))
    report.counts |= {"stores/nodes": n, "stores/edges": m}
    graph = f"{n:,} nodes and {m:,} edges"
    milliseconds = 1000 * statistics.median(neighbors[_ROUNDS // 4 :])
    report.add(
        "store build",
        f"`MemoryStore` of {graph} from columns",
        built,
        unit="s",
        target=180.0,
    )
    report.add("store open", "opening it, and one query", opened, unit="s", target=1.0)
    what = f"neighbours of {_ASKED} nodes, half of the labels and relations"
    report.add("store neighbors", what, milliseconds, unit="ms", target=2.0)
    report.add(
        "store upsert",
        f"a node and {degree} edges upserted",
        1000 * statistics.median(written),
        unit="ms",
        target=10.0,
    )
    what = f"the first neighbours behind {_WRITES} such writes"
    report.add("store written", what, 1000 * put_in, unit="ms")


def _ids(numbers: Any) -> list[str]:
    return [f"n{i:08d}" for i in numbers.tolist()]
