"""SAGE: a graph of chunks built offline, expanded one hop online."""

from graphret.sage.graph import SageGraph
from graphret.sage.retriever import SageRetriever
from graphret.sage.settings import LinkSettings, SageSettings, SimilaritySettings
from graphret.sage.similar_nodes import RichNodes, link_similar, rich_nodes

__all__ = [
    "LinkSettings",
    "RichNodes",
    "SageGraph",
    "SageRetriever",
    "SageSettings",
    "SimilaritySettings",
    "link_similar",
    "rich_nodes",
]
