"""A graph in Neo4j: `Neo4jStore`, its asynchronous twin, and how graphs of others are read."""

from graphret.stores.neo4j.asynchronous import AsyncNeo4jStore
from graphret.stores.neo4j.layout import FOREIGN, LLAMA_INDEX, OWN, Layout
from graphret.stores.neo4j.names import quote
from graphret.stores.neo4j.store import Neo4jStore
from graphret.stores.neo4j.where import Neo4jWhere

__all__ = ["FOREIGN", "LLAMA_INDEX", "OWN", "AsyncNeo4jStore", "Layout", "Neo4jStore", "Neo4jWhere", "quote"]
