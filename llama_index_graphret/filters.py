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
)  # a metadata key with such a name is still a property


def to_where(filters: FiltersLike) -> Where | None:
    """Return LlamaIndex filters as a condition, or `None` if there are no filters.

    They mean the same as in LlamaIndex's own in-memory store, including nested filters;
    a `NOT` is true if none of its filters is. A key is always a metadata key, even
    ``"name"`` and ``"text"``. graphret conditions are returned as they are.
    """
    return Where.parse(
        _read(filters)
        if isinstance(filters, (MetadataFilter, MetadataFilters))
        else filters
    )


def _read(filters: MetadataFilter | MetadataFilters) -> dict[str, Any]:
    if isinstance(filters, MetadataFilters):
        parts = [part for nested in filters.filters if (part := _read(nested))]
        joined = {
            (
                "$or"
                if filters.condition in (FilterCondition.OR, FilterCondition.NOT)
                else "$and"
            ): parts
        }
        return (
            {}
            if not parts
            else {"$not": joined}
            if filters.condition is FilterCondition.NOT
            else joined
        )
    field = f"properties.{filters.key}" if filters.key in _NODE_FIELDS else filters.key
    if filters.operator in _DIRECT:
        return {field: {_DIRECT[filters.operator]: filters.value}}
    if filters.operator in _EACH and isinstance(filters.value, list):
        return {
            _EACH[filters.operator]: [
                {field: {"$contains": item}} for item in filters.value
            ]
        }
    if filters.operator is FilterOperator.IS_EMPTY:
        return {"$or": [{field: {"$exists": False}}, {field: ""}, {field: []}]}
    raise InvalidInput(
        f"filters: {filters.operator.value!r} on {filters.key!r} has no counterpart in"
        " graphret"
    )
