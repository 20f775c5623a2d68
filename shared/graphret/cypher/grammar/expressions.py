"""Operators, in the order of precedence of Neo4j 5, and ``CASE``."""

from __future__ import annotations

from collections.abc import Callable

from cypherast import ast
from cypherast.ast import AstNode
from cypherast.lexer import TokenKind

from graphret.cypher.grammar.primaries import FORMS, Primaries
from graphret.cypher.grammar.typenames import TypeNames
from graphret.cypher.tree import Chain, IsTyped, Sign, Test

#: What follows ``IS`` where ``CASE x WHEN IS …`` is a test and no variable.
_TESTS = FORMS | {"NOT", "NULL", "TYPED", "NORMALIZED"}
COMPARISONS = frozenset(("=", "<>", "!=", "<", ">", "<=", ">="))


class Expressions(Primaries, TypeNames):
    """The productions of expressions."""

    #: Whether ``n:Label`` is a condition.
    label_predicates = True

    def parse_expression(self) -> AstNode:
        with self._nesting():
            return self.parse_or()

    def parse_or(self) -> AstNode:
        return self._words("OR", self.parse_xor)

    def parse_xor(self) -> AstNode:
        return self._words("XOR", self.parse_and)

    def parse_and(self) -> AstNode:
        return self._words("AND", self.parse_not)

    def _words(self, word: str, operand: Callable[[], AstNode]) -> AstNode:
        start = self._i
        first = operand()
        if self._now().word != word:
            return first
        operands, operators = [first], []
        while self._take_word(word):
            operators.append(word)
            operands.append(operand())
        return self._mark(Chain(operands=operands, operators=operators), start)

    def _operators(self, signs: frozenset[str] | tuple[str, ...], operand: Callable[[], AstNode]) -> AstNode:
        start = self._i
        first = operand()
        if self._now().operator not in signs:
            return first
        operands, operators = [first], []
        while self._now().operator in signs:
            operators.append(self._now().operator)
            self._i += 1
            operands.append(operand())
        return self._mark(Chain(operands=operands, operators=operators), start)

    def parse_not(self) -> AstNode:
        start = self._i
        if self._is_word("NOT") and self._now(1).operator not in (")", "]", ",", ".", "}", "="):
            self._i += 1
            with self._nesting():
                return self._mark(ast.Not(this=self.parse_not()), start)
        return self._operators(COMPARISONS, self.parse_comparison)

    def parse_comparison(self) -> AstNode:
        start = self._i
        left = self.parse_add()
        token = self._now()
        operator = ""
        if token.operator == "=~":
            operator = "=~"
            self._i += 1
        elif token.word in ("CONTAINS", "IN"):
            operator = token.word
            self._i += 1
        elif token.word in ("STARTS", "ENDS"):
            operator = f"{token.word} WITH"
            self._i += 1
            self._need_word("WITH")
        if operator:
            return self._mark(Test(this=left, operator=operator, expression=self.parse_add()), start)
        if token.operator == "::":
            self._i += 1
            return self._mark(IsTyped(this=left, type_=self._type(), not_=None), start)
        if token.word == "IS":
            return self._is_something(left, start)
        return left

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

    def parse_add(self) -> AstNode:
        return self._operators(("+", "-", "||"), self.parse_mul)

    def parse_mul(self) -> AstNode:
        return self._operators(("*", "/", "%"), self.parse_pow)

    def parse_pow(self) -> AstNode:
        return self._operators(("^",), self.parse_unary)

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
            conditions = self._list(self._condition) if subject is not None else [self.parse_expression()]
            self._need_word("THEN")
            result = self.parse_expression()
            branches.extend((condition, result) for condition in conditions)
        if not branches:
            raise self._wrong("WHEN")
        default = self.parse_expression() if self._take_word("ELSE") else None
        self._need_word("END")
        return self._mark(ast.Case(this=subject, ifs=branches, default=default), start)

    def _condition(self) -> AstNode:
        """What stands after ``WHEN`` where the case has a subject: a value, or an operator and its right side."""
        start = self._i
        token = self._now()
        if token.operator in COMPARISONS or token.operator == "=~":
            self._i += 1
            return self.parse_comparison()
        if token.word in ("STARTS", "ENDS") and self._is_word("WITH", ahead=1):
            self._i += 2
            return self.parse_add()
        if (token.word == "IS" and self._now(1).word in _TESTS) or token.operator == "::":
            nothing = self._mark(ast.Null(), start)
            if token.operator == "::":
                self._i += 1
                return self._mark(IsTyped(this=nothing, type_=self._type(), not_=None), start)
            return self._is_something(nothing, start)
        return self.parse_expression()
