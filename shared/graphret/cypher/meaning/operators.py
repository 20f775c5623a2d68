"""The kinds that operators make, and the few that they take by the text alone."""

from __future__ import annotations

from cypherast import ast
from cypherast.ast import AstNode

from graphret.cypher import kinds
from graphret.cypher.grammar.expressions import COMPARISONS
from graphret.cypher.meaning.values import ANYTHING, BOOLEAN, LISTS, NUMBERS, STRINGS, Kind
from graphret.cypher.meaning.walk import Scope, Walk
from graphret.cypher.tree import Chain, Sign, Test

_BOOLEAN_WORDS = frozenset(("AND", "OR", "XOR"))


class Operators(Walk):
    """Walks operators; which of them take which kinds, but for lists and texts, is for the server to say."""

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
        found = [self.kind(operand, scope) for operand in operands]
        if operators[0] in COMPARISONS:
            if "!=" in operators:
                self.facts.error(kinds.SYNTAX, "there is no operator '!='; inequality is written '<>'", node, ("<>",))
            return BOOLEAN
        if all(kind.is_only("LIST") for kind in found):
            return Kind(LISTS)
        return Kind(NUMBERS) if all(kind.names is not None and kind.names <= NUMBERS for kind in found) else ANYTHING

    def _sign(self, node: Sign, scope: Scope) -> Kind:
        self.kind(node.this, scope)
        return Kind(NUMBERS)

    def _test(self, node: Test, scope: Scope) -> Kind:
        left, right = self.kind(node.this, scope), self.kind(node.expression, scope)
        if node.operator == "IN":
            self.expect(node.expression, right, LISTS)
        elif node.operator == "=~":
            self.expect(node.this, left, STRINGS)
            self.expect(node.expression, right, STRINGS)
        return BOOLEAN
