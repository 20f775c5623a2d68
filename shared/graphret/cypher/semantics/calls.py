"""Calls of functions: their names, their arguments, and where they may aggregate."""

from __future__ import annotations

from typing import Any

from cypherast import ast
from cypherast.ast import AstNode

from graphret.cypher import codes
from graphret.cypher.semantics.functions import (
    FUNCTIONS,
    INSTEAD,
    LADYBUG_LACKS,
    READING,
    SYNTAX_OF_THEIR_OWN,
    Function,
)
from graphret.cypher.semantics.values import ANYTHING, BOOLEAN, INTEGER, Kind, union
from graphret.cypher.semantics.walk import Scope, SemanticVisitor, bare_pattern
from graphret.cypher.suggestions import nearest
from graphret.cypher.tree import without_parens

#: Each set describes a point by itself; other keys may stand beside it.
_POINTS = (frozenset(("x", "y")), frozenset(("latitude", "longitude")))
_SHARES = ("percentileCont", "percentileDisc")
_WHY_NOT = {
    "inside": "may not stand within another aggregation",
    "forbidden": "may only stand in RETURN, WITH or their ORDER BY",
    "order": "may only be sorted by where it is returned",
}
_SPELLINGS = (*SYNTAX_OF_THEIR_OWN, *(function.name for function in READING.values()))


