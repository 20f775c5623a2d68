"""Corpora made by rule, of any size, to measure speed on: nothing about quality can be read off them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp

from graphret.columns import Records, Strings
from graphret.corpus import Document, Item, Table
from graphret.edges import NO_PART, EdgeTable
from graphret.nodes import NodeTable
from graphret.search.analysis import Analyzer
from graphret.search.bm25 import BM25Index, BM25Settings
from graphret.search.counts import FieldCounts
from graphret.search.fields import NodeText
from graphret.search.hybrid import HybridIndex
from graphret.stores.memory import Graph

_ONSETS = "b c d f g h j k l m n p r s t v w z br ch dr fl gr kl pr sh st tr".split()
_NUCLEI = "a e i o u ai ea io ou".split()
_WORDS = 20_000
_ROWS = 10


def words(n: int = _WORDS) -> list[str]:
    """Return invented words, all different, the short ones first."""
    syllables = [onset + nucleus for onset in _ONSETS for nucleus in _NUCLEI]
    made = [a + b + "n" for a in syllables for b in syllables]
    return made[:n]


def _text(rng: np.random.Generator, lexicon: Sequence[str], length: int) -> list[str]:
    ranks = np.minimum(rng.zipf(1.3, length), len(lexicon)) - 1
    return [lexicon[i] for i in ranks.tolist()]


def items(n: int, seed: int = 0) -> list[Item]:
    """Return documents and tables that become `n` nodes, one table segment to fifteen documents.

    Documents have titles of two or three words and 70 words of text, in which one sentence in three names another
    document; each of the ten rows of a table names a document.
    """
    rng = np.random.default_rng(seed)
    lexicon = words()
    n_tables = max(1, n // 16)
    n_documents = n - n_tables
    rare = lexicon[500:]
    titles = [" ".join(rare[i] for i in rng.integers(len(rare), size=2 + i % 2)).title() for i in range(n_documents)]
    made: list[Item] = []
    for i, title in enumerate(titles):
        said = [_text(rng, lexicon, 14) for _ in range(5)]
        said[1].insert(7, titles[int(rng.integers(n_documents))])
        said[3].insert(4, titles[int(rng.integers(n_documents))])
        text = " ".join(" ".join(sentence).capitalize() + "." for sentence in said)
        made.append(Document(text, id=f"d{i:07d}", title=title))
    for i in range(n_tables):
        named = rng.integers(n_documents, size=_ROWS).tolist()
        rows = [[titles[j], str(1900 + j % 120), " ".join(_text(rng, lexicon, 2))] for j in named]
        title = " ".join(_text(rng, rare, 3)).title()
        made.append(Table(["Name", "Year", "Remark"], rows, id=f"t{i:06d}", title=title, section="Members"))
    return made


def questions(made: Sequence[Item], n: int, seed: int = 1) -> list[str]:
    """Return questions of ten words: some of a table's title, a row's remark, and what a document says."""
    rng = np.random.default_rng(seed)
    tables = [item for item in made if isinstance(item, Table)]
    documents = {item.title: item for item in made if isinstance(item, Document)}
    asked = []
    for i in rng.integers(len(tables), size=n).tolist():
        row = tables[i].rows[int(rng.integers(_ROWS))]
        said = documents[row[0]].text.replace(".", "").split()
        chosen = [said[j] for j in rng.integers(len(said), size=5).tolist()]
        asked.append(" ".join([*tables[i].title.split()[:3], *row[2].split(), *chosen]))
    return asked


def arrays(n_nodes: int, degree: int, *, seed: int = 0, terms: int = 20) -> tuple[Graph, HybridIndex]:
    """Return a graph of any size and its lexical index, made column by column: there are no texts behind them.

    Parameters
    ----------
    degree
        Edges that leave each node, to random others.
    terms
        Terms a node, of a vocabulary in which the rank of a term has a Zipf distribution.
    """
    rng = np.random.default_rng(seed)
    table = NodeTable(
        _numbered(n_nodes),
        Strings.repeat("", n_nodes),
        Strings.repeat("", n_nodes),
        np.zeros(n_nodes, dtype=np.int32),
        [("Document",)],
        Records.repeat({}, n_nodes),
    )
    m = n_nodes * degree
    whole = np.full(m, NO_PART, dtype=np.int32)
    target = rng.integers(n_nodes, size=m, dtype=np.int32).reshape(n_nodes, degree)
    target.sort(axis=1)
    edges = EdgeTable(
        n_nodes,
        np.repeat(np.arange(n_nodes, dtype=np.int32), degree),
        target.ravel(),
        np.zeros(m, dtype=np.int16),
        ["MENTIONS"],
        rng.uniform(0.5, 1.0, m).astype(np.float32),
        whole,
        whole,
        Records.repeat({}, m),
    )
    ranks = np.minimum((_WORDS ** rng.random((n_nodes, terms), dtype=np.float32)).astype(np.int32), _WORDS - 1)
    indptr = np.arange(n_nodes + 1, dtype=np.int64) * terms
    counted = sp.csr_matrix((np.ones(n_nodes * terms, np.float32), ranks.ravel(), indptr), shape=(n_nodes, _WORDS))
    counted.sum_duplicates()
    counts = FieldCounts([f"w{i}" for i in range(_WORDS)], {"body": counted}, np.zeros(n_nodes + 1, dtype=np.int64))
    lexical = BM25Index(table, counts, NodeText(), Analyzer("", ""), BM25Settings())
    return Graph(table, edges), HybridIndex(lexical)


def array_questions(n: int, seed: int = 1) -> list[str]:
    """Return questions for `arrays`: eight terms, some common and some rare."""
    rng = np.random.default_rng(seed)
    ranks = (_WORDS ** rng.uniform(0.3, 1.0, (n, 8))).astype(int)
    return [" ".join(f"w{min(rank, _WORDS - 1)}" for rank in row) for row in ranks.tolist()]


def _numbered(n: int) -> Strings:
    return Strings.of(f"n{i:08d}" for i in range(n))
