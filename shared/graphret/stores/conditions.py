"""How ``where=`` becomes Cypher, with the values as parameters."""

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
    """Writes conditions on the node `variable`, with the meaning of `Where.matches`.

    An expression is true or false, but never null, which would stay null under *not*.
    """

    def __init__(self, variable: str, prefix: str = "where") -> None:
        self.variable, self._prefix = variable, prefix
        self.parameters: dict[str, Any] = {}

    def write(self, where: Where | None) -> tuple[str, Where | None]:
        """Return a condition's expression, and what remains for `Where.matches`."""
        if where is None:
            return "true", None
        if where.operator not in ("$and", "$or", "$not"):
            written = self._leaf(where)
            return ("true", where) if written is None else (written, None)
        parts = [self.write(child) for child in where.children]
        remaining = [rest for _, rest in parts if rest is not None]
        if where.operator == "$and":
            rest = (
                None
                if not remaining
                else remaining[0]
                if len(remaining) == 1
                else Where("$and", children=tuple(remaining))
            )
            return "(" + " AND ".join(written for written, _ in parts) + ")", rest
        if remaining:  # a partly written alternative decides nothing
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
    def has_label(self, labels: Sequence[str] | None) -> str:
        """Write that the node has one of the labels, or any, in brackets."""

    @abstractmethod
    def value(self, where: Where) -> tuple[str, Any] | None:
        """Return the expression of a condition's field and its type, or `None`.

        `None` means that the database cannot express it.
        """

    @abstractmethod
    def compared(
        self, op: str, operands: Sequence[Any], value: str, kind: Any
    ) -> str | None:
        """Write a comparison in brackets.

        `op` is ``$eq``, ``$in``, ``$contains``, ``$icontains`` or one of `SIGNS`.
        """

    def _leaf(self, where: Where) -> str | None:
        """Write a condition on one field, or `None` if Cypher cannot express it."""
        op, operand = where.operator, where.value
        negated, op = op in ("$ne", "$nin"), {"$ne": "$eq", "$nin": "$in"}.get(op, op)
        operands = [
            item
            for item in (operand if op == "$in" else (operand,))
            if item is not None
        ]
        if where.field == "label":
            if op in SIGNS:
                raise InvalidInput(f"where: {op} does not apply to labels")
            labels = [
                item for item in operands if isinstance(item, str) and is_text(item)
            ]
            has_label = self.has_label(None if op == "$exists" else labels)
            return f"NOT {has_label}" if negated or operand is False else has_label
        place = self.value(where)
        if place is None:
            return None
        if op == "$exists" or (
            op == "$eq" and operand is None
        ):  # no existing value equals null
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


def require_decided(remaining: Where | None) -> None:
    """Refuse a condition of which a part remains that the database cannot decide."""
    if remaining is not None:
        raise InvalidInput(
            "where: expected a condition that the database itself decides, got"
            f" {remaining.to_dict()}"
        )


def _is_exact(value: Any) -> bool:
    """Whether equality with a value means the same in Cypher as in graphret.

    It does for JSON's scalars, and for lists of one kind.
    """
    if isinstance(value, tuple):
        return len(
            {float if type(item) is int else type(item) for item in value}
        ) <= 1 and all(map(_is_exact, value))
    if isinstance(value, int | float) and not isinstance(value, bool):
        return math.isfinite(value) and abs(value) <= _EXACT
    return isinstance(value, bool) or (isinstance(value, str) and is_text(value))


def is_text(value: str) -> bool:
    """Whether a database stores a string unchanged."""
    return "\0" not in value and value.encode(errors="replace").decode() == value
