"""How ``where=`` becomes Cypher: each condition on one field is written, with its
values as parameters.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from graphret.errors import InvalidInput
from graphret.where import Where

SIGNS = {"$gt": ">", "$gte": ">=", "$lt": "<", "$lte": "<="}
_EXACT = 2**53


class Conditions(ABC):
    """Writes conditions on the node that is `variable`, with the meaning that
    `Where.matches` has of it.

    What is written is true or false, never null, which would turn under *not*.
    """

    def __init__(self, variable: str, prefix: str = "where") -> None:
        self.variable, self._prefix = variable, prefix
        self.parameters: dict[str, Any] = {}

    def write(self, where: Where | None) -> tuple[str, Where | None]:
        """Return an expression that is true where the condition is, and what
        `Where.matches` has still to decide.
        """
        if where is None:
            return "true", None
        if where.operator not in ("$and", "$or", "$not"):
            written = self._leaf(where)
            return ("true", where) if written is None else (written, None)
        parts = [self.write(child) for child in where.children]
        left = [rest for _, rest in parts if rest is not None]
        if where.operator == "$and":
            rest = (
                None
                if not left
                else left[0]
                if len(left) == 1
                else Where("$and", children=tuple(left))
            )
            return "(" + " AND ".join(written for written, _ in parts) + ")", rest
        if left:  # of an alternative that is half written nothing can be said
            return "true", where
        if where.operator == "$or":
            return "(" + " OR ".join(written for written, _ in parts) + ")", None
        return f"NOT ({parts[0][0]})", None

    def parameter(self, value: Any) -> str:
        """Return a new parameter of this value, as it is written in a query."""
        key = f"{self._prefix}{len(self.parameters)}"
        self.parameters[key] = list(value) if isinstance(value, tuple) else value
        return f"${key}"

    @abstractmethod
    def bears(self, labels: Sequence[str] | None) -> str:
        """Write that the node bears one of the labels, or any, in brackets."""

    @abstractmethod
    def value(self, where: Where) -> tuple[str, Any] | None:
        """Return what stands for the field of a condition and its type; `None` where
        the database cannot say it.
        """

    @abstractmethod
    def compared(
        self, op: str, operands: Sequence[Any], value: str, kind: Any
    ) -> str | None:
        """Write a comparison by ``$eq``, ``$in``, ``$contains``, ``$icontains`` or one
        of `SIGNS`, in brackets.
        """

    def _leaf(self, where: Where) -> str | None:
        """Write a condition on one field; `None` where the database cannot say it
        exactly.
        """
        op, operand = where.operator, where.value
        negated, op = op in ("$ne", "$nin"), {"$ne": "$eq", "$nin": "$in"}.get(op, op)
        operands = [
            one for one in (operand if op == "$in" else (operand,)) if one is not None
        ]
        if where.field == "label":
            if op in SIGNS:
                raise InvalidInput(f"where: {op} does not apply to labels")
            labels = [one for one in operands if isinstance(one, str) and is_text(one)]
            found = self.bears(None if op == "$exists" else labels)
            return f"NOT {found}" if negated or operand is False else found
        place = self.value(where)
        if place is None:
            return None
        if op == "$exists" or (
            op == "$eq" and operand is None
        ):  # nothing that is there equals null
            return (
                "true" if negated else f"{place[0]} IS {'NOT ' if operand else ''}NULL"
            )
        if not all(map(_is_exact, operands)) or (
            op == "$contains" and isinstance(operand, tuple)
        ):
            return None
        ordered = op not in SIGNS or not isinstance(operand, bool | tuple)
        written = (
            self.compared(op, operands, *place) if operands and ordered else "false"
        )
        return f"NOT {written}" if written and negated else written


def require_decided(left: Where | None) -> None:
    """Raise an `InvalidInput` where something of a condition is left that the database
    does not decide by itself.
    """
    if left is not None:
        raise InvalidInput(
            "where: only what the database itself decides is asked here, not"
            f" {left.to_dict()}"
        )


def _is_exact(value: Any) -> bool:
    """Whether equality with a value means in Cypher what it means here: JSON's scalars,
    and lists of one kind.
    """
    if isinstance(value, tuple):
        return len(
            {float if type(item) is int else type(item) for item in value}
        ) <= 1 and all(map(_is_exact, value))
    if isinstance(value, int | float) and not isinstance(value, bool):
        return math.isfinite(value) and abs(value) <= _EXACT
    return isinstance(value, bool) or (isinstance(value, str) and is_text(value))


def is_text(value: str) -> bool:
    """Whether a database takes a string as it is."""
    return "\0" not in value and value.encode(errors="replace").decode() == value
