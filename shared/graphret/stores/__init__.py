"""Where a graph lives.

Each store is imported when it is first used: the processes of databases need no other.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from graphret.stores.base import CypherStore, GraphStore, Rows

if TYPE_CHECKING:
    from graphret.stores.addresses import open_store
    from graphret.stores.ladybug import LadybugStore
    from graphret.stores.memory import Graph, MemoryStore
    from graphret.stores.neo4j import Neo4jStore

__all__ = [
    "CypherStore",
    "Graph",
    "GraphStore",
    "LadybugStore",
    "MemoryStore",
    "Neo4jStore",
    "Rows",
    "open_store",
]
_LATER = {"Graph": "memory", "MemoryStore": "memory", "open_store": "addresses"}
_LATER |= {"LadybugStore": "ladybug", "Neo4jStore": "neo4j"}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"graphret.stores.{_LATER[name]}"), name)
