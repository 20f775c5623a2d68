"""LangChain's filter dictionaries become a `Where`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from graphret.errors import InvalidInput
from graphret.where import Where, WhereLike


def to_where(condition: WhereLike) -> Where | None:
    """Return the condition that a filter dictionary describes, in the dialect of LangChain's vector stores.

    ``{"year": 1999}``, ``{"year": {"$gte": 1990, "$lt": 2000}}``, ``{"year": {"$between": [1990, 1999]}}``,
    ``{"$or": [{"lang": "en"}, {"lang": {"$in": ["de", "fr"]}}]}``, ``{"$not": {...}}``. Several keys are joined by
    *and*. Operators are those of `graphret.Where` and ``$between``; a list after ``$not`` means none of these. The
    fields ``id``, ``name``, ``text`` and ``label`` are the node's own; every other one is an entry of the metadata.

    Returns
    -------
    Where or None
        `None` for `None` and for an empty dictionary.

    Raises
    ------
    InvalidInput
        On an operator that is not known, which it names; ``$like`` is one, ``$contains`` finds substrings.
    """
    if condition is None or isinstance(condition, Where):
        return condition
    if not isinstance(condition, Mapping):
        raise InvalidInput(f"where: a filter dictionary is expected, not {type(condition).__name__}")
    return Where.parse(_joined(condition))


def _joined(condition: Any) -> Any:
    if not isinstance(condition, Mapping):
        return condition
    parts = [part for key, value in condition.items() for part in _parts(key, value)]
    return parts[0] if len(parts) == 1 else {"$and": parts} if parts else {}


def _parts(key: Any, value: Any) -> Iterable[dict[Any, Any]]:
    if key in ("$and", "$or") and isinstance(value, (list, tuple)):
        return [{key: [_joined(part) for part in value]}]
    if key == "$not":
        none_of = {"$or": [_joined(part) for part in value]} if isinstance(value, (list, tuple)) else _joined(value)
        return [{"$not": none_of}]
    if isinstance(value, Mapping) and value:
        return [part for operator, operand in value.items() for part in _conditions(key, operator, operand)]
    return [{key: value}]


def _conditions(field: Any, operator: Any, operand: Any) -> Iterable[dict[Any, Any]]:
    if operator == "$between":
        if not isinstance(operand, (list, tuple)) or len(operand) != 2:
            raise InvalidInput(f"where: $between on {field!r} takes the lowest and the highest value")
        return [{field: {"$gte": operand[0]}}, {field: {"$lte": operand[1]}}]
    if operator == "$not" and isinstance(operand, Mapping):
        return [{"$not": _joined({field: operand})}]
    return [{field: {operator: operand}}]
