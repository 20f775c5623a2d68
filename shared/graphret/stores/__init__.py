"""Where a graph lives. Stores in databases are imported when they are first used."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from graphret.stores.addresses import open_store
from graphret.stores.base import CypherStore, GraphStore, Rows
from graphret.stores.memory import Graph, MemoryStore

if TYPE_CHECKING:
    from graphret.stores.ladybug import LadybugStore
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
_LATER = {"LadybugStore": "ladybug", "Neo4jStore": "neo4j"}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"graphret.stores.{_LATER[name]}"), name)
