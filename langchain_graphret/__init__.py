"""graphret in LangChain and LangGraph: retrievers, compressors, graphs, adapters."""

from __future__ import annotations

from graphret import ScriptedExplorer
from graphret.errors import MissingDependency

try:
    import langgraph.graph  # noqa: F401
except ImportError as error:
    raise MissingDependency(
        "langchain-core", "langchain", "langchain_graphret"
    ) from error

from langchain_graphret.ark import (
    ArkRetriever,
    ark_tools,
    create_ark_agent,
    create_ark_graph,
    create_ark_tool,
)
from langchain_graphret.chat import LangChainChat
from langchain_graphret.documents import KEY, evidence_of, from_document, to_document
from langchain_graphret.embeddings import EncoderEmbeddings
from langchain_graphret.expansion import SageExpansion
from langchain_graphret.fusion import RRFFusionRetriever
from langchain_graphret.graph import SageGraph
from langchain_graphret.graphraft import GraphRAFTRetriever, create_graphraft_graph
from langchain_graphret.grasp import GraspRetriever, create_plan_node
from langchain_graphret.reranker import GraphReranker
from langchain_graphret.retriever import SageRetriever, as_langchain_retriever
from langchain_graphret.seeds import LangChainSeeds
from langchain_graphret.spark import SparkRetriever, create_spark_graph

__all__ = [
    "KEY",
    "ArkRetriever",
    "EncoderEmbeddings",
    "GraphRAFTRetriever",
    "GraphReranker",
    "GraspRetriever",
    "LangChainChat",
    "LangChainSeeds",
    "RRFFusionRetriever",
    "SageExpansion",
    "SageGraph",
    "SageRetriever",
    "ScriptedExplorer",
    "SparkRetriever",
    "ark_tools",
    "as_langchain_retriever",
    "create_ark_agent",
    "create_ark_graph",
    "create_ark_tool",
    "create_graphraft_graph",
    "create_plan_node",
    "create_spark_graph",
    "evidence_of",
    "from_document",
    "to_document",
]
