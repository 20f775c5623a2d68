"""`MemoryStore` on a synthetic graph of a million nodes and ten million edges, each step in a process of its own.

``python -m benchmarks.bench_stores [--nodes N] [--degree D]``
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks import TESTS
from benchmarks.figures import Figure, Report
from graphret.stores.memory import MemoryStore
from graphret.types import Edge, Node

LABELS, RELATIONS = 10, 20
_ASKED = 100
_ROUNDS = 60
_WRITES = 100


def columns(n_nodes: int, degree: int, seed: int = 0) -> dict[str, Any]:
    """Return the columns of a graph for `MemoryStore.from_arrays`: ids in no order, `degree` edges from each node."""
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


def build(folder: Path, n_nodes: int, degree: int) -> dict[str, float]:
    """Build and save a graph; the time and the memory with what it is built of made before."""
    given = columns(n_nodes, degree)
    start = time.perf_counter()
    for first, second in (("source", "target"), ("target", "source")):
        ends = given[first], given[second]
        sp.csr_array((np.ones(len(ends[0]), np.float32), ends), shape=(n_nodes, n_nodes))
    bare = time.perf_counter() - start
    start = time.perf_counter()
    store = MemoryStore.from_arrays(given.pop("ids"), **given)
    built = time.perf_counter() - start
    store.save(folder)
    saved = time.perf_counter() - start - built
    n, m = store.count()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024) / (1 << 30)
    return {"nodes": n, "edges": m, "bare": bare, "build": built, "save": saved, "peak_gib": peak}


def read(folder: Path, n_nodes: int) -> dict[str, float]:
    """Open a graph, ask once, and ask again until the median is known."""
    rng = np.random.default_rng(1)
    asked = [_ids(rng.integers(n_nodes, size=_ASKED)) for _ in range(_ROUNDS)]
    relations = [f"RELATION_{i}" for i in range(RELATIONS // 2)]
    labels = [f"Label{i}" for i in range(LABELS // 2)]
    start = time.perf_counter()
    store = MemoryStore.load(folder)
    opened = time.perf_counter() - start
    store.neighbors(asked[0], relations=relations, labels=labels)
    first = time.perf_counter() - start - opened
    busy = time.process_time()
    rounds, found = _times(lambda ids: store.neighbors(ids, relations=relations, labels=labels), asked)
    busy = (time.process_time() - busy) / len(asked)
    start = time.perf_counter()
    MemoryStore.load(folder, verify=True)
    verified = time.perf_counter() - start
    return {
        "open": opened,
        "first": first,
        "neighbors": statistics.median(rounds[_ROUNDS // 4 :]),
        "neighbors, processor": busy,
        "neighbors found": statistics.mean(map(len, found)),
        "open and verify": verified,
    }


def write(n_nodes: int, degree: int) -> dict[str, float]:
    """Upsert a node and its edges many times over."""
    given = columns(n_nodes, degree)
    ids = given.pop("ids")
    store = MemoryStore.from_arrays(ids, **given)
    fresh = [f"new{i}" for i in range(_WRITES)]
    rounds, _ = _times(
        lambda one: store.upsert([Node(one)], [Edge(one, "RELATION_0", other) for other in ids[:degree]]), fresh
    )
    assert store.count()[0] == n_nodes + _WRITES
    return {"upsert": statistics.median(rounds)}


def stores(report: Report, n_nodes: int = 1_000_000, degree: int = 10) -> None:
    """The part of the speed benchmark."""
    with tempfile.TemporaryDirectory() as folder:
        found = _child("build", folder, n_nodes, degree) | _child("read", folder, n_nodes, degree)
    small = n_nodes // 10
    found |= _child("write", "", small, degree)
    n, m = int(found.pop("nodes")), int(found.pop("edges"))
    report.counts |= {
        "stores/nodes": n,
        "stores/edges": m,
        "stores/neighbors found": round(found.pop("neighbors found")),
    }
    graph = f"{n:,} nodes and {m:,} edges"
    figures = {
        "store build": Figure(f"`MemoryStore` of {graph} from columns", found["build"], "s", 180.0),
        "store build, bare": Figure(
            "the same against two `scipy.sparse.csr_array` of its edges", found["build"] / found["bare"]
        ),
        "store memory": Figure("peak memory of building and saving it", found.pop("peak_gib"), "GiB", 6.0),
        "store open": Figure("opening it and asking once", found["open"] + found["first"], "s", 1.0),
        "store neighbors": Figure(
            f"neighbours of {_ASKED} nodes, half of the labels and relations", 1000 * found["neighbors"], "ms", 2.0
        ),
        "store upsert": Figure(
            f"a node and {degree} edges upserted into {small:,} nodes and {small * degree:,} edges",
            1000 * found["upsert"],
            "ms",
        ),
    }
    report.figures |= figures
    report.seconds |= {f"stores/{name}": value for name, value in found.items()}


def _ids(numbers: Any) -> list[str]:
    return [f"n{i:08d}" for i in numbers.tolist()]


def _times(act: Callable[[Any], Any], given: Sequence[Any]) -> tuple[list[float], list[Any]]:
    rounds, found = [], []
    for one in given:
        start = time.perf_counter()
        found.append(act(one))
        rounds.append(time.perf_counter() - start)
    return rounds, found


def _child(step: str, folder: str, n_nodes: int, degree: int) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.bench_stores", "--step", step, "--folder", folder]
    command += ["--nodes", str(n_nodes), "--degree", str(degree)]
    done = subprocess.run(command, cwd=TESTS, check=True, stdout=subprocess.PIPE, text=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run from the command line; with ``--step`` one of the steps, its figures as JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bench_stores", description=__doc__)
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--degree", type=int, default=10, help="edges that leave each node")
    parser.add_argument("--step", choices=["build", "read", "write"], help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    if chosen.step == "build":
        print(json.dumps(build(chosen.folder, chosen.nodes, chosen.degree)))
    elif chosen.step == "read":
        print(json.dumps(read(chosen.folder, chosen.nodes)))
    elif chosen.step == "write":
        print(json.dumps(write(chosen.nodes, chosen.degree)))
    else:
        report = Report()
        stores(report, chosen.nodes, chosen.degree)
        print(report.to_markdown())
    return 0


if __name__ == "__main__":
    sys.exit(main())
