"""Kill a writer of an index at random moments, again and again, and see what opens afterwards.

``python -m graphret.testing.kills FOLDER TRIALS`` builds, adds to and removes from an index in child
processes, kills each with SIGKILL at a random moment, and prints one JSON object: how often the previous index was
found, how often the new one, and how often neither, which must be never.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from graphret.corpus import Document
from graphret.sage import SageGraph
from graphret.storage import writing

WORDS = ["Leeds", "Malham", "River Aire", "Skipton", "Keighley", "Bingley", "Shipley", "Saltaire", "Castleford"]


def documents(first: int, n: int) -> list[Document]:
    return [
        Document(f"{WORDS[i % 9]} is near {WORDS[(i + 1) % 9]}, number {i}.", id=f"d{i}", title=f"{WORDS[i % 9]} {i}")
        for i in range(first, first + n)
    ]


def build(folder: Path) -> None:
    SageGraph.build(documents(0, 20), encoder=None).save(folder)


def add(folder: Path) -> None:
    with writing(folder):
        graph = SageGraph.load(folder)
        graph.add(documents(20, 15))
        graph.save(folder)


def remove(folder: Path) -> None:
    with writing(folder):
        graph = SageGraph.load(folder)
        graph.remove([f"d{i}" for i in range(20, 35)])
        graph.save(folder)


def found(folder: Path) -> str:
    """A fingerprint of the index: its nodes and edges, and an answer."""
    graph = SageGraph.load(folder)
    edges = [edge.to_dict() for edge in graph.edges.edges(graph.nodes.ids)]
    answer = graph.retriever().retrieve("Which place is near Malham?", 5).ids
    return json.dumps([graph.nodes.ids.tolist(), edges, answer], sort_keys=True)


def in_child(work: Callable[[Path], None], folder: Path, seconds: float | None) -> bool:
    """Do something in a child; kill it after some seconds, unless it is done. Return whether it was."""
    child = os.fork()
    if child == 0:
        try:
            work(folder)
            os._exit(0)
        except BaseException:
            os._exit(1)
    if seconds is not None:
        time.sleep(seconds)
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if os.WIFEXITED(status) and os.WEXITSTATUS(status):
        raise RuntimeError(f"{work.__name__} failed")
    return os.WIFEXITED(status)


def main(folder: Path, trials: int) -> dict[str, int]:
    rng = random.Random(0)
    build(folder)
    small = found(folder)
    took = time.perf_counter()
    in_child(add, folder, None)
    took = time.perf_counter() - took
    large = found(folder)
    outcomes: Counter[str] = Counter()
    for trial in range(trials):
        work, before, after = [(build, large, small), (add, small, large), (remove, large, small)][trial % 3]
        if found(folder) != before:
            in_child(add if before == large else remove, folder, None)
        finished = in_child(work, folder, rng.uniform(0.0, 1.2 * took))
        now = found(folder)
        if now == after:
            outcomes["new"] += 1
        elif now == before and not finished:
            outcomes["previous"] += 1
        else:
            outcomes["neither"] += 1
    return {"trials": trials, **{name: outcomes[name] for name in ("previous", "new", "neither")}}


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), int(sys.argv[2]))))
