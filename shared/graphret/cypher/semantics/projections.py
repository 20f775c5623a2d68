"""``WITH`` and ``RETURN``: what they pass on, group by and sort by."""

from __future__ import annotations

from typing import Any

from cypherast import ast
from cypherast.ast import AstNode

from graphret.cypher import codes
from graphret.cypher.semantics.values import ANYTHING, NUMBERS, Kind
from graphret.cypher.semantics.walk import (
    Scope,
    SemanticVisitor,
    Shape,
    aggregates,
    is_aggregate,
    shape,
)
from graphret.cypher.tree import Sign, Subquery, children, walk, without_parens

_LOCAL = (
    ast.ListComprehension,
    ast.Quantifier,
    ast.ListLambda,
    ast.PatternComprehension,
)


class Projections(SemanticVisitor):
    """Walks projections."""

    def project(
        self, clause: Any, scope: Scope, outer: Scope, *, must_alias: bool
    ) -> Scope:
        """Check the items of ``WITH`` or ``RETURN``, and return the columns in order.

        `outer` stays visible.
        """
        items = [item for item in clause.expressions if not isinstance(item, ast.Star)]
        starred = len(items) != len(clause.expressions)
        columns: Scope = dict(scope) if starred else {}
        self.aggregation = "allowed"
        kinds_of = [self.kind(item, scope) for item in items]
        self.aggregation = "forbidden"
        names: set[str] = set()
        for item, kind in zip(items, kinds_of, strict=True):
            name = self.column(item)
            if name in names:
                if self.strict:
                    self.facts.error(
                        codes.INVALID_PROJECTION,
                        f"two columns are named {name!r}",
                        item,
                    )
            elif must_alias and not _is_named(item):
                text = self.facts.text(item)
                message = (
                    f"what WITH passes on, or CALL returns, needs a name: {text} AS …"
                )
                self.facts.error(codes.INVALID_PROJECTION, message, item)
            names.add(name)
            columns[name] = kind
        aggregating = [any(True for _ in aggregates(item)) for item in items]
        self._check_grouping(items, aggregating, scope, starred)
        self._after(clause, scope, outer, columns, items, kinds_of, any(aggregating))
        return columns

    def column(self, item: AstNode) -> str:
        """The name of a column."""
        if isinstance(item, ast.Alias):
            return str(item.alias.this)
        if isinstance(item, ast.Identifier):
            return str(item.this)
        if isinstance(item, ast.MapProjection):
            return str(item.this.this)
        return self.facts.text(item)

    def _after(
        self,
        clause: Any,
        scope: Scope,
        outer: Scope,
        columns: Scope,
        items: list[AstNode],
        kinds_of: list[Kind],
        aggregating: bool,
    ) -> None:
        """``ORDER BY``, ``WHERE``, ``SKIP`` and ``LIMIT`` of a projection."""
        narrow = aggregating or bool(clause.distinct)
        before = self.hidden
        if narrow:
            self.hidden = frozenset(scope) - frozenset(columns) - frozenset(outer)
            self.projected = {
                shape(item.this if isinstance(item, ast.Alias) else item): kind
                for item, kind in zip(items, kinds_of, strict=True)
            }
            visible = {**outer, **columns}
        else:
            visible = {**scope, **columns}
        # An aggregation may be used again where it was returned; it is then found among
        # what was projected.
        self.aggregation = "order"
        if clause.order is not None:
            shadows = [
                name
                for name in scope
                if name in visible and visible[name] is not scope[name]
            ]
            # Ladybug may order by what had the name before.
            self.order(
                clause.order,
                visible
                if self.strict
                else {**visible, **dict.fromkeys(shadows, ANYTHING)},
            )
        self.aggregation = "forbidden"
        where = getattr(clause, "where", None)
        if where is not None:
            # Ladybug's WHERE after WITH sees only what was passed on, by its name
            if not self.strict:
                self.projected, visible = {}, columns
            self.predicate(where, visible)
        self.aggregation, self.projected, self.hidden = "forbidden", {}, before
        self.bounds(clause)

    def order(self, order: Any, scope: Scope) -> None:
        """``ORDER BY``."""
        for ordered in order.expressions:
            self.kind(ordered.this, scope)

    def bounds(self, clause: Any) -> None:
        """``SKIP`` and ``LIMIT``: whole numbers that no row decides."""
        for part, word in ((clause.skip, "SKIP"), (clause.limit, "LIMIT")):
            if part is not None:
                self._bound(part.this, word)

    def _bound(self, node: AstNode, word: str) -> None:
        literal = without_parens(node)
        negative = isinstance(literal, Sign) and literal.operator == "-"
        if any(
            isinstance(n, ast.Identifier | Subquery | ast.PatternPredicate)
            for n in walk(node)
        ) or any(True for _ in aggregates(node)):
            message = (
                f"{word} may not depend on variables: write a number or a parameter"
            )
            self.facts.error(codes.INVALID_VALUE, message, node)
        elif negative or isinstance(
            literal,
            ast.Float | ast.String | ast.Boolean | ast.Null | ast.List | ast.Map,
        ):
            self.facts.error(
                codes.INVALID_VALUE, f"{word} takes a whole number from 0 on", node
            )
        else:
            kind = self.kind(node, {})
            if not kind.may_be(NUMBERS - {"FLOAT"}) and self.strict:
                self.facts.error(
                    codes.INVALID_VALUE, f"{word} takes a whole number from 0 on", node
                )

    # --- grouping ---------------------------------------------------------

    def _check_grouping(
        self, items: list[AstNode], aggregating: list[bool], scope: Scope, starred: bool
    ) -> None:
        """What stands beside an aggregation in one item must be an item of its own."""
        if not any(aggregating) or not self.strict:
            return
        expressions = [
            without_parens(item.this if isinstance(item, ast.Alias) else item)
            for item in items
        ]
        keys = {
            shape(e)
            for e, has in zip(expressions, aggregating, strict=True)
            if not has and _simple(e)
        }
        if starred:
            keys |= {shape(ast.Identifier(this=name)) for name in scope}
        for expression, has in zip(expressions, aggregating, strict=True):
            if (
                has
                and (loose := _ungrouped(expression, keys, frozenset(), scope))
                is not None
            ):
                message = (
                    f"{self.facts.text(loose)!r} stands beside an aggregation: make it"
                    " an item of its own, or pass it on with WITH first"
                )
                self.facts.error(codes.IMPLICIT_GROUPING, message, loose)


