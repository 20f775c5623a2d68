"""Finding nodes by text."""

from graphret.search.analysis import Analyzer
from graphret.search.bm25 import BM25Index, BM25Settings
from graphret.search.dense import DenseIndex, HnswSettings
from graphret.search.fields import NodeText
from graphret.search.hybrid import HybridIndex
from graphret.search.index import ArrayIndex, Matches, TextIndex

__all__ = [
    "Analyzer",
    "ArrayIndex",
    "BM25Index",
    "BM25Settings",
    "DenseIndex",
    "HnswSettings",
    "HybridIndex",
    "Matches",
    "NodeText",
    "TextIndex",
]
