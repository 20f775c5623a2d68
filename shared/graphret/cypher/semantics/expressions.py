"""The kind of value of an expression, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import contextmanager
from typing import Any

from cypherast import ast
from cypherast.ast import AstNode

from graphret.cypher import codes
from graphret.cypher.semantics.calls import Calls
from graphret.cypher.semantics.operators import Operators
from graphret.cypher.semantics.values import (
    ANYTHING,
    BOOLEAN,
    FLOAT,
    INTEGER,
    LISTS,
    MAP,
    NUMBERS,
    PATH,
    PROPERTY_VALUE,
    STRING,
    STRINGS,
    WITH_PROPERTIES,
    Kind,
    list_of,
    union,
    words,
)
from graphret.cypher.semantics.walk import PropertyUse, Scope, SemanticVisitor, shape
from graphret.cypher.tree import (
    Chain,
    IsTyped,
    Lambda,
    Name,
    Paren,
    Shortest,
    Sign,
    Subquery,
    Test,
    children,
    without_parens,
)

_INTEGERS = frozenset(("INTEGER",))
_BOOLEANS = frozenset(("BOOLEAN",))
_ENTITIES = frozenset(("NODE", "RELATIONSHIP"))
_PROJECTED = WITH_PROPERTIES - {"POINT"}
_CONSTANTS: dict[type[AstNode], Kind] = {
    ast.Integer: INTEGER,
    ast.Float: FLOAT,
    ast.String: STRING,
    ast.Boolean: BOOLEAN,
    ast.Null: ANYTHING,
    ast.Parameter: ANYTHING,
    ast.Star: ANYTHING,
}
#: What is known of the whole, whatever its parts are; the server asks for no kind of
#: what ``IS ::`` says.
_WHATEVER_THE_PARTS = {IsTyped: ANYTHING, ast.IsNull: BOOLEAN, ast.Map: MAP}


class Expressions(Operators, Calls, SemanticVisitor):
    """Walks expressions."""

    def kind(self, node: AstNode, scope: Scope) -> Kind:
        """The kind of an expression; what is wrong with it is added to the facts."""
        constant = _CONSTANTS.get(type(node))
        if constant is not None:
            return constant
        if (
            self.projected
            and (projected_kind := self.projected.get(shape(node))) is not None
        ):
            return projected_kind
        handler = _HANDLERS.get(type(node))
        if handler is not None:
            return handler(self, node, scope)
        for child in children(node):
            self.kind(child, scope)
        return _WHATEVER_THE_PARTS.get(type(node), ANYTHING)

    def predicate(self, node: AstNode, scope: Scope) -> None:
        """Check an expression that must be true or false; a pattern tests existence."""
        node = without_parens(node)
        if isinstance(node, ast.PatternPredicate):
            self.pattern_predicate(node, scope)
        else:
            self.expect(node, self.kind(node, scope), _BOOLEANS)

    @contextmanager
    def local(self, scope: Scope, names: Iterable[tuple[Any, Kind]]) -> Any:
        """A scope with variables of its own, which may hide a projected expression."""
        inner = dict(scope)
        for variable, kind in names:
            self.refuse_hiding(variable, self.outer)
            inner[variable.this] = kind
        before, projected = self.aggregation, self.projected
        if before != "inside":
            self.aggregation = "forbidden"
        yield inner
        self.aggregation, self.projected = before, projected

    # --- variables and properties -----------------------------------------

    def _identifier(self, node: ast.Identifier, scope: Scope) -> Kind:
        name = node.this
        kind = scope.get(name)
        if kind is not None:
            return kind
        if name in self.hidden:
            message = (
                f"{name!r} cannot be used here: after DISTINCT or an aggregation only"
                " what was returned is known"
            )
            self.facts.error(codes.OUT_OF_SCOPE, message, node)
        else:
            suggestions = self.facts.nearest(name, [*scope, *self.hidden])
            self.facts.error(
                codes.UNDEFINED_VARIABLE,
                f"the variable {name!r} is not defined",
                node,
                suggestions,
            )
        return ANYTHING

    def _property(self, node: ast.Property, scope: Scope) -> Kind:
        base = self.kind(node.this, scope)
        self.expect(node.this, base, WITH_PROPERTIES, "has no properties")
        self._ask(base, node.name)
        if base.names is not None and base.names <= _ENTITIES:
            return PROPERTY_VALUE
        return ANYTHING

    def _ask(self, base: Kind, name: Name) -> None:
        """Note a property that is asked of a value of some kind."""
        entity = (
            base.entity if base.names is not None and base.names <= _ENTITIES else None
        )
        of_value = base.names is not None and base.names.isdisjoint(_ENTITIES)
        self.facts.properties.append(PropertyUse(entity, name, of_value))

    def _label_predicate(self, node: ast.LabelPredicate, scope: Scope) -> Kind:
        base = self.kind(node.this, scope)
        self.expect(node.this, base, _ENTITIES)
        if base.entity is not None:
            self.facts.add_labels(node.labels, base.entity)
        self.check_label_expression(
            node.labels, relationship=base.is_only("RELATIONSHIP")
        )
        return BOOLEAN

    def _subscript(self, node: ast.ListSubscript, scope: Scope) -> Kind:
        base = self.kind(node.this, scope)
        index = self.kind(node.index, scope)
        keyed = _ENTITIES | {"MAP"}
        self.expect(node.this, base, LISTS | keyed)
        if base.names is None:
            return ANYTHING
        if base.names.isdisjoint(LISTS):
            self.expect(node.index, index, STRINGS)
            return ANYTHING
        if base.names.isdisjoint(keyed):
            self.expect(node.index, index, _INTEGERS)
            return base.item()
        return ANYTHING

    def _slice(self, node: ast.ListSlice, scope: Scope) -> Kind:
        base = self.kind(node.this, scope)
        self.expect(node.this, base, LISTS)
        if node.start is None and node.end is None:
            self.facts.error(
                codes.INVALID_VALUE, "a slice needs a start, an end or both", node
            )
        for bound in (node.start, node.end):
            if bound is not None:
                self.expect(bound, self.kind(bound, scope), _INTEGERS)
        return base if base.is_only("LIST") else list_of(base.item())

    # --- literals and projections -----------------------------------------

    def _list(self, node: ast.List, scope: Scope) -> Kind:
        item = union([self.kind(e, scope) for e in node.expressions])
        mixed = (
            item.names is not None and len(item.names) > 1 and not item.names <= NUMBERS
        )
        return list_of(
            ANYTHING if mixed and item.names != PROPERTY_VALUE.names else item
        )

    def _map_projection(self, node: ast.MapProjection, scope: Scope) -> Kind:
        base = self.kind(node.this, scope)
        self.expect(node.this, base, _PROJECTED)
        for entry in node.entries:
            if isinstance(entry, ast.PropertySelector):
                self._ask(base, entry.name)
            else:
                self.kind(entry[1] if isinstance(entry, tuple) else entry, scope)
        return MAP

    def _inner(self, node: Paren | ast.Alias, scope: Scope) -> Kind:
        return self.kind(node.this, scope)

    def _case(self, node: ast.Case, scope: Scope) -> Kind:
        if node.this is not None:
            self.kind(node.this, scope)
        results = []
        for condition, result in node.ifs:
            if node.this is None:
                self.predicate(condition, scope)
            else:
                self.kind(condition, scope)
            results.append(self.kind(result, scope))
        if node.default is not None:
            results.append(self.kind(node.default, scope))
        return union(results)

    # --- lists ------------------------------------------------------------

    def _source(self, node: AstNode, scope: Scope) -> Kind:
        """The kind of the items of a list that is gone through."""
        kind = self.kind(node, scope)
        self.expect(node, kind, LISTS)
        return kind.item() if kind.is_only("LIST") else ANYTHING

    def _comprehension(self, node: ast.ListComprehension, scope: Scope) -> Kind:
        item = self._source(node.source, scope)
        with self.local(scope, [(node.variable, item)]) as inner:
            if node.where is not None:
                self.predicate(node.where, inner)
            if node.projection is None:
                return list_of(item)
            return list_of(self.kind(node.projection, inner))

    def _quantifier(self, node: ast.Quantifier, scope: Scope) -> Kind:
        item = self._source(node.source, scope)
        if node.where is None:
            self.facts.error(
                codes.INVALID_VALUE,
                f"{node.name}(…) needs a WHERE with a condition",
                node,
            )
            return BOOLEAN
        with self.local(scope, [(node.variable, item)]) as inner:
            self.predicate(node.where, inner)
        return BOOLEAN

    def _reduce(self, node: ast.ListLambda, scope: Scope) -> Kind:
        first = self.kind(node.initial, scope)
        item = self._source(node.source, scope)
        with self.local(
            scope, [(node.accumulator, first), (node.variable, item)]
        ) as inner:
            result = self.kind(node.expression, inner)
        if not _may_accumulate(first, result) and self.strict:
            message = (
                f"what is gathered begins as {words(first.names)} and becomes"
                f" {words(result.names)}"
            )
            self.facts.error(codes.TYPE_MISMATCH, message, node.expression)
        return union([first, result])

    # --- patterns and subqueries ------------------------------------------

    def pattern_predicate(self, node: ast.PatternPredicate, scope: Scope) -> None:
        """A pattern that stands for its existence: it may name no new variables."""
        self.path_without_new_variables(
            node.pattern, scope, "a pattern used as a condition"
        )

    def _bare_pattern(self, node: ast.PatternPredicate, scope: Scope) -> Kind:
        if not self.strict:
            self.pattern_predicate(node, scope)
            return BOOLEAN
        message = (
            "a pattern may only stand where a condition does; use EXISTS { … }, COUNT {"
            " … } or [pattern | x]"
        )
        self.facts.error(codes.MISPLACED_PATTERN, message, node)
        return ANYTHING

    def _pattern_comprehension(
        self, node: ast.PatternComprehension, scope: Scope
    ) -> Kind:
        with self.local(scope, []) as inner:
            hidden, self.hidden = self.hidden, frozenset()
            self.declare_paths([node.pattern], inner)
            if node.variable is not None:
                self.refuse_hiding(node.variable, self.outer)
                inner[node.variable.this] = PATH
            self.inspect_paths([node.pattern], inner)
            self.hidden = hidden
            if node.where is not None:
                self.predicate(node.where, inner)
            return list_of(self.kind(node.projection, inner))

    def _shortest(self, node: Shortest, scope: Scope) -> Kind:
        self.path_without_new_variables(
            node.this, scope, "shortestPath(…) outside MATCH", undefined=True
        )
        self.check_shortest(node)
        return list_of(PATH) if node.name.lower() == "allshortestpaths" else PATH

    def _subquery(self, node: Subquery, scope: Scope) -> Kind:
        before = self.aggregation, self.projected, self.hidden, self.outer
        self.aggregation, self.projected, self.outer = (
            "forbidden",
            {},
            frozenset(scope if self.strict else ()),
        )
        column = self.subquery(node, scope)
        self.aggregation, self.projected, self.hidden, self.outer = before
        if node.kind == "COUNT":
            return INTEGER
        return BOOLEAN if node.kind == "EXISTS" else list_of(column)

    def _lambda(self, node: Lambda, scope: Scope) -> Kind:
        with self.local(
            scope, [(variable, ANYTHING) for variable in node.variables]
        ) as inner:
            return self.kind(node.expression, inner)


def _may_accumulate(first: Kind, result: Kind) -> bool:
    if (
        first.names is None
        or result.names is None
        or not first.names.isdisjoint(result.names)
    ):
        return True
    # A list will do for a boolean, and one number for another.
    return (first.may_be(NUMBERS) and result.may_be(NUMBERS)) or (
        first.is_only("LIST") and result.is_only("BOOLEAN")
    )


_Handler = Callable[[Any, Any, Scope], Kind]
_HANDLERS: dict[type[AstNode], _Handler] = {
    ast.Identifier: Expressions._identifier,
    ast.Property: Expressions._property,
    ast.LabelPredicate: Expressions._label_predicate,
    ast.ListSubscript: Expressions._subscript,
    ast.ListSlice: Expressions._slice,
    ast.List: Expressions._list,
    ast.MapProjection: Expressions._map_projection,
    Paren: Expressions._inner,
    ast.Case: Expressions._case,
    ast.ListComprehension: Expressions._comprehension,
    ast.Quantifier: Expressions._quantifier,
    ast.ListLambda: Expressions._reduce,
    ast.PatternPredicate: Expressions._bare_pattern,
    ast.PatternComprehension: Expressions._pattern_comprehension,
    Shortest: Expressions._shortest,
    Subquery: Expressions._subquery,
    ast.Alias: Expressions._inner,
    Lambda: Expressions._lambda,
    ast.Not: Expressions._not,
    Chain: Expressions._chain,
    Sign: Expressions._sign,
    Test: Expressions._test,
    ast.FunctionCall: Expressions._call,
}
