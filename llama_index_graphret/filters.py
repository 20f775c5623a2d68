"""LlamaIndex's metadata filters as graphret's conditions, and back."""

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
_BACK = {operator: name for name, operator in reversed(_DIRECT.items())}
_JUNCTIONS = {"$and": FilterCondition.AND, "$or": FilterCondition.OR, "$not": FilterCondition.NOT}
_TAKES = {
    FilterOperator.IN: list,
    FilterOperator.NIN: list,
    FilterOperator.ANY: list,
    FilterOperator.ALL: list,
    FilterOperator.TEXT_MATCH: str,
}
_NEEDS_SOME = (FilterOperator.ANY, FilterOperator.ALL)
_NODE_FIELDS = ("id", "name", "text", "label")  # a metadata key of such a name is a property all the same
_PROPERTIES = "properties."


def to_where(filters: FiltersLike) -> Where | None:
    """Return LlamaIndex filters as a condition; `None` for none, or an empty list of them.

    The meaning is that of LlamaIndex's own in-memory store, filters inside filters included; a condition `NOT` holds
    where none of its filters does. A key is always one of the metadata, ``"name"`` and ``"text"`` included. graphret
    conditions are returned as they are.

    Raises
    ------
    InvalidInput
        For ``text_match_insensitive``, which graphret has no condition for, and for a value that its operator does not
        take; the message names the key.
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


def to_filters(where: WhereLike) -> MetadataFilters | None:
    """Return a condition as LlamaIndex filters, for a vector store that is to obey the same one; `None` for none.

    Raises
    ------
    InvalidInput
        Where LlamaIndex has no filter for it: ``$exists``, a node's own id, name, text or label, and values that its
        filters do not hold (booleans, null).
    """
    condition = Where.parse(where)
    if condition is None:
        return None
    found = _filter(condition)
    return found if isinstance(found, MetadataFilters) else MetadataFilters(filters=[found])


def _leaf(one: MetadataFilter) -> Where:
    key, operator, value = one.key, one.operator, one.value
    kind = _TAKES.get(operator)
    if kind is not None and (not isinstance(value, kind) or (operator in _NEEDS_SOME and not value)):
        raise InvalidInput(f"filters: {operator.value!r} on {key!r} takes a {kind.__name__}, not {value!r}")
    if operator in _DIRECT:
        return _parsed(key, {_DIRECT[operator]: value})
    if operator in _NEEDS_SOME and isinstance(value, list):
        junction = "$or" if operator is FilterOperator.ANY else "$and"
        return Where(junction, children=tuple(_parsed(key, {"$contains": item}) for item in value))
    if operator is FilterOperator.IS_EMPTY:
        return _is_empty(key)
    raise InvalidInput(f"filters: {operator.value!r} on {key!r} has no counterpart in graphret")


def _is_empty(key: str) -> Where:
    parts: tuple[dict[str, Any], ...] = ({"$exists": False}, {"$eq": ""}, {"$eq": []})
    return Where("$or", children=tuple(_parsed(key, part) for part in parts))


def _joined(junction: str, parts: list[Where]) -> Where:
    return parts[0] if len(parts) == 1 else Where(junction, children=tuple(parts))


def _parsed(key: str, condition: Mapping[str, Any]) -> Where:
    where = Where.parse({_PROPERTIES + key if key in _NODE_FIELDS else key: condition})
    assert where is not None
    return where


def _filter(where: Where) -> MetadataFilters | MetadataFilter:
    if where.operator == "$or" and where == _is_empty(_key(where.children[0].field or "-")):
        return MetadataFilter(key=_key(where.children[0].field), value=None, operator=FilterOperator.IS_EMPTY)
    if where.operator in _JUNCTIONS:
        children = [_filter(child) for child in where.children]
        return MetadataFilters(filters=children, condition=_JUNCTIONS[where.operator])
    if where.field in _NODE_FIELDS:
        raise InvalidInput(f"where: {where.field!r} is a field of the node, and LlamaIndex filters metadata")
    key, value = _key(where.field), list(where.value) if isinstance(where.value, tuple) else where.value
    if where.operator not in _BACK or value is None or isinstance(value, bool):
        raise InvalidInput(f"where: LlamaIndex has no filter for {where.operator} {value!r} on {key!r}")
    try:
        return MetadataFilter(key=key, value=value, operator=_BACK[where.operator])
    except ValueError as error:
        raise InvalidInput(f"where: a LlamaIndex filter on {key!r} cannot hold {value!r}") from error


def _key(field: str) -> str:
    own = field.removeprefix(_PROPERTIES)
    return own if own in _NODE_FIELDS else field
