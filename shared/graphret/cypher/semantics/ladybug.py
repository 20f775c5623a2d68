"""What Neo4j's Cypher has and Ladybug 0.22 lacks; it refuses rarer forms itself."""

from __future__ import annotations

from cypherast import ast
from cypherast.ast import AstNode

from graphret.cypher import codes
from graphret.cypher.grammar.expressions import COMPARISONS
from graphret.cypher.semantics.walk import Analysis
from graphret.cypher.tree import (
    Chain,
    Finish,
    Group,
    IsTyped,
    Page,
    Shortest,
    Subquery,
    walk,
)

_LACKS: dict[type[AstNode], str] = {
    ast.MapProjection: "map projection; write a map, {name: n.name}",
    ast.PatternComprehension: (
        "pattern comprehension; use OPTIONAL MATCH and collect(…)"
    ),
    ast.ListComprehension: (
        "list comprehension; use list_filter(list, x -> …) and list_transform(list, x"
        " -> …)"
    ),
    ast.ListLambda: "reduce(…); use list_reduce(list, (x, y) -> …)",
    ast.LabelPredicate: (
        "label in a condition; write it in the pattern, or list_contains(n.labels,"
        " 'Name')"
    ),
    ast.CallSubquery: "CALL { } subquery",
    IsTyped: "test of types with ::",
    Group: "quantified path; write -[:RELATION*1..3]->",
    Shortest: "shortestPath(…); write -[:RELATION* SHORTEST 1..5]->",
    Finish: "FINISH; a query ends with RETURN",
    Page: "LIMIT, SKIP or ORDER BY outside WITH and RETURN",
}


def check_ladybug(tree: AstNode, facts: Analysis) -> None:
    """Add to the facts what Ladybug does not read."""
    for node in walk(tree):
        lacking = _LACKS.get(type(node)) or _lacking(node)
        if lacking:
            facts.error(codes.SYNTAX, f"Ladybug has no {lacking}", node)


def _lacking(node: AstNode) -> str:
    if isinstance(node, Subquery):
        if node.kind == "COLLECT":
            return "COLLECT { } subquery; use OPTIONAL MATCH and collect(…)"
        if node.bare:
            return f"{node.kind} {{ pattern }}; write {node.kind} {{ MATCH pattern }}"
        if any(
            isinstance(clause, ast.Return)
            for clause in node.query.args.get("clauses", ())
        ):
            return f"RETURN in {node.kind} {{ }}"
    if (
        isinstance(node, ast.NodePattern | ast.RelationshipPattern)
        and node.where is not None
    ):
        return "WHERE within the brackets of a pattern; write it after the pattern"
    if (
        isinstance(node, ast.RelationshipPattern)
        and node.args.get("quantifier") is not None
    ):
        return "quantified relationship; write -[:RELATION*1..3]->"
    if (
        isinstance(node, Chain)
        and len(node.operators) > 1
        and node.operators[0] in COMPARISONS
    ):
        return "comparison of three values; write a < b AND b < c"
    if (
        isinstance(node, ast.With)
        and node.order is not None
        and node.skip is None
        and node.limit is None
    ):
        return "ORDER BY in WITH without SKIP or LIMIT"
    return ""
