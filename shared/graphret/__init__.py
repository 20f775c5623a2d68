"""Structure-aware retrieval: connected evidence for RAG, with no LLM and no GPU.

Names are imported when they are first used, so that ``import graphret`` is quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

_HOMES = {
    "graphret.ark": ("Ark", "ArkSettings", "ScriptedExplorer"),
    "graphret.corpus": (
        "Corpus",
        "Document",
        "HeuristicMetadata",
        "Record",
        "Table",
        "read",
    ),
    "graphret.errors": ("GraphretError", "InvalidInput"),
    "graphret.expansion": ("Coverage", "Expand", "SageRanking", "Propagate"),
    "graphret.graphraft": ("GraphRAFT",),
    "graphret.grasp": ("Grasp",),
    "graphret.linking": ("Linker",),
    "graphret.rerank": ("Rerank",),
    "graphret.index_retriever": ("IndexRetriever",),
    "graphret.retriever": ("Fallback", "Fuse", "Retriever"),
    "graphret.sage": ("SageGraph", "SageRetriever", "SageSettings"),
    "graphret.schema": ("GraphSchema",),
    "graphret.search": (
        "BM25Index",
        "DenseIndex",
        "FieldIndex",
        "HybridIndex",
        "Neo4jTextIndex",
        "NodeText",
    ),
    "graphret.spark": ("Spark",),
    "graphret.stores": ("LadybugStore", "MemoryStore", "Neo4jStore", "open_store"),
    "graphret.trace": ("Trace",),
    "graphret.types": (
        "Edge",
        "Evidence",
        "Hit",
        "Node",
        "Retrieval",
        "Signals",
    ),
    "graphret.where": ("Where",),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}

if TYPE_CHECKING:
    from graphret.ark import Ark, ArkSettings, ScriptedExplorer
    from graphret.corpus import Corpus, Document, HeuristicMetadata, Record, Table, read
    from graphret.errors import GraphretError, InvalidInput
    from graphret.expansion import Coverage, Expand, Propagate, SageRanking
    from graphret.graphraft import GraphRAFT
    from graphret.grasp import Grasp
    from graphret.index_retriever import IndexRetriever
    from graphret.linking import Linker
    from graphret.rerank import Rerank
    from graphret.retriever import Fallback, Fuse, Retriever
    from graphret.sage import SageGraph, SageRetriever, SageSettings
    from graphret.schema import GraphSchema
    from graphret.search import (
        BM25Index,
        DenseIndex,
        FieldIndex,
        HybridIndex,
        Neo4jTextIndex,
        NodeText,
    )
    from graphret.spark import Spark
    from graphret.stores import LadybugStore, MemoryStore, Neo4jStore, open_store
    from graphret.trace import Trace
    from graphret.types import Edge, Evidence, Hit, Node, Retrieval, Signals
    from graphret.where import Where

__all__ = [
    "Ark",
    "ArkSettings",
    "BM25Index",
    "Corpus",
    "Coverage",
    "DenseIndex",
    "Document",
    "Edge",
    "Evidence",
    "Expand",
    "Fallback",
    "FieldIndex",
    "Fuse",
    "GraphRAFT",
    "GraphSchema",
    "GraphretError",
    "Grasp",
    "HeuristicMetadata",
    "Hit",
    "HybridIndex",
    "IndexRetriever",
    "InvalidInput",
    "LadybugStore",
    "Linker",
    "MemoryStore",
    "Neo4jStore",
    "Neo4jTextIndex",
    "Node",
    "NodeText",
    "Propagate",
    "Record",
    "Rerank",
    "Retrieval",
    "Retriever",
    "SageGraph",
    "SageRanking",
    "SageRetriever",
    "SageSettings",
    "ScriptedExplorer",
    "Signals",
    "Spark",
    "Table",
    "Trace",
    "Where",
    "open_store",
    "read",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
