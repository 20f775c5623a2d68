"""Finding nodes by text."""

from graphret.search.analysis import Analyzer
from graphret.search.bm25 import BM25Index, BM25Settings
from graphret.search.dense import DenseIndex, HnswSettings
from graphret.search.fields import NodeText
from graphret.search.hybrid import HybridIndex
from graphret.search.index import ArrayIndex, Matches, TextIndex
from graphret.search.multi_field import FieldIndex
from graphret.search.neighborhood import NodeSource

__all__ = [
    "Analyzer",
    "ArrayIndex",
    "BM25Index",
    "BM25Settings",
    "DenseIndex",
    "FieldIndex",
    "HnswSettings",
    "HybridIndex",
    "Matches",
    "NodeSource",
    "NodeText",
    "TextIndex",
]
