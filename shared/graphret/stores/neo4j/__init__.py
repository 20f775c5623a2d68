"""A graph in Neo4j: `Neo4jStore`, and how graphs of others are read."""

from graphret.stores.neo4j.layout import quote
from graphret.stores.neo4j.store import Neo4jStore

__all__ = ["Neo4jStore", "quote"]
