"""The cost of a query whatever the graph holds: loops over its own lists."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from math import prod
from typing import Any

from cypherast import ast
from cypherast.ast import AstNode

from graphret.cypher import codes
from graphret.cypher.semantics.walk import Analysis
from graphret.cypher.tree import (
    Chain,
    Lambda,
    Sign,
    children,
    variable_name,
    walk,
    without_parens,
)

_SIZES = frozenset(("size", "length", "list_len", "cardinality"))


def check_cost(tree: ast.Cypher, facts: Analysis, most: int) -> None:
    """Refuse a query whose own lists take more than `most` steps.

    It is refused as well if a list doubles for each element of another.

    A time-out does not help there: Neo4j looks at its clock between rows, not within an
    expression.
    """
    nodes = list(walk(tree))
    lists = _ListSizes(nodes)
    unwinds = [node for node in nodes if isinstance(node, ast.Unwind)]
    steps = prod(lists.size(unwind.expression) for unwind in unwinds) * lists.steps(
        tree
    )
    if steps > most:
        message = (
            f"the query goes through {steps:,} elements of its own lists, such as"
            f" ranges; at most {most:,} may be"
        )
        facts.error(codes.TOO_COSTLY, message, unwinds[0] if unwinds else tree)
    for node in nodes:
        if isinstance(node, ast.ListLambda) and (
            name := variable_name(node.args.get("accumulator"))
        ):
            for doubled in _doublings(node.expression, name):
                facts.error(
                    codes.TOO_COSTLY,
                    f"this doubles {name} for each element of a list",
                    doubled,
                )


class _ListSizes:
    """How many elements the lists of a query have: ranges, and names for them."""

    def __init__(self, nodes: list[AstNode]) -> None:
        # stands for a bound that is computed
        self._largest = max(
            (int(node.this) for node in nodes if isinstance(node, ast.Integer)),
            default=1,
        )
        self._named: dict[str, int] = {}
        for node in nodes:
            if isinstance(node, ast.Alias) and (name := variable_name(node.alias)):
                self._named[name] = max(self._named.get(name, 1), self.size(node.this))

    def size(self, node: AstNode) -> int:
        """The elements of the lists in an expression, at least 1."""
        elements = 0
        for part in walk(node):
            if isinstance(part, ast.FunctionCall) and part.name.this.lower() == "range":
                elements += self._range(part.expressions)
            elif (name := variable_name(part)) is not None:
                elements += self._named.get(name, 0)
        return max(1, elements)

    def steps(self, tree: AstNode) -> int:
        """The most list elements for one row, multiplied through nested loops."""
        most, waiting = max(self._named.values(), default=1), [(tree, 1)]
        while waiting:
            node, times = waiting.pop()
            parts = list(children(node))
            if isinstance(node, ast.Unwind):
                continue  # what it makes are rows
            if (over := node.args.get("source")) is not None:
                inner, within = (
                    times * self.size(over),
                    [part for part in parts if part is not over],
                )
            elif isinstance(node, ast.FunctionCall):
                within = [part for part in parts if isinstance(part, Lambda)]
                inner = (
                    times * self.size(node)
                    if within or node.name.this.lower() == "range"
                    else times
                )
            else:
                inner, within = times, parts
            most = max(most, inner)
            waiting += [
                (
                    part,
                    inner
                    if any(part is inner_part for inner_part in within)
                    else times,
                )
                for part in parts
            ]
        return most

    def _range(self, bounds: list[Any]) -> int:
        if any(
            isinstance(n, ast.FunctionCall) and n.name.this.lower() in _SIZES
            for b in bounds
            for n in walk(b)
        ):
            return 1  # as long as something of the graph
        numbers = [self._number(bound) for bound in bounds]
        first, last, step = (
            (*numbers, 1)[:3] if len(numbers) > 1 else (0, self._largest, 1)
        )
        return int(abs(last - first) // max(1, abs(step)) + 1)

    def _number(self, node: AstNode) -> int:
        node = without_parens(node)
        if isinstance(node, ast.Integer):
            return int(node.this)
        return -self._number(node.this) if isinstance(node, Sign) else self._largest


def _doublings(expression: AstNode, name: str) -> Iterator[AstNode]:
    """Where a variable is added to itself, or put twice into one list or map."""
    for node in walk(expression):
        if isinstance(node, Chain | ast.List | ast.Map):
            values = node.operands if isinstance(node, Chain) else list(children(node))
            used = Counter(variable_name(without_parens(value)) for value in values)
            if used[name] > 1 and (
                not isinstance(node, Chain) or "+" in node.operators
            ):
                yield node
