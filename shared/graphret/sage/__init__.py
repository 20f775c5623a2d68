"""SAGE: a graph of chunks built offline, expanded one hop online."""

from graphret.sage.graph import SageGraph
from graphret.sage.retriever import SageRetriever
from graphret.sage.settings import LinkSettings, SageSettings, SimilaritySettings
from graphret.sage.similar_nodes import link_similar

__all__ = [
    "LinkSettings",
    "SageGraph",
    "SageRetriever",
    "SageSettings",
    "SimilaritySettings",
    "link_similar",
]
