"""A change of a query, what a rule knows when it makes one, and the rewritten query."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property

from cypherast import ast
from cypherast.ast import AstNode

from graphret.cypher.edits import Edit
from graphret.cypher.report import CypherReport
from graphret.cypher.tree import span, variable_name, walk
from graphret.schema import GraphSchema


@dataclass(frozen=True, slots=True)
class Translated:
    """What the guard says of a query as it is to run, and what was changed in it."""

    report: CypherReport
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Change:
    """Edits that only make sense together, and what they do, for a trace."""

    edits: tuple[Edit, ...]
    note: str

    @property
    def start(self) -> int:
        """Where its first edit begins."""
        return min(edit.start for edit in self.edits)

    @property
    def end(self) -> int:
        """Where its last edit ends."""
        return max(edit.end for edit in self.edits)


@dataclass(frozen=True)
class QueryContext:
    """The query that rules look at, its tree and the schema, where one is known."""

    query: str
    tree: AstNode
    schema: GraphSchema | None = None

    def text(self, node: AstNode) -> str:
        """A part of the query as it is written."""
        return self.query[slice(*span(node))]

    def replaced(self, node: AstNode, text: str, note: str) -> Change:
        """The change that puts a text in the place of a part."""
        return Change((Edit(*span(node), text),), note)

    @cached_property
    def node_names(self) -> frozenset[str]:
        """The variables that stand for nodes of patterns."""
        return self._names_of(ast.NodePattern)

    @cached_property
    def pattern_names(self) -> frozenset[str]:
        """The variables that stand for nodes and relationships of patterns."""
        return self.node_names | self._names_of(ast.RelationshipPattern)

    def _names_of(self, kind: type[AstNode]) -> frozenset[str]:
        names = {
            variable_name(node.variable)
            for node in walk(self.tree)
            if isinstance(node, kind)
        }
        return frozenset(name for name in names if name is not None)

    def is_node(self, expression: AstNode) -> bool:
        """Whether an expression is the variable of a node."""
        return variable_name(expression) in self.node_names

    def types_of(self, expression: AstNode) -> frozenset[str]:
        """The types that a property may have by the schema; none if unknown."""
        if self.schema is None or not isinstance(expression, ast.Property):
            return frozenset()
        key = str(expression.name.this)
        described = (self.schema.properties, self.schema.relation_properties)
        return frozenset(
            properties[key].type
            for by_owner in described
            for properties in by_owner.values()
            if key in properties
        )


def outermost(changes: Iterable[Change]) -> list[Change]:
    """The changes that do not overlap, the outer ones of those that do."""
    outer: list[Change] = []
    for change in sorted(changes, key=lambda change: (change.start, -change.end)):
        if not outer or change.start >= outer[-1].end:
            outer.append(change)
    return outer


#: Checks a changed query as the one that it was made of was checked.
Recheck = Callable[[str], CypherReport]
#: What a rule makes of a part of a query; `None` where it has nothing to say of it.
Rule = Callable[[AstNode, QueryContext], Change | None]
#: The rules by the kind of part that they look at, in the order in which they are
#: tried.
Rules = dict[type[AstNode], tuple[Rule, ...]]
