"""The grammars of the dialects, on `cypherast`'s recursive-descent parser.

The library's own productions stand where they agree with the server; the modules here replace those that are laxer or
stricter than Neo4j 5, and give every node its place in the text.
"""

from __future__ import annotations

from graphret.cypher.grammar.clauses import Clauses
from graphret.cypher.grammar.ladybug import LadybugClauses
from graphret.errors import InvalidInput

_GRAMMARS: dict[str, type[Clauses]] = {"neo4j": Clauses, "ladybug": LadybugClauses}


def grammar_of(dialect: str) -> type[Clauses]:
    """The parser of a dialect."""
    if dialect not in _GRAMMARS:
        raise InvalidInput(f"dialect: {dialect!r} is none of {', '.join(_GRAMMARS)}")
    return _GRAMMARS[dialect]
