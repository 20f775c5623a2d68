"""The kinds that operators take and make, by Neo4j 5's verdict on each pair."""

from __future__ import annotations

from collections.abc import Callable

from cypherast import ast
from cypherast.ast import AstNode

from graphret.cypher import kinds
from graphret.cypher.grammar.expressions import COMPARISONS
from graphret.cypher.meaning.values import (
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
    words,
)
from graphret.cypher.meaning.walk import Scope, Walk
from graphret.cypher.tree import Chain, Sign, Test

_ARITHMETIC = frozenset("+-*/%^")
_BOOLEAN_WORDS = frozenset(("AND", "OR", "XOR"))
_DURATIONS = frozenset(("DURATION",))
_TEXT_OR_NUMBER = NUMBERS | {"STRING"}
#: Kinds that Ladybug compares with one another.
_COMPARABLE = (
    _TEXT_OR_NUMBER,
    *(frozenset((one, "STRING")) for one in ("BOOLEAN", "LIST", "MAP")),
    frozenset(("NODE", "RELATIONSHIP")),
    frozenset(("PATH",)),
    frozenset(("INTERNAL ID",)),
)


class Operators(Walk):
    """Walks operators."""

    def _not(self, node: ast.Not, scope: Scope) -> Kind:
        self.predicate(node.this, scope)
        return self.truth(ANYTHING)

    def truth(self, *operands: Kind) -> Kind:
        """What is true or false; to Ladybug it is of no type where an operand may be null."""
        return BOOLEAN if self.strict or all(kind.names is not None for kind in operands) else ANYTHING

    def _chain(self, node: Chain, scope: Scope) -> Kind:
        operators: list[str] = node.operators
        operands: list[AstNode] = node.operands
        if operators[0] in _BOOLEAN_WORDS:
            for operand in operands:
                self.predicate(operand, scope)
            return self.truth(ANYTHING)
        if operators[0] in COMPARISONS:
            found = [self.kind(operand, scope) for operand in operands]
            if not self.strict and len(found) == 2:
                self._comparable(node, *found)
            if "!=" in operators:
                self.facts.error(kinds.SYNTAX, "there is no operator '!='; inequality is written '<>'", node, ("<>",))
            return self.truth(*found)
        left = self.kind(operands[0], scope)
        combine = self._combine if self.strict else self._on_ladybug
        for i, operator in enumerate(operators):
            left = combine(left, operands[i], operator, operands[i + 1], self.kind(operands[i + 1], scope))
        return left

    def _combine(self, left: Kind, left_node: AstNode, operator: str, right_node: AstNode, right: Kind) -> Kind:
        if operator == "+":
            return self._add(left, right_node, right)
        if operator == "-":
            return self._subtract(left, left_node, right_node, right)
        if operator == "||":
            allowed = STRINGS | LISTS if left.names is None else frozenset(left.names & (STRINGS | LISTS))
            self.expect(left_node, left, STRINGS | LISTS)
            if allowed:
                self.expect(right_node, right, allowed)
            return union([left, right])
        numbers = NUMBERS | _DURATIONS if operator in "*/" else NUMBERS
        self.expect(left_node, left, numbers)
        self.expect(right_node, right, NUMBERS if operator == "/" else numbers)
        if operator == "^":
            return FLOAT
        names = frozenset().union(*(numbers if k.names is None else k.names & numbers for k in (left, right)))
        return Kind(names or numbers)

    def _comparable(self, node: Chain, left: Kind, right: Kind) -> None:
        """Ladybug casts text to what it is compared with, and nothing else."""
        if any(left.may_be(family) and right.may_be(family) for family in _COMPARABLE):
            return
        message = f"{words(left.names)} is not compared with {words(right.names)}"
        self.facts.error(kinds.TYPE_MISMATCH, message, node)

    def _on_ladybug(self, left: Kind, left_node: AstNode, operator: str, right_node: AstNode, right: Kind) -> Kind:
        """Numbers go with numbers, and by ``+`` text with text and lists with lists; a literal has no other kind."""
        if operator not in _ARITHMETIC:
            return ANYTHING
        allowed = _TEXT_OR_NUMBER | LISTS if operator == "+" else NUMBERS
        self.require(left_node, left, allowed)
        for family in (NUMBERS, STRINGS, LISTS):
            if left.names is not None and left.names <= family & allowed:
                allowed = family
        self.require(right_node, right, allowed)
        if left.names is None or right.names is None:
            return ANYTHING
        if left.names | right.names <= NUMBERS:
            return Kind(left.names | right.names)
        return left if left.names == right.names and len(left.names) == 1 else ANYTHING

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

    def _subtract(self, left: Kind, left_node: AstNode, right_node: AstNode, right: Kind) -> Kind:
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
        if not self.strict:
            self.require(node.this, inner, NUMBERS)
            return inner
        self.expect(node.this, inner, NUMBERS if node.operator == "-" else NUMBERS | TEMPORAL | _DURATIONS)
        return Kind(inner.names & NUMBERS) if inner.names and inner.names & NUMBERS else Kind(NUMBERS)

    def _test(self, node: Test, scope: Scope) -> Kind:
        left, right = self.kind(node.this, scope), self.kind(node.expression, scope)
        if node.operator == "IN":
            # Ladybug takes x IN y[0..3] for (x IN y)[0..3].
            if self.strict or not isinstance(node.expression, ast.ListSubscript | ast.ListSlice):
                self.require(node.expression, right, LISTS)
        elif node.operator == "=~":
            self.expect(node.this, left, STRINGS)
            self.expect(node.expression, right, STRINGS)
        return self.truth(left, right)


def _of_pairs(result: Callable[[str, str], str | None], left: frozenset[str], right: frozenset[str]) -> Kind:
    """The kind of an operator's result, from that of each pair of kinds; anything where no pair has one."""
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
