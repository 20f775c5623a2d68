"""What all parts of the walk share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cypherast import ast
from cypherast.ast import AstNode

from graphret.cypher import kinds
from graphret.cypher.meaning.facts import Facts, Scope
from graphret.cypher.meaning.shapes import Shape
from graphret.cypher.meaning.values import Kind, words
from graphret.cypher.tree import Shortest, Subquery, without_parens


class Walk:
    """A walk through a query's meaning.

    Parameters
    ----------
    facts
        Where it writes what it finds.
    """

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        #: ``allowed``, ``forbidden``, ``inside`` one, or ``order`` (in ORDER BY after a projection that has none).
        self.aggregation = "forbidden"
        #: Expressions that a projection returned, where only these may be used again.
        self.projected: dict[Shape, Kind] = {}
        #: Variables that were known before a projection with DISTINCT or an aggregation, and no longer are.
        self.hidden: frozenset[str] = frozenset()
        #: Variables around an EXISTS, COUNT or COLLECT, which nothing in it may hide.
        self.outer: frozenset[str] = frozenset()

    @property
    def strict(self) -> bool:
        """Whether the dialect has Neo4j's rules of kinds."""
        return self.facts.dialect == "neo4j"

    def expect(self, node: AstNode, kind: Kind, allowed: frozenset[str], why: str = "") -> None:
        """Complain, where Neo4j's rules of kinds hold, unless a value may be of an allowed kind."""
        if self.strict:
            self.require(node, kind, allowed, why)

    def require(self, node: AstNode, kind: Kind, allowed: frozenset[str], why: str = "") -> None:
        """Complain, in both dialects, unless a value may be of an allowed kind."""
        if kind.may_be(allowed):
            return
        text = self.facts.text(node)
        short = text if len(text) <= 40 else f"{text[:37]}…"
        reason = f"{short!r} is {words(kind.names)}"
        message = f"{reason} and {why}" if why else f"{reason}; {words(allowed)} is needed"
        self.facts.error(kinds.TYPE_MISMATCH, message, node)

    def refuse_hiding(self, variable: Any) -> None:
        """Complain of a variable of an expression that hides one from around the subquery."""
        if variable.this in self.outer and self.strict:
            message = f"{variable.this!r} is already a variable outside the subquery; give it another name"
            self.facts.error(kinds.DUPLICATE_VARIABLE, message, variable)

    if TYPE_CHECKING:

        def kind(self, node: AstNode, scope: Scope) -> Kind: ...
        def predicate(self, node: AstNode, scope: Scope) -> None: ...
        def pattern_predicate(self, node: ast.PatternPredicate, scope: Scope) -> None: ...
        def declare_paths(self, paths: list[AstNode], scope: Scope) -> None: ...
        def inspect_paths(self, paths: list[AstNode], scope: Scope) -> None: ...
        def check_shortest(self, node: Shortest) -> None: ...
        def check_label_expression(self, labels: AstNode, relationship: bool, long: bool = False) -> None: ...
        def path_without_new_variables(
            self, path: AstNode, scope: Scope, what: str, undefined: bool = False
        ) -> None: ...
        def label_names(self, labels: AstNode, scope: Scope, kind: Kind) -> None: ...
        def subquery(self, node: Subquery, scope: Scope) -> Kind: ...


def bare_pattern(node: AstNode) -> ast.PatternPredicate | None:
    """The pattern that an expression is, parentheses aside."""
    node = without_parens(node)
    return node if isinstance(node, ast.PatternPredicate) else None
