"""Queries as users of Neo4j write them, in the words of the database that runs them.

A rewrite is made where the other words mean the same. What cannot be said in them stays
as it was, and the guard refuses it with its advice. Every rewrite is checked again.
"""

from graphret.cypher.translation.bearers import (
    Bearers,
    bearers_of,
    with_all_bearers,
)
from graphret.cypher.translation.changes import Recheck, Translated
from graphret.cypher.translation.rounds import translate

__all__ = [
    "Bearers",
    "Recheck",
    "Translated",
    "bearers_of",
    "translate",
    "with_all_bearers",
]
