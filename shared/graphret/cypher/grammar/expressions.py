"""Operators, in the order of precedence of Neo4j 5, and ``CASE``."""

from __future__ import annotations

from cypherast import ast
from cypherast.ast import AstNode
from cypherast.lexer import TokenKind

from graphret.cypher.grammar.primaries import FORMS, Primaries
from graphret.cypher.grammar.typenames import TypeNames
from graphret.cypher.tree import Chain, IsTyped, Sign, Test

#: What follows ``IS`` where ``CASE x WHEN IS …`` is a test and no variable.
_TESTS = FORMS | {"NOT", "NULL", "TYPED", "NORMALIZED"}
COMPARISONS = ("=", "<>", "!=", "<", ">", "<=", ">=")
#: From what binds least to what binds most; ``NOT`` stands before its operand, and a test is made once.
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
_LEVELS = {sign: level for level, signs in enumerate(_PRECEDENCE) for sign in signs if sign != "NOT"}
_NOT, _TEST, _POWER = 3, 5, 8
#: What follows ``NOT`` where it is the name of a variable.
_AFTER_A_NAME = (")", "]", ",", ".", "}", "=")


class Expressions(Primaries, TypeNames):
    """The productions of expressions."""

    #: Whether ``n:Label`` is a condition.
    label_predicates = True

    def parse_expression(self, least: int = 0) -> AstNode:
        """Climb the precedences from `least` up.

        One call does for all of them, and not one for each: the interpreter's stack then holds a hundred brackets.
        """
        self._depth += 1
        if self._depth > self.max_depth:
            raise RecursionError
        start = self._i
        if least <= _NOT and self._is_word("NOT") and self._now(1).operator not in _AFTER_A_NAME:
            self._i += 1
            node: AstNode = self._mark(ast.Not(this=self.parse_expression(_NOT)), start)
            most = _NOT - 1
        else:
            node = self.parse_unary()
            most = _POWER
        while least <= (level := _LEVELS.get(self._now().operator or self._now().word, -1)) <= most:
            node = self._tested(node, start) if level == _TEST else self._chain(node, level, start)
            most = level - 1
        self._depth -= 1
        return node

    def _chain(self, first: AstNode, level: int, start: int) -> AstNode:
        """Operands that operators of one precedence join."""
        operands, operators = [first], []
        while _LEVELS.get(sign := self._now().operator or self._now().word) == level:
            operators.append(sign)
            self._i += 1
            operands.append(self.parse_expression(level + 1))
        return self._mark(Chain(operands=operands, operators=operators), start)

    def _tested(self, left: AstNode, start: int) -> AstNode:
        """What ``IN``, ``CONTAINS``, ``IS NULL`` and the like ask of an operand."""
        token = self._now()
        if token.word == "IS":
            return self._is_something(left, start)
        self._i += 1
        if token.operator == "::":
            return self._mark(IsTyped(this=left, type_=self._type(), not_=None), start)
        operator = token.operator or token.word
        if operator in ("STARTS", "ENDS"):
            self._need_word("WITH")
            operator = f"{operator} WITH"
        return self._mark(Test(this=left, operator=operator, expression=self.parse_expression(_TEST + 1)), start)

    def _is_something(self, left: AstNode, start: int) -> AstNode:
        self._need_word("IS")
        negated = self._take_word("NOT") or None
        if self._take_word("NULL"):
            return self._mark(ast.IsNull(this=left, not_=negated), start)
        if self._take("::") or self._take_word("TYPED"):
            return self._mark(IsTyped(this=left, type_=self._type(), not_=negated), start)
        self._take_word(*FORMS)
        if self._take_word("NORMALIZED"):
            return self._mark(IsTyped(this=left, type_=None, not_=negated), start)
        if not negated and (self._now().named or self._now().operator in ("!", "%", "(")):
            # ``n IS Label`` in an expression.
            return self._mark(ast.LabelPredicate(this=left, labels=self._labels_after_is()), start)
        raise self._wrong("NULL, NOT NULL, a type or NORMALIZED")

    def parse_unary(self) -> AstNode:
        start = self._i
        if self._is("-") or self._is("+"):
            operator = self._now().operator
            self._i += 1
            if operator == "-" and self._is("-") and self._now(1).kind not in (TokenKind.INTEGER, TokenKind.FLOAT):
                raise self._wrong("an expression")
            with self._nesting():
                inner = self.parse_unary() if self._is("-") else self.parse_postfix()
            return self._mark(Sign(this=inner, operator=operator), start)
        return self.parse_postfix()

    def parse_postfix(self) -> AstNode:
        start = self._i
        node = self.parse_primary()
        while True:
            if self._is("."):
                self._i += 1
                node = ast.Property(this=node, name=self._name("a property name"))
            elif self.label_predicates and self._is(":"):
                self._i += 1
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

    def parse_case(self) -> ast.Case:
        start = self._i
        self._need_word("CASE")
        subject = None if self._is_word("WHEN") else self.parse_expression()
        branches: list[tuple[AstNode, AstNode]] = []
        while self._take_word("WHEN"):
            conditions = self._conditions() if subject is not None else [self.parse_expression()]
            self._need_word("THEN")
            result = self.parse_expression()
            branches.extend((condition, result) for condition in conditions)
        if not branches:
            raise self._wrong("WHEN")
        default = self.parse_expression() if self._take_word("ELSE") else None
        self._need_word("END")
        return self._mark(ast.Case(this=subject, ifs=branches, default=default), start)

    def _conditions(self) -> list[AstNode]:
        """What may stand after ``WHEN`` where the case has a subject."""
        return self._list(self._condition)

    def _condition(self) -> AstNode:
        """What stands after ``WHEN`` where the case has a subject: a value, or an operator and its right side."""
        start = self._i
        token = self._now()
        if token.operator in COMPARISONS or token.operator == "=~":
            self._i += 1
            return self.parse_expression(_TEST)
        if token.word in ("STARTS", "ENDS") and self._is_word("WITH", ahead=1):
            self._i += 2
            return self.parse_expression(_TEST + 1)
        if (token.word == "IS" and self._now(1).word in _TESTS) or token.operator == "::":
            nothing = self._mark(ast.Null(), start)
            if token.operator == "::":
                self._i += 1
                return self._mark(IsTyped(this=nothing, type_=self._type(), not_=None), start)
            return self._is_something(nothing, start)
        return self.parse_expression()
