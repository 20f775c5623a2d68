"""The parser's place among the tokens, and how it complains."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from cypherast.ast import AstNode
from cypherast.errors import ParseError, Position
from cypherast.lexer import KEYWORDS, TokenKind
from cypherast.lexer import Token as LibraryToken
from cypherast.parser import Parser

from graphret.cypher.tokens import BAD, COMMENT, END, NAME, NUMBER, PARAMETER, QUOTED_NAME, STRING, Token
from graphret.cypher.tree import mark

Node = TypeVar("Node", bound=AstNode)
Result = TypeVar("Result")

_OPERATORS = {
    "(": TokenKind.LPAREN,
    ")": TokenKind.RPAREN,
    "[": TokenKind.LBRACKET,
    "]": TokenKind.RBRACKET,
    "{": TokenKind.LBRACE,
    "}": TokenKind.RBRACE,
    ",": TokenKind.COMMA,
    ".": TokenKind.DOT,
    ":": TokenKind.COLON,
    ";": TokenKind.SEMICOLON,
    "|": TokenKind.PIPE,
    "=": TokenKind.EQ,
    "<>": TokenKind.NEQ,
    "<": TokenKind.LT,
    ">": TokenKind.GT,
    "<=": TokenKind.LTE,
    ">=": TokenKind.GTE,
    "=~": TokenKind.REGEX,
    "+": TokenKind.PLUS,
    "-": TokenKind.MINUS,
    "*": TokenKind.STAR,
    "/": TokenKind.SLASH,
    "%": TokenKind.PERCENT,
    "^": TokenKind.CARET,
    "..": TokenKind.DOTDOT,
    "&": TokenKind.AMP,
    "!": TokenKind.BANG,
}
_KINDS = {QUOTED_NAME: TokenKind.IDENT, STRING: TokenKind.STRING, PARAMETER: TokenKind.PARAMETER, END: TokenKind.EOF}


class Placed(LibraryToken):
    """A token as `cypherast`'s parser takes it, that also knows its end, its keyword and its operator."""

    __slots__ = ("end", "named", "operator", "start", "token", "word")

    def __init__(self, token: Token, kind: TokenKind, text: str) -> None:
        super().__init__(kind, text, Position(1, 1, token.start))
        self.token = token
        self.start = token.start
        self.end = token.end
        self.named = token.kind == NAME or token.kind == QUOTED_NAME
        self.word = token.text.upper() if token.kind == NAME else ""
        self.operator = token.value if kind in _OPERATOR_KINDS else ""


_OTHER = TokenKind.BOOLEAN  # the library's parser never asks for it
_OPERATOR_KINDS = frozenset(_OPERATORS.values()) | {_OTHER}


def _places(token: Token) -> list[Placed]:
    if token.text == "+=":  # the library reads it as two
        halves = (
            Token(token.kind, "+", token.start, token.start + 1, "+"),
            Token(token.kind, "=", token.end - 1, token.end, "="),
        )
        return [_place(half) for half in halves]
    return [_place(token)]


def _place(token: Token) -> Placed:
    if token.kind == NAME:
        return Placed(token, KEYWORDS.get(token.text.upper(), TokenKind.IDENT), token.text)
    if token.kind == NUMBER:
        digits = token.value.lower()
        whole = digits.startswith(("0x", "0o")) or digits.isdigit()
        return Placed(token, TokenKind.INTEGER if whole else TokenKind.FLOAT, token.value)
    kind = _KINDS.get(token.kind) or _OPERATORS.get(token.value, _OTHER)
    return Placed(token, kind, token.value)


class Cursor(Parser):
    """`cypherast`'s parser over tokens that know their places."""

    #: Whether ``|`` may join labels; it may not where it begins the projection of a comprehension.
    bars = True

    def __init__(self, query: str, tokens: list[Token], dialect: str) -> None:
        # Not the library's own start: it would cut the text into tokens by other rules than the server's.
        self.source = query
        self.dialect = None
        self.language = dialect
        self.max_depth = 1000
        self._depth = 0
        self._i = 0
        self._failed: set[tuple[str, int, bool]] = set()
        self._furthest: tuple[int, ParseError] | None = None
        self.placed = [placed for t in tokens if t.kind != COMMENT for placed in _places(t)]
        self.tokens = list(self.placed)

    @property
    def furthest(self) -> ParseError | None:
        """The complaint about the token that is furthest on: what a backtracking parser best reports."""
        return self._furthest[1] if self._furthest else None

    # --- looking at tokens ------------------------------------------------

    def _now(self, ahead: int = 0) -> Placed:
        index = self._i + ahead
        return self.placed[index] if index < len(self.placed) else self.placed[-1]

    def _is(self, operator: str, ahead: int = 0) -> bool:
        return self._now(ahead).operator == operator

    def _is_word(self, *words: str, ahead: int = 0) -> bool:
        return self._now(ahead).word in words

    def _take(self, operator: str) -> bool:
        if self._now().operator == operator:
            self._i += 1
            return True
        return False

    def _take_word(self, *words: str) -> bool:
        if self._now().word in words:
            self._i += 1
            return True
        return False

    def _need(self, operator: str) -> Placed:
        token = self._now()
        if token.operator != operator:
            raise self._wrong(repr(operator))
        self._i += 1
        return token

    def _need_word(self, *words: str) -> Placed:
        token = self._now()
        if token.word not in words:
            raise self._wrong(" or ".join(words))
        self._i += 1
        return token

    def _need_name(self, what: str = "a name") -> Placed:
        token = self._now()
        if not token.named:
            raise self._wrong(what)
        self._i += 1
        return token

    # --- places and complaints --------------------------------------------

    def _mark(self, node: Node, start: int) -> Node:
        """Give a node the place from the token of that index to the last one taken."""
        mark(node, self.placed[start].start, self.placed[max(self._i - 1, start)].end)
        return node

    def _wrong(self, expected: str) -> ParseError:
        token = self._now()
        if token.token.kind == BAD:
            return self._err(token.token.value, code="CG1001")
        found = "the end of the query" if token.token.kind == END else repr(token.token.text)
        return self._err(f"unexpected {found}: expected {expected}", code="CG1102")

    def _err(self, message: str, *, code: str, expected: set[str] | None = None) -> ParseError:
        error = ParseError(message, code=code, position=self._now().position)
        error.extra = {"reason": message, "token": self._now()}
        if self._furthest is None or self._i > self._furthest[0]:
            self._furthest = (self._i, error)
        return error

    def _attempt(self, production: Callable[[], Result]) -> Result | None:
        """Parse by a production, or return None and stay where we were.

        What failed at a place fails there again, so that nesting does not double the work.
        """
        start, depth, bars = self._i, self._depth, self.bars
        key = (production.__name__, start, bars)
        if key in self._failed:
            return None
        try:
            return production()
        except ParseError:
            self._i, self._depth, self.bars = start, depth, bars
            self._failed.add(key)
            return None

    def _list(self, production: Callable[[], Any]) -> list[Any]:
        items = [production()]
        while self._take(","):
            items.append(production())
        return items
