"""Which expressions are the same, and which aggregate."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cypherast import ast
from cypherast.ast import AstNode

from graphret.cypher.meaning.functions import FUNCTIONS
from graphret.cypher.tree import Paren, Subquery, children

Shape = tuple[Any, ...]


def shape(node: AstNode) -> Shape:
    """What is equal for two expressions that differ in spaces, parentheses and the case of function names only."""
    while isinstance(node, Paren):
        node = node.this
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
