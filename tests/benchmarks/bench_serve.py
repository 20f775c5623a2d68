"""``graphret serve`` under load, in turn with the core in two threads."""

from __future__ import annotations

import asyncio
import json
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import islice

import psutil

from benchmarks import synthetic
from benchmarks.figures import Report, timed
from graphret.sage import SageGraph

N, K, CLIENTS, THREADS = 20_000, 10, 64, 2
REQUESTS, ROUNDS, EACH = 10_000, 6, 500
_MB = 1 << 20


def serve(report: Report) -> None:
    """Questions a second over HTTP against the core, and their waits."""
    items = synthetic.items(N)
    remaining_questions = iter(
        synthetic.questions(items, REQUESTS + ROUNDS * EACH)
    )  # each once, as some answers are kept
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(THREADS) as pool:
        SageGraph.build(items, encoder=None, chunker=None).save(folder)
        retriever = SageGraph.load(folder).retriever()
        with _serving(folder) as (address, process):
            asyncio.run(
                _load(address, list(islice(remaining_questions, EACH)))
            )  # caches warm up
            memory = process.memory_info().rss
            core, ours, waits, lost = list[float](), list[float](), list[float](), 0
            for _ in range(ROUNDS):
                questions = list(islice(remaining_questions, EACH))
                core.append(
                    timed(
                        lambda some=questions: list(
                            pool.map(lambda q: retriever.retrieve(q, K), some)
                        )
                    )
                )  # type: ignore[misc]
                questions = list(islice(remaining_questions, EACH))
                start = time.perf_counter()
                round_waits = asyncio.run(_load(address, questions))
                ours.append(time.perf_counter() - start)
                waits += round_waits
                lost += len(questions) - len(round_waits)
            last_questions = list(remaining_questions)[: REQUESTS - (ROUNDS + 1) * EACH]
            lost += len(last_questions) - len(
                asyncio.run(_load(address, last_questions))
            )
            grown = process.memory_info().rss
    rates = [
        core_seconds / our_seconds
        for core_seconds, our_seconds in zip(core, ours, strict=True)
    ]
    p99 = statistics.quantiles(waits, n=100)[98]
    report.counts |= {
        "serve/nodes": N,
        "serve/requests": REQUESTS,
        "serve/clients": CLIENTS,
    }
    what = (
        f"`/retrieve` with {CLIENTS} clients: questions a second against the core in"
        f" {THREADS} threads"
    )
    report.add("serve rate", what, statistics.median(rates), target=0.8, at_least=True)
    report.add(
        "serve p99",
        "99th percentile of the latency against its median",
        p99 / statistics.median(waits),
        target=10,
    )
    report.add(
        "serve lost",
        f"of {REQUESTS:,} requests, those that got no answer",
        lost,
        unit="",
        target=0,
    )
    what = "memory of the service afterwards, against after the first 500"
    report.add("serve memory", what, grown / memory, target=1.1)
    report.notes.append(
        f"serve: {EACH / statistics.median(ours):.0f} questions a second,"
        f" {grown / _MB:.0f} MB"
    )


@contextmanager
def _serving(folder: str) -> Iterator[tuple[tuple[str, int], psutil.Process]]:
    line = [
        sys.executable,
        "-m",
        "graphret.cli",
        "serve",
        "--graph",
        folder,
        "--port",
        "0",
    ]
    with subprocess.Popen(line, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            match = next(
                address
                for line_ in process.stderr
                if (address := re.search(r"running on http://(\S+):(\d+)", line_))
            )
            yield (match[1], int(match[2])), psutil.Process(process.pid)
        finally:
            process.terminate()


async def _load(address: tuple[str, int], questions: Sequence[str]) -> list[float]:
    """Have clients ask their questions in turn; return the waits of full answers."""
    waiting, waits = iter(questions), list[float]()

    async def client() -> None:
        reader, writer = await asyncio.open_connection(*address)
        for question in waiting:
            body = json.dumps({"query": question, "k": K}).encode()
            head = (
                f"POST /retrieve HTTP/1.1\r\nHost: {address[0]}\r\nContent-Type:"
                " application/json\r\n"
            )
            start = time.perf_counter()
            writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
            answer = await reader.readuntil(b"\r\n\r\n")
            size = re.search(rb"content-length: (\d+)", answer)
            content = await reader.readexactly(int(size[1])) if size else b""
            if answer.startswith(b"HTTP/1.1 200") and content.endswith(b"}"):
                waits.append(time.perf_counter() - start)
        writer.close()

    async with asyncio.TaskGroup() as clients:
        for _ in range(CLIENTS):
            clients.create_task(client())
    return waits
