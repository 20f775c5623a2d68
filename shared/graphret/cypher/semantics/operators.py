"""The kinds that operators take and make, by Neo4j 5's verdict on each pair."""

from __future__ import annotations

from collections.abc import Callable

from cypherast import ast
from cypherast.ast import AstNode

from graphret.cypher import codes
from graphret.cypher.grammar.expressions import COMPARISONS
from graphret.cypher.semantics.values import (
    ANYTHING,
    BOOLEAN,
    FLOAT,
    LISTS,
    NUMBERS,
    STRINGS,
    TEMPORAL,
    Kind,
    list_of,
    union,
)
from graphret.cypher.semantics.walk import Scope, SemanticVisitor
from graphret.cypher.tree import Chain, Sign, Test

_BOOLEAN_WORDS = frozenset(("AND", "OR", "XOR"))
_DURATIONS = frozenset(("DURATION",))
_TEXT_OR_NUMBER = NUMBERS | {"STRING"}


class Operators(SemanticVisitor):
    """Walks operators."""

    def _not(self, node: ast.Not, scope: Scope) -> Kind:
        self.predicate(node.this, scope)
        return BOOLEAN

    def _chain(self, node: Chain, scope: Scope) -> Kind:
        operators: list[str] = node.operators
        operands: list[AstNode] = node.operands
        if operators[0] in _BOOLEAN_WORDS:
            for operand in operands:
                self.predicate(operand, scope)
            return BOOLEAN
        if operators[0] in COMPARISONS:
            for operand in operands:
                self.kind(operand, scope)
            if "!=" in operators:
                self.facts.error(
                    codes.SYNTAX,
                    "there is no operator '!='; inequality is written '<>'",
                    node,
                    ("<>",),
                )
            return BOOLEAN
        left = self.kind(operands[0], scope)
        for i, operator in enumerate(operators):
            left = self._combine(
                left,
                operands[i],
                operator,
                operands[i + 1],
                self.kind(operands[i + 1], scope),
            )
        return left

    def _combine(
        self,
        left: Kind,
        left_node: AstNode,
        operator: str,
        right_node: AstNode,
        right: Kind,
    ) -> Kind:
        if operator == "+":
            return self._add(left, right_node, right)
        if operator == "-":
            return self._subtract(left, left_node, right_node, right)
        if operator == "||":
            allowed = (
                STRINGS | LISTS
                if left.names is None
                else frozenset(left.names & (STRINGS | LISTS))
            )
            self.expect(left_node, left, STRINGS | LISTS)
            if allowed:
                self.expect(right_node, right, allowed)
            return union([left, right])
        numbers = NUMBERS | _DURATIONS if operator in "*/" else NUMBERS
        self.expect(left_node, left, numbers)
        self.expect(right_node, right, NUMBERS if operator == "/" else numbers)
        if operator == "^":
            return FLOAT
        names = frozenset().union(
            *(numbers if k.names is None else k.names & numbers for k in (left, right))
        )
        return Kind(names or numbers)

    def _add(self, left: Kind, right_node: AstNode, right: Kind) -> Kind:
        if left.names is not None and "LIST" not in left.names:
            allowed: set[str] = {"LIST"}
            if left.may_be(_TEXT_OR_NUMBER):
                allowed |= _TEXT_OR_NUMBER
            if left.may_be(TEMPORAL):
                allowed |= _DURATIONS
            if left.may_be(_DURATIONS):
                allowed |= _DURATIONS | TEMPORAL
            self.expect(right_node, right, frozenset(allowed))
        if left.names is None or right.names is None:
            return ANYTHING
        if left.is_only("LIST") and right.is_only("LIST"):
            return list_of(union([left.item(), right.item()]))
        return _of_pairs(_plus, left.names, right.names)

    def _subtract(
        self, left: Kind, left_node: AstNode, right_node: AstNode, right: Kind
    ) -> Kind:
        self.expect(left_node, left, NUMBERS | TEMPORAL | _DURATIONS)
        allowed: set[str] = set()
        if left.may_be(NUMBERS):
            allowed |= NUMBERS
        if left.may_be(TEMPORAL | _DURATIONS):
            allowed |= _DURATIONS
        if allowed:
            self.expect(right_node, right, frozenset(allowed))
        some = NUMBERS | TEMPORAL | _DURATIONS
        return _of_pairs(_minus, left.names or some, right.names or some)

    def _sign(self, node: Sign, scope: Scope) -> Kind:
        inner = self.kind(node.this, scope)
        self.expect(
            node.this,
            inner,
            NUMBERS if node.operator == "-" else NUMBERS | TEMPORAL | _DURATIONS,
        )
        return (
            Kind(inner.names & NUMBERS)
            if inner.names and inner.names & NUMBERS
            else Kind(NUMBERS)
        )

    def _test(self, node: Test, scope: Scope) -> Kind:
        left, right = self.kind(node.this, scope), self.kind(node.expression, scope)
        if node.operator == "IN":
            self.expect(node.expression, right, LISTS)
        elif node.operator == "=~":
            self.expect(node.this, left, STRINGS)
            self.expect(node.expression, right, STRINGS)
        return BOOLEAN


def _of_pairs(
    result: Callable[[str, str], str | None],
    left: frozenset[str],
    right: frozenset[str],
) -> Kind:
    """The kind of an operator's result, of all pairs of kinds.

    Anything where no pair has one.
    """
    names = frozenset(filter(None, (result(a, b) for a in left for b in right)))
    return Kind(names) if names else ANYTHING


def _plus(left: str, right: str) -> str | None:
    pair = {left, right}
    if "LIST" in pair:
        return "LIST"
    if "STRING" in pair:
        return "STRING" if pair <= _TEXT_OR_NUMBER else None
    if pair <= NUMBERS:
        return "FLOAT" if "FLOAT" in pair else "INTEGER"
    if pair <= TEMPORAL | _DURATIONS and "DURATION" in pair:
        return left if right == "DURATION" else right
    return None


def _minus(left: str, right: str) -> str | None:
    if left in NUMBERS and right in NUMBERS:
        return "FLOAT" if "FLOAT" in (left, right) else "INTEGER"
    return left if right == "DURATION" and left in TEMPORAL | _DURATIONS else None
