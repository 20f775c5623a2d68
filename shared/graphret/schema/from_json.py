"""A `GraphSchema` read from JSON values, by a pydantic model of `GraphSchema.to_dict`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StrictInt, StrictStr, ValidationError

from graphret.errors import InvalidInput
from graphret.schema.model import GraphSchema, PropertySchema

_Count = Annotated[StrictInt, Field(ge=0)]
_Names = list[StrictStr]


class _Property(BaseModel):
    model_config = ConfigDict(strict=True)

    type: str = "ANY"
    coverage: Annotated[float, Field(ge=0, le=1)] = 1.0
    examples: list[Any] = []

    def known(self) -> PropertySchema:
        return PropertySchema(self.type, self.coverage, tuple(self.examples))


class _Relation(BaseModel):
    source: StrictStr
    relation: StrictStr
    target: StrictStr
    count: _Count


class _Schema(BaseModel):
    labels: dict[str, _Count]
    relations: list[_Relation]
    properties: dict[str, dict[str, _Property]] = {}
    relation_properties: dict[str, dict[str, _Property]] = {}
    sampled: bool = False
    sampled_names: bool = False
    sampled_relations: _Names = []
    sampled_properties: _Names = []
    sampled_relation_properties: _Names = []
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
    return GraphSchema(
        given.labels,
        {(one.source, one.relation, one.target): one.count for one in given.relations},
        _known(given.properties),
        _known(given.relation_properties),
        given.sampled,
        given.sampled_names,
        frozenset(given.sampled_relations),
        frozenset(given.sampled_properties),
        frozenset(given.sampled_relation_properties),
        given.cypher_labels,
        given.cypher_relations,
        {label: frozenset(names) for label, names in given.columns.items()},
        {name: frozenset(names) for name, names in given.relation_columns.items()},
    )


def _known(properties: Mapping[str, Mapping[str, _Property]]) -> dict[str, dict[str, PropertySchema]]:
    return {owner: {name: one.known() for name, one in found.items()} for owner, found in properties.items()}
