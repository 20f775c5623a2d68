r"""A query cut into tokens, each with its place in the text.

What servers cut in different ways is refused rather than read: ``\uXXXX`` anywhere but
in a plain string, or where it would end one; a character that is not a letter, digit,
space or symbol of Cypher; a line end that only some servers take for one. Between
quotes or backticks every character is one of the text, but for the closing one and the
backslash.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

NAME = "name"
QUOTED_NAME = "quoted name"
STRING = "string"
NUMBER = "number"
PARAMETER = "parameter"
OPERATOR = "operator"
END = "end"

#: What Neo4j 5.26 and Ladybug 0.22 both take for white space.
_SPACES = "\t\n\x0b\x0c\r\x1c-\x20\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
#: What Unicode takes for the end of a line; Neo4j ends a comment at the first two,
#: Ladybug at the first.
_LINE_ENDS = "\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"
_DIGITS = r"[0-9](?:_?[0-9])*"
_EXPONENT = r"[eE][+-]?(?:_?[0-9])+"
_QUOTED = r"`(?:[^`]|``)*`"

_TOKEN = re.compile(
    rf"""
    (?P<space>(?:[{_SPACES}]|//[^{_LINE_ENDS}]*(?=\r?\n|\Z)|/\*(?:(?!/\*|\*/).)*\*/)+)
  | (?P<string>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")
  | (?P<quoted>{_QUOTED})
  | (?P<number>(?:(?:{_DIGITS})?\.{_DIGITS}(?:{_EXPONENT})?|{_DIGITS}(?:{_EXPONENT})?)[\w$]*)
  | (?P<parameter>\$(?:\w+|{_QUOTED}))
  | (?P<operator>(?!/[/*])(?:<>|<=|>=|=~|!=|\.\.|::|\|\||[()\[\]{{}},.:;|=<>+\-*/%^&!]))
  | (?P<name>[^\W\d]\w*)
    """,
    re.VERBOSE | re.DOTALL,
)
_NUMBER = re.compile(
    rf"0[xX][0-9a-fA-F]+(?:_[0-9a-fA-F]+)*|0o[0-7]+(?:_[0-7]+)*|(?:{_DIGITS})?(?:\.{_DIGITS})?(?:{_EXPONENT})?"
    r"|(?:[0-9]*\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+)[dDfF]"  # as Java's doubles, without _
)
_ESCAPE = re.compile(r"\\(?:u(?P<hex>[0-9a-fA-F]{4})|(?P<other>.))", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
_ENDS_A_STRING = frozenset("'\"`\\")
_ODD = re.compile(r"[^ -~\t\n\r]")
_LARGEST_INTEGER = 2**63
_MOST_DIGITS = 40


@dataclass(frozen=True, slots=True)
class Token:
    """A token of a query as it is written, and where; a keyword is a name.

    `value` is what it means: a name or a parameter without its quotes, what a string
    holds, a number without ``_``.
    """

    kind: str
    text: str
    start: int
    end: int
    value: str

    @property
    def name(self) -> str:
        """The name that it is, quoted or not, or an empty string."""
        return self.value if self.kind == NAME or self.kind == QUOTED_NAME else ""

    @property
    def word(self) -> str:
        """The token in capitals if it may be a keyword, or an empty string."""
        return self.text.upper() if self.kind == NAME and self.text.isascii() else ""

    @property
    def operator(self) -> str:
        """The operator or bracket that it is, or an empty string."""
        return self.text if self.kind == OPERATOR else ""


class Unreadable(Exception):
    """The text cannot be cut in one way that every server shares."""

    def __init__(self, reason: str, start: int, end: int) -> None:
        super().__init__(reason)
        self.reason, self.start, self.end = reason, start, end


def tokenise(query: str) -> list[Token]:
    """Cut a query into tokens without spaces and comments; the last is of kind ``end``.

    Raises `Unreadable`.
    """
    tokens: list[Token] = []
    position = 0
    while position < len(query):
        match = _TOKEN.match(query, position)
        if match is None:
            raise _unreadable(query, position)
        kind, text = str(match.lastgroup), match.group()
        _require_plain(kind, text, position)
        if kind != "space":
            tokens.append(_token(kind, text, position))
        position = match.end()
    return [*tokens, Token(END, "", len(query), len(query), "")]


def _token(kind: str, text: str, start: int) -> Token:
    value = text
    if kind == "string":
        value = _ESCAPE.sub(_unescaped, text[1:-1])
    elif kind == "quoted":
        kind, value = QUOTED_NAME, text[1:-1].replace("``", "`")
    elif kind == "parameter":
        value = text[2:-1].replace("``", "`") if text[1] == "`" else text[1:]
    elif kind == "number":
        if wrong := _wrong_number(text):
            raise Unreadable(wrong, start, start + len(text))
        value = _plain_number(text)
    return Token(kind, text, start, start + len(text), value)


def _unescaped(escape: re.Match[str]) -> str:
    return (
        chr(int(escape["hex"], 16))
        if escape["hex"]
        else _ESCAPED.get(escape["other"], escape["other"])
    )


def _plain_number(text: str) -> str:
    """The number without ``_`` and the letter that may end a decimal number."""
    return (
        text.replace("_", "")
        if text[:2] in ("0x", "0X")
        else text.replace("_", "").rstrip("dDfF")
    )


def _wrong_number(text: str) -> str:
    """Why the text is not a number, or an empty string."""
    if len(text) > 1 and text[0] == "0" and text.isdigit():
        return f"octal numbers are written 0o{text[1:]}"
    if not _NUMBER.fullmatch(text):
        return "not a number"
    digits = _plain_number(text).lower()
    if digits.isdigit() or digits.startswith(("0x", "0o")):
        too_large = len(digits) > _MOST_DIGITS or int(digits, 0) > _LARGEST_INTEGER
        return "the integer is too large" if too_large else ""
    return "the number is too large" if float(digits) == float("inf") else ""


# --- what servers read in different ways ------------------------------------


def _require_plain(kind: str, text: str, start: int) -> None:
    """Refuse what servers read in different ways within a token."""
    if kind == "string":
        for escape in _ESCAPE.finditer(text):
            character = chr(int(escape["hex"], 16)) if escape["hex"] else ""
            control = bool(character) and unicodedata.category(character) in (
                "Cc",
                "Cs",
            )
            if escape["other"] == "u" or character in _ENDS_A_STRING or control:
                place = start + escape.start()
                raise Unreadable(
                    f"the escape {escape.group()} may not stand in a string",
                    place,
                    place + 2,
                )
        return
    if "\\u" in text:
        raise _escaped(start + text.index("\\u"))
    for odd in _ODD.finditer(text):
        character = odd.group()
        if kind == "quoted" or text.startswith("$`"):
            plain = character != "\0" and unicodedata.category(character) != "Cs"
        elif kind in ("name", "parameter"):
            plain = unicodedata.category(character)[0] in "LNM"
        else:
            plain = character.isprintable() or (
                kind == "space" and bool(re.match(f"[{_SPACES}]", character))
            )
        if not plain:
            raise _odd(character, start + odd.start())


def _unreadable(query: str, position: int) -> Unreadable:
    character = query[position]
    if character in "'\"`":
        return Unreadable(
            "a string or quoted name that does not end", position, position + 1
        )
    if query.startswith(("/*", "//"), position):
        reason = (
            "a comment does not end, has another within, or ends in a way that servers"
            " read differently"
        )
        return Unreadable(reason, position, position + 2)
    if query.startswith("\\u", position):
        return _escaped(position)
    if character == "$":
        return Unreadable(
            "the name of a parameter stands right behind its $", position, position + 1
        )
    return _odd(character, position)


def _escaped(position: int) -> Unreadable:
    return Unreadable(
        "an escape \\uXXXX may stand only within a string", position, position + 2
    )


def _odd(character: str, position: int) -> Unreadable:
    shown = character if character.isprintable() else f"U+{ord(character):04X}"
    return Unreadable(
        f"the character {shown} may stand only within a string", position, position + 1
    )
