"""Conditions written as Cypher, with every value a parameter."""

from __future__ import annotations

from collections.abc import Callable

from graphret.where import Where


def pushed_down(where: Where | None, leaf: Callable[[Where], str | None]) -> tuple[str, Where | None]:
    """Write as much of a condition as Cypher can say, and return what is left for `Where.matches`.

    Parameters
    ----------
    leaf
        Writes a condition on one field as an expression that is true or false, never null (null would turn under
        *not*), and exactly where the condition is; `None` where the dialect cannot.

    Returns
    -------
    tuple[str, Where | None]
        An expression that is true of every node that satisfies the condition, and the part of the condition that
        still has to be asked of what it leaves; `None` where the expression says it all.
    """
    if where is None:
        return "true", None
    if where.operator not in ("$and", "$or", "$not"):
        written = leaf(where)
        return ("true", where) if written is None else (written, None)
    parts = [pushed_down(child, leaf) for child in where.children]
    if where.operator == "$and":
        left = [rest for _, rest in parts if rest is not None]
        rest = None if not left else left[0] if len(left) == 1 else Where("$and", children=tuple(left))
        return "(" + " AND ".join(written for written, _ in parts) + ")", rest
    if any(rest is not None for _, rest in parts):  # of an alternative that is half written nothing can be said
        return "true", where
    if where.operator == "$or":
        return "(" + " OR ".join(written for written, _ in parts) + ")", None
    return f"NOT ({parts[0][0]})", None
