"""Synthetic corpora of any size to measure speed; they say nothing about quality."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from graphret.columns import Records, Strings
from graphret.corpus import Document, Item, Table
from graphret.edges import EdgeTable
from graphret.lists import Lists
from graphret.nodes import NodeTable
from graphret.search.analysis import Analyzer
from graphret.search.bm25 import BM25Index, BM25Settings
from graphret.search.fields import NodeText
from graphret.search.hybrid import HybridIndex
from graphret.search.terms import FieldTerms
from graphret.stores.memory import Graph, MemoryStore

_ONSETS = "b c d f g h j k l m n p r s t v w z br ch dr fl gr kl pr sh st tr".split()
_NUCLEI = "a e i o u ai ea io ou".split()
_WORDS = 20_000
_ROWS = 10


def words(n: int = _WORDS) -> list[str]:
    """Return invented words, all different, the short ones first."""
    syllables = [onset + nucleus for onset in _ONSETS for nucleus in _NUCLEI]
    combined = [a + b + "n" for a in syllables for b in syllables]
    return combined[:n]


def _text(rng: np.random.Generator, lexicon: Sequence[str], length: int) -> list[str]:
    ranks = np.minimum(rng.zipf(1.3, length), len(lexicon)) - 1
    return [lexicon[i] for i in ranks.tolist()]


def items(n: int, seed: int = 0) -> list[Item]:
    """Return `n` documents of 70 words and tables of ten rows, which name others."""
    rng = np.random.default_rng(seed)
    lexicon = words()
    n_tables = max(1, n // 16)
    n_documents = n - n_tables
    rare = lexicon[500:]
    titles = [
        " ".join(rare[i] for i in rng.integers(len(rare), size=2 + i % 2)).title()
        for i in range(n_documents)
    ]
    all_items: list[Item] = []
    for i, title in enumerate(titles):
        sentences = [_text(rng, lexicon, 14) for _ in range(5)]
        sentences[1].insert(7, titles[int(rng.integers(n_documents))])
        sentences[3].insert(4, titles[int(rng.integers(n_documents))])
        text = " ".join(" ".join(sentence).capitalize() + "." for sentence in sentences)
        all_items.append(Document(text, id=f"d{i:07d}", title=title))
    for i in range(n_tables):
        named_documents = rng.integers(n_documents, size=_ROWS).tolist()
        rows = [
            [titles[j], str(1900 + j % 120), " ".join(_text(rng, lexicon, 2))]
            for j in named_documents
        ]
        title = " ".join(_text(rng, rare, 3)).title()
        all_items.append(
            Table(
                ["Name", "Year", "Remark"],
                rows,
                id=f"t{i:06d}",
                title=title,
                section="Members",
            )
        )
    return all_items


def questions(corpus: Sequence[Item], n: int, seed: int = 1) -> list[str]:
    """Return questions of ten words from a title, a row's remark and a document."""
    rng = np.random.default_rng(seed)
    tables = [item for item in corpus if isinstance(item, Table)]
    documents = {item.title: item for item in corpus if isinstance(item, Document)}
    texts = []
    for i in rng.integers(len(tables), size=n).tolist():
        row = tables[i].rows[int(rng.integers(_ROWS))]
        document_words = documents[row[0]].text.replace(".", "").split()
        chosen = [
            document_words[j]
            for j in rng.integers(len(document_words), size=5).tolist()
        ]
        texts.append(" ".join([*tables[i].title.split()[:3], *row[2].split(), *chosen]))
    return texts


def store_of(
    ids: Sequence[str],
    source: Any,
    target: Any,
    relation: Any,
    relations: Any,
    weight: Any,
    *,
    names: Sequence[str] | None = None,
    texts: Sequence[str] | None = None,
    labels: Any = None,
    label_sets: Sequence[tuple[str, ...]] = (("Node",),),
    properties: Sequence[Any] | None = None,
) -> MemoryStore:
    """Return a store of columns; edges refer to `ids` and `relations` by place."""
    n, order = len(ids), np.argsort(np.asarray(ids), kind="stable")
    strings = (
        Strings.of(ids),
        *(
            Strings.repeat("", n) if column is None else Strings.of(column)
            for column in (names, texts)
        ),
    )
    codes = np.zeros(n, np.int32) if labels is None else np.asarray(labels, np.int32)
    records = Records.repeat({}, n) if properties is None else Records.of(properties)
    table, at = (
        NodeTable(*strings, codes, label_sets, records).take(order),
        np.argsort(order),
    )
    return MemoryStore(
        Graph(
            table,
            EdgeTable.build(
                len(table), at[source], at[target], relation, relations, weight
            ),
        )
    )


def arrays(
    n: int, degree: int, *, seed: int = 0, terms: int = 20
) -> tuple[Graph, HybridIndex]:
    """Return a graph of `n` nodes with `degree` random edges each, and a lexical index.

    There are no texts behind them: each node has so many terms of a vocabulary with
    Zipf's distribution.
    """
    rng = np.random.default_rng(seed)
    m = n * degree
    graph = store_of(
        [f"n{i:08d}" for i in range(n)],
        label_sets=[("Document",)],
        source=np.repeat(np.arange(n, dtype=np.int32), degree),
        target=rng.integers(n, size=m, dtype=np.int32),
        relation=np.zeros(m, np.int64),
        relations=["MENTIONS"],
        weight=rng.uniform(0.5, 1.0, m).astype(np.float32),
    ).graph
    ranks = np.minimum(
        (_WORDS ** rng.random((n, terms), dtype=np.float32)).astype(np.int32),
        _WORDS - 1,
    )
    indptr = np.arange(n + 1, dtype=np.int64) * terms
    fields = {"body": Lists.packed(ranks.ravel(), indptr)}
    field_terms = FieldTerms(
        [f"w{i}" for i in range(_WORDS)], fields, np.zeros(n + 1, dtype=np.int64)
    )
    lexical = BM25Index(
        graph.nodes, field_terms, NodeText(), Analyzer("", ""), BM25Settings()
    )
    return graph, HybridIndex(lexical)


def array_questions(n: int, seed: int = 1) -> list[str]:
    """Return questions for `arrays`: eight terms, some common and some rare."""
    rng = np.random.default_rng(seed)
    ranks = (_WORDS ** rng.uniform(0.3, 1.0, (n, 8))).astype(int)
    return [
        " ".join(f"w{min(rank, _WORDS - 1)}" for rank in row) for row in ranks.tolist()
    ]
