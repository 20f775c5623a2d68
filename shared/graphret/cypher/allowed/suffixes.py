"""What follows ``IS``, ``::`` and a colon: tests, types and labels."""

from __future__ import annotations

from graphret.cypher.allowed.reader import Frame, Kind, Reader, State

_ALL_OR_ANY = ("$all", "$any")
_NORMAL_FORMS = frozenset(("NFC", "NFD", "NFKC", "NFKD"))


class Suffixes(Reader):
    """Reads what follows an operand and is none itself."""

    _neo4j: bool

    def _test(self) -> None:
        """``IS [NOT] NULL``, ``IS [NOT] [NFC] NORMALIZED``, ``IS [NOT] :: TYPE``, ``IS Label``."""
        self._at += 1
        negated = self._piece.keyword == "NOT"
        if negated:
            self._at += 1
        if self._piece.keyword in ("NULL", "NORMALIZED"):
            self._go(State.OPERATOR)
        elif self._piece.keyword in _NORMAL_FORMS and self._next().keyword == "NORMALIZED":
            self._go(State.OPERATOR, 2)
        elif self._piece.keyword == "TYPED" or self._piece.is_symbol("::"):
            self._at += 1
            self._type()
        elif self._neo4j and not negated:
            self._label_name()
        else:
            self._not_here(self._piece)

    def _type(self) -> None:
        """The name of a type, such as ``LIST<LOCAL TIME NOT NULL>`` or, on ladybug, ``DECIMAL(18, 3)[]``."""
        while True:
            word, following = self._piece.keyword, self._next().keyword
            if word in self._allowed.types:
                self._at += 1
            elif (word == "NOT" and following == "NULL") or (word == "WITH" and following in ("TIME", "TIMEZONE")):
                self._at += 2
            elif self._piece.is_symbol(*("<>|" if self._neo4j else "[]")):
                self._at += 1
            else:
                self._state = State.OPERATOR
                return

    def _a_name(self) -> None:
        """Read exactly one name, and no bracket that would make a call of it."""
        if not self._piece.name:
            self._not_here(self._piece)
        self._go(State.OPERATOR)
        if self._piece.is_symbol("("):
            self._not_here(self._piece)

    def _label(self) -> None:
        """What follows a colon: a label or a relation, or on ladybug the end of a slice."""
        self._at += 1
        self._label_name()

    def _label_name(self) -> None:
        if self._piece.name:
            self._a_name()
        elif self._neo4j and (self._piece.is_symbol("$") or self._piece.text.lower() in _ALL_OR_ANY):
            self._computed()
        elif self._piece.is_symbol("!", "%", "(") or not self._neo4j:
            self._state = State.OPERAND
        else:
            self._not_here(self._piece)

    def _computed(self) -> None:
        """A label in ``$(expression)``, ``$all(expression)`` or ``$any(expression)``."""
        if not (self._neo4j and self._next().is_symbol("(")):
            self._not_here(self._piece)
        self._open(Frame(")", Kind.OTHER), State.OPERAND, 2)
