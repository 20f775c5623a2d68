"""Every bare word of a query is judged by where it stands.

The reader follows brackets, and whether an operand or an operator comes next. A word is accepted as the name of
something (a variable, a property, a label, an alias, a key of a map, a function or procedure of the list) or as a
keyword of the list, and as nothing else. Two names never follow each other, and a name never precedes a bracket but as
a function of the list or as the head of a map whose keys are names. Every clause that is not on the list begins with a
word and another word, or a word and a bracket; so none gets through, even where a server takes for a keyword what the
reader takes for a name.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from graphret.cypher.allowed.lists import Allowed
from graphret.cypher.allowed.reader import Frame, Kind, Refused, State, Stop
from graphret.cypher.allowed.scan import END, NUMBER, PARAMETER, STRING, SYMBOL, Piece
from graphret.cypher.allowed.suffixes import Suffixes

_OPENERS = {"(": ")", "[": "]", "{": "}"}
_TO_OPERAND = frozenset(("AND", "OR", "XOR", "IN", "CONTAINS", "WHERE"))
_TO_OPERATOR = frozenset(("ASC", "ASCENDING", "DESC", "DESCENDING"))
_PAIRS = {"STARTS": "WITH", "ENDS": "WITH", "ORDER": "BY"}
_PAGES = frozenset(("SKIP", "OFFSET", "LIMIT"))
_CASES = frozenset(("WHEN", "THEN", "ELSE", "END"))
_JOINERS = _TO_OPERAND | _TO_OPERATOR | _PAIRS.keys() | _PAGES | {"IS", "AS", "UNION", "THEN", "ELSE", "END"}
_SELECTORS = frozenset(
    """ANY ALL SHORTEST PATH PATHS GROUP GROUPS REPEATABLE DIFFERENT ELEMENT ELEMENTS BINDINGS RELATIONSHIP
    RELATIONSHIPS EDGE EDGES""".split()
)
_LADYBUG_SELECTORS = frozenset(("SHORTEST", "ALL", "TRAIL", "ACYCLIC"))
_SUBQUERIES = {"EXISTS": Kind.PATTERN, "COUNT": Kind.PATTERN, "COLLECT": Kind.SUBQUERY}
_CLAUSED = frozenset((Kind.STATEMENT, Kind.SUBQUERY, Kind.PATTERN))
_AFTER_A_NAME = frozenset(") ] } , . .. : | ; = <> < > <= >= =~ + * / ^ % & ||".split())
_TESTS = frozenset(("NOT", "NULL", "TYPED", "NORMALIZED", "NFC", "NFD", "NFKC", "NFKD"))


class Words(Suffixes):
    """Reads a query once, and notes what may not run.

    Parameters
    ----------
    pieces
        The query, cut by `graphret.cypher.allowed.scan.scan`.
    dialect, allowed
        The dialect, and what may run on it.
    functions, procedures
        Names that may run as well.
    """

    def __init__(
        self,
        pieces: list[Piece],
        dialect: str,
        allowed: Allowed,
        functions: Collection[str] = (),
        procedures: Collection[str] = (),
    ) -> None:
        super().__init__(pieces, allowed)
        self._neo4j = dialect == "neo4j"
        self._functions, self._procedures = frozenset(functions), frozenset(procedures)
        self._steps: dict[State, Callable[[Piece], None]] = {
            State.CLAUSE: self._clause,
            State.PATTERN: self._pattern,
            State.OPERAND: self._operand,
            State.OPERATOR: self._operator,
            State.EITHER: self._either,
            State.KEY: self._key,
            State.DONE: self._done,
        }

    def read(self) -> list[Refused]:
        """Return what may not run, by place; reading stops where the rest cannot be judged."""
        if self._neo4j and self._piece.keyword == "CYPHER" and self._next().text == "5":  # the version, and no option
            self._go(State.CLAUSE, 2)
        try:
            while self._piece.kind != END:
                self._steps[self._state](self._piece)
        except Stop:
            pass
        return self.refused

    # Clauses

    def _clause(self, piece: Piece) -> None:
        if piece.keyword in self._allowed.clauses:
            self._begin(piece)
        elif self._frame.kind is Kind.PATTERN:
            self._pattern(piece)
        elif piece.is_symbol("}") and self._frame.closer == "}":
            self._close(piece)
        elif piece.keyword not in (*_PAGES, "ORDER") or not self._joined(piece):
            self._not_here(piece)

    def _begin(self, piece: Piece) -> None:
        word = piece.keyword
        if word == "OPTIONAL":
            following = self._next().keyword
            if following not in ("MATCH", "CALL"):
                self._not_here(self._next())
            self._at += 1
            word = following
        if word == "CALL":
            self._call()
        elif word == "FINISH":
            self._go(State.DONE)
        else:
            self._go(State.PATTERN if word == "MATCH" else State.OPERAND)

    def _call(self) -> None:
        following = self._next()
        if self._allowed.subqueries and following.is_symbol("{"):
            self._open(Frame("}", Kind.SUBQUERY, State.DONE), State.CLAUSE, 2)
        elif self._allowed.subqueries and following.is_symbol("("):
            self._at += 2
            while self._piece.name or self._piece.is_symbol(",", "*"):
                self._at += 1
            if not (self._piece.is_symbol(")") and self._next().is_symbol("{")):
                self._not_here(self._piece)
            self._open(Frame("}", Kind.SUBQUERY, State.DONE), State.CLAUSE, 2)
        elif following.name:
            self._at += 1
            first, name = self._piece, self._dotted()
            listed = self._allowed.procedures
            if (name if self._neo4j else name.lower()) not in listed and name not in self._procedures:
                self._note(f"the procedure {name} is not among those that may run", first, self._next(-1))
            if self._piece.is_symbol("("):
                self._open(Frame(")", Kind.OTHER, State.DONE), State.OPERAND)
            else:
                self._state = State.DONE
        else:
            self._not_here(following)

    def _dotted(self) -> str:
        """Read a name with dots, as of a procedure."""
        names = [self._piece.name]
        self._at += 1
        while self._piece.is_symbol(".") and self._next().name:
            names.append(self._next().name)
            self._at += 2
        return ".".join(names)

    def _done(self, piece: Piece) -> None:
        if piece.keyword == "YIELD":
            self._go(State.OPERAND)
        elif piece.is_symbol("}", ";"):
            self._symbol(piece)
        elif not self._joined(piece):
            self._not_here(piece)

    def _joined(self, piece: Piece) -> bool:
        """Read a word that begins another clause, if one may begin here."""
        if self._frame.kind not in _CLAUSED:
            return False
        word = piece.keyword
        if word in self._allowed.clauses:
            self._begin(piece)
        elif word == "UNION":
            self._go(State.CLAUSE, 2 if self._next().keyword in ("ALL", "DISTINCT") else 1)
        elif word == "USING" and self._neo4j:
            self._hint()
        elif word in _PAGES:
            self._go(State.OPERAND)
        elif word == "ORDER" and self._next().keyword == "BY":
            self._go(State.OPERAND, 2)
        else:
            return False
        return True

    def _hint(self) -> None:
        """``USING [TEXT] INDEX [SEEK] n:Label(property)``, ``USING SCAN n:Label`` or ``USING JOIN ON n``."""
        self._at += 1
        if self._piece.keyword == "JOIN" and self._next().keyword == "ON":
            self._go(State.OPERAND, 2)
            return
        if self._piece.keyword == "SCAN":
            self._go(State.OPERAND)
            return
        if self._piece.keyword in ("TEXT", "RANGE", "POINT"):
            self._at += 1
        if self._piece.keyword != "INDEX":
            self._not_here(self._piece)
        self._at += 2 if self._next().keyword == "SEEK" else 1
        for expected in ("name", ":", "name", "("):
            if not (self._piece.name if expected == "name" else self._piece.is_symbol(expected)):
                self._not_here(self._piece)
            self._at += 1
        while self._piece.name or self._piece.is_symbol(","):
            self._at += 1
        if not self._piece.is_symbol(")"):
            self._not_here(self._piece)
        self._go(State.OPERATOR)

    # Operands

    def _pattern(self, piece: Piece) -> None:
        following = self._next()
        selects = piece.keyword in _SELECTORS and (
            following.keyword or following.kind in (NUMBER, PARAMETER) or following.is_symbol("(")
        )
        if selects or piece.kind in (NUMBER, PARAMETER):
            self._go(State.PATTERN)
        else:
            self._operand(piece)

    def _operand(self, piece: Piece) -> None:
        if piece.name:
            self._named(piece)
        elif piece.kind in (STRING, NUMBER, PARAMETER):
            self._go(State.OPERATOR)
        elif self._neo4j and piece.is_symbol("$") and (self._next().name or self._next().text.isdigit()):
            self._spaced_parameter()
        elif piece.is_symbol("("):
            self._open(Frame(")", Kind.OTHER), State.OPERAND)
        elif piece.is_symbol("."):
            self._not_here(piece)
        else:
            self._symbol(piece)

    def _spaced_parameter(self) -> None:
        """``$ x``, which on Neo4j is ``$x``."""
        self._at += 1
        if self._piece.name:
            self._a_name()
        else:
            self._go(State.OPERATOR)

    def _named(self, piece: Piece) -> None:
        """A name, or a word that stands before an operand."""
        following = self._next()
        word = piece.keyword
        if word in _SUBQUERIES and following.is_symbol("{"):
            self._open(Frame("}", _SUBQUERIES[word]), State.CLAUSE, 2)
        elif word == "IS" and self._frame.cases and following.keyword in _TESTS and self._begins_a_condition():
            self._test()
        elif word in ("IS", "WHERE") and self._begins_a_pattern(following):
            self._go(State.OPERAND)
            if word == "IS" and following.name:
                self._label_name()
        elif self._prefixes(word, following):
            self._go(State.OPERAND)
        elif word in ("ANY", "ALL", "SHORTEST") and (following.keyword in _SELECTORS or following.kind == NUMBER):
            self._go(State.PATTERN)
        elif not self._function(piece):
            self._go(State.OPERATOR)
            if following.is_symbol("{"):
                self._brace()

    def _prefixes(self, word: str, following: Piece) -> bool:
        """Whether the word is a keyword before an operand, and no name."""
        begins = following.kind != END and not (following.kind == "symbol" and following.text in _AFTER_A_NAME)
        if word in ("NOT", "DISTINCT"):
            return begins
        if word == "CASE":
            if not begins or (following.keyword in _JOINERS and not self._is_of_case(following)):
                return False
            self._frame.cases += 1
            return True
        if word == "WHEN":
            return self._frame.cases > 0 and self._next(-1).keyword == "CASE"
        if word == "WHERE":
            return self._next(-1).is_symbol("|")
        if word in ("BOTH", "LEADING", "TRAILING", "FROM"):
            return self._frame.function == "trim" and begins
        return False

    def _is_of_case(self, following: Piece) -> bool:
        """Whether ``is`` is the variable of ``CASE is WHEN``, and not what is asked of a variable ``case``."""
        behind = self._next(2)
        return following.keyword == "IS" and (behind.keyword == "WHEN" or behind.is_symbol(".", "["))

    def _begins_a_condition(self) -> bool:
        """Whether what stands here begins a condition of ``CASE x WHEN …, … THEN``."""
        before = self._next(-1)
        return before.keyword == "WHEN" or before.is_symbol(",")

    def _begins_a_pattern(self, following: Piece) -> bool:
        """Whether ``(IS Label`` or ``[WHERE condition`` stands here; no function has either name."""
        begins = following.kind != END and not (following.kind == SYMBOL and following.text in (*_AFTER_A_NAME, "{"))
        labelled = following.keyword == "IS" and self._next(2).is_symbol(")", "]", "{", "|", "&", "*")  # ``(IS IS)``
        return begins and (following.keyword not in _JOINERS or labelled) and self._next(-1).is_symbol("(", "[")

    def _function(self, piece: Piece) -> bool:
        """Read a name with dots and the bracket behind it, if there is one."""
        start = self._at
        name = self._dotted()
        if not self._piece.is_symbol("("):
            self._at = start
            return False
        if name.lower() not in self._allowed.functions and not {name, name.lower()} & self._functions:
            reason = f"{name} is not among the functions that may run"
            self._note(reason if self._at - start > 1 or not piece.keyword else f"{reason}, nor a clause", piece)
        self._open(Frame(")", Kind.OTHER, function=name.lower()), State.OPERAND)
        return True

    def _either(self, piece: Piece) -> None:
        word = piece.keyword
        if not self._neo4j and word in _LADYBUG_SELECTORS:
            self._go(State.EITHER)
        elif word in _JOINERS or word in self._allowed.clauses or word in ("USING", "WHEN"):
            self._operator(piece)
        else:
            self._operand(piece)

    # Operators

    def _operator(self, piece: Piece) -> None:
        word = piece.keyword
        if word in _PAIRS and self._next().keyword == _PAIRS[word] and word != "ORDER":
            self._go(State.OPERAND, 2)
        elif word in _TO_OPERAND:
            self._go(State.OPERAND)
        elif word in _TO_OPERATOR:
            self._go(State.OPERATOR)
        elif word == "IS":
            self._test()
        elif word == "AS":
            self._alias()
        elif word in _CASES and self._frame.cases:
            self._frame.cases -= word == "END"
            self._go(State.OPERATOR if word == "END" else State.OPERAND)
        elif word == "FROM" and self._frame.function == "trim":
            self._go(State.OPERAND)
        elif piece.kind == "symbol":
            self._symbol(piece)
        elif not self._joined(piece):
            self._not_here(piece)

    def _alias(self) -> None:
        self._at += 1
        if self._frame.function == "cast" and not self._neo4j:
            self._type()
        else:
            self._a_name()

    # Symbols

    def _symbol(self, piece: Piece) -> None:
        symbol = piece.text
        if symbol in (")", "]", "}"):
            self._close(piece)
        elif symbol == "{":
            self._brace()
        elif symbol in _OPENERS:
            self._open(Frame(_OPENERS[symbol], Kind.OTHER), State.OPERAND)
        elif symbol == ",":
            self._go(State.KEY if self._frame.kind is Kind.MAP else State.OPERAND)
        elif symbol == ".":
            self._at += 1
            if self._piece.is_symbol("*"):
                self._go(State.OPERATOR)
            else:
                self._a_name()
        elif symbol == ":":
            self._label()
        elif symbol == "::":
            self._at += 1
            self._type()
        elif symbol == ";":
            if len(self._frames) > 1 or self._next().kind != END:
                self._stop("only one statement may run, with at most one ; at its end", piece)
            self._go(State.DONE)
        elif symbol == "$":
            self._computed()
        elif symbol == "*" or (symbol == "+" and self._next(-1).is_symbol(")", ">", "-")):
            self._go(State.EITHER)
        else:
            self._go(State.OPERAND)

    def _close(self, piece: Piece) -> None:
        if self._frame.closer != piece.text:
            self._stop(f"{piece.text} closes no bracket", piece)
        self._go(self._frames.pop().after)

    def _brace(self) -> None:
        """A map, a projection of one, or how often a path repeats."""
        repeats = self._next().kind == NUMBER or self._next().is_symbol(",")
        self._open(Frame("}", Kind.OTHER if repeats else Kind.MAP), State.OPERAND if repeats else State.KEY)

    def _key(self, piece: Piece) -> None:
        following = self._next()
        if piece.is_symbol("}"):
            self._close(piece)
        elif piece.is_symbol("."):
            self._symbol(piece)
        elif piece.name and following.is_symbol(":"):
            self._go(State.OPERAND, 2)
        elif piece.name and following.is_symbol(",", "}"):
            self._go(State.OPERATOR)
        else:
            self._not_here(piece)