def _is_named(item: AstNode) -> bool:
    return isinstance(item, ast.Alias | ast.Identifier | ast.MapProjection)


def _simple(node: AstNode) -> bool:
    """Whether an expression may group: a variable, or a property of one."""
    while isinstance(node, ast.Property):
        node = node.this
    return isinstance(node, ast.Identifier)


def _ungrouped(
    node: AstNode, keys: set[Shape], local: frozenset[str], scope: Scope
) -> AstNode | None:
    """The first part of an aggregating expression that no key groups by."""
    if is_aggregate(node) or (
        isinstance(node, ast.Identifier | ast.Property) and shape(node) in keys
    ):
        return None
    if isinstance(node, ast.Identifier):
        return None if node.this in local else node
    if isinstance(node, ast.Property) and _simple(node):
        base = node
        while isinstance(base, ast.Property):
            if shape(base.this) in keys:
                return None
            base = base.this
        return None if base.this in local else node
    if isinstance(node, Subquery):
        outside = (
            n
            for n in walk(node)
            if isinstance(n, ast.Identifier) and n.this in scope and n.this not in local
        )
        return next((n for n in outside if shape(n) not in keys), None)
    if isinstance(node, _LOCAL):
        own_variables = {
            v.this
            for key in ("variable", "accumulator")
            if (v := node.args.get(key)) is not None
        }
        if isinstance(node, ast.PatternComprehension):
            own_variables |= {
                n.this
                for n in walk(node.pattern)
                if isinstance(n, ast.Identifier) and n.this not in scope
            }
        local = local | own_variables
    for child in children(node):
        if (loose := _ungrouped(child, keys, local, scope)) is not None:
            return loose
    return None
