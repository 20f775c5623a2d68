"""Patterns: the variables that they name, and the rules that they keep."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cypherast import ast
from cypherast.ast import AstNode

from graphret.cypher import kinds
from graphret.cypher.meaning.values import ANYTHING, LISTS, PATH, Entity, Kind, list_of, words
from graphret.cypher.meaning.walk import PropertyUse, Scope, Step, Walk
from graphret.cypher.tree import Group, LabelOne, Shortest, walk

_NODES = frozenset(("NODE",))
_RELATIONSHIPS = frozenset(("RELATIONSHIP",))


class Patterns(Walk):
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
        known = scope.get(variable.this, ANYTHING)
        if known.names is None:
            scope[variable.this] = Kind(_NODES, entity=Entity())
        elif known.names != _NODES:
            self._conflict(variable, known, "a node")

    def _conflict(self, variable: ast.Identifier, known: Kind, wanted: str) -> None:
        message = f"{variable.this!r} is {words(known.names)} and cannot be {wanted} here"
        if self.strict or not known.may_be(_NODES | _RELATIONSHIPS):
            self.facts.error(kinds.TYPE_MISMATCH, message, variable)

    def _declare_relationship(self, node: ast.RelationshipPattern, scope: Scope) -> None:
        variable = node.variable
        if variable is None:
            return
        name = variable.this
        several = bool(node.variable_length or node.args.get("quantifier"))
        known = scope.get(name)
        if known is not None and not self.strict:
            message = f"the variable {name!r} is already there, and Ladybug takes a relationship up once"
            self.facts.error(kinds.DUPLICATE_VARIABLE, message, variable)
        elif known is not None:
            wanted = LISTS if several else _RELATIONSHIPS
            if known.names is not None and known.names != wanted:
                self._conflict(variable, known, "a list of relationships" if several else "a relationship")
        if known is None or known.names is None:
            single = Kind(_RELATIONSHIPS, entity=Entity(relationship=True))
            scope[name] = single if not several else list_of(single) if self.strict else Kind(PATH.names, single)

    def _declare_group(self, group: Group, scope: Scope) -> None:
        path = group.this
        if not group.quantified:
            self._declare_path(path, scope)
            return
        inner: Scope = {}
        self._declare_path(path, inner)
        group.__dict__["_inner"] = inner
        for name, kind in inner.items():
            if name in scope:
                variable = next(n for n in walk(path) if isinstance(n, ast.Identifier) and n.this == name)
                message = f"{name!r} stands both within and outside a quantified path; give one another name"
                self.facts.error(kinds.DUPLICATE_VARIABLE, message, variable)
            scope[name] = list_of(kind)

    def path_without_new_variables(self, path: AstNode, scope: Scope, what: str, undefined: bool = False) -> None:
        """Walk a path whose variables must all be there already."""
        for element in _parts(path):
            variable = getattr(element, "variable", None)
            if variable is not None and variable.this in self.hidden and variable.this not in scope:
                self.kind(variable, scope)
            elif variable is not None and variable.this not in scope and self.strict:
                kind = kinds.UNDEFINED_VARIABLE if undefined else kinds.MISPLACED_PATTERN
                message = f"the variable {variable.this!r} is not defined, and {what} may not bring in new ones"
                self.facts.error(kind, message, variable, self.facts.nearest(variable.this, scope))
        inner = dict(scope)
        self.declare_paths([path], inner)
        self.inspect_paths([path], inner)

    # --- what the brackets hold -------------------------------------------

    def inspect_paths(self, paths: list[AstNode], scope: Scope) -> None:
        """Note the labels, relations and properties of some paths, and check their conditions."""
        for path in paths:
            self._inspect_path(path, scope)

    def _inspect_path(self, path: Any, scope: Scope) -> None:
        elements = path.elements
        entities = [self._inspect_element(element, scope) for element in elements]
        for i, element in enumerate(elements):
            if isinstance(element, ast.RelationshipPattern) and 0 < i < len(elements) - 1:
                left, entity, right = entities[i - 1 : i + 2]
                self.facts.steps.append(Step(left, element, right, entity))

    def _inspect_element(self, element: AstNode, scope: Scope) -> Entity:
        if isinstance(element, ast.NodePattern):
            return self._inspect_node(element, scope)
        if isinstance(element, ast.RelationshipPattern):
            return self._inspect_relationship(element, scope)
        if isinstance(element, Shortest):
            self._inspect_path(element.this, scope)
        elif isinstance(element, Group):
            inner = {**scope, **element.__dict__.get("_inner", {})}
            self._inspect_path(element.this, inner)
            if element.where is not None:
                self.predicate(element.where, inner)
        return Entity()

    def _inspect_node(self, node: ast.NodePattern, scope: Scope) -> Entity:
        kind = scope.get(node.variable.this, ANYTHING) if node.variable is not None else ANYTHING
        entity = kind.entity or Entity()
        self._inspect_filling(node, node.labels, entity, scope)
        return entity

    def _inspect_relationship(self, node: ast.RelationshipPattern, scope: Scope) -> Entity:
        kind = scope.get(node.variable.this, ANYTHING) if node.variable is not None else ANYTHING
        entity = kind.entity or kind.item().entity or Entity(relationship=True)
        inner = scope
        if node.args.get("quantifier") is not None and node.variable is not None:
            inner = {**scope, node.variable.this: kind.item()}
        self._inspect_filling(node, node.types, entity, inner)
        return entity

    def _inspect_filling(self, node: Any, labels: AstNode | None, entity: Entity, scope: Scope) -> None:
        if labels is not None:
            entity.labels.append(labels)
            self.facts.add_labels(labels, entity)
            if node.variable is not None and self.strict and isinstance(labels, LabelOne) and labels.colons:
                message = "labels and relations are joined by '|' without a ':'"
                self.facts.error(kinds.INVALID_PATTERN, message, labels)
        properties = node.properties
        if isinstance(properties, ast.Map):
            for key, value in properties.entries:
                self.facts.properties.append(PropertyUse(entity, key))
                self.kind(value, scope)
        elif properties is not None and self.strict:
            message = "a parameter may not stand for all properties of a pattern; write {name: $parameter.name}"
            self.facts.error(kinds.INVALID_PATTERN, message, properties)
        if node.where is not None:
            self.predicate(node.where, scope)


def _parts(path: AstNode) -> Iterator[Any]:
    for element in path.elements:
        yield element
        if isinstance(element, Group | Shortest):
            yield from _parts(element.this)
