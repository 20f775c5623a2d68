"""A `GraphSchema` read from JSON values, checked by pydantic."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, Field, StrictInt, StrictStr, ValidationError

from graphret.errors import InvalidInput
from graphret.schema.model import GraphSchema, PropertySchema

_Count = Annotated[StrictInt, Field(ge=0)]
_Names = frozenset[StrictStr]
_Properties = dict[str, dict[str, PropertySchema]]


class _Relation(BaseModel):
    source: StrictStr
    relation: StrictStr
    target: StrictStr
    count: _Count


class _Schema(BaseModel):
    """The fields of `GraphSchema.to_dict`."""

    labels: dict[str, _Count]
    relations: list[_Relation]
    properties: _Properties = {}
    relation_properties: _Properties = {}
    sampled: bool = False
    sampled_names: bool = False
    sampled_relations: _Names = frozenset()
    sampled_properties: _Names = frozenset()
    sampled_relation_properties: _Names = frozenset()
    cypher_labels: dict[str, StrictStr | None] = {}
    cypher_relations: dict[str, StrictStr] = {}
    columns: dict[str, _Names] = {}
    relation_columns: dict[str, _Names] = {}


def read(values: Mapping[str, Any]) -> GraphSchema:
    """Return the schema that `GraphSchema.to_dict` wrote; see `GraphSchema.from_dict`."""
    if not isinstance(values, Mapping):
        raise InvalidInput(f"schema: an object is expected, not {type(values).__name__}")
    try:
        given = _Schema.model_validate(dict(values))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ", ".join(f"item {part}" if isinstance(part, int) else repr(part) for part in first["loc"])
        raise InvalidInput(f"schema: {where}: {first['msg']}") from None
    triples = {(one.source, one.relation, one.target): one.count for one in given.relations}
    return GraphSchema(**{**dict(given), "relations": triples})
