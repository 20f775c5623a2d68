r"""A second, stricter reading of a query's text, for the list of what may run.

It shares nothing with `graphret.cypher.tokens`, so that a mistake in one is not a mistake in both. What a server might
cut otherwise is refused rather than read: ``\uXXXX`` anywhere but in a plain string, or where it would end one; a
character that is no letter, digit, space or symbol of Cypher; a line end that only some servers take for one. Between
quotes or backticks every character is one of the text for the servers, but for the quote or backtick and the backslash.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

WORD = "word"
QUOTED = "quoted"
STRING = "string"
NUMBER = "number"
PARAMETER = "parameter"
SYMBOL = "symbol"
END = "end"

#: What Neo4j 5.26 and Ladybug 0.22 both take for white space.
_SPACES = "\t\n\x0b\x0c\r\x1c\x1d\x1e\x1f \xa0\u1680\u2028\u2029\u202f\u205f\u3000"
_SPACES += "".join(map(chr, range(0x2000, 0x200B)))
#: What Unicode takes for the end of a line; Neo4j ends a comment at the first two, Ladybug at the first.
_LINE_ENDS = "\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"
_SYMBOLS = ("<>", "<=", ">=", "=~", "..", "::", "||", *"()[]{},.:;|=<>+-*/%^&!$")
_PIECE = re.compile(
    rf"""
    (?P<space>(?:[{_SPACES}]|//[^{_LINE_ENDS}]*(?=\r?\n|\Z)|/\*(?:(?!/\*|\*/).)*\*/)+)
  | (?P<string>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")
  | (?P<quoted>`(?:[^`]|``)*`)
  | (?P<number>(?>0[xX][0-9a-fA-F_]+|0o[0-7_]+|(?:[0-9][0-9_]*)?\.[0-9][0-9_]*(?:[eE][+-]?[0-9]+)?[dDfF]?
              |[0-9][0-9_]*(?:[eE][+-]?[0-9]+[dDfF]?)?)(?![\w$]))
  | (?P<parameter>\$(?:\w+|`(?:[^`]|``)*`))
  | (?P<word>[^\W\d]\w*)
  | (?P<symbol>(?!/[/*])(?:{"|".join(re.escape(symbol) for symbol in _SYMBOLS)}))
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\(?:u(?P<hex>[0-9a-fA-F]{4})|(?P<other>.))", re.DOTALL)
_ODD = re.compile(r"[^ -~\t\n\r]")
_ENDS_A_STRING = frozenset("'\"`\\")


@dataclass(frozen=True, slots=True)
class Piece:
    """A token: its kind, its text as written, and where it stands. `name` is a name without its backticks."""

    kind: str
    text: str
    start: int
    end: int

    @property
    def keyword(self) -> str:
        """The word in capitals; empty for all else, and for a word with letters beyond ASCII."""
        return self.text.upper() if self.kind == WORD and self.text.isascii() else ""

    @property
    def name(self) -> str:
        """The name that it is, or an empty string."""
        if self.kind == QUOTED:
            return self.text[1:-1].replace("``", "`")
        return self.text if self.kind == WORD else ""

    def is_symbol(self, *symbols: str) -> bool:
        """Whether it is one of these symbols."""
        return self.kind == SYMBOL and self.text in symbols


class Unreadable(Exception):
    """The text cannot be cut in one way that every server shares."""

    def __init__(self, reason: str, start: int, end: int) -> None:
        super().__init__(reason)
        self.reason, self.start, self.end = reason, start, end


def scan(query: str) -> list[Piece]:
    """Cut a query into pieces; the last is of kind ``end``. Raises `Unreadable`."""
    pieces: list[Piece] = []
    position = 0
    while position < len(query):
        found = _PIECE.match(query, position)
        if found is None:
            raise _unreadable(query, position)
        kind, text = str(found.lastgroup), found.group()
        _require_plain(kind, text, position)
        if kind != "space":
            pieces.append(Piece(kind, text, position, found.end()))
        position = found.end()
    pieces.append(Piece(END, "", len(query), len(query)))
    return pieces


def _require_plain(kind: str, text: str, start: int) -> None:
    """Refuse what servers read in different ways within a piece."""
    if kind == STRING:
        for escape in _ESCAPE.finditer(text):
            character = chr(int(escape["hex"], 16)) if escape["hex"] else ""
            control = bool(character) and unicodedata.category(character) in ("Cc", "Cs")
            if escape["other"] == "u" or character in _ENDS_A_STRING or control:
                place = start + escape.start()
                raise Unreadable(f"the escape {escape.group()} may not stand in a string", place, place + 2)
        return
    if "\\u" in text:
        place = start + text.index("\\u")
        raise Unreadable("an escape \\uXXXX may stand only within a string", place, place + 2)
    for odd in _ODD.finditer(text):
        character = odd.group()
        if kind == QUOTED or text.startswith("$`"):
            plain = character != "\0" and unicodedata.category(character) != "Cs"
        elif kind in (WORD, PARAMETER):
            plain = unicodedata.category(character)[0] in "LNM"
        else:
            plain = character.isprintable() or (kind == "space" and character in _SPACES)
        if not plain:
            raise _odd(character, start + odd.start())


def _unreadable(query: str, position: int) -> Unreadable:
    character = query[position]
    if character in "'\"`":
        return Unreadable("a string or a quoted name does not end", position, len(query))
    if query.startswith("/*", position):
        return Unreadable("a comment does not end, or has another within", position, position + 2)
    if query.startswith("//", position):
        return Unreadable("a comment ends in a way that servers read differently", position, position + 2)
    if query.startswith("\\u", position):
        return Unreadable("an escape \\uXXXX may stand only within a string", position, position + 2)
    if character.isdigit():
        return Unreadable("a number runs into a name", position, position + 1)
    return _odd(character, position)


def _odd(character: str, position: int) -> Unreadable:
    shown = character if character.isprintable() else f"U+{ord(character):04X}"
    return Unreadable(f"the character {shown} may stand only within a string", position, position + 1)
