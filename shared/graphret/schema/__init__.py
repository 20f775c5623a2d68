"""The schema of a graph: its kinds of nodes, relations and properties."""

from graphret.schema.builder import SchemaBuilder, merged_type, type_of
from graphret.schema.model import GraphSchema, PropertySchema

__all__ = ["GraphSchema", "PropertySchema", "SchemaBuilder", "merged_type", "type_of"]
