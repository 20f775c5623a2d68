"""Where a graph lives."""

from graphret.stores.base import GraphStore
from graphret.stores.memory import Graph, MemoryStore
from graphret.stores.opening import open_store

__all__ = ["Graph", "GraphStore", "MemoryStore", "open_store"]
