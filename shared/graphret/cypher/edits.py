"""Where the parts of a query stand in its text, and how to change the text there.

Nothing is rendered: an edit replaces some characters, and all others stay as they were written.

Examples
--------
>>> from graphret.cypher import check
>>> from graphret.cypher.edits import apply, limit, relationships, turn
>>> report = check("MATCH (m:Movie)-[:ACTED_IN]->(p:Person) RETURN p.name")
>>> step = relationships(report.tree)[0]
>>> apply(report.query, [*turn(step), *limit(report.tree, 5)])
'MATCH (m:Movie)<-[:ACTED_IN]-(p:Person) RETURN p.name LIMIT 5'
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from cypherast import ast
from cypherast.ast import AstNode, Direction

from graphret.cypher.tree import LabelName, Span, parts_of_union, span, variable_name, walk
from graphret.errors import InvalidInput

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_DIRECTIONS = {Direction.OUTGOING: "out", Direction.INCOMING: "in", Direction.BOTH: "both"}


@dataclass(frozen=True, slots=True)
class Edit:
    """Put `text` in place of the characters from `start` to `end`."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class NamePlace:
    """A label, relation or property where it stands, quotes included; `name` has none."""

    name: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class RelationshipPlace:
    """A relationship pattern where it stands.

    Parameters
    ----------
    start, end
        All of it, arrows and brackets included.
    direction
        ``out`` (``-->``), ``in`` (``<--``) or ``both``.
    left, right
        Its arrow heads, or the empty places where one would stand.
    types
        Its relations.
    variable
        Its variable, if it has one.
    ends
        The variables of the nodes beside it, or None for a node without one.
    """

    start: int
    end: int
    direction: str
    left: Span
    right: Span
    types: tuple[NamePlace, ...]
    variable: str | None
    ends: tuple[str | None, str | None]


def apply(query: str, edits: Iterable[Edit]) -> str:
    """Return the query with all edits made; their places are those of the query as given.

    Raises
    ------
    InvalidInput
        When two edits overlap or one lies outside the query.
    """
    parts: list[str] = []
    position = 0
    for edit in sorted(edits, key=lambda e: (e.start, e.end)):
        if not position <= edit.start <= edit.end <= len(query):
            raise InvalidInput(f"edit: {edit.start} to {edit.end} overlaps another edit or lies outside the query")
        parts += [query[position : edit.start], edit.text]
        position = edit.end
    return "".join([*parts, query[position:]])


def relationships(tree: AstNode) -> list[RelationshipPlace]:
    """The relationship patterns of a query, in the order of the text."""
    found = []
    for path in walk(tree):
        elements: list[Any] = path.elements if isinstance(path, ast.PathPattern) else []
        for i, element in enumerate(elements):
            if isinstance(element, ast.RelationshipPattern):
                found.append(_relationship(element, elements[i - 1], elements[i + 1]))
    return sorted(found, key=lambda r: r.start)


def _relationship(node: ast.RelationshipPattern, before: AstNode, after: AstNode) -> RelationshipPlace:
    start, end = span(node)
    types = tuple(_places(node.types, LabelName, lambda n: n)) if node.types is not None else ()
    ends = tuple(variable_name(side.args.get("variable")) for side in (before, after))
    direction = _DIRECTIONS[node.direction]
    left, right = node.__dict__["_left"], node.__dict__["_right"]
    return RelationshipPlace(
        start, end, direction, left, right, types, variable_name(node.variable), (ends[0], ends[1])
    )


def labels(tree: AstNode) -> list[NamePlace]:
    """The labels of a query's nodes, in patterns and in conditions, in the order of the text.

    ``WHERE x:Name`` counts as a label here, whatever x is.
    """
    found: list[NamePlace] = []
    for node in walk(tree):
        held = node.args.get("labels") if isinstance(node, ast.NodePattern | ast.LabelPredicate) else None
        if held is not None:
            found += _places(held, LabelName, lambda n: n)
    return sorted(found, key=lambda p: p.start)


def relation_types(tree: AstNode) -> list[NamePlace]:
    """The relations of a query's relationship patterns, in the order of the text."""
    return sorted((place for step in relationships(tree) for place in step.types), key=lambda p: p.start)


def properties(tree: AstNode) -> list[NamePlace]:
    """The properties that a query asks for: ``n.name``, ``(n {name: …})`` and ``n {.name}``, in their order."""
    found = _places(tree, ast.Property, lambda n: n.name) + _places(tree, ast.PropertySelector, lambda n: n.name)
    for node in walk(tree):
        held = node.args.get("properties") if isinstance(node, ast.NodePattern | ast.RelationshipPattern) else None
        if isinstance(held, ast.Map):
            found += [_place(key) for key, _ in held.entries]
    return sorted(found, key=lambda p: p.start)


def returns(tree: AstNode) -> list[ast.Return]:
    """The ``RETURN`` that ends a query, or those of the parts of its ``UNION``, subqueries left out."""
    statement: Any = tree.this if isinstance(tree, ast.Cypher) else tree
    ends = (clause for part in parts_of_union(statement) for clause in part.clauses[-1:])
    return [clause for clause in ends if isinstance(clause, ast.Return)]


def is_ordered(tree: AstNode) -> bool:
    """Whether a query says in which order its rows come."""
    return any(clause.args.get("order") is not None for clause in returns(tree))


def turn(relationship: RelationshipPlace) -> list[Edit]:
    """The edits that turn a relationship round; none for one without a direction."""
    if relationship.direction == "both":
        return []
    first, last = ("<", "") if relationship.direction == "out" else ("", ">")
    return [Edit(*relationship.left, first), Edit(*relationship.right, last)]


def rename(place: NamePlace, name: str) -> Edit:
    """The edit that puts another name in the place of one, in backticks where it needs them.

    Raises
    ------
    InvalidInput
        When the name is empty or has a backslash before u: that begins an escape, which servers read before anything
        else and the guard refuses in a name, and nothing that means the same can be written without one.
    """
    if not name:
        raise InvalidInput("name: it is empty")
    if "\\u" in name:
        raise InvalidInput(f"name: {name!r} has a backslash before u, which can be written in no name that may run")
    return Edit(place.start, place.end, name if _PLAIN.fullmatch(name) else "`" + name.replace("`", "``") + "`")


def limit(tree: AstNode, rows: int) -> list[Edit]:
    """The edits after which each ``RETURN`` that ends a query gives at most so many rows.

    A limit that is a smaller number stays; a parameter or an expression gives way to the number.

    Raises
    ------
    InvalidInput
        When `rows` is negative.
    """
    if rows < 0:
        raise InvalidInput(f"rows: {rows} is negative")
    edits = []
    for clause in returns(tree):
        if clause.limit is None:
            end = span(clause)[1]
            edits.append(Edit(end, end, f" LIMIT {rows}"))
        elif not (isinstance(clause.limit.this, ast.Integer) and clause.limit.this.this <= rows):
            edits.append(Edit(*span(clause.limit.this), str(rows)))
    return edits


def _places(tree: AstNode, kind: type[AstNode], name: Callable[[Any], AstNode]) -> list[NamePlace]:
    return [_place(name(node)) for node in walk(tree) if isinstance(node, kind)]


def _place(node: AstNode) -> NamePlace:
    return NamePlace(str(node.this), *span(node))


__all__ = [
    "Edit",
    "NamePlace",
    "RelationshipPlace",
    "apply",
    "is_ordered",
    "labels",
    "limit",
    "properties",
    "relation_types",
    "relationships",
    "rename",
    "returns",
    "turn",
]