class Calls(SemanticVisitor):
    """Walks calls of functions."""

    def _call(self, node: ast.FunctionCall, scope: Scope) -> Kind:
        name = node.name.this.lower()
        if self.facts.dialect == "ladybug":
            return self._ladybug_call(node, name, scope)
        if name == "exists":
            return self._exists(node, scope)
        function = FUNCTIONS.get(name)
        if function is None:
            for argument in node.expressions:
                self.kind(argument, scope)
            self._unknown(node, name)
            return ANYTHING
        if function.aggregates:
            return self._aggregate(node, function, scope)
        if node.distinct:
            self.facts.error(
                codes.WRONG_ARGUMENTS,
                f"DISTINCT means nothing within {node.name.this}(…)",
                node,
            )
        if name == "rand" and self.aggregation == "inside":
            message = "a random function may not stand within an aggregation"
            self.facts.error(codes.MISPLACED_AGGREGATION, message, node)
        return self._arguments(node, function, scope)

    def _arguments(
        self, node: ast.FunctionCall, function: Function, scope: Scope
    ) -> Kind:
        arguments: list[AstNode] = node.expressions
        kinds: list[Kind] = []
        for i, argument in enumerate(arguments):
            if function.name == "size" and bare_pattern(argument) is not None:
                message = "size(…) of a pattern is no longer there; use COUNT { … }"
                self.facts.error(
                    codes.MISPLACED_PATTERN, message, argument, ("COUNT { … }",)
                )
                kinds.append(ANYTHING)
                continue
            kinds.append(self.kind(argument, scope))
            if (
                i < len(function.arguments)
                and (allowed := function.arguments[i]) is not None
            ):
                # An integer will do where a float is asked for.
                self.expect(argument, kinds[i], allowed)
        self._count_arguments(node, function)
        if function.name == "point":
            self._point(arguments)
        if function.name == "coalesce":
            return union(kinds)
        if function.name == "split" and len(kinds) == 2 and kinds[1].is_only("LIST"):
            self.expect(arguments[1], kinds[1].item(), frozenset(("STRING",)))
        return function.kind(kinds[0] if kinds else None)

    def _count_arguments(self, node: ast.FunctionCall, function: Function) -> None:
        n_arguments, least, most = len(node.expressions), function.least, function.most
        if least <= n_arguments and (most is None or n_arguments <= most):
            return
        expected = (
            f"{least} or more"
            if most is None
            else f"{least} to {most}"
            if least != most
            else f"{least}"
        )
        message = (
            f"{node.name.this}(…): expected {expected}"
            f" argument{'s' if expected != '1' else ''}, got {n_arguments}"
        )
        self.facts.error(codes.WRONG_ARGUMENTS, message, node)

    def _unknown(self, node: ast.FunctionCall, name: str) -> None:
        if name.startswith("apoc."):
            return  # a plug-in's functions, of which those on the list may run
        instead = INSTEAD.get(name)
        suggestions = (instead,) if instead else nearest(node.name.this, _SPELLINGS)
        self.facts.error(
            codes.UNKNOWN_FUNCTION,
            f"there is no function {node.name.this!r}",
            node.name,
            suggestions,
        )

    def _exists(self, node: ast.FunctionCall, scope: Scope) -> Kind:
        if len(node.expressions) != 1:
            self.facts.error(codes.WRONG_ARGUMENTS, "exists(…) takes 1 argument", node)
            return BOOLEAN
        pattern = bare_pattern(node.expressions[0])
        if pattern is not None:
            self.pattern_predicate(pattern, scope)
            return BOOLEAN
        argument = without_parens(node.expressions[0])
        self.kind(argument, scope)
        if self.strict:
            text = self.facts.text(argument)
            message = (
                "exists(…) takes a pattern; whether a property is there is asked by"
                f" {text} IS NOT NULL"
            )
            self.facts.error(
                codes.WRONG_ARGUMENTS, message, node, (f"{text} IS NOT NULL",)
            )
        return BOOLEAN

    def _point(self, arguments: list[AstNode]) -> None:
        literal = without_parens(arguments[0]) if arguments else None
        if not isinstance(literal, ast.Map):
            return
        keys = {key.this for key, _ in literal.entries}
        if not any(needed <= keys for needed in _POINTS):
            message = (
                "a point is given by {x: …, y: …} or by {latitude: …, longitude: …}"
            )
            self.facts.error(codes.INVALID_VALUE, message, literal)

    # --- aggregation ------------------------------------------------------

    def _aggregate(
        self, node: ast.FunctionCall, function: Function, scope: Scope
    ) -> Kind:
        self._place_of_aggregate(node)
        before, self.aggregation = self.aggregation, "inside"
        arguments: list[AstNode] = node.expressions
        starred = bool(arguments) and isinstance(arguments[0], ast.Star)
        kind = INTEGER if starred else self._arguments(node, function, scope)
        self.aggregation = before
        if function.name in _SHARES and len(arguments) == 2:
            self._share(arguments[1])
        return kind

    def _place_of_aggregate(self, node: ast.FunctionCall) -> None:
        if self.aggregation in _WHY_NOT:
            message = f"{node.name.this}(…) aggregates and {_WHY_NOT[self.aggregation]}"
            self.facts.error(codes.MISPLACED_AGGREGATION, message, node)

    def _share(self, argument: Any) -> None:
        literal = without_parens(argument)
        if (
            isinstance(literal, ast.Float | ast.Integer)
            and not 0 <= float(literal.this) <= 1
        ):
            self.facts.error(
                codes.INVALID_VALUE, "a percentile lies between 0.0 and 1.0", literal
            )

    # --- the other dialect ------------------------------------------------

    def _ladybug_call(self, node: ast.FunctionCall, name: str, scope: Scope) -> Kind:
        if name in LADYBUG_LACKS:
            message = f"Ladybug has no function {node.name.this!r}"
            self.facts.error(
                codes.UNKNOWN_FUNCTION, message, node.name, (LADYBUG_LACKS[name],)
            )
        if name == "exists":
            message = (
                "Ladybug has no exists(…); write EXISTS { MATCH … }, or IS NOT NULL of"
                " a property"
            )
            self.facts.error(codes.SYNTAX, message, node)
        if name == "size" and any(map(bare_pattern, node.expressions)):
            # Ladybug 0.22 runs it, and counts wrongly.
            message = "Ladybug has no size(…) of a pattern; write COUNT { MATCH … }"
            self.facts.error(codes.MISPLACED_PATTERN, message, node)
        before, function = self.aggregation, FUNCTIONS.get(name)
        aggregates = function is not None and function.aggregates
        if aggregates:
            self._place_of_aggregate(node)
            self.aggregation = "inside"
        kinds: list[Kind] = []
        for argument in node.expressions:
            if (pattern := bare_pattern(argument)) is not None:
                self.pattern_predicate(pattern, scope)
            else:
                kinds.append(self.kind(argument, scope))
        self.aggregation = before
        return (
            function.kind(kinds[0])
            if function is not None and aggregates and kinds
            else ANYTHING
        )
