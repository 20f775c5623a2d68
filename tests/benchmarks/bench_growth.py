"""What a graph costs as it grows: its build, its questions and its changes.

All times are processor time, without an encoder. ``PYTHONPATH=tests python -m
benchmarks.bench_growth 1000000`` measures any size, and the memory that it takes.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks import synthetic
from benchmarks.bench_changes import CHUNKS, long_document, taken
from benchmarks.figures import Report, peak_memory
from graphret.corpus import Document
from graphret.sage import SageGraph

SMALL, LARGE = 20_000, 100_000
#: Milliseconds that a document may take, by the nodes that there are.
_ADDED = {100_000: 60.0, 1_000_000: 250.0}
#: And a save after it.
_SAVED = {100_000: 50.0}
#: GiB that its build may take.
_MEMORY = {1_000_000: 8.0}
_ROUNDS, _QUESTIONS = 7, 40


@dataclass(frozen=True)
class Costs:
    """Seconds of processor time: of the build, and medians of what follows it.

    With them comes the most memory until it is built, in bytes.
    """

    build: float
    memory: int
    save: float
    opening: float
    question: float
    added: float
    save_after: float
    question_after: float


def growth(report: Report, n: int = LARGE) -> Costs:
    """A graph of `n` nodes, next to one of 20,000; returns what the former costs."""
    small, large, again = costs_of(SMALL), costs_of(n), costs_of(SMALL)
    what = f"{n:,} nodes, no encoder"
    report.add("growth build", f"{what}: build", large.build, unit="s")
    # the pace of a machine changes within the minutes that the large one takes
    ratio = large.build / n / ((small.build + again.build) / 2 / SMALL)
    each = f"its time per node, against {SMALL:,} nodes"
    report.add("growth node", each, ratio, target=1.15)
    report.add("growth save", f"{what}: `save`, whole", large.save, unit="s")
    report.add("growth open", "opening it", large.opening, unit="s", target=0.2)
    asked = f"{what}: a question, against one over {SMALL:,}"
    question = large.question / ((small.question + again.question) / 2)
    report.add("growth question", asked, question, target=2.0)
    added = f"{what}: a document of five chunks added"
    report.add(
        "growth added", added, 1000 * large.added, unit="ms", target=_ADDED.get(n)
    )
    after = "`save` after it"
    beside = 1000 * large.save_after
    report.add("growth beside", after, beside, unit="ms", target=_SAVED.get(n))
    first = 1000 * large.question_after
    report.add("growth first", "the first question after it", first, unit="ms")
    return large


def costs_of(n: int) -> Costs:
    """Build a graph of `n` nodes, save it and open it, ask it and change it."""
    items = synthetic.items(n + (_ROUNDS + 1) * CHUNKS)
    questions = synthetic.questions(items, _QUESTIONS)
    spare = [item for item in items if isinstance(item, Document)][n - len(items) :]
    new = [long_document(i, spare) for i in range(_ROUNDS + 1)]
    left_out = {document.id for document in spare}
    items = [item for item in items if item.id not in left_out]
    start = time.process_time()
    graph = SageGraph.build(items, encoder=None)
    build, memory = time.process_time() - start, peak_memory()
    del items
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder, "graph")
        save = taken(partial(graph.save, place))
        load = partial(SageGraph.load, place, encoder=None, verify=False)
        opening = statistics.median(taken(load) for _ in range(_ROUNDS))
        ask = graph.retriever().retrieve
        question = statistics.median(taken(partial(ask, text)) for text in questions)
        added, saves, asked = [], [], []
        for document, text in zip(new, questions, strict=False):
            added.append(taken(partial(graph.add, [document])))
            saves.append(taken(partial(graph.save, place)))
            asked.append(taken(partial(graph.retriever().retrieve, text)))
    # the first looks at what the first change asks for
    return Costs(
        build,
        memory,
        save,
        opening,
        question,
        statistics.median(added[1:]),
        statistics.median(saves[1:]),
        statistics.median(asked[1:]),
    )


if __name__ == "__main__":
    figures, size = Report(), int(sys.argv[1]) if len(sys.argv) > 1 else LARGE
    costs, gibibyte = growth(figures, size), 1024**3
    figures.add(
        "growth memory",
        "the most memory until it is built",
        costs.memory / gibibyte,
        unit="GiB",
        target=_MEMORY.get(size),
    )
    most = peak_memory() / gibibyte
    figures.add("growth all", "the most memory of all that", most, unit="GiB")
    print(figures)
