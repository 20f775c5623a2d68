"""Text becomes tokens and a syntax tree, or an error with its place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from graphret.cypher.report import ERROR, Finding
from graphret.cypher.tokens import BAD, COMMENT, END, Token, tokenise
from graphret.errors import MissingDependency


@dataclass(frozen=True, slots=True)
class Parsed:
    """A query as the guard reads it.

    Parameters
    ----------
    query
        The text as given.
    dialect
        ``neo4j`` or ``ladybug``.
    tokens
        Its tokens with their offsets, comments included, up to the first of kind ``bad``; the last is of kind ``end``.
    tree
        Its syntax tree (`graphret.cypher.tree`), or None if it does not parse.
    error
        Why it does not parse, or None.
    """

    query: str
    dialect: str
    tokens: list[Token]
    tree: Any = None
    error: Finding | None = None

    @property
    def words(self) -> list[Token]:
        """The tokens without the comments."""
        return [t for t in self.tokens if t.kind != COMMENT]


def parse(query: str, dialect: str = "neo4j") -> Parsed:
    """Read a query.

    Raises
    ------
    MissingDependency
        Without `cypherast`.
    InvalidInput
        If the dialect is unknown.
    """
    try:
        from cypherast.errors import ParseError

        from graphret.cypher.grammar import grammar_of
    except ImportError as error:  # pragma: no cover - depends on the environment
        raise MissingDependency("cypherast", "cypher", "Checking Cypher") from error
    tokens = tokenise(query)
    bad = next((t for t in tokens if t.kind == BAD), None)
    if bad is not None:
        return Parsed(query, dialect, tokens, None, syntax_error(query, bad.value, bad.start, bad.end))
    if tokens[0].kind == END:
        return Parsed(query, dialect, tokens, None, syntax_error(query, "there is no query", 0, 0))
    parser = grammar_of(dialect)(query, tokens, dialect)
    try:
        return Parsed(query, dialect, tokens, parser.parse())
    except ParseError as error:
        # What is nested too deeply says no more; what backtracking met before it is then no reason.
        furthest = (parser.furthest or error) if error.extra else error
        place = furthest.extra.get("token")
        reason = furthest.extra.get("reason", "nested too deeply to be read")
        start, end = (place.start, place.end) if place is not None else (0, len(query))
        return Parsed(query, dialect, tokens, None, syntax_error(query, str(reason), start, end))


def syntax_error(query: str, reason: str, start: int, end: int) -> Finding:
    """A finding that says why a query does not parse."""
    line, column = place_of(query, start)
    return Finding(ERROR, "syntax", reason[0].upper() + reason[1:], start, end, line, column)


def place_of(query: str, offset: int) -> tuple[int, int]:
    """Line and column of an offset, both from 1."""
    before = query[:offset]
    return before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1
