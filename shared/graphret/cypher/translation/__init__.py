"""Queries as users of Neo4j write them, in the words of the database that runs them.

A rewrite is made where the other words mean the same. What cannot be said in them stays
as it was, and the guard refuses it with its advice. Every rewrite is checked again.
"""

from graphret.cypher.translation.changes import Recheck, Translated
from graphret.cypher.translation.labels import (
    TablesByLabel,
    label_tables_of,
    with_all_tables,
)
from graphret.cypher.translation.rounds import translate

__all__ = [
    "Recheck",
    "TablesByLabel",
    "Translated",
    "label_tables_of",
    "translate",
    "with_all_tables",
]
