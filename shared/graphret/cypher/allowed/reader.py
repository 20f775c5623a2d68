"""Where a reader of a query stands: at which piece, within which brackets, and what may come next."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import NoReturn

from graphret.cypher.allowed.lists import Allowed
from graphret.cypher.allowed.scan import END, Piece


class State(Enum):
    """What may come next."""

    CLAUSE = auto()  # a word that begins a clause
    PATTERN = auto()  # words that select paths, or an operand
    OPERAND = auto()
    OPERATOR = auto()
    EITHER = auto()  # after `*`, which is an operator, an operand or a quantifier
    KEY = auto()  # an entry of a map
    DONE = auto()  # a clause is complete


class Kind(Enum):
    """What a bracket holds."""

    STATEMENT = auto()
    SUBQUERY = auto()  # clauses
    PATTERN = auto()  # clauses or a pattern
    MAP = auto()
    OTHER = auto()


@dataclass(slots=True)
class Frame:
    closer: str
    kind: Kind
    after: State = State.OPERATOR
    function: str = ""
    cases: int = 0


@dataclass(frozen=True, slots=True)
class Refused:
    """A place in a query, and why what stands there may not run."""

    reason: str
    start: int
    end: int


class Stop(Exception):
    """The rest cannot be judged."""


class Reader:
    """Moves through the pieces of a query."""

    def __init__(self, pieces: list[Piece], allowed: Allowed) -> None:
        self._pieces = pieces
        self._allowed = allowed
        self._at = 0
        self._state = State.CLAUSE
        self._frames = [Frame("", Kind.STATEMENT)]
        self.refused: list[Refused] = []

    @property
    def _piece(self) -> Piece:
        return self._pieces[self._at]

    def _next(self, ahead: int = 1) -> Piece:
        return self._pieces[min(self._at + ahead, len(self._pieces) - 1)]

    @property
    def _frame(self) -> Frame:
        return self._frames[-1]

    def _go(self, state: State, pieces: int = 1) -> None:
        self._at += pieces
        self._state = state

    def _open(self, frame: Frame, state: State, pieces: int = 1) -> None:
        self._frames.append(frame)
        self._go(state, pieces)

    def _note(self, reason: str, first: Piece, last: Piece | None = None) -> None:
        self.refused.append(Refused(reason, first.start, (last or first).end))

    def _stop(self, reason: str, piece: Piece) -> NoReturn:
        self._note(reason, piece)
        raise Stop

    def _not_here(self, piece: Piece) -> NoReturn:
        if piece.kind == END:
            self._stop("the query ends too soon to be judged", piece)
        if piece.keyword:
            known = ", ".join(sorted(self._allowed.clauses)).replace("OPTIONAL", "OPTIONAL MATCH")
            self._stop(f"{piece.text} may not stand here; the clauses that may run are {known}", piece)
        self._stop(f"{piece.text[:40]} may not stand here", piece)
