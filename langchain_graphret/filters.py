"""LangChain's filter dictionaries become a `Where`."""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

from pydantic import BeforeValidator

from graphret.where import Where, WhereLike


def to_where(condition: WhereLike) -> Where | None:
    """Return the condition that a filter dictionary describes, in the dialect of LangChain's vector stores.

    ``{"year": 1999}``, ``{"year": {"$gte": 1990, "$lt": 2000}}``, ``{"$or": [{"lang": "en"}, {"lang": {"$in": ["de",
    "fr"]}}]}``, ``{"$not": {...}}``. Several keys are joined by *and*. The fields ``id``, ``name``, ``text`` and
    ``label`` are the node's own; every other one is an entry of the metadata.

    Returns
    -------
    Where or None
        `None` for `None` and for an empty dictionary.

    Raises
    ------
    InvalidInput
        On an operator that is not one of `graphret.Where`, which it names.
    """
    return Where.parse(condition)


#: A field of a pydantic class that takes what `to_where` takes.
Filter: TypeAlias = Annotated[Any, BeforeValidator(to_where)]
