"""Clauses in their order: which variables each sees, adds and passes on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cypherast import ast
from cypherast.ast import AstNode

from graphret.cypher import codes
from graphret.cypher.semantics.expressions import Expressions
from graphret.cypher.semantics.functions import PROCEDURES
from graphret.cypher.semantics.patterns import Patterns
from graphret.cypher.semantics.projections import Projections
from graphret.cypher.semantics.values import (
    ANYTHING,
    NODE,
    RELATIONSHIP,
    Kind,
    PatternEntity,
)
from graphret.cypher.semantics.walk import Analysis, Scope
from graphret.cypher.tree import (
    Chain,
    Finish,
    Page,
    Subquery,
    parts_of_union,
    variable_name,
    walk,
    without_parens,
)

#: What Ladybug's searches of an index return without being asked by YIELD.
_LADYBUG_YIELDS = ("node", "score", "distance")
_ENDS = "RETURN or FINISH, or a call of a procedure without YIELD"


class Clauses(Expressions, Patterns, Projections):
    """Walks whole queries."""

    def statement(self, node: AstNode, scope: Scope, outer: Scope, mode: str) -> Scope:
        """Walk a query or a union; return its columns.

        `outer` stays visible throughout.
        """
        first, *rest = parts_of_union(node)
        columns = self.query(first, dict(scope), outer, mode)
        for part in rest:
            part_columns = self.query(part, dict(scope), outer, mode)
            if set(columns) != set(part_columns) and self.strict:
                missing = ", ".join(sorted(set(columns) ^ set(part_columns)))
                message = f"the parts of a UNION return different columns: {missing}"
                self.facts.error(codes.INVALID_QUERY, message, part.clauses[-1])
        while isinstance(node, ast.Union) and isinstance(node.this, ast.Union):
            if node.this.distinct != node.distinct and self.strict:
                self.facts.error(
                    codes.INVALID_QUERY,
                    "UNION and UNION ALL may not be mixed",
                    node.expression,
                )
            node = node.this
        return columns

    def query(self, query: Any, scope: Scope, outer: Scope, mode: str) -> Scope:
        """Walk the clauses of a single query; return its columns."""
        clauses = query.clauses
        if mode == "call":
            scope, clauses = self._imported(clauses, scope)
        columns: Scope = {}
        for i, clause in enumerate(clauses):
            last = i == len(clauses) - 1
            if isinstance(clause, ast.Return):
                columns = self._return(clause, scope, outer, mode)
                if not last:
                    self.facts.error(
                        codes.INVALID_QUERY, "RETURN may only end a query", clause
                    )
            elif isinstance(clause, ast.With):
                passed = self.project(clause, scope, outer, must_alias=True)
                self._shadowing(clause, passed, outer)
                scope = {**outer, **passed}
            else:
                if isinstance(clause, Finish) and not last:
                    self.facts.error(
                        codes.INVALID_QUERY, "FINISH may only end a query", clause
                    )
                scope = self._clause(clause, scope, alone=len(clauses) == 1)
        self._check_end(query, clauses, mode)
        return columns

    def _return(
        self, clause: ast.Return, scope: Scope, outer: Scope, mode: str
    ) -> Scope:
        starred = any(isinstance(item, ast.Star) for item in clause.expressions)
        if starred and not scope:
            self.facts.error(
                codes.INVALID_PROJECTION, "RETURN * has no variables to return", clause
            )
        columns = self.project(
            clause, scope, outer, must_alias=mode in ("call", "scoped")
        )
        if mode in ("EXISTS", "COUNT", "COLLECT") and self.strict:
            self._shadowing(clause, columns, outer)
            if starred and mode == "COLLECT":
                self.facts.error(
                    codes.INVALID_PROJECTION,
                    "COLLECT { } returns one column, by its name",
                    clause,
                )
        return columns

    def _shadowing(self, clause: Any, passed: Scope, outer: Scope) -> None:
        for item in clause.expressions:
            if (
                isinstance(item, ast.Alias)
                and variable_name(item.this) != item.alias.this
            ):
                self.refuse_hiding(item.alias, outer)

    def _check_end(self, query: Any, clauses: list[AstNode], mode: str) -> None:
        end = clauses[-1] if clauses else None
        ended = isinstance(end, ast.Return | Finish)
        if isinstance(end, ast.CallProcedure):
            ended = mode == "top" and (end.yield_ is None or len(clauses) == 1)
        elif isinstance(end, ast.CallSubquery):
            ended = not any(isinstance(n, ast.Return) for n in _own_clauses(end.query))
        if isinstance(end, Finish) and mode in ("EXISTS", "COUNT", "COLLECT"):
            self.facts.error(
                codes.INVALID_QUERY, f"{mode} {{ }} may not end with FINISH", end
            )
        if mode not in ("EXISTS", "COUNT") and not ended:
            message = f"a query ends with {_ENDS if self.strict else 'RETURN'}"
            self.facts.error(
                codes.INVALID_QUERY, message, end if end is not None else query
            )

    def _clause(self, clause: AstNode, scope: Scope, alone: bool) -> Scope:
        if isinstance(clause, ast.CallProcedure):
            return self._call_procedure(clause, scope, alone)
        handler = _HANDLERS.get(type(clause))
        return handler(self, clause, scope) if handler is not None else scope

    # --- reading ----------------------------------------------------------

    def _match(self, clause: ast.Match, scope: Scope) -> Scope:
        before = scope
        scope = dict(scope)
        paths = clause.pattern.paths
        self.declare_paths(paths, scope)
        self.inspect_paths(paths, scope)
        variables = {
            node.this
            for node in walk(clause.pattern)
            if isinstance(node, ast.Identifier)
        }
        self.facts.matches.append((clause, frozenset(variables & before.keys())))
        if (
            len(paths) > 1
            and any(path.args.get("selector") for path in paths)
            and self.strict
        ):
            message = (
                "a path with a selector such as SHORTEST 1 must be the only one of its"
                " MATCH"
            )
            self.facts.error(codes.INVALID_PATTERN, message, clause.pattern)
        if clause.where is not None:
            self.predicate(clause.where, scope)
            self._labels_of_condition(clause.where, scope)
        return scope

    def _labels_of_condition(self, where: AstNode, scope: Scope) -> None:
        """``WHERE n:A AND …`` says as much of n as ``(n:A)``."""
        for part in _conjuncts(where):
            if isinstance(part, ast.LabelPredicate) and isinstance(
                part.this, ast.Identifier
            ):
                entity = scope.get(part.this.this, ANYTHING).entity
                if entity is not None:
                    entity.labels.append(part.labels)

    def _unwind(self, clause: ast.Unwind, scope: Scope) -> Scope:
        kind = self.kind(clause.expression, scope)
        single = self.strict and kind.names is not None and "LIST" not in kind.names
        item = kind.item() if kind.is_only("LIST") else kind if single else ANYTHING
        self.declare_new(clause.alias, scope)
        return {**scope, clause.alias.this: item}

    def _page(self, clause: Page, scope: Scope) -> Scope:
        if clause.order is not None:
            self.order(clause.order, scope)
        self.bounds(clause)
        return scope

    # --- calls ------------------------------------------------------------

    def _call_procedure(
        self, clause: ast.CallProcedure, scope: Scope, alone: bool
    ) -> Scope:
        for argument in clause.expressions or []:
            self.kind(argument, scope)
        procedure = PROCEDURES.get(clause.name.lower()) if self.strict else None
        if procedure is not None and clause.expressions is not None:
            (least, most), n_arguments = procedure.arguments, len(clause.expressions)
            if not least <= n_arguments <= most:
                message = (
                    f"{clause.name}: expected {least} to {most} arguments, got"
                    f" {n_arguments}"
                )
                self.facts.error(codes.WRONG_ARGUMENTS, message, clause)
        if not alone and self.strict:
            self._check_inner_call(clause, procedure is None)
        scope = dict(scope)
        for item in clause.yield_.expressions if clause.yield_ is not None else []:
            self._yielded(item, clause, scope)
        if clause.yield_ is None and not self.strict:
            scope |= dict.fromkeys(_LADYBUG_YIELDS, ANYTHING)
        if clause.where is not None:
            self.predicate(clause.where, scope)
        return scope

    def _check_inner_call(self, clause: ast.CallProcedure, unknown: bool) -> None:
        if clause.expressions is None:
            message = (
                f"within a query the arguments of {clause.name} stand in parentheses:"
                f" {clause.name}()"
            )
            self.facts.error(codes.WRONG_ARGUMENTS, message, clause)
        if clause.yield_ is None and not unknown:
            message = f"within a query what {clause.name} returns is named with YIELD"
            self.facts.error(codes.INVALID_QUERY, message, clause)
        elif clause.yield_ is not None and isinstance(
            clause.yield_.expressions[0], ast.Star
        ):
            self.facts.error(
                codes.INVALID_QUERY,
                "YIELD * may only stand in a call by itself",
                clause.yield_,
            )

    def _yielded(self, item: AstNode, clause: ast.CallProcedure, scope: Scope) -> None:
        if isinstance(item, ast.Star):
            return
        field = item.this if isinstance(item, ast.Alias) else item
        variable = item.alias if isinstance(item, ast.Alias) else item
        procedure = PROCEDURES.get(clause.name.lower())
        kind = ANYTHING
        if procedure is not None and self.strict:
            kind = procedure.fields.get(field.this, ANYTHING)
            if field.this not in procedure.fields:
                suggestions = self.facts.nearest(field.this, procedure.fields)
                message = f"{clause.name} yields no {field.this!r}"
                self.facts.error(codes.UNDEFINED_VARIABLE, message, field, suggestions)
            elif kind in (NODE, RELATIONSHIP):
                kind = Kind(
                    kind.names, entity=PatternEntity(relationship=kind is RELATIONSHIP)
                )
        self.declare_new(variable, scope)
        scope[variable.this] = kind

    def _call_subquery(self, clause: ast.CallSubquery, scope: Scope) -> Scope:
        around, self.outer = self.outer, frozenset()
        if clause.variables is None:
            columns = self.statement(clause.query, dict(scope), {}, "call")
        else:
            every = isinstance(clause.variables, ast.Star)
            imported = (
                dict(scope)
                if every
                else {
                    variable.this: self.kind(variable, scope)
                    for variable in clause.variables
                }
            )
            columns = self.statement(clause.query, dict(imported), imported, "scoped")
        self.outer = around
        for name in columns:
            if name in scope:
                message = (
                    f"the subquery returns {name!r}, which is already a variable"
                    " outside it"
                )
                self.facts.error(
                    codes.DUPLICATE_VARIABLE, message, _last_return(clause.query)
                )
        return {**scope, **columns}

    def _imported(self, clauses: list[Any], scope: Scope) -> tuple[Scope, list[Any]]:
        """The variables that a leading ``WITH`` of ``CALL { }`` imports.

        Returned with the clauses after it.
        """
        head = clauses[0]
        if not isinstance(head, ast.With):
            return {}, clauses
        message = (
            "the first WITH of a subquery may only name variables from outside; add a"
            " second WITH"
        )
        if not all(
            isinstance(item, ast.Identifier | ast.Star) for item in head.expressions
        ):
            identifiers = [
                n
                for item in head.expressions
                for n in walk(item)
                if isinstance(n, ast.Identifier)
            ]
            if not any(n.this in scope for n in identifiers):
                return {}, clauses
            self.facts.error(codes.INVALID_QUERY, message, head)
            return scope, clauses
        if (
            head.where is not None
            or head.order
            or head.skip
            or head.limit
            or head.distinct
        ):
            self.facts.error(codes.INVALID_QUERY, message, head)
        imported: Scope = {}
        for item in head.expressions:
            if isinstance(item, ast.Star):
                imported.update(scope)
            else:
                imported[item.this] = self.kind(item, scope)
        return imported, clauses[1:]

    def subquery(self, node: Subquery, scope: Scope) -> Kind:
        """Walk ``EXISTS``, ``COUNT`` or ``COLLECT``; return the kind of its column."""
        columns = self.statement(node.query, dict(scope), scope, node.kind)
        if node.kind == "COLLECT" and len(columns) > 1:
            self.facts.error(
                codes.INVALID_PROJECTION, "COLLECT { } returns one column", node
            )
        return next(iter(columns.values()), ANYTHING)


def _conjuncts(node: AstNode) -> list[AstNode]:
    node = without_parens(node)
    if isinstance(node, Chain) and node.operators[0] == "AND":
        return [part for operand in node.operands for part in _conjuncts(operand)]
    return [node]


def _own_clauses(node: Any) -> list[AstNode]:
    return [clause for part in parts_of_union(node) for clause in part.clauses]


def _last_return(node: Any) -> AstNode:
    returns = [
        clause for clause in _own_clauses(node) if isinstance(clause, ast.Return)
    ]
    return returns[-1] if returns else node


_HANDLERS: dict[type[AstNode], Callable[[Any, Any, Scope], Scope]] = {
    ast.Match: Clauses._match,
    ast.Unwind: Clauses._unwind,
    ast.CallSubquery: Clauses._call_subquery,
    Page: Clauses._page,
}


def walk_query(tree: ast.Cypher, facts: Analysis) -> Analysis:
    """Walk a query, and return the facts with what was found."""
    Clauses(facts).statement(tree.this, {}, {}, "top")
    return facts
