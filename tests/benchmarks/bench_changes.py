"""What a change of a graph costs in processor time.

A document comes, goes or is edited, alone or among many; the questions that follow are
measured too.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from benchmarks import synthetic
from benchmarks.figures import Report
from graphret.corpus import Document, Table
from graphret.sage import SageGraph
from graphret.types import Node

N = 20_000
CHUNKS = 5
_ROUNDS, _AT_ONCE, _CHANGES = 9, 100, 1_000


def changes(report: Report, n: int = N) -> None:
    """A graph without encoder that takes documents of five chunks."""
    items = synthetic.items(n + 4 * _AT_ONCE * CHUNKS)
    tables = [item for item in items if isinstance(item, Table)]
    texts = [item for item in items if isinstance(item, Document)]
    initial, spare = texts[: n - len(tables)], texts[n - len(tables) :]
    new_documents = [long_document(i, spare) for i in range(len(spare) // CHUNKS)]
    graph = SageGraph.build([*initial, *tables], encoder=None)
    graph.add(new_documents[:1])  # looks at what the first change asks for
    comes = [
        taken(partial(graph.add, [document]))
        for document in new_documents[1 : _ROUNDS + 1]
    ]
    goes = [
        taken(partial(graph.remove, [document.id]))
        for document in new_documents[1:_ROUNDS]
    ]
    edited = [
        Document(f"{document.text} Edited.", id=document.id, title=document.title)
        for document in initial[:_ROUNDS]
    ]
    edits = [taken(partial(graph.add, [document])) for document in edited]
    of_five = f"a document of {CHUNKS} chunks, {n:,} nodes"
    for what, rounds in (("added", comes), ("removed", goes), ("edited", edits)):
        milliseconds = 1000 * statistics.median(rounds)
        of = "a document of one chunk" if what == "edited" else of_five
        row = f"{of}, {what}"
        report.add(f"changes {what}", row, milliseconds, unit="ms", target=30.0)
    everything = [*edited, *initial[_ROUNDS:-1], *tables]
    last = Document(f"{initial[-1].text} Edited.", id=initial[-1].id)
    again = taken(partial(graph.add, [*everything, last]))
    what = "all of them added again, one of them edited"
    report.add("changes again", what, again, unit="s")
    pieces = [
        Node(
            f"piece{i}", ("Document",), one.title, one.text, {"source_id": f"whole{i}"}
        )
        for i, one in enumerate(spare[-_ROUNDS:])
    ]
    pieces_come = [taken(partial(graph.add_nodes, [piece])) for piece in pieces]
    milliseconds = 1000 * statistics.median(pieces_come)
    what = "a chunk that LlamaIndex or LangChain cut, added"
    report.add("changes chunk", what, milliseconds, unit="ms")
    many = new_documents[_ROUNDS + 1 :][:_AT_ONCE]
    alone = taken(lambda: SageGraph.build(many, encoder=None))
    report.add(
        "changes at once",
        f"{_AT_ONCE} such documents at once, against building them alone",
        taken(partial(graph.add, many)) / alone,
        target=5.0,
    )
    questions(
        report,
        graph,
        new_documents[_ROUNDS + _AT_ONCE + 1 :],
        synthetic.questions(items, 40),
    )
    with tempfile.TemporaryDirectory() as folder:
        save = partial(graph.save, Path(folder, "graph"))
        whole = 1000 * taken(save)
        report.add("changes saved", "`save` of that graph, whole", whole, unit="ms")
        graph.add([new_documents[-2]])
        beside = 1000 * taken(save)
        report.add("changes beside", "`save` after a change", beside, unit="ms")
        job = taken(partial(_job, Path(folder, "graph"), new_documents[-1]))
    what = "a job that opens it, adds a document and saves it"
    report.add("changes job", what, 1000 * job, unit="ms")


def questions(
    report: Report, graph: SageGraph, documents: list[Document], texts: list[str]
) -> None:
    """The first question behind a change, and questions after many changes."""
    graph.add(documents[:1])
    first = 1000 * taken(partial(graph.retriever().retrieve, texts[0]))
    report.add("changes question", "the first question after it", first, unit="ms")
    for i in range(_CHANGES // 2):
        document = documents[1 + i % (len(documents) - 1)]
        graph.add([document])
        graph.remove([document.id])
    fresh = SageGraph.from_nodes(graph.nodes, encoder=None)
    after, before = (
        statistics.median(
            taken(partial(measured.retriever().retrieve, q)) for q in texts
        )
        for measured in (graph, fresh)
    )
    what = f"a question after {_CHANGES} single changes, against a fresh build"
    report.add("changes many", what, after / before, target=1.3)


def _job(folder: Path, document: Document) -> None:
    """Open a graph, add a document, and save it."""
    graph = SageGraph.load(folder, encoder=None)
    graph.add([document])
    graph.save(folder)


def taken(call: Callable[[], object]) -> float:
    """The seconds of processor time that a call takes."""
    start = time.process_time()
    call()
    return time.process_time() - start


def long_document(number: int, spare: list[Document]) -> Document:
    """A document of several chunks, of the texts of others."""
    parts = spare[number * CHUNKS : (number + 1) * CHUNKS]
    text = "\n\n".join(f"# Part {i}\n\n{part.text}" for i, part in enumerate(parts))
    return Document(text, id=f"new{number:04d}", title=parts[0].title)
