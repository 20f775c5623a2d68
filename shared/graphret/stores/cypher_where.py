"""Conditions written as Cypher, with every value a parameter."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

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


class WhereCypher(ABC):
    """Writes conditions on one variable as Cypher, with the meaning that `Where.matches` has.

    A dialect writes the leaves. Every leaf must be true or false, never null: null would turn under *not*.

    Parameters
    ----------
    variable
        The variable of the node.
    prefix
        What the names of the parameters begin with.
    """

    def __init__(self, variable: str, prefix: str = "where") -> None:
        self.variable = variable
        self.prefix = prefix
        self.parameters: dict[str, Any] = {}

    def write(self, where: Where | None) -> str:
        """Return the condition as a Cypher expression; `parameters` then holds its values."""
        if where is None:
            return "true"
        if where.operator in ("$and", "$or"):
            word = " AND " if where.operator == "$and" else " OR "
            return "(" + word.join(self.write(child) for child in where.children) + ")"
        if where.operator == "$not":
            return f"NOT ({self.write(where.children[0])})"
        return self.leaf(writable(where))

    @abstractmethod
    def leaf(self, where: Where) -> str:
        """Write a condition on one field."""

    def parameter(self, value: Any) -> str:
        """Return a new parameter of this value, as it is written in a query."""
        name = f"{self.prefix}{len(self.parameters)}"
        self.parameters[name] = value
        return f"${name}"


def writable(where: Where) -> Where:
    """Return a condition on one field without the texts that no database holds: with half of a surrogate pair.

    Nothing equals them. In the order of code points, the texts after one are those from where its half gives way to the
    first character behind all halves.
    """
    op, value = where.operator, where.value
    if op in ("$in", "$nin"):
        return where if _is_writable(value) else Where(op, where.field, tuple(filter(_is_writable, value)))
    if _is_writable(value):
        return where
    if not isinstance(value, str) or op in ("$eq", "$ne", "$contains"):
        return Where("$nin" if op == "$ne" else "$in", where.field, ())
    half = next(i for i, character in enumerate(value) if "\ud800" <= character <= "\udfff")
    return Where("$gte" if op in ("$gt", "$gte") else "$lt", where.field, value[:half] + "\ue000")


def _is_writable(value: Any) -> bool:
    if isinstance(value, tuple):
        return all(map(_is_writable, value))
    return not isinstance(value, str) or not any("\ud800" <= character <= "\udfff" for character in value)
