"""The grammars of the dialects by recursive descent: tokens become a tree with places.

Only what a query may do that reads is read: a clause that writes, and a rare form that
no model writes, do not parse.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from graphret.cypher.codes import SYNTAX
from graphret.cypher.report import ERROR, Finding, place_of
from graphret.cypher.tokens import END, Token, Unreadable, tokenise
from graphret.errors import InvalidInput, MissingDependency

DIALECTS = ("neo4j", "ladybug")


@dataclass(frozen=True, slots=True)
class Parsed:
    """A query as the guard reads it: its tokens and its tree, or why it has none."""

    query: str
    dialect: str
    tokens: list[Token]
    tree: Any = None
    error: Finding | None = None


def parse(query: str, dialect: str = "neo4j") -> Parsed:
    """Read a query.

    Raises
    ------
    MissingDependency
        Without `cypherast`, which has the nodes of the tree.
    InvalidInput
        If the dialect is unknown.
    """
    if dialect not in DIALECTS:
        raise InvalidInput(f"dialect: {dialect!r} is none of {', '.join(DIALECTS)}")
    try:
        from graphret.cypher.grammar.clauses import Clauses
        from graphret.cypher.grammar.cursor import Unexpected
        from graphret.cypher.grammar.ladybug import LadybugClauses
    except ImportError as error:  # pragma: no cover - depends on the environment
        raise MissingDependency("cypherast", "cypher", "Checking Cypher") from error
    try:
        tokens = tokenise(query)
    except Unreadable as problem:
        finding = _error(query, problem.reason, problem.start, problem.end)
        return Parsed(query, dialect, [], error=finding)
    if tokens[0].kind == END:
        finding = _error(query, "there is no query", len(query), len(query))
        return Parsed(query, dialect, tokens, error=finding)
    grammar = LadybugClauses if dialect == "ladybug" else Clauses
    parser = grammar(query, tokens)
    try:
        return Parsed(query, dialect, tokens, parser.parse())
    except RecursionError:
        # What backtracking met before it is no reason then.
        finding = _error(query, "nested too deeply to be read", 0, len(query))
    except Unexpected as problem:
        furthest = parser.furthest or problem
        place = furthest.token
        finding = _error(query, furthest.reason, place.start, place.end)
    return Parsed(query, dialect, tokens, error=finding)


def _error(query: str, reason: str, start: int, end: int) -> Finding:
    return Finding(
        ERROR,
        SYNTAX,
        reason[0].upper() + reason[1:],
        start,
        end,
        *place_of(query, start),
    )
