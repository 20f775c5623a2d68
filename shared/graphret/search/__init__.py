"""Finding nodes by text."""

from graphret.search.adaptive import AdaptiveFieldIndex, TrainedFields
from graphret.search.analysis import Analyzer
from graphret.search.arrays import ArrayIndex
from graphret.search.bm25 import BM25Index, BM25Settings
from graphret.search.dense import DenseIndex
from graphret.search.fields import NodeText
from graphret.search.hybrid import FieldIndex, HybridIndex
from graphret.search.index import Matches, TextIndex
from graphret.search.neo4j_index import Neo4jTextIndex

__all__ = [
    "AdaptiveFieldIndex",
    "Analyzer",
    "ArrayIndex",
    "BM25Index",
    "BM25Settings",
    "DenseIndex",
    "FieldIndex",
    "HybridIndex",
    "Matches",
    "Neo4jTextIndex",
    "NodeText",
    "TextIndex",
    "TrainedFields",
]
