"""graphret in LlamaIndex: retrievers, postprocessors, a node parser and adapters."""

from __future__ import annotations

from graphret.errors import MissingDependency

try:
    import llama_index.core  # noqa: F401
except ImportError as error:
    raise MissingDependency(
        "llama-index-core", "llama-index", "llama_index_graphret"
    ) from error

from llama_index_graphret.adapters import EncoderEmbedding, LlamaIndexSeeds
from llama_index_graphret.chat import LlamaIndexChat
from llama_index_graphret.evidence import (
    SageNodeWithScore,
    SageRetrievalEvent,
    evidence_of,
    retrieval_of,
)
from llama_index_graphret.filters import to_where
from llama_index_graphret.graph import SageGraph
from llama_index_graphret.ingestion import SageIngestion
from llama_index_graphret.methods import (
    ArkRetriever,
    GraphRAFTRetriever,
    GraspRetriever,
    SparkRetriever,
    ark_tools,
)
from llama_index_graphret.nodes import from_llama_node, to_llama_node
from llama_index_graphret.parser import SageNodeParser
from llama_index_graphret.postprocessors import (
    GraphReranker,
    RRFFusion,
    SageExpansion,
)
from llama_index_graphret.property_graph import (
    GraphNode,
    GraphRelation,
    GraphretPropertyGraphStore,
    from_property_graph_store,
)
from llama_index_graphret.relations import RelationsAsText
from llama_index_graphret.retriever import (
    RRFFusionRetriever,
    SageRetriever,
    as_llama_index_retriever,
)

__all__ = [
    "ArkRetriever",
    "EncoderEmbedding",
    "GraphNode",
    "GraphRAFTRetriever",
    "GraphRelation",
    "GraphReranker",
    "GraphretPropertyGraphStore",
    "GraspRetriever",
    "LlamaIndexChat",
    "LlamaIndexSeeds",
    "RRFFusion",
    "RRFFusionRetriever",
    "RelationsAsText",
    "SageExpansion",
    "SageGraph",
    "SageIngestion",
    "SageNodeParser",
    "SageNodeWithScore",
    "SageRetrievalEvent",
    "SageRetriever",
    "SparkRetriever",
    "ark_tools",
    "as_llama_index_retriever",
    "evidence_of",
    "from_llama_node",
    "from_property_graph_store",
    "retrieval_of",
    "to_llama_node",
    "to_where",
]
