"""What Ladybug 0.22 would plan for longer than anybody waits: its planner cannot be stopped, and holds the process.

Its time doubles with each ``CASE`` within a ``THEN``, nearly so with each relationship that meets others in one node,
and grows with the square of the values in one sum. It plans the most that passes here in some two seconds on two cores.
"""

from __future__ import annotations

from collections.abc import Iterator

from cypherast import ast
from cypherast.ast import AstNode

from graphret.cypher import kinds
from graphret.cypher.meaning.facts import Facts
from graphret.cypher.tree import Chain, children, walk

MOST_CASES = 12
MOST_JOINED = 10
MOST_TERMS = 400
_LOGIC = {"AND", "OR", "XOR"}


def check_limits(tree: AstNode, facts: Facts) -> None:
    """Add to the facts what is too much to plan."""
    if (deepest := _depth(tree)) > MOST_CASES:
        facts.error(kinds.TOO_LONG, f"{deepest} CASE within THEN; Ladybug plans {MOST_CASES} in time", tree)
    for node in walk(tree):
        if isinstance(node, Chain) and node.operators[0].upper() not in _LOGIC and len(node.operands) > MOST_TERMS:
            said = f"{len(node.operands):,} values joined by operators; Ladybug plans {MOST_TERMS} in time"
            facts.error(kinds.TOO_LONG, said, node)
        elif isinstance(node, ast.Query):
            for joined in _joined(node):
                if len(joined) > MOST_JOINED:
                    said = f"{len(joined)} relationships in one part; Ladybug plans {MOST_JOINED} in time"
                    facts.error(kinds.TOO_LONG, f"{said}: put a WITH between them", joined[MOST_JOINED])


def _depth(node: AstNode) -> int:
    """How many ``CASE`` stand in each other's ``THEN`` at the most."""
    deepest, todo = 0, [(node, 0)]
    while todo:
        current, depth = todo.pop()
        deepest = max(deepest, depth)
        then = {id(value) for _, value in current.args["ifs"]} if isinstance(current, ast.Case) else set()
        todo += ((child, depth + (id(child) in then)) for child in children(current))
    return deepest


def _joined(query: ast.Query) -> Iterator[list[AstNode]]:
    """The relationships of each run of ``MATCH`` that is planned as one: whatever else stands between ends it."""
    joined: list[AstNode] = []
    for clause in query.args["clauses"]:
        if isinstance(clause, ast.Match) and not clause.args.get("optional"):
            pattern = clause.args["pattern"]
            joined += (node for node in walk(pattern) if isinstance(node, ast.RelationshipPattern))
        elif not isinstance(clause, ast.Match):
            yield joined
            joined = []
    yield joined
