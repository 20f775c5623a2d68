"""What all parts of the walk through a query share: its facts and its errors."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from cypherast import ast
from cypherast.ast import AstNode

from graphret.cypher import codes
from graphret.cypher.report import ERROR, WARNING, Finding, place_of
from graphret.cypher.semantics.functions import FUNCTIONS
from graphret.cypher.semantics.values import Kind, PatternEntity, words
from graphret.cypher.suggestions import nearest
from graphret.cypher.tree import (
    LabelName,
    Name,
    Shortest,
    Subquery,
    children,
    span,
    walk,
    without_parens,
)

#: With how many valid names those of one query that are not are compared, before the
#: rest get no suggestions.
COMPARED = 30_000

Scope = dict[str, Kind]
Shape = tuple[Any, ...]


@dataclass(slots=True)
class RelationshipPattern:
    """A relationship of a pattern between its left and right nodes, as written."""

    left: PatternEntity
    relationship: ast.RelationshipPattern
    right: PatternEntity
    entity: PatternEntity


@dataclass(slots=True)
class PropertyUse:
    """A property of a node, a relationship or something unknown.

    In the last case, `entity` is `None`.
    """

    entity: PatternEntity | None
    name: Name
    of_value: bool = False


@dataclass(slots=True)
class Analysis:
    """What a query says of its graph, and what is wrong with it."""

    query: str
    dialect: str
    findings: list[Finding] = field(default_factory=list)
    labels: list[tuple[AstNode, PatternEntity]] = field(default_factory=list)
    steps: list[RelationshipPattern] = field(default_factory=list)
    properties: list[PropertyUse] = field(default_factory=list)
    _known: set[tuple[int, str, str]] = field(default_factory=set)
    _compared: int = 0
    matches: list[tuple[ast.Match, frozenset[str]]] = field(default_factory=list)

    def error(
        self, kind: str, message: str, node: AstNode, suggestions: tuple[str, ...] = ()
    ) -> None:
        """Add an error at the place of a node."""
        self.add(ERROR, kind, message, span(node), suggestions)

    def warn(
        self, kind: str, message: str, node: AstNode, suggestions: tuple[str, ...] = ()
    ) -> None:
        """Add a warning at the place of a node."""
        self.add(WARNING, kind, message, span(node), suggestions)

    def add(
        self,
        severity: str,
        kind: str,
        message: str,
        place: tuple[int, int],
        suggestions: tuple[str, ...] = (),
    ) -> None:
        """Add a finding, unless the same is known of the same place."""
        start, end = place
        if (start, kind, message) in self._known:
            return
        self._known.add((start, kind, message))
        self.findings.append(
            Finding(
                severity,
                kind,
                message,
                start,
                end,
                *place_of(self.query, start),
                suggestions,
            )
        )

    def add_labels(self, labels: AstNode, entity: PatternEntity) -> None:
        """Note the names of a label expression of an entity."""
        self.labels += [
            (node, entity) for node in walk(labels) if isinstance(node, LabelName)
        ]

    def nearest(
        self,
        name: str,
        valid: Collection[str],
        spelling: Mapping[str, str] | None = None,
    ) -> tuple[str, ...]:
        """The valid names most like another; none after `COMPARED` comparisons."""
        self._compared += len(valid)
        if self._compared > COMPARED:
            return ()
        return nearest(
            name,
            (spelling.get(valid_name, valid_name) for valid_name in valid)
            if spelling
            else valid,
        )

    def text(self, node: AstNode) -> str:
        """The text of a node, as written."""
        start, end = span(node)
        return self.query[start:end]


class SemanticVisitor:
    """A walk through a query's meaning, which writes what it finds into facts."""

    def __init__(self, facts: Analysis) -> None:
        self.facts = facts
        #: ``allowed``, ``forbidden``, ``inside`` one, or ``order`` (in ORDER BY after a
        #: projection that has none).
        self.aggregation = "forbidden"
        #: Expressions that a projection returned, where only these may be used again.
        self.projected: dict[Shape, Kind] = {}
        #: Variables that were known before a projection with DISTINCT or an
        #: aggregation, and no longer are.
        self.hidden: frozenset[str] = frozenset()
        #: Variables around an EXISTS, COUNT or COLLECT, which nothing in it may hide on
        #: Neo4j.
        self.outer: frozenset[str] = frozenset()

    @property
    def strict(self) -> bool:
        """Whether the dialect has Neo4j's rules of kinds."""
        return self.facts.dialect == "neo4j"

    def expect(
        self, node: AstNode, kind: Kind, allowed: frozenset[str], why: str = ""
    ) -> None:
        """Add an error unless a value may be of an allowed kind.

        Ladybug checks this itself before it runs a query.
        """
        if not self.strict or kind.may_be(allowed):
            return
        text = self.facts.text(node)
        short = text if len(text) <= 40 else f"{text[:37]}…"
        reason = f"{short!r} is {words(kind.names)}"
        message = (
            f"{reason} and {why}" if why else f"{reason}; {words(allowed)} is needed"
        )
        self.facts.error(codes.TYPE_MISMATCH, message, node)

    def declare_new(self, variable: Any, scope: Scope) -> None:
        """Complain of a variable that is to be new and is not."""
        if variable.this in scope:
            self.facts.error(
                codes.DUPLICATE_VARIABLE,
                f"the variable {variable.this!r} is already there",
                variable,
            )

    def refuse_hiding(self, variable: Any, outer: Collection[str]) -> None:
        """Complain of a variable that hides one from around the subquery."""
        if variable.this in outer:
            message = (
                f"{variable.this!r} is already a variable outside the subquery; give it"
                " another name"
            )
            self.facts.error(codes.DUPLICATE_VARIABLE, message, variable)

    if TYPE_CHECKING:

        def kind(self, node: AstNode, scope: Scope) -> Kind: ...
        def predicate(self, node: AstNode, scope: Scope) -> None: ...
        def pattern_predicate(
            self, node: ast.PatternPredicate, scope: Scope
        ) -> None: ...
        def declare_paths(self, paths: list[AstNode], scope: Scope) -> None: ...
        def inspect_paths(self, paths: list[AstNode], scope: Scope) -> None: ...
        def check_shortest(self, node: Shortest) -> None: ...
        def check_label_expression(
            self, labels: AstNode, relationship: bool, long: bool = False
        ) -> None: ...
        def path_without_new_variables(
            self, path: AstNode, scope: Scope, what: str, undefined: bool = False
        ) -> None: ...
        def subquery(self, node: Subquery, scope: Scope) -> Kind: ...


