"""Warnings about a query: no limit, a cartesian product, a path without a bound."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cypherast import ast
from cypherast.ast import AstNode

from graphret.cypher import codes
from graphret.cypher.semantics.walk import Analysis, aggregates
from graphret.cypher.tree import Group, Shortest, children, parts_of_union, walk


def advise(tree: ast.Cypher, facts: Analysis, unbounded_paths: bool) -> None:
    """Add the warnings about a query to its facts.

    A path without a bound is an error, unless `unbounded_paths` is true.
    """
    complain = facts.warn if unbounded_paths else facts.error
    for query in parts_of_union(tree.this):
        _limit(query, facts)
    for match, bound in facts.matches:
        _cartesian(match, bound, facts)
        for path in match.pattern.paths:
            if path.args.get("selector") is None:
                _unbounded(path, complain)


def _limit(query: Any, facts: Analysis) -> None:
    """A query that may return any number of rows should say how many it wants."""
    last = query.clauses[-1]
    if not isinstance(last, ast.Return) or last.limit is not None:
        return
    if all(any(True for _ in aggregates(item)) for item in last.expressions):
        return  # one row
    if any(clause.args.get("limit") is not None for clause in query.clauses[:-1]):
        return
    if any(
        isinstance(clause, ast.Match | ast.Unwind | ast.CallProcedure)
        for clause in query.clauses
    ):
        facts.warn(
            codes.NO_LIMIT,
            "the query has no LIMIT, and may return any number of rows",
            last,
        )


def _cartesian(match: ast.Match, bound: frozenset[str], facts: Analysis) -> None:
    """The paths of one MATCH that share no variable are joined each with each."""
    part_of: dict[str, str] = {}

    def part(name: str) -> str:
        while part_of.setdefault(name, name) != name:
            part_of[name] = name = part_of[part_of[name]]
        return name

    for i, path in enumerate(match.pattern.paths):
        # What was matched before, here the empty name, joins the paths that go on from
        # it.
        for node in walk(path):
            if (
                isinstance(node, ast.NodePattern | ast.RelationshipPattern)
                and node.variable is not None
            ):
                name = node.variable.this
                part_of[part("" if name in bound else name)] = part(f"path {i}")
    if len({part(f"path {i}") for i in range(len(match.pattern.paths))}) > 1:
        message = (
            "these paths share no variable: every match of the one is joined with every"
            " match of the other"
        )
        facts.warn(codes.CARTESIAN_PRODUCT, message, match.pattern)


def _unbounded(node: AstNode, complain: Callable[[str, str, AstNode], None]) -> None:
    """A path of any length may take any time; a shortest one stops by itself."""
    if isinstance(node, Shortest):
        return
    if isinstance(node, ast.RelationshipPattern):
        quantifier = node.args.get("quantifier")
        endless = (node.variable_length and node.max_hops is None) or (
            quantifier is not None and quantifier[1] is None
        )
    else:
        endless = isinstance(node, Group) and node.quantified and node.max_hops is None
    if endless:
        complain(
            codes.UNBOUNDED_PATH,
            "this path has no bound on its length: write one, such as *1..4 or {1,4}",
            node,
        )
    for child in children(node):
        _unbounded(child, complain)
