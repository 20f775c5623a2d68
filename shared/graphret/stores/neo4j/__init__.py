"""A graph in Neo4j: `Neo4jStore`, and how graphs of others are read.

`layout` says where ids, names and texts are and what becomes of a property, `graph` what is asked and written and how
conditions become Cypher, `schema` how the schema is sampled, `connection` how statements are run.
"""

from graphret.stores.neo4j.layout import quote
from graphret.stores.neo4j.store import Neo4jStore

__all__ = ["Neo4jStore", "quote"]
