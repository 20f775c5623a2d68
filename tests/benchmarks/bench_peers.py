"""Retrievers that a user of LlamaIndex or LangChain would pick instead of graphret.

They get the same chunks, questions and embeddings, each in a process of its own:
``PYTHONPATH=tests python -m benchmarks.bench_peers CHUNKS`` for another size than that
of the speed table.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import astuple
from importlib.util import find_spec
from itertools import islice
from pathlib import Path

from benchmarks import synthetic
from benchmarks.bench_changes import taken
from benchmarks.figures import Report
from benchmarks.peers import CORPUS, Chunk, K, word_sums
from graphret.corpus import Document
from graphret.sage import SageGraph

N, NEW, ASKED = 20_000, 5, 30

#: What each is, and the modules that it needs.
PEERS: dict[str, tuple[str, tuple[str, ...]]] = {
    "llama-index": (
        "LlamaIndex's `VectorStoreIndex` + `BM25Retriever` + `QueryFusionRetriever`",
        ("llama_index.core", "llama_index.retrievers.bm25"),
    ),
    "langchain": (
        "LangChain's `BM25Retriever` + `InMemoryVectorStore` + `EnsembleRetriever`",
        ("langchain_classic", "langchain_community", "rank_bm25"),
    ),
    "graph-retriever": (
        "langchain-graph-retriever's `GraphRetriever`, one hop along given links",
        ("langchain_graph_retriever",),
    ),
}
#: What is measured: in words, and the unit of ours.
MEASURES: dict[str, tuple[str, str, float]] = {
    "build": ("build", "s", 1),
    "insert": ("a document inserted", "ms", 1e-3),
    "question": (f"a question, {K} chunks", "ms", 1e-3),
    "memory": ("peak memory of the process", "GiB", 1 << 30),
    "disk": ("size on disk", "MiB", 1 << 20),
}

NOTE = (
    "Peers: a `BM25Retriever` takes no more documents, so that it is made again for an"
    " insertion; LangChain's cannot be saved, and its size on disk is that of the"
    " vectors. `GraphRetriever` gets its links ready, and none for what is inserted."
)


def peers(report: Report, n: int = N) -> None:
    """The part of the speed benchmark: processor time and bytes, as ratios to ours."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        texts = _write_corpus(folder, n)
        report.counts |= {"peers/chunks": n, "peers/questions": ASKED}
        encoder = word_sums()
        embedded = taken(lambda: encoder.encode_documents(texts)) / len(texts)
        ours = _measured("ours", folder)
        for measure, (what, unit, size) in MEASURES.items():
            report.add(
                f"peers ours {measure}",
                f"`SageGraph` of {n:,} chunks with given embeddings: {what}",
                ours[measure] / size,
                unit=unit,
            )
        report.add(
            "peers embedding",
            "of which embedding a chunk, the same for all that follow",
            1e6 * embedded,
            unit="µs",
        )
        report.notes.append(NOTE)
        for peer, (what, modules) in PEERS.items():
            if missing := [module for module in modules if not _installed(module)]:
                report.notes.append(f"{what}: left out, as {missing[0]} is missing.")
                continue
            theirs = _measured(peer, folder)
            for measure, (of, _, _) in MEASURES.items():
                report.add(
                    f"peers {peer} {measure}",
                    f"{what}: {of}, against ours",
                    theirs[measure] / ours[measure],
                )


def _write_corpus(folder: Path, n: int) -> list[str]:
    """Write chunks, more to insert, questions and links; return the texts.

    The links are those between the chunks.
    """
    items = synthetic.items((n + NEW) * 16 // 15 + 16)
    documents = (item for item in items if isinstance(item, Document))
    chunks = [
        Chunk(str(document.id), document.title, document.text)
        for document in islice(documents, n + NEW)
    ]
    graph = SageGraph.build(
        [Document(c.text, id=c.id, title=c.title) for c in chunks[:n]],
        encoder=None,
        chunker=None,
    )
    links: dict[str, list[str]] = {chunk.id: [] for chunk in chunks}
    for edge in graph.edges.edges(graph.nodes.ids):
        links[edge.source].append(edge.target)
        links[edge.target].append(edge.source)
    corpus = {
        "chunks": [astuple(chunk) for chunk in chunks[:n]],
        "new": [astuple(chunk) for chunk in chunks[n:]],
        "questions": synthetic.questions(items, ASKED),
        "links": links,
    }
    Path(folder, CORPUS).write_text(json.dumps(corpus), encoding="utf-8")
    return [chunk.content for chunk in chunks]


def _installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # of the package that it is in
        return False


def _measured(name: str, folder: Path) -> dict[str, float]:
    """Measure a contestant, with one thread, in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.peers", name, str(folder)]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode:
        raise RuntimeError(f"{name} failed: {done.stderr}")
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return figures


if __name__ == "__main__":
    figures = Report()
    peers(figures, int(sys.argv[1]) if len(sys.argv) > 1 else N)
    print(figures)
