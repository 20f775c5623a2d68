"""Where a graph lives."""

from graphret.stores.base import GraphStore
from graphret.stores.memory import Graph, MemoryStore

__all__ = ["Graph", "GraphStore", "MemoryStore"]
