"""The names of types, as they stand after ``IS ::``."""

from __future__ import annotations

from graphret.cypher.grammar.cursor import Cursor

_SIMPLE = frozenset(
    "NOTHING NULL BOOL BOOLEAN VARCHAR STRING INT INTEGER FLOAT DATE DURATION POINT NODE VERTEX RELATIONSHIP EDGE MAP "
    "PATH PATHS".split()
)


class TypeNames(Cursor):
    """The productions of types."""

    def _type(self) -> str:
        parts = [self._type_part()]
        while self._take("|"):
            parts.append(self._type_part())
        return " | ".join(parts)

    def _type_part(self) -> str:
        name = self._type_name()
        self._nullability()
        while self._take_word("LIST", "ARRAY"):
            name = f"LIST<{name}>"
            self._nullability()
        return name

    def _nullability(self) -> None:
        if not self._take("!") and self._is_word("NOT") and self._is_word("NULL", ahead=1):
            self._i += 2

    def _type_name(self) -> str:
        word = self._now().word
        if word in _SIMPLE:
            self._i += 1
            return word
        if self._take_word("SIGNED"):
            return self._need_word("INTEGER").word
        if self._take_word("LOCAL", "ZONED"):
            return f"{word} {self._need_word('TIME', 'DATETIME').word}"
        if self._take_word("TIME", "TIMESTAMP"):
            self._need_word("WITH", "WITHOUT")
            if not self._take_word("TIMEZONE"):
                self._need_word("TIME")
                self._need_word("ZONE")
            return word
        if self._take_word("LIST", "ARRAY"):
            return f"LIST<{self._bracketed_type()}>"
        if self._take_word("PROPERTY"):
            self._need_word("VALUE")
            return "PROPERTY VALUE"
        if self._take_word("ANY"):
            return self._any_type()
        raise self._wrong("a type")

    def _any_type(self) -> str:
        if self._take_word("NODE", "VERTEX", "RELATIONSHIP", "EDGE", "MAP"):
            return "ANY"
        if self._take_word("PROPERTY"):
            self._need_word("VALUE")
            return "PROPERTY VALUE"
        self._take_word("VALUE")
        return self._bracketed_type() if self._is("<") else "ANY"

    def _bracketed_type(self) -> str:
        self._need("<")
        name = self._type()
        self._need(">")
        return name
