"""What the walk through a query's meaning gathers for the checks against the schema."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from cypherast import ast
from cypherast.ast import AstNode

from graphret.cypher.meaning.values import Entity, Kind
from graphret.cypher.report import ERROR, WARNING, Finding
from graphret.cypher.suggestions import nearest
from graphret.cypher.tree import Name, span

#: With how many valid names those of one query that are not are compared, before the rest get no suggestions.
COMPARED = 30_000

Scope = dict[str, Kind]


@dataclass(slots=True)
class Step:
    """A relationship of a pattern between the nodes on its left and right, as they are written."""

    left: Entity
    relationship: ast.RelationshipPattern
    right: Entity
    entity: Entity


@dataclass(slots=True)
class PropertyUse:
    """A property asked of a node, a relationship or, where `entity` is None, of something not known."""

    entity: Entity | None
    name: Name
    of_value: bool = False


@dataclass(slots=True)
class Facts:
    """What a query says of its graph, and what is wrong with it."""

    query: str
    dialect: str
    findings: list[Finding] = field(default_factory=list)
    labels: list[tuple[AstNode, Entity]] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    properties: list[PropertyUse] = field(default_factory=list)
    _known: set[tuple[int, str, str]] = field(default_factory=set)
    _compared: int = 0
    matches: list[tuple[ast.Match, frozenset[str]]] = field(default_factory=list)

    def error(self, kind: str, message: str, node: AstNode, suggestions: tuple[str, ...] = ()) -> None:
        """Add an error at the place of a node."""
        self.add(ERROR, kind, message, span(node), suggestions)

    def warn(self, kind: str, message: str, node: AstNode, suggestions: tuple[str, ...] = ()) -> None:
        """Add a warning at the place of a node."""
        self.add(WARNING, kind, message, span(node), suggestions)

    def add(
        self, severity: str, kind: str, message: str, place: tuple[int, int], suggestions: tuple[str, ...] = ()
    ) -> None:
        """Add a finding, unless the same is known of the same place."""
        start, end = place
        if (start, kind, message) in self._known:
            return
        self._known.add((start, kind, message))
        before = self.query[:start]
        line, column = before.count("\n") + 1, start - (before.rfind("\n") + 1) + 1
        self.findings.append(Finding(severity, kind, message, start, end, line, column, suggestions))

    def nearest(self, name: str, valid: Collection[str], spelling: Mapping[str, str] | None = None) -> tuple[str, ...]:
        """The valid names most like one that is not, as they are spelt; none after `COMPARED` comparisons."""
        self._compared += len(valid)
        if self._compared > COMPARED:
            return ()
        return nearest(name, (spelling.get(known, known) for known in valid) if spelling else valid)

    def text(self, node: AstNode) -> str:
        """The text of a node, as written."""
        start, end = span(node)
        return self.query[start:end]
