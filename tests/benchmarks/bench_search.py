"""How fast nodes are found by text and names, next to libraries for just that."""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import NDArray

from benchmarks import synthetic
from benchmarks.figures import Report, medians
from graphret.corpus import Document
from graphret.evaluation.runner import SingleFieldText
from graphret.linking import NameIndex
from graphret.linking.mentions import find_mentions
from graphret.nodes import NodeTable
from graphret.search import BM25Index, DenseIndex
from graphret.search.dense import HNSW_M
from graphret.search.vectors import normalize
from graphret.types import Node

K = 20
N_GIVEN = 1_000
N_LEXICAL, N_DENSE, DIMENSION, INTRINSIC = 100_000, 30_000, 384, 24
MANY_NAMES = 1_000_000
_QUESTIONS = 60


def lexical(report: Report, n: int = N_LEXICAL) -> None:
    """BM25 over 100,000 nodes or given nodes, next to bm25s and rank_bm25."""
    import bm25s
    from rank_bm25 import BM25Okapi

    items = synthetic.items(n * 16 // 15)
    documents = [item for item in items if isinstance(item, Document)][:n]
    nodes = NodeTable.of(
        Node(item.id, ("Document",), item.title, item.text) for item in documents
    )
    questions = synthetic.questions(items, _QUESTIONS)
    del items, documents
    ours = BM25Index.build(nodes, text=SingleFieldText())
    terms = [
        ours.analyzer(str(SingleFieldText().fields(node).get("text", "")))
        for node in nodes
    ]
    theirs = bm25s.BM25(method="lucene", k1=1.5, b=0.75)
    theirs.index(terms, show_progress=False)
    okapi = BM25Okapi(terms)
    names = np.asarray(nodes.ids.tolist())
    rng = np.random.default_rng(0)
    ids_by_question = {
        q: nodes.ids.take(rng.choice(len(nodes), size=N_GIVEN, replace=False))
        for q in questions
    }
    for question in questions[:20]:  # the hashes of ids are taken by then
        nodes.find(ids_by_question[question])

    def search(question: str) -> object:
        ours.forget()
        return ours.search(question, K)

    def score(question: str) -> object:
        ours.forget()
        return ours.score(question, ids_by_question[question])

    def bm25s_search(question: str) -> object:
        return theirs.retrieve(
            [ours.analyzer(question)], corpus=names, k=K, show_progress=False
        )

    seconds = medians(
        {"search": search, "score": score, "bm25s": bm25s_search}, questions
    )
    places = {q: nodes.find(ids).tolist() for q, ids in ids_by_question.items()}

    def okapi_search(question: str) -> object:
        return okapi.get_top_n(ours.analyzer(question), names, K)

    def okapi_score(question: str) -> object:
        return okapi.get_batch_scores(ours.analyzer(question), places[question])

    of_okapi = {"rank_bm25": okapi_search, "rank_bm25 score": okapi_score}
    seconds |= medians(of_okapi, questions[:6])
    report.counts |= {
        "search/nodes": len(nodes),
        "search/questions": len(questions),
        "search/given nodes": N_GIVEN,
    }
    what = f"BM25 search over {n:,} nodes: its speed against rank_bm25's"
    report.add(
        "search rank_bm25",
        what,
        seconds["rank_bm25"] / seconds["search"],
        target=50.0,
        at_least=True,
    )
    what = "the same against bm25s alone"
    report.add(
        "search bm25s",
        what,
        seconds["bm25s"] / seconds["search"],
        target=0.9,
        at_least=True,
    )
    what = f"the time to score {N_GIVEN:,} given nodes, others for each question"
    # most of it finds 1,000 ids in a dictionary, about as long as a whole search takes
    against = f"{what}, against that of a search"
    ratio = seconds["score"] / seconds["search"]
    report.add("search score", against, ratio, target=1.0)
    against = "the same against rank_bm25's `get_batch_scores`, which takes positions"
    ratio = seconds["score"] / seconds["rank_bm25 score"]
    report.add("search score peer", against, ratio)


def hnsw(report: Report, n: int = N_DENSE, k: int = 10) -> None:
    """HNSW at M = 64: recall against exact search, and speed.

    The vectors have the width of a sentence encoder's and, as such vectors do, vary in
    far fewer directions.
    """
    rng = np.random.default_rng(0)
    plane = rng.standard_normal((INTRINSIC, DIMENSION))

    def vectors(count: int) -> NDArray[np.float32]:
        flat = rng.standard_normal((count, INTRINSIC)) @ plane
        return normalize(
            (flat + 0.5 * rng.standard_normal((count, DIMENSION))).astype(np.float32)
        )

    rows, questions = vectors(n), vectors(200)
    nodes = NodeTable.of(Node(f"n{i:07d}") for i in range(n))
    exact, ours = (DenseIndex.build(nodes, None, vectors=rows) for _ in range(2))
    exact.hnsw_above, ours.hnsw_above = n, 0
    queries = [f"q{i}" for i in range(len(questions))]
    for query, vector in zip(queries, questions, strict=True):
        exact.remember(query, vector)
        ours.remember(query, vector)
    ours.search(queries[0], k)  # which builds it
    hits = [
        len({*exact.search(query, k).ids} & {*ours.search(query, k).ids})
        for query in queries
    ]

    def exactly(query: str) -> object:
        exact.forget()
        return exact.search(query, k)

    seconds = medians(
        {"ours": lambda query: ours.search(query, k), "exact": exactly}, queries
    )
    report.counts |= {"hnsw/nodes": n, "hnsw/questions": len(questions)}
    what = f"recall@{k} of HNSW at M = {HNSW_M} over {n:,} nodes against exact search"
    report.add(
        "hnsw recall",
        what,
        sum(hits) / (k * len(hits)),
        unit="",
        target=0.98,
        at_least=True,
    )
    report.add(
        "hnsw exact",
        "its speed against exact search",
        seconds["exact"] / seconds["ours"],
    )


def spotting(report: Report, n: int = MANY_NAMES) -> None:
    """Known names in a question, among a million."""
    names = invented_names(n)
    start = time.perf_counter()
    book = NameIndex((f"n{i}", name, None) for i, name in enumerate(names))
    find_mentions(names[0], book)
    building = time.perf_counter() - start
    chosen = np.random.default_rng(1).choice(n, size=(500, 2), replace=False).tolist()
    questions = [
        f"which films with {names[a]} were made in the years before {names[b]}?"
        for a, b in chosen
    ]
    seconds = medians(
        {"spot": lambda question: find_mentions(question, book)}, questions
    )["spot"]
    report.counts |= {"spot/names": len(book)}
    report.add(
        "spot",
        f"names spotted in a question, {n:,} known",
        1000 * seconds,
        unit="ms",
        target=1.0,
    )
    report.add(
        "spot built", f"{n:,} names made ready for it", building, unit="s", target=60.0
    )


def invented_names(n: int) -> list[str]:
    """Return names of one to four invented words, few of them alike."""
    rng = np.random.default_rng(0)
    lexicon = synthetic.words()
    lengths = rng.choice([1, 2, 3, 4], size=n, p=[0.1, 0.6, 0.2, 0.1]).tolist()
    ranks = iter(
        (len(lexicon) ** rng.random(sum(lengths))).astype(int).tolist()
    )  # Zipf's law, with an end
    return [
        " ".join(lexicon[next(ranks) - 1] for _ in range(length)).title()
        for length in lengths
    ]
