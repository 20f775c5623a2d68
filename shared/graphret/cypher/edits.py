"""Where the parts of a query stand in its text, and how to change the text there.

Nothing is rendered: an edit replaces some characters, and all others stay as they were
written.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from cypherast import ast
from cypherast.ast import AstNode, Direction

from graphret.cypher.tree import (
    LabelName,
    Span,
    parts_of_union,
    span,
    variable_name,
    walk,
)
from graphret.errors import InvalidInput

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_DIRECTIONS = {
    Direction.OUTGOING: "out",
    Direction.INCOMING: "in",
    Direction.BOTH: "both",
}


@dataclass(frozen=True, slots=True)
class Edit:
    """Put `text` in place of the characters from `start` to `end`."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class NamePlace:
    """A label, relation or property where it stands.

    The place includes quotes, `name` does not.
    """

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
    """

    start: int
    end: int
    direction: str
    left: Span
    right: Span
    types: tuple[NamePlace, ...]


def apply(query: str, edits: Iterable[Edit]) -> str:
    """Return the query with all edits made; their places are those in the given query.

    Raises
    ------
    InvalidInput
        When two edits overlap or one lies outside the query.
    """
    parts: list[str] = []
    position = 0
    for edit in sorted(edits, key=lambda e: (e.start, e.end)):
        if not position <= edit.start <= edit.end <= len(query):
            raise InvalidInput(
                f"edit: {edit.start} to {edit.end} overlaps another edit or lies"
                " outside the query"
            )
        parts += [query[position : edit.start], edit.text]
        position = edit.end
    return "".join([*parts, query[position:]])


def relationships(tree: AstNode) -> list[RelationshipPlace]:
    """The relationship patterns of a query, in the order of the text."""
    places = []
    for node in walk(tree):
        if isinstance(node, ast.RelationshipPattern):
            arrows = node.__dict__["_left"], node.__dict__["_right"]
            places.append(
                RelationshipPlace(
                    *span(node),
                    _DIRECTIONS[node.direction],
                    *arrows,
                    tuple(_places(node.types)),
                )
            )
    return sorted(places, key=lambda r: r.start)


def labels(tree: AstNode) -> list[NamePlace]:
    """The labels of a query's nodes, in patterns and in conditions, in text order.

    ``WHERE x:Name`` counts as a label here, whatever x is.
    """
    nodes = [
        node
        for node in walk(tree)
        if isinstance(node, ast.NodePattern | ast.LabelPredicate)
    ]
    return sorted(
        (place for node in nodes for place in _places(node.labels)),
        key=lambda p: p.start,
    )


def relation_types(tree: AstNode) -> list[NamePlace]:
    """The relations of a query's relationship patterns, in the order of the text."""
    return sorted(
        (place for step in relationships(tree) for place in step.types),
        key=lambda p: p.start,
    )


def returns(tree: AstNode) -> list[ast.Return]:
    """The ``RETURN`` that ends a query, or one for each part of its ``UNION``."""
    statement: Any = tree.this if isinstance(tree, ast.Cypher) else tree
    last_clauses = (
        clause for part in parts_of_union(statement) for clause in part.clauses[-1:]
    )
    return [clause for clause in last_clauses if isinstance(clause, ast.Return)]


def is_ordered(tree: AstNode) -> bool:
    """Whether a query returns its rows in a stated order.

    By ``ORDER BY`` in its ``RETURN`` or in a ``WITH`` before it, or along a path.
    """
    statement: Any = tree.this if isinstance(tree, ast.Cypher) else tree
    return any(map(_is_ordered, parts_of_union(statement)))


def _is_ordered(query: Any) -> bool:
    last = query.clauses[-1]
    if not isinstance(last, ast.Return):
        return False
    if last.order is not None or _follows_a_path(last, query):
        return True
    for clause in reversed(query.clauses[:-1]):
        # What matches, groups or tells rows apart after an order does not keep it.
        if not isinstance(clause, ast.With) or last.distinct:
            return False
        if clause.order is not None:
            return True
        last = clause
    return False


def _follows_a_path(clause: ast.Return, query: Any) -> bool:
    """Whether a clause returns a path, or what lies along one."""
    paths = {
        variable_name(path.variable)
        for path in walk(query)
        if isinstance(path, ast.PathPattern) and path.args.get("variable")
    }
    return any(
        variable_name(part) in paths
        or (
            isinstance(part, ast.FunctionCall)
            and str(part.name.this).lower() == "nodes"
        )
        for item in clause.expressions
        for part in walk(item)
    )


def turn(relationship: RelationshipPlace) -> list[Edit]:
    """The edits that turn a relationship round; none for one without a direction."""
    if relationship.direction == "both":
        return []
    first, last = ("<", "") if relationship.direction == "out" else ("", ">")
    return [Edit(*relationship.left, first), Edit(*relationship.right, last)]


def rename(place: NamePlace, name: str) -> Edit:
    """The edit that replaces a name, with backticks where the new one needs them.

    Raises
    ------
    InvalidInput
        When the name is empty, or has a backslash before u: that begins an escape,
        which the guard refuses in a name.
    """
    if not name:
        raise InvalidInput("name: it is empty")
    if "\\u" in name:
        raise InvalidInput(
            f"name: {name!r} has a backslash before u, which can be written in no name"
            " that may run"
        )
    plain = _PLAIN.fullmatch(name) is not None
    return Edit(place.start, place.end, name if plain else quoted(name))


def quoted(name: str) -> str:
    """A name in backticks."""
    return "`" + name.replace("`", "``") + "`"


def text_literal(text: str) -> str:
    """A text as a string of a query."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def limit(tree: AstNode, rows: int) -> list[Edit]:
    """The edits that limit each ``RETURN`` that ends a query to a number of rows.

    A limit that is a smaller number stays, and so does one that is computed; a larger
    number and a parameter give way to the number.
    """
    edits = []
    for clause in returns(tree):
        if clause.limit is None:
            end = span(clause)[1]
            edits.append(Edit(end, end, f" LIMIT {rows}"))
        elif isinstance(clause.limit.this, ast.Parameter) or (
            isinstance(clause.limit.this, ast.Integer) and clause.limit.this.this > rows
        ):
            edits.append(Edit(*span(clause.limit.this), str(rows)))
    return edits


def _places(labels: AstNode | None) -> list[NamePlace]:
    names = walk(labels) if labels is not None else ()
    return [
        NamePlace(str(node.this), *span(node))
        for node in names
        if isinstance(node, LabelName)
    ]
