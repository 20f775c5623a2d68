"""The syntax tree of a query, every node of which knows its place in the text.

The nodes are those of `cypherast.ast`, and those below where that tree forgets what the
guard or a later edit needs: parentheses, label expressions, the arrows and the names
with their places. Nothing here renders text.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cypherast import ast
from cypherast.ast import AstNode

Span = tuple[int, int]


class Name(AstNode):
    """A property key, relation, label or function name as it stands in the text."""


class Paren(AstNode):
    """``( expression )``."""


class Chain(AstNode):
    """Operands of one precedence joined by operators, such as ``a + b - c``."""


class Test(AstNode):
    """``a IN b``, ``=~``, ``STARTS WITH``, ``ENDS WITH`` or ``CONTAINS``."""


class Sign(AstNode):
    """``-a`` or ``+a``."""


class IsTyped(AstNode):
    """``a IS [NOT] :: TYPE``."""


class Subquery(AstNode):
    """``EXISTS { }``, ``COUNT { }`` or ``COLLECT { }``; `kind` says which."""


class Lambda(AstNode):
    """``x -> x + 1``, which Ladybug's functions on lists take."""


class LabelName(AstNode):
    """One label or relation of a label expression."""


class LabelAny(AstNode):
    """``%``, any label."""


class LabelNot(AstNode):
    """``!A``."""


class LabelAll(AstNode):
    """``A&B`` or ``A:B``; `signs` says which."""


class LabelOne(AstNode):
    """``A|B``; `colons` where it is written ``A|:B``."""


class Group(AstNode):
    """A parenthesised path, its condition and its quantifier, where it has them."""


class Shortest(AstNode):
    """``shortestPath( )`` or ``allShortestPaths( )``, wherever it stands."""


class Page(AstNode):
    """``ORDER BY``, ``SKIP`` and ``LIMIT`` as a clause of their own."""


class Finish(AstNode):
    """``FINISH``."""


def mark(node: AstNode, start: int, end: int) -> Any:
    """Give a node its place, as offsets of characters, and return it."""
    node.__dict__["_span"] = (start, end)
    return node


def span(node: AstNode) -> Span:
    """Where a node stands, as offsets of characters."""
    place: Span | None = node.__dict__.get("_span")
    if place is not None:
        return place
    places = [span(child) for child in children(node)]
    return (min(s for s, _ in places), max(e for _, e in places)) if places else (0, 0)


def children(node: AstNode) -> Iterator[AstNode]:
    """The nodes directly below a node, in text order within each of its parts."""
    for value in node.args.values():
        if isinstance(value, AstNode):
            yield value
        elif isinstance(value, list | tuple):
            for item in value:
                if isinstance(item, AstNode):
                    yield item
                elif isinstance(item, tuple):
                    for part in item:
                        if isinstance(part, AstNode):
                            yield part


def walk(node: AstNode) -> Iterator[AstNode]:
    """A node and all below it, parents first."""
    stack = [node]
    while stack:
        current = stack.pop()
        yield current
        stack.extend(reversed(list(children(current))))


def parts_of_union(statement: Any) -> list[Any]:
    """The single queries of a statement, in the order of the text."""
    parts = []
    while isinstance(statement, ast.Union):
        parts.append(statement.expression)
        statement = statement.this
    return [statement, *reversed(parts)]


def without_parens(node: AstNode) -> AstNode:
    """The expression within any parentheses."""
    while isinstance(node, Paren):
        node = node.this
    return node


def variable_name(node: Any) -> str | None:
    """The name of a variable, or None if the node is none."""
    return str(node.this) if isinstance(node, ast.Identifier) else None
