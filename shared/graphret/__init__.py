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
    "graphret.linking": ("Linker",),
    "graphret.rerank": ("Rerank",),
    "graphret.retriever": ("Fallback", "Fuse", "IndexRetriever", "Retriever"),
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
    "graphret.stores": ("LadybugStore", "MemoryStore", "Neo4jStore", "open_store"),
    "graphret.types": (
        "Edge",
        "Evidence",
        "Hit",
        "Node",
        "Retrieval",
        "Signals",
        "Trace",
    ),
    "graphret.where": ("Where",),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}

if TYPE_CHECKING:
    from graphret.ark import Ark, ArkSettings, ScriptedExplorer
    from graphret.corpus import Corpus, Document, HeuristicMetadata, Record, Table, read
    from graphret.errors import GraphretError, InvalidInput
    from graphret.expansion import Coverage, Expand, Propagate, SageRanking
    from graphret.linking import Linker
    from graphret.rerank import Rerank
    from graphret.retriever import Fallback, Fuse, IndexRetriever, Retriever
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
    from graphret.stores import LadybugStore, MemoryStore, Neo4jStore, open_store
    from graphret.types import Edge, Evidence, Hit, Node, Retrieval, Signals, Trace
    from graphret.where import Where

__all__ = [
    "Ark",
    "ArkSettings",
    "Corpus",
    "Document",
    "HeuristicMetadata",
    "Record",
    "ScriptedExplorer",
    "Table",
]
__all__ += [
    "Coverage",
    "Expand",
    "GraphretError",
    "InvalidInput",
    "Linker",
    "Propagate",
    "Rerank",
    "SageRanking",
    "read",
]
__all__ += [
    "Fallback",
    "Fuse",
    "IndexRetriever",
    "Retriever",
    "SageGraph",
    "SageRetriever",
    "SageSettings",
]
__all__ += [
    "BM25Index",
    "DenseIndex",
    "FieldIndex",
    "GraphSchema",
    "HybridIndex",
    "Neo4jTextIndex",
    "NodeText",
]
__all__ += [
    "Edge",
    "Evidence",
    "Hit",
    "LadybugStore",
    "MemoryStore",
    "Neo4jStore",
    "Node",
    "Retrieval",
    "open_store",
]
__all__ += ["Signals", "Trace", "Where"]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
