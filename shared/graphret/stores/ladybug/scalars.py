"""Operands of conditions as values of columns: which value equals one, which bounds say the same as it."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from typing import Any

from graphret.columns import to_json
from graphret.stores.ladybug.values import INFINITE, KINDS

SIGNS = {"$gt": ">", "$gte": ">=", "$lt": "<", "$lte": "<="}

#: Integers of so many digits are exact as doubles.
EXACT_DIGITS = 15

_LOWEST, _HIGHEST = -(2**63), 2**63 - 1


def exact(operand: Any, kind: str) -> Iterator[Any]:
    """Return the value of a column of a kind, or of lists of one, that equals the operand, if there is one."""
    if kind.endswith("[]"):
        items = [[*exact(item, kind[:-2])] for item in operand] if isinstance(operand, tuple) else [[]]
        if all(items):
            yield [item[0] for item in items]
        return
    want = KINDS[kind]
    if want is float and isinstance(operand, str):
        yield from (number for number, text in INFINITE.items() if text == operand)
    elif want is str:
        if isinstance(operand, str):
            yield operand
    elif want is bool:
        if isinstance(operand, bool):
            yield operand
    elif isinstance(operand, (int, float)) and not isinstance(operand, bool):
        if want is int:
            if isinstance(operand, int) or operand.is_integer():
                number = int(operand)
                if _LOWEST <= number <= _HIGHEST:
                    yield number
        elif isinstance(operand, float):
            if math.isfinite(operand):
                yield operand
        elif abs(operand) < 2**1000 and int(float(operand)) == operand:
            yield float(operand)


def bound_of_integers(op: str, operand: int | float) -> bool | tuple[str, int]:
    """Return the comparison of an INT64 that says what the one with `operand` does, or its value where it is fixed."""
    if isinstance(operand, float):
        if math.isinf(operand):
            return (operand > 0) == (op in ("$lt", "$lte"))
        if not operand.is_integer():
            op, operand = ("$lte", math.floor(operand)) if op in ("$lt", "$lte") else ("$gte", math.ceil(operand))
        else:
            operand = int(operand)
    if operand > _HIGHEST:
        return op in ("$lt", "$lte")
    if operand < _LOWEST:
        return op in ("$gt", "$gte")
    return SIGNS[op], operand


def bound_of_doubles(op: str, operand: int | float) -> tuple[str, float]:
    """Return the same for a double: an integer between two becomes the nearest one, with or without equality."""
    if isinstance(operand, float):
        return SIGNS[op], operand
    try:
        nearest = float(operand)
    except OverflowError:
        nearest = math.inf if operand > 0 else -math.inf
    if math.isfinite(nearest) and int(nearest) == operand:
        return SIGNS[op], nearest
    if op in ("$lt", "$lte"):
        return ("<", nearest) if nearest > operand else ("<=", nearest)
    return (">=", nearest) if nearest > operand else (">", nearest)


def bound_of_whole(op: str, operand: int | float) -> tuple[bool, int]:
    """Return the same for whole numbers of any size: whether there is a least or a greatest one, and that."""
    if op in ("$gt", "$gte"):
        return True, math.floor(operand) + 1 if op == "$gt" else math.ceil(operand)
    return False, math.ceil(operand) - 1 if op == "$lt" else math.floor(operand)


def scalar_texts(value: Any) -> list[str]:
    """The JSON of the scalars that are equal to a value; numbers are so whatever their type."""
    if value is None or isinstance(value, (bool, str)):
        return [to_json(value)]
    if value == 0:
        return ["0", "0.0", "-0.0"]
    found = set()
    with contextlib.suppress(ValueError, OverflowError):  # an integer of very many digits, an infinity, what is none
        if int(value) == value:
            found.add(to_json(int(value)))
    with contextlib.suppress(ValueError, OverflowError):
        if float(value) == value:
            found.add(to_json(float(value)))
    return sorted(found)


def of_absent(op: str, operand: Any) -> bool:
    """Whether a condition holds of a node that lacks the property."""
    if op == "$exists":
        return operand is False
    return op in ("$ne", "$nin") or (op == "$eq" and operand is None)
