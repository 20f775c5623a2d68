"""The same lists held against the syntax tree."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from graphret.cypher.allowed.lists import Allowed
from graphret.cypher.allowed.reader import Refused

#: The kinds of nodes that a query which only reads is made of.
_NODES = frozenset(
    """
    Alias Boolean CallProcedure CallSubquery Case Chain Cypher Finish Float FunctionCall Group Identifier Integer
    IsNull IsTyped LabelAll LabelAny LabelDynamic LabelName LabelNot LabelOne LabelPredicate Lambda Limit List
    ListComprehension ListLambda ListSlice ListSubscript Map MapProjection Match Name NodePattern Not Null Order
    Ordered Page Parameter Paren PathPattern Pattern PatternComprehension PatternPredicate Property PropertySelector
    Quantifier Query RelationshipLambda RelationshipPattern Return Shortest Sign Skip Star String Subquery Test Union
    Unwind With Yield
    """.split()
)


def refused_nodes(
    tree: Any, dialect: str, allowed: Allowed, functions: Collection[str], procedures: Collection[str]
) -> Iterator[Refused]:
    """What in a tree may not run, parents first; of a clause that may not, nothing more."""
    from graphret.cypher.tree import children, span

    waiting = [tree]
    while waiting:
        node = waiting.pop()
        reason = _reason(node, dialect, allowed, functions, procedures)
        if reason:
            yield Refused(reason, *span(node))
        if type(node).__name__ in _NODES:
            waiting.extend(reversed(list(children(node))))


def _reason(node: Any, dialect: str, allowed: Allowed, functions: Collection[str], procedures: Collection[str]) -> str:
    kind = type(node).__name__
    if kind not in _NODES:
        return f"{kind} is not among what may run"
    if kind == "FunctionCall":
        name = _text(node.args["name"])
        if name.lower() not in allowed.functions and not {name, name.lower()} & set(functions):
            return f"{name} is not among the functions that may run"
    elif kind == "CallProcedure":
        name = _text(node.args["name"])
        if (name if dialect == "neo4j" else name.lower()) not in allowed.procedures and name not in procedures:
            return f"the procedure {name} is not among those that may run"
    elif kind == "CallSubquery" and (node.args.get("in_transactions") or not allowed.subqueries):
        return "a subquery may not run in transactions of its own" if allowed.subqueries else "CALL { } may not run"
    return ""


def _text(name: Any) -> str:
    return str(getattr(name, "this", name))
