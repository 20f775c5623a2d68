"""Text becomes tokens and a syntax tree, or an error with its place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from graphret.cypher.report import Finding
from graphret.cypher.tokens import COMMENT, Token


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
        All its tokens with their offsets, comments included; the last is of kind ``end``.
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
