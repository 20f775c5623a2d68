"""A query cut into tokens, each with its place in the text that was given.

The rules are those of Neo4j 5's own lexer: ``\\uXXXX`` is replaced before anything else is read, so that an escape may
end a string or begin a clause; every keyword may also be a name; ``$`` may stand within a name; several dashes of
Unicode draw a relationship. A token keeps the offsets of the text as written, escapes included.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache

NAME = "name"
QUOTED_NAME = "quoted name"
STRING = "string"
NUMBER = "number"
PARAMETER = "parameter"
OPERATOR = "operator"
COMMENT = "comment"
BAD = "bad"
END = "end"

_SPACE = "\t\n\x0b\x0c\r\x1c-\x20\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
_DASHES = "\xad\u2010-\u2015\ufe58\ufe63\uff0d"
_LEFT_HEADS = "\u27e8\u3008\ufe64\uff1c"
_RIGHT_HEADS = "\u27e9\u3009\ufe65\uff1e"
_DIGITS = r"[0-9](?:_?[0-9])*"
_EXPONENT = r"[eE][+-]?(?:_?[0-9])+"
_QUOTED = r"`(?:[^`]|``)*`"

_TOKEN = re.compile(
    rf"""
    (?P<space>[{_SPACE}]+)
  | (?P<comment>//[^\r\n]*|/\*.*?\*/)
  | (?P<open>/\*)
  | (?P<number>(?:(?:{_DIGITS})?\.{_DIGITS}(?:{_EXPONENT})?|{_DIGITS}(?:{_EXPONENT})?)[\w$]*)
  | (?P<string>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")
  | (?P<quoted>{_QUOTED})
  | (?P<parameter>\$(?:[A-Za-z0-9_\x80-\U0010ffff][\w$]*|{_QUOTED}))
  | (?P<operator><>|<=|>=|=~|!=|\+=|\.\.|::|\|\||[()\[\]{{}},.:;|=<>+\-*/%^&!$?{_DASHES}{_LEFT_HEADS}{_RIGHT_HEADS}])
  | (?P<name>[A-Za-z_\x80-\U0010ffff][\w$\x80-\U0010ffff]*)
  | (?P<bad>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})?|.)", re.DOTALL)
_NUMBER = re.compile(
    rf"0[xX][0-9a-fA-F]+(?:_[0-9a-fA-F]+)*|0o[0-7]+(?:_[0-7]+)*|(?:{_DIGITS})?(?:\.{_DIGITS})?(?:{_EXPONENT})?"
    r"|(?:[0-9]*\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+)[dDfF]"  # as Java's doubles, without _
)
_STRING_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
_START = frozenset(("Lu", "Ll", "Lt", "Lm", "Lo", "Nl", "Pc"))
_PART = _START | {"Nd", "Mn", "Mc", "Sc", "Cf"}
_LARGEST_INTEGER = 2**63
_MOST_DIGITS = 40


@dataclass(frozen=True, slots=True)
class Token:
    """A token of a query.

    Parameters
    ----------
    kind
        ``name`` (keywords too), ``quoted name``, ``string``, ``number``, ``parameter``, ``operator``, ``comment``,
        ``bad`` (no such token; `value` says why), or ``end``.
    text
        The token as it is written, after ``\\uXXXX`` is replaced.
    start, end
        Where in the query as given, as offsets of characters.
    value
        What it means: a name or a parameter without its quotes, what a string holds, an operator in ASCII.
    """

    kind: str
    text: str
    start: int
    end: int
    value: str

    @property
    def is_name(self) -> bool:
        """Whether it is a name, quoted or not."""
        return self.kind == NAME or self.kind == QUOTED_NAME

    def word(self) -> str:
        """The token in capitals if it may be a keyword, or an empty string."""
        return self.text.upper() if self.kind == NAME else ""


def tokenise(query: str) -> list[Token]:
    """Cut a query into tokens, comments included, up to the first that is none; the last is of kind ``end``."""
    text, offsets, broken = replace_escapes(query)
    tokens: list[Token] = []
    position, length = 0, len(text)
    match = _TOKEN.match
    while position < length:
        found = match(text, position)
        if found is None:  # pragma: no cover - the last alternative takes any character
            break
        kind = found.lastgroup or "bad"
        end = found.end()
        if kind != "space":
            token = _token(kind, found.group(), position)
            end = position + len(token.text)
            tokens.append(token)
            if token.kind == BAD:
                break
        position = end
    tokens.append(Token(END, "", length, length, ""))
    if offsets is not None:
        tokens = [Token(t.kind, t.text, offsets[t.start], offsets[t.end], t.value) for t in tokens]
    if broken is not None:
        end = min(broken + 6, len(query))
        tokens.insert(0, Token(BAD, query[broken:end], broken, end, "four hexadecimal digits expected"))
    return tokens


