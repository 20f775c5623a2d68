"""graphret in LangChain and LangGraph: retrievers, a compressor, and adapters both ways."""

from __future__ import annotations

from graphret.errors import MissingDependency

try:
    import langchain_core  # noqa: F401
except ImportError as error:
    raise MissingDependency("langchain-core", "langchain", "langchain_graphret") from error

from langchain_graphret.chat import LangChainChat
from langchain_graphret.documents import KEY, evidence_of, from_document, to_document, to_hit
from langchain_graphret.embeddings import EncoderEmbeddings
from langchain_graphret.expansion import SageExpansion
from langchain_graphret.filters import to_where
from langchain_graphret.graph import SageGraph
from langchain_graphret.retriever import SageRetriever
from langchain_graphret.seeds import LangChainSeeds

__all__ = [
    "KEY",
    "EncoderEmbeddings",
    "LangChainChat",
    "LangChainSeeds",
    "SageExpansion",
    "SageGraph",
    "SageRetriever",
    "evidence_of",
    "from_document",
    "to_document",
    "to_hit",
    "to_where",
]