def bare_pattern(node: AstNode) -> ast.PatternPredicate | None:
    """The pattern that an expression is, parentheses aside."""
    node = without_parens(node)
    return node if isinstance(node, ast.PatternPredicate) else None


def shape(node: AstNode) -> Shape:
    """A key that is equal for two expressions that mean the same.

    They may differ in spaces, parentheses and the case of function names.
    """
    node = without_parens(node)
    if isinstance(node, ast.FunctionCall):
        arguments = tuple(shape(e) for e in node.expressions)
        return ("call", node.name.this.lower(), bool(node.distinct), *arguments)
    return (type(node).__name__, *(_part(value) for value in node.args.values()))


def _part(value: Any) -> Any:
    if isinstance(value, AstNode):
        return shape(value)
    if isinstance(value, list | tuple):
        return tuple(_part(v) for v in value)
    return (type(value).__name__, value)


def is_aggregate(node: AstNode) -> bool:
    """Whether a node is a call of an aggregating function."""
    if not isinstance(node, ast.FunctionCall):
        return False
    function = FUNCTIONS.get(node.name.this.lower())
    return function is not None and function.aggregates


def aggregates(node: AstNode) -> Iterator[ast.FunctionCall]:
    """The aggregations of an expression, those of its subqueries left out."""
    stack = [node]
    while stack:
        current = stack.pop()
        if is_aggregate(current):
            yield current  # type: ignore[misc]
        if not isinstance(current, Subquery):
            stack.extend(children(current))
