"""Operators in the order of precedence of Neo4j 5, and ``CASE``."""

from __future__ import annotations

from cypherast import ast
from cypherast.ast import AstNode

from graphret.cypher.grammar.operands import Operands
from graphret.cypher.tokens import NUMBER
from graphret.cypher.tree import Chain, IsTyped, Sign, Test

COMPARISONS = ("=", "<>", "!=", "<", ">", "<=", ">=")
#: From what binds least to what binds most; ``NOT`` stands before its operand, and a
#: test is made once.
_PRECEDENCE = (
    ("OR",),
    ("XOR",),
    ("AND",),
    ("NOT",),
    COMPARISONS,
    ("=~", "IN", "CONTAINS", "STARTS", "ENDS", "IS", "::"),
    ("+", "-", "||"),
    ("*", "/", "%"),
    ("^",),
)
_LEVELS = {
    sign: level
    for level, signs in enumerate(_PRECEDENCE)
    for sign in signs
    if sign != "NOT"
}
_NOT, _TEST, _POWER = 3, 5, 8
#: What follows ``NOT`` where it is the name of a variable.
_AFTER_A_NAME = (")", "]", ",", ".", "}", "=")
#: The words of types, and what must follow those that are no type by themselves.
_TYPES = """
    ANY ARRAY BOOL BOOLEAN DATE DURATION EDGE FLOAT INT INTEGER LIST LOCAL MAP NODE
    NOTHING NULL PATH POINT PROPERTY RELATIONSHIP STRING VARCHAR VERTEX ZONED
""".split()
_SECOND_WORDS = {
    "LOCAL": ("TIME", "DATETIME"),
    "ZONED": ("TIME", "DATETIME"),
    "PROPERTY": ("VALUE",),
}


class Expressions(Operands):
    """The productions of expressions."""

    #: Whether ``n:Label`` is a condition.
    label_predicates = True

    # --- operators --------------------------------------------------------

    def parse_expression(self, least: int = 0) -> AstNode:
        """Climb the precedences from `least` up.

        One call does for all of them, and not one for each: the interpreter's stack
        then holds a hundred brackets.
        """
        with self._nesting():
            start = self._i
            if (
                least <= _NOT
                and self._is_word("NOT")
                and self._now(1).operator not in _AFTER_A_NAME
            ):
                self._i += 1
                node: AstNode = self._mark(
                    ast.Not(this=self.parse_expression(_NOT)), start
                )
                most = _NOT - 1
            else:
                node = self.parse_unary()
                most = _POWER
            while least <= (level := _LEVELS.get(self._sign(), -1)) <= most:
                node = (
                    self._tested(node, start)
                    if level == _TEST
                    else self._chain(node, level, start)
                )
                most = level - 1
            return node

    def _sign(self) -> str:
        """The operator or the word that stands here."""
        return self._operators[self._i] or self._words[self._i]

    def _chain(self, first: AstNode, level: int, start: int) -> AstNode:
        """Operands that operators of one precedence join."""
        operands, operators = [first], []
        while _LEVELS.get(sign := self._sign()) == level:
            operators.append(sign)
            self._i += 1
            operands.append(self.parse_expression(level + 1))
        return self._mark(Chain(operands=operands, operators=operators), start)

    def _tested(self, left: AstNode, start: int) -> AstNode:
        """The tests of an operand: ``IN``, ``CONTAINS``, ``IS NULL``, ``:: TYPE``."""
        operator = self._sign()
        self._i += 1
        if operator in ("IS", "::"):
            negated = (operator == "IS" and self._take_word("NOT")) or None
            if operator == "::" or self._take("::") or self._take_word("TYPED"):
                self._type()
                return self._mark(IsTyped(this=left, not_=negated), start)
            self._need_word("NULL")
            return self._mark(ast.IsNull(this=left, not_=negated), start)
        if operator in ("STARTS", "ENDS"):
            self._need_word("WITH")
            operator = f"{operator} WITH"
        return self._mark(
            Test(
                this=left,
                operator=operator,
                expression=self.parse_expression(_TEST + 1),
            ),
            start,
        )

    def _type(self) -> None:
        """``INTEGER``, ``LOCAL TIME NOT NULL``, ``LIST<STRING> | FLOAT``."""
        word = self._need_word(*_TYPES).word
        if word in _SECOND_WORDS:
            self._need_word(*_SECOND_WORDS[word])
        if word in ("LIST", "ARRAY"):
            self._need("<")
            self._type()
            self._need(">")
        if self._is_word("NOT") and self._is_word("NULL", ahead=1):
            self._i += 2
        if self._take("|"):
            self._type()

    def parse_unary(self) -> AstNode:
        start = self._i
        if not (self._is("-") or self._is("+")):
            return self.parse_postfix()
        operator = self._now().operator
        self._i += 1
        if operator == "-" and self._is("-") and self._now(1).kind != NUMBER:
            raise self._wrong("an expression")
        with self._nesting():
            inner = self.parse_unary() if self._is("-") else self.parse_postfix()
        return self._mark(Sign(this=inner, operator=operator), start)

    def parse_postfix(self) -> AstNode:
        start = self._i
        node = self.parse_primary()
        while True:
            if self._take("."):
                node = ast.Property(this=node, name=self._name("a property name"))
            elif self.label_predicates and self._take(":"):
                node = ast.LabelPredicate(this=node, labels=self._label_expression())
            elif self._is("["):
                node = self._index(node)
            else:
                return node
            self._mark(node, start)

    def _index(self, node: AstNode) -> AstNode:
        self._need("[")
        low = None if self._is("..") else self.parse_expression()
        if low is not None and self._take("]"):
            return ast.ListSubscript(this=node, index=low)
        if not self._take(".."):
            raise self._wrong("']' or '..'")
        high = None if self._is("]") else self.parse_expression()
        self._need("]")
        return ast.ListSlice(this=node, start=low, end=high)

    # --- CASE --------------------------------------------------------------

    def parse_case(self) -> ast.Case:
        start = self._i
        self._need_word("CASE")
        subject = None if self._is_word("WHEN") else self.parse_expression()
        branches: list[tuple[AstNode, AstNode]] = []
        while self._take_word("WHEN"):
            conditions = (
                [self.parse_expression()] if subject is None else self._conditions()
            )
            self._need_word("THEN")
            result = self.parse_expression()
            branches.extend((condition, result) for condition in conditions)
        if not branches:
            raise self._wrong("WHEN")
        default = self.parse_expression() if self._take_word("ELSE") else None
        self._need_word("END")
        return self._mark(ast.Case(this=subject, ifs=branches, default=default), start)

    def _conditions(self) -> list[AstNode]:
        """The conditions after ``WHEN`` of a case with a subject.

        They are values, or operators and their right sides.
        """
        return self._list(self._condition)

    def _condition(self) -> AstNode:
        start = self._i
        if self._sign() in (*COMPARISONS, "=~"):
            self._i += 1
            return self.parse_expression(_TEST)
        if self._is_word("IS") and self._is_word("NULL", "NOT", ahead=1):
            return self._tested(self._mark(ast.Null(), start), start)
        return self.parse_expression()
