"""LangChain's filter dictionaries become a `Where`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, TypeAlias

from pydantic import BeforeValidator

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
    return Where.parse(_translated(condition))


#: A field of a pydantic class that takes what `to_where` takes.
Filter: TypeAlias = Annotated[Any, BeforeValidator(to_where)]


def _translated(condition: Any) -> Any:
    """Return a filter dictionary in the words that `Where.parse` reads."""
    return {key: _operand(key, value) for key, value in condition.items()} if type(condition) is dict else condition


def _operand(key: Any, value: Any) -> Any:
    if key in ("$and", "$or", "$not"):
        if not isinstance(value, (list, tuple)):
            return _translated(value)
        parts = [_translated(part) for part in value]
        return {"$or": parts} if key == "$not" else parts
    if not isinstance(value, Mapping) or "$between" not in value:
        return value
    bounds = value["$between"]
    if not isinstance(bounds, (list, tuple)) or len(bounds) != 2:
        raise InvalidInput(f"where: $between on {key!r} takes the lowest and the highest value")
    others = {operator: operand for operator, operand in value.items() if operator != "$between"}
    return {**others, "$gte": bounds[0], "$lte": bounds[1]}