def replace_escapes(query: str) -> tuple[str, list[int] | None, int | None]:
    r"""Replace every ``\uXXXX`` as the server does before it reads tokens.

    Returns
    -------
    text
        The query with the escapes replaced; a backslash after a backslash begins none.
    offsets
        For each character of the text, and its end, where it stands in the query; None where nothing changed.
    broken
        Where an escape lacks its four digits, or None.
    """
    if "\\u" not in query:
        return query, None, None
    text: list[str] = []
    offsets: list[int] = []
    broken = None
    position = 0
    for found in _ESCAPE.finditer(query):
        text.extend(query[position : found.start()])
        offsets.extend(range(position, found.start()))
        if found.group(1):
            text.append(chr(int(found.group(1), 16)))
            offsets.append(found.start())
        else:
            if found.group().startswith("\\u") and broken is None:
                broken = found.start()
            text.extend(found.group())
            offsets.extend(range(found.start(), found.end()))
        position = found.end()
    text.extend(query[position:])
    offsets.extend(range(position, len(query) + 1))
    return "".join(text), offsets, broken


def _token(kind: str, text: str, start: int) -> Token:
    if kind == "name":
        text = text if text.isascii() else _name_prefix(text)
        return Token(NAME if _starts_name(text[0]) else BAD, text, start, start + len(text), _name_value(text))
    value = text
    if kind == "string":
        value = _STRING_ESCAPE.sub(lambda m: _ESCAPED.get(m.group(1), m.group(1)), text[1:-1])
    elif kind == "quoted":
        kind, value = QUOTED_NAME, text[1:-1].replace("``", "`")
    elif kind == "parameter":
        name = text[1:]
        if not (name.isascii() or name.startswith("`")):
            name = _name_prefix(name)
            text = f"${name}"
        value = name[1:-1].replace("``", "`") if name.startswith("`") else name
    elif kind == "number":
        wrong = _wrong_number(text)
        kind, value = (BAD, wrong) if wrong else (NUMBER, _plain_number(text))
    elif kind == "operator" and not text.isascii():
        value = "<" if text in _LEFT_HEADS else ">" if text in _RIGHT_HEADS else "-"
    elif kind == "open":
        kind, value = BAD, "a comment that begins with /* must end with */"
    elif kind == "bad":
        value = "a string or quoted name that does not end" if text in "'\"`" else "no such character here"
    return Token(kind, text, start, start + len(text), value)


def _name_prefix(text: str) -> str:
    """The longest beginning of the text that is a name, or its first character if that begins none."""
    for i, character in enumerate(text):
        if not (character.isascii() or _continues_name(character)):
            return text[: max(i, 1)]
    return text


def _name_value(text: str) -> str:
    return text if _starts_name(text[0]) else "no such character here"


@lru_cache(4096)
def _starts_name(character: str) -> bool:
    if character.isascii():
        return character.isalpha() or character == "_"
    return ord(character) < 0x10000 and unicodedata.category(character) in _START


@lru_cache(4096)
def _continues_name(character: str) -> bool:
    if "\x7f" <= character <= "\x9f":
        return True
    return ord(character) < 0x10000 and unicodedata.category(character) in _PART


def _plain_number(text: str) -> str:
    """The number without ``_``, and without the letter that may end a decimal number and changes nothing."""
    return text.replace("_", "") if text[:2] in ("0x", "0X") else text.replace("_", "").rstrip("dDfF")


def _wrong_number(text: str) -> str:
    """Why the text is no number, or an empty string."""
    if len(text) > 1 and text[0] == "0" and text.isdigit():
        return f"octal numbers are written 0o{text[1:]}"
    if not _NUMBER.fullmatch(text):
        return "not a number"
    digits = _plain_number(text).lower()
    if digits.isdigit() or digits.startswith(("0x", "0o")):
        too_large = len(digits) > _MOST_DIGITS or int(digits, 0) > _LARGEST_INTEGER
        return "the integer is too large" if too_large else ""
    return "the number is too large" if float(digits) == float("inf") else ""
