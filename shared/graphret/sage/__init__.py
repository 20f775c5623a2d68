"""SAGE: a graph of chunks built offline, expanded one hop online."""

from graphret.sage.graph import SageGraph
from graphret.sage.retriever import SageRetriever
from graphret.sage.settings import LinkSettings, SageSettings, SimilaritySettings

__all__ = ["LinkSettings", "SageGraph", "SageRetriever", "SageSettings", "SimilaritySettings"]
