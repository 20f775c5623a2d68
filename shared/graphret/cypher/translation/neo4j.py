"""What Neo4j had before version 5, in its words of today."""

from __future__ import annotations

from cypherast import ast
from cypherast.ast import AstNode

from graphret.cypher.semantics.walk import bare_pattern
from graphret.cypher.translation.changes import Change, QueryContext, Rules


def counted_pattern(node: AstNode, context: QueryContext) -> Change | None:
    """``size((a)-->())`` is ``COUNT { (a)-->() }``."""
    argument = only_argument(node, "size")
    if argument is None or bare_pattern(argument) is None:
        return None
    pattern = context.text(argument)
    return context.replaced(
        node,
        f"COUNT {{ {pattern} }}",
        "size(…) of a pattern is written COUNT { … }",
    )


def existing_property(node: AstNode, context: QueryContext) -> Change | None:
    """``exists(n.name)`` is ``n.name IS NOT NULL``."""
    argument = only_argument(node, "exists")
    if not isinstance(argument, ast.Property):
        return None
    return context.replaced(
        node,
        f"({context.text(argument)} IS NOT NULL)",
        "exists(…) of a property is written IS NOT NULL",
    )


def only_argument(node: AstNode, function: str) -> AstNode | None:
    """The argument of a call of a one-argument function; `None` for another call."""
    if not isinstance(node, ast.FunctionCall) or len(node.expressions) != 1:
        return None
    argument: AstNode = node.expressions[0]
    return argument if str(node.name.this).lower() == function else None


NEO4J: Rules = {ast.FunctionCall: (counted_pattern, existing_property)}
