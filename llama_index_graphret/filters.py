"""LlamaIndex's metadata filters as graphret's conditions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from llama_index.core.vector_stores.types import FilterCondition, FilterOperator, MetadataFilter, MetadataFilters

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
}
_EACH = {FilterOperator.ANY: "$or", FilterOperator.ALL: "$and"}
_NODE_FIELDS = ("id", "name", "text", "label")  # a metadata key of such a name is a property all the same


def to_where(filters: FiltersLike) -> Where | None:
    """Return LlamaIndex filters as a condition; `None` for none, or an empty list of them.

    The meaning is that of LlamaIndex's own in-memory store, filters inside filters included; a condition `NOT` holds
    where none of its filters does. A key is always one of the metadata, ``"name"`` and ``"text"`` included. graphret
    conditions are returned as they are. ``text_match_insensitive`` is refused, since graphret has no condition for it.
    """
    if isinstance(filters, MetadataFilter):
        return _leaf(filters)
    if not isinstance(filters, MetadataFilters):
        return Where.parse(filters)
    parts = [part for one in filters.filters if (part := to_where(one)) is not None]
    if not parts:
        return None
    condition = filters.condition or FilterCondition.AND
    if condition is FilterCondition.NOT:
        return Where("$not", children=(_joined("$or", parts),))
    return _joined("$and" if condition is FilterCondition.AND else "$or", parts)


def _leaf(one: MetadataFilter) -> Where:
    key, operator, value = one.key, one.operator, one.value
    if operator in _DIRECT:
        return _parsed(key, {_DIRECT[operator]: value})
    if operator in _EACH and isinstance(value, list):
        return Where(_EACH[operator], children=tuple(_parsed(key, {"$contains": item}) for item in value))
    if operator is FilterOperator.IS_EMPTY:
        empty: tuple[dict[str, Any], ...] = ({"$exists": False}, {"$eq": ""}, {"$eq": []})
        return Where("$or", children=tuple(_parsed(key, part) for part in empty))
    raise InvalidInput(f"filters: {operator.value!r} of {value!r} on {key!r} has no counterpart in graphret")


def _joined(junction: str, parts: list[Where]) -> Where:
    return parts[0] if len(parts) == 1 else Where(junction, children=tuple(parts))


def _parsed(key: str, condition: Mapping[str, Any]) -> Where:
    where = Where.parse({f"properties.{key}" if key in _NODE_FIELDS else key: condition})
    assert where is not None
    return where
