"""Patterns: the variables that they name, and the rules that they keep."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from cypherast import ast
from cypherast.ast import AstNode

from graphret.cypher import codes
from graphret.cypher.semantics.values import (
    ANYTHING,
    LISTS,
    PATH,
    Kind,
    PatternEntity,
    list_of,
    words,
)
from graphret.cypher.semantics.walk import (
    PropertyUse,
    RelationshipPattern,
    Scope,
    SemanticVisitor,
)
from graphret.cypher.tree import Group, LabelAll, LabelName, LabelOne, Shortest, walk

_NODES = frozenset(("NODE",))
_RELATIONSHIPS = frozenset(("RELATIONSHIP",))


class Patterns(SemanticVisitor):
    """Walks patterns."""

    # --- variables --------------------------------------------------------

    def declare_paths(self, paths: list[AstNode], scope: Scope) -> None:
        """Add the variables of some paths to a scope."""
        for path in paths:
            self._declare_path(path, scope)

    def _declare_path(self, path: Any, scope: Scope) -> None:
        for element in path.elements:
            if isinstance(element, ast.NodePattern):
                self._declare_node(element, scope)
            elif isinstance(element, ast.RelationshipPattern):
                self._declare_relationship(element, scope)
            elif isinstance(element, Shortest):
                self._declare_path(element.this, scope)
            elif isinstance(element, Group):
                self._declare_group(element, scope)
        if path.variable is not None:
            self.declare_new(path.variable, scope)
            scope[path.variable.this] = PATH

    def _declare_node(self, node: ast.NodePattern, scope: Scope) -> None:
        variable = node.variable
        if variable is None:
            return
        kind = scope.get(variable.this, ANYTHING)
        if kind.names is None:
            scope[variable.this] = Kind(_NODES, entity=PatternEntity())
        elif kind.names != _NODES:
            self._conflict(variable, kind, "a node")

    def _conflict(self, variable: ast.Identifier, kind: Kind, expected: str) -> None:
        message = (
            f"{variable.this!r} is {words(kind.names)} and cannot be {expected} here"
        )
        if self.strict or not kind.may_be(_NODES | _RELATIONSHIPS):
            self.facts.error(codes.TYPE_MISMATCH, message, variable)

    def _declare_relationship(
        self, node: ast.RelationshipPattern, scope: Scope
    ) -> None:
        variable = node.variable
        if variable is None:
            return
        name = variable.this
        several = bool(node.variable_length or node.args.get("quantifier"))
        kind = scope.get(name)
        if kind is not None and not self.strict:
            message = (
                f"the variable {name!r} is already there, and Ladybug takes a"
                " relationship up once"
            )
            self.facts.error(codes.DUPLICATE_VARIABLE, message, variable)
        elif kind is not None:
            expected = LISTS if several else _RELATIONSHIPS
            if kind.names is not None and kind.names != expected:
                self._conflict(
                    variable,
                    kind,
                    "a list of relationships" if several else "a relationship",
                )
        if kind is None or kind.names is None:
            single = Kind(_RELATIONSHIPS, entity=PatternEntity(relationship=True))
            scope[name] = (
                single
                if not several
                else list_of(single)
                if self.strict
                else Kind(PATH.names, single)
            )

    def _declare_group(self, group: Group, scope: Scope) -> None:
        path = group.this
        if not group.quantified:
            self._declare_path(path, scope)
            return
        self._check_quantified(group)
        inner: Scope = {}
        self._declare_path(path, inner)
        group.__dict__["_inner"] = inner
        for name, kind in inner.items():
            if name in scope:
                variable = next(
                    n
                    for n in walk(path)
                    if isinstance(n, ast.Identifier) and n.this == name
                )
                message = (
                    f"{name!r} stands both within and outside a quantified path; give"
                    " one another name"
                )
                self.facts.error(codes.DUPLICATE_VARIABLE, message, variable)
            scope[name] = list_of(kind)

    def path_without_new_variables(
        self, path: AstNode, scope: Scope, what: str, undefined: bool = False
    ) -> None:
        """Walk a path whose variables must all be there already."""
        for element in _parts(path):
            variable = getattr(element, "variable", None)
            if (
                variable is not None
                and variable.this in self.hidden
                and variable.this not in scope
            ):
                self.kind(variable, scope)
            elif variable is not None and variable.this not in scope and self.strict:
                kind = (
                    codes.UNDEFINED_VARIABLE if undefined else codes.MISPLACED_PATTERN
                )
                message = (
                    f"the variable {variable.this!r} is not defined, and {what} may not"
                    " bring in new ones"
                )
                self.facts.error(
                    kind, message, variable, self.facts.nearest(variable.this, scope)
                )
            if getattr(element, "where", None) is not None and self.strict:
                self._invalid(
                    "a WHERE within the brackets may only stand in MATCH or in a"
                    " comprehension",
                    element.where,
                )
        inner = dict(scope)
        self.declare_paths([path], inner)
        self.inspect_paths([path], inner)

    # --- what the brackets hold -------------------------------------------

    def inspect_paths(self, paths: list[AstNode], scope: Scope) -> None:
        """Note the labels, relations and properties of paths; check conditions."""
        for path in paths:
            self._inspect_path(path, scope)

    def _inspect_path(self, path: Any, scope: Scope) -> None:
        self._check_neighbours(path)
        elements = path.elements
        entities = [self._inspect_element(element, scope) for element in elements]
        for i, element in enumerate(elements):
            if (
                isinstance(element, ast.RelationshipPattern)
                and 0 < i < len(elements) - 1
            ):
                left, entity, right = entities[i - 1 : i + 2]
                self.facts.steps.append(
                    RelationshipPattern(left, element, right, entity)
                )

    def _inspect_element(self, element: AstNode, scope: Scope) -> PatternEntity:
        if isinstance(element, ast.NodePattern):
            return self._inspect_node(element, scope)
        if isinstance(element, ast.RelationshipPattern):
            return self._inspect_relationship(element, scope)
        if isinstance(element, Shortest):
            self.check_shortest(element)
            self._inspect_path(element.this, scope)
        elif isinstance(element, Group):
            inner = {**scope, **element.__dict__.get("_inner", {})}
            self._inspect_path(element.this, inner)
            if element.where is not None:
                self.predicate(element.where, inner)
        return PatternEntity()

    def _inspect_node(self, node: ast.NodePattern, scope: Scope) -> PatternEntity:
        kind = (
            scope.get(node.variable.this, ANYTHING)
            if node.variable is not None
            else ANYTHING
        )
        entity = kind.entity or PatternEntity()
        self._inspect_filling(node, node.labels, entity, scope)
        return entity

    def _inspect_relationship(
        self, node: ast.RelationshipPattern, scope: Scope
    ) -> PatternEntity:
        kind = (
            scope.get(node.variable.this, ANYTHING)
            if node.variable is not None
            else ANYTHING
        )
        entity = kind.entity or kind.item().entity or PatternEntity(relationship=True)
        long = bool(node.variable_length)
        if long and node.where is not None and self.strict:
            self._invalid(
                "a relationship of variable length may have no WHERE of its own",
                node.where,
            )
        if long and node.args.get("quantifier") is not None:
            self._invalid(
                "a relationship of variable length may have no quantifier besides", node
            )
        elif node.args.get("quantifier") is not None:
            self._check_bounds(node, *node.args["quantifier"])
        inner = scope
        if node.args.get("quantifier") is not None and node.variable is not None:
            inner = {**scope, node.variable.this: kind.item()}
        self._inspect_filling(node, node.types, entity, inner, long)
        return entity

    def _inspect_filling(
        self,
        node: Any,
        labels: AstNode | None,
        entity: PatternEntity,
        scope: Scope,
        long: bool = False,
    ) -> None:
        relationship = isinstance(node, ast.RelationshipPattern)
        if labels is not None:
            entity.labels.append(labels)
            self.facts.add_labels(labels, entity)
            self.check_label_expression(labels, relationship, long)
            filled = (
                node.variable is not None
                or node.properties is not None
                or long
                or node.where
            )
            if (
                relationship
                and filled
                and self.strict
                and isinstance(labels, LabelOne)
                and labels.colons
            ):
                self._invalid("relations are joined by '|' without a ':'", labels)
        properties = node.properties
        if isinstance(properties, ast.Map):
            for key, value in properties.entries:
                self.facts.properties.append(PropertyUse(entity, key))
                self.kind(value, scope)
        elif properties is not None and self.strict:
            self._invalid(
                "a parameter may not stand for all properties of a pattern; write"
                " {name: $parameter.name}",
                properties,
            )
        if node.where is not None:
            self.predicate(node.where, scope)

    # --- rules ------------------------------------------------------------

    def _invalid(self, message: str, node: AstNode) -> None:
        self.facts.error(codes.INVALID_PATTERN, message, node)

    def check_label_expression(
        self, labels: AstNode, relationship: bool, long: bool = False
    ) -> None:
        """The rules of ``:``, ``&``, ``|`` and ``!`` between labels or relations."""
        if not self.strict:
            return
        conjunctions = [n for n in walk(labels) if isinstance(n, LabelAll)]
        colons = any(":" in n.signs for n in conjunctions)
        if relationship:
            if colons or (
                isinstance(labels, LabelOne)
                and labels.colons
                and not _all_names(labels.parts)
            ):
                self._invalid(
                    "relations are not joined by ':'; use '|' for one of them", labels
                )
            elif long and (
                isinstance(labels, LabelAll)
                or not _all_names(getattr(labels, "parts", [labels]))
            ):
                self._invalid(
                    "a relationship of variable length takes relations joined by '|'"
                    " only",
                    labels,
                )
            return
        if any(isinstance(n, LabelOne) and n.colons for n in walk(labels)):
            self._invalid("labels are joined by '|' without a ':'", labels)
        elif colons and not (
            isinstance(labels, LabelAll)
            and labels.signs == {":"}
            and _all_names(labels.parts)
        ):
            self._invalid(
                "':' between labels does not go with '|', '&', '!' or '%'; use '&'",
                labels,
            )

    def check_shortest(self, node: Shortest) -> None:
        """``shortestPath`` takes one relationship, of at least none or one hop."""
        if not self.strict:
            return
        elements = node.this.elements
        middle = elements[1] if len(elements) == 3 else None
        if not isinstance(middle, ast.RelationshipPattern):
            self._invalid(
                f"{node.name}(…) takes a pattern of a single relationship", node
            )
        elif middle.args.get("quantifier") is not None:
            self._invalid(
                f"{node.name}(…) takes no quantifier; write -[:R*1..5]-, or SHORTEST 1"
                " before the path",
                middle,
            )
        elif middle.variable_length and middle.min_hops not in (0, 1):
            self._invalid(
                f"{node.name}(…) begins with 0 or 1 hops, not {middle.min_hops}", middle
            )

    def _check_quantified(self, group: Group) -> None:
        inner = [n for n in walk(group.this) if n is not group]
        self._check_bounds(group, group.min_hops, group.max_hops)
        relationships = [n for n in inner if isinstance(n, ast.RelationshipPattern)]
        if any(isinstance(n, Group) and n.quantified for n in inner) or any(
            n.args.get("quantifier") is not None for n in relationships
        ):
            self._invalid("quantified paths may not stand within one another", group)
        if not relationships:
            self._invalid("a quantified path needs a relationship", group)
        for relationship in relationships:
            if relationship.variable_length:
                self._invalid(
                    "a relationship of variable length may not stand within a"
                    " quantified path",
                    relationship,
                )
        if any(isinstance(n, Shortest) for n in inner):
            self._invalid(
                "shortestPath(…) may not stand within a quantified path", group
            )
        if group.this.variable is not None:
            self._invalid(
                "a path within a quantified path may have no name", group.this.variable
            )

    def _check_bounds(self, node: AstNode, least: int, most: int | None) -> None:
        if most == 0:
            self._invalid("a quantifier must allow more than 0", node)
        elif most is not None and least > most:
            self._invalid(f"a quantifier from {least} to {most} holds nothing", node)

    def _check_neighbours(self, path: Any) -> None:
        """Check that only quantified paths stand side by side with other elements."""
        for left, right in pairwise(path.elements):
            if isinstance(left, ast.RelationshipPattern) or isinstance(
                right, ast.RelationshipPattern
            ):
                continue
            if not any(isinstance(e, Group) and e.quantified for e in (left, right)):
                self._invalid(
                    "a relationship is needed between nodes that stand side by side",
                    right,
                )


def _all_names(parts: list[AstNode]) -> bool:
    return all(isinstance(p, LabelName) for p in parts)


def _parts(path: AstNode) -> Iterator[Any]:
    for element in path.elements:
        yield element
        if isinstance(element, Group | Shortest):
            yield from _parts(element.this)
