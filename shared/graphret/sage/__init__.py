"""SAGE: a graph of chunks built offline, expanded one hop online."""

from graphret.sage.graph import SageGraph, SageRetriever, SageSettings
from graphret.sage.links import LinkSettings
from graphret.sage.settings import SimilaritySettings, Thresholds

__all__ = ["LinkSettings", "SageGraph", "SageRetriever", "SageSettings", "SimilaritySettings", "Thresholds"]
