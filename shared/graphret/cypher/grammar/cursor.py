"""The parser's place among the tokens, and how it complains."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from cypherast.ast import AstNode

from graphret.cypher.tokens import END, NUMBER, Token
from graphret.cypher.tree import mark

Node = TypeVar("Node", bound=AstNode)
Result = TypeVar("Result")

_MOST_DEPTH = 1000


class Unexpected(Exception):
    """A token that may not stand where it does."""

    def __init__(self, reason: str, token: Token) -> None:
        super().__init__(reason)
        self.reason, self.token = reason, token


class Cursor:
    """A place among the tokens of a query, from which productions read on."""

    #: Whether ``|`` may join labels; it may not where it begins the projection of a
    #: comprehension.
    bars = True

    def __init__(self, query: str, tokens: list[Token]) -> None:
        self.source = query
        self.tokens = tokens
        # What is asked of every token again and again.
        self._operators = [token.operator for token in tokens]
        self._words = [token.word for token in tokens]
        self._depth = 0
        self._i = 0
        self._failed: set[tuple[str, int, bool]] = set()
        #: The complaint about the token that is furthest on: what a backtracking parser
        #: best reports.
        self.furthest: Unexpected | None = None

    # --- looking at tokens ------------------------------------------------

    def _now(self, ahead: int = 0) -> Token:
        return self.tokens[min(self._i + ahead, len(self.tokens) - 1)]

    def _is(self, operator: str, ahead: int = 0) -> bool:
        index = self._i + ahead
        return index < len(self.tokens) and self._operators[index] == operator

    def _is_word(self, *words: str, ahead: int = 0) -> bool:
        index = self._i + ahead
        return index < len(self.tokens) and self._words[index] in words

    def _is_whole(self) -> bool:
        """Whether a whole number stands here."""
        token = self._now()
        return token.kind == NUMBER and (
            token.value.isdigit() or token.value[:2].lower() in ("0x", "0o")
        )

    def _take(self, operator: str) -> bool:
        matches = self._operators[self._i] == operator
        self._i += matches
        return matches

    def _take_word(self, *words: str) -> bool:
        matches = self._words[self._i] in words
        self._i += matches
        return matches

    def _need(self, operator: str) -> None:
        if self._operators[self._i] != operator:
            raise self._wrong(repr(operator))
        self._i += 1

    def _need_word(self, *words: str) -> Token:
        if self._words[self._i] not in words:
            raise self._wrong(" or ".join(words))
        self._i += 1
        return self.tokens[self._i - 1]

    def _need_name(self, what: str = "a name") -> Token:
        if not self._now().name:
            raise self._wrong(what)
        self._i += 1
        return self.tokens[self._i - 1]

    # --- places and complaints --------------------------------------------

    def _mark(self, node: Node, start: int) -> Node:
        """Give a node the place from the token of that index to the last one taken."""
        mark(node, self.tokens[start].start, self.tokens[max(self._i - 1, start)].end)
        return node

    def _wrong(self, expected: str) -> Unexpected:
        token = self._now()
        token_text = "the end of the query" if token.kind == END else repr(token.text)
        return self._error(f"unexpected {token_text}: expected {expected}")

    def _error(self, reason: str) -> Unexpected:
        error = Unexpected(reason, self._now())
        if self.furthest is None or error.token.start > self.furthest.token.start:
            self.furthest = error
        return error

    @contextmanager
    def _nesting(self) -> Iterator[None]:
        self._depth += 1
        if self._depth > _MOST_DEPTH:
            raise RecursionError
        yield
        self._depth -= 1

    def _attempt(self, production: Callable[[], Result]) -> Result | None:
        """Parse by a production, or return None and stay where we were.

        What failed at a place fails there again, so that nesting does not double the
        work.
        """
        start, depth, bars = self._i, self._depth, self.bars
        key = (production.__name__, start, bars)
        if key in self._failed:
            return None
        try:
            return production()
        except Unexpected:
            self._i, self._depth, self.bars = start, depth, bars
            self._failed.add(key)
            return None

    @contextmanager
    def _bars(self, bars: bool) -> Iterator[None]:
        """Whether ``|`` may join labels within."""
        before, self.bars = self.bars, bars
        try:
            yield
        finally:
            self.bars = before

    def _list(self, production: Callable[[], Any]) -> list[Any]:
        items = [production()]
        while self._take(","):
            items.append(production())
        return items
