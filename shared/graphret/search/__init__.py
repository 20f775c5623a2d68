"""Finding nodes by text."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from graphret.search.analysis import Analyzer
from graphret.search.arrays import ArrayIndex
from graphret.search.bm25 import BM25Index, BM25Settings
from graphret.search.dense import DenseIndex
from graphret.search.fields import NodeText
from graphret.search.hybrid import FieldIndex, HybridIndex
from graphret.search.index import Matches, TextIndex

if TYPE_CHECKING:
    from graphret.search.neo4j_index import Neo4jTextIndex

__all__ = [
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
]


def __getattr__(name: str) -> Any:
    if name == "Neo4jTextIndex":
        return import_module("graphret.search.neo4j_index").Neo4jTextIndex
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
