"""LlamaIndex's metadata filters as graphret's conditions."""

from __future__ import annotations

from typing import Any, TypeAlias

from llama_index.core.vector_stores.types import (
    FilterCondition,
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
)

from graphret.errors import InvalidInput
from graphret.where import Where, WhereLike

FiltersLike: TypeAlias = "MetadataFilters | MetadataFilter | WhereLike"

_DIRECT = {
    FilterOperator.EQ: "$eq",
    FilterOperator.NE: "$ne",
    FilterOperator.GT: "$gt",
    FilterOperator.GTE: "$gte",
    FilterOperator.LT: "$lt",
    FilterOperator.LTE: "$lte",
    FilterOperator.IN: "$in",
    FilterOperator.NIN: "$nin",
    FilterOperator.CONTAINS: "$contains",
    FilterOperator.TEXT_MATCH: "$contains",
    FilterOperator.TEXT_MATCH_INSENSITIVE: "$icontains",
}
_EACH = {FilterOperator.ANY: "$or", FilterOperator.ALL: "$and"}
_NODE_FIELDS = (
    "id",
    "name",
    "text",
    "label",
)  # a metadata key of such a name is a property all the same


def to_where(filters: FiltersLike) -> Where | None:
    """Return LlamaIndex filters as a condition; `None` for none, or an empty list of
    them.

    The meaning is that of LlamaIndex's own in-memory store, filters inside filters
    included; a condition `NOT` holds where none of its filters does. A key is always
    one of the metadata, ``"name"`` and ``"text"`` included. graphret conditions are
    returned as they are.
    """
    return Where.parse(
        _read(filters)
        if isinstance(filters, (MetadataFilter, MetadataFilters))
        else filters
    )


def _read(one: MetadataFilter | MetadataFilters) -> dict[str, Any]:
    if isinstance(one, MetadataFilters):
        parts = [part for each in one.filters if (part := _read(each))]
        joined = {
            (
                "$or"
                if one.condition in (FilterCondition.OR, FilterCondition.NOT)
                else "$and"
            ): parts
        }
        return (
            {}
            if not parts
            else {"$not": joined}
            if one.condition is FilterCondition.NOT
            else joined
        )
    field = f"properties.{one.key}" if one.key in _NODE_FIELDS else one.key
    if one.operator in _DIRECT:
        return {field: {_DIRECT[one.operator]: one.value}}
    if one.operator in _EACH and isinstance(one.value, list):
        return {
            _EACH[one.operator]: [{field: {"$contains": item}} for item in one.value]
        }
    if one.operator is FilterOperator.IS_EMPTY:
        return {"$or": [{field: {"$exists": False}}, {field: ""}, {field: []}]}
    raise InvalidInput(
        f"filters: {one.operator.value!r} on {one.key!r} has no counterpart in graphret"
    )
