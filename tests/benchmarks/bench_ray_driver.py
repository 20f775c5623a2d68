"""The memory of a process that has a Ray cluster build into a Neo4j.

``PYTHONPATH=tests python -m benchmarks.bench_ray_driver CORPUS ADDRESS`` measures one
build on two local workers in a process of its own.
"""

from __future__ import annotations

import atexit
import json
import subprocess
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

from benchmarks import synthetic
from benchmarks.bench_databases import neo4j_server
from benchmarks.figures import Report, peak_memory

N, TIMES = 10_000, 10


def driver(report: Report) -> None:
    """Build ten times as many chunks, and compare the memory of the two drivers."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with neo4j_server(folder) as address:
            peaks = [
                _peak_of_a_driver(folder / f"{n}.jsonl", n, address)
                for n in (N, TIMES * N)
            ]
    report.add(
        "ray driver memory",
        f"`graphret build --ray local --out neo4j://…`: its memory with {TIMES * N:,}"
        f" chunks, against {N:,}",
        peaks[1] / peaks[0],
        target=1.2,
    )
    what = f"the same in MiB, with {TIMES * N:,} chunks"
    report.add("ray driver MiB", what, peaks[1] / (1 << 20), unit="MiB")


def _peak_of_a_driver(corpus: Path, n: int, address: str) -> int:
    lines = (f"{json.dumps(asdict(item))}\n" for item in synthetic.items(n))
    with corpus.open("w", encoding="utf-8") as file:
        file.writelines(lines)
    command = [sys.executable, "-m", __name__, str(corpus), address]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return int(done.stdout.splitlines()[-1])


def _build(corpus: str, address: str) -> None:
    """Run the command in this process, and print the most bytes that it took."""
    from graphret.cli.app import app

    atexit.register(lambda: print(peak_memory()))  # the command exits with its code
    app(["build", corpus, "--out", address, "--encoder", "none", "--ray", "local"])


if __name__ == "__main__":
    _build(*sys.argv[1:])
