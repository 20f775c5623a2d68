"""What the guard knows of a schema, laid out for fast lookups."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

from cypherast.ast import AstNode

from graphret.cypher.tree import LabelAll, LabelName, LabelNot, LabelOne
from graphret.schema import GraphSchema

Triple = tuple[str, str, str]
#: The labels of which the node surely has some; None where nothing is known, as after
#: ``%``.
Labels = frozenset[str] | None
#: By the label of one end and the relation, the labels of the other end.
Joins = Mapping[str, Mapping[str, frozenset[str]]]

_SCHEMAS = 32


@dataclass(frozen=True, slots=True, eq=False)
class SchemaNames:
    """The names of a schema and its triples by their parts, and what it may lack.

    An empty label stands for nodes that have none.
    """

    labels: frozenset[str]
    relations: frozenset[str]
    properties: dict[str, frozenset[str]]
    relation_properties: dict[str, frozenset[str]]
    all_properties: frozenset[str]
    sampled_relations: AbstractSet[str]
    sampled_properties: AbstractSet[str]
    sampled_relation_properties: AbstractSet[str]
    fold: Callable[[str], str]
    spelling: dict[str, str]
    by_relation: Mapping[str, list[Triple]]
    leaving: Joins
    entering: Joins
    linked: frozenset[str]

    @classmethod
    def of(cls, schema: GraphSchema, dialect: str) -> SchemaNames:
        """The names that queries have for this schema, in lower case for Ladybug.

        They are kept for the next query: a schema is checked against thousands of
        times, and does not change.
        """
        key = id(schema), dialect
        if (cached := _KEPT.get(key)) is None:
            if len(_KEPT) >= _SCHEMAS:
                _KEPT.clear()
            cached = _KEPT[key] = schema, _names_of(schema, dialect)
        return cached[1]

    @property
    def unlabelled(self) -> bool:
        """Whether there are nodes without a label whose properties are not known."""
        return "" in self.sampled_properties or (
            "" in self.linked and "" not in self.properties
        )


#: By the identity of a schema, which cannot be hashed, and the dialect: the schema, so
#: that it stays, and what it says.
_KEPT: dict[tuple[int, str], tuple[GraphSchema, SchemaNames]] = {}


def _names_of(schema: GraphSchema, dialect: str) -> SchemaNames:
    schema = schema.in_cypher()
    fold: Callable[[str], str] = str.lower if dialect == "ladybug" else str
    spelling: dict[str, str] = {}
    if dialect == "ladybug":
        spelling = _spelling(schema)
        schema = schema.renamed(fold, fold, fold)
    properties = _with_columns(schema.properties, schema.columns)
    relation_properties = _with_columns(
        schema.relation_properties, schema.relation_columns
    )
    by_relation: dict[str, list[Triple]] = defaultdict(list)
    leaving: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    entering: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for triple in schema.relations:
        source, relation, target = triple
        by_relation[relation].append(triple)
        leaving[source][relation].add(target)
        entering[target][relation].add(source)
    linked = frozenset(leaving) | frozenset(entering)
    return SchemaNames(
        frozenset(schema.labels) | frozenset(properties) | linked,
        frozenset(schema.relation_names),
        properties,
        relation_properties,
        frozenset[str]().union(*properties.values(), *relation_properties.values()),
        schema.sampled_relations,
        schema.sampled_properties,
        schema.sampled_relation_properties,
        fold,
        spelling,
        dict(by_relation),
        _frozen(leaving),
        _frozen(entering),
        linked,
    )


def _with_columns(
    properties: Mapping[str, Collection[str]], columns: Mapping[str, AbstractSet[str]]
) -> dict[str, frozenset[str]]:
    owners = dict.fromkeys([*properties, *columns])
    return {
        owner: frozenset(properties.get(owner, ())) | columns.get(owner, frozenset())
        for owner in owners
    }


def _frozen(joins: Mapping[str, Mapping[str, set[str]]]) -> Joins:
    return {
        label: {
            name: frozenset(far_labels)
            for name, far_labels in labels_by_relation.items()
        }
        for label, labels_by_relation in joins.items()
    }


def _spelling(schema: GraphSchema) -> dict[str, str]:
    names = [*schema.labels, *(name for triple in schema.relations for name in triple)]
    for table in (schema.properties, schema.relation_properties):
        names += [
            name for owner, properties in table.items() for name in (owner, *properties)
        ]
    return {name.lower(): name for name in names}


# --- label expressions ------------------------------------------------------


def labels_of(
    expressions: list[Any], valid: frozenset[str], fold: Callable[[str], str] = str
) -> Labels:
    """The labels that a node may have by all its label expressions.

    `None` where they say nothing.

    `fold` makes names equal that the dialect takes for the same. Whether a node has all
    of these labels or one of them is not told apart: of either any may be the one by
    which the schema knows it.
    """
    stated = [
        labels
        for labels in (_of(expression, valid, fold) for expression in expressions)
        if labels is not None
    ]
    return frozenset().union(*stated) if stated else None


def _of(node: AstNode, valid: frozenset[str], fold: Callable[[str], str]) -> Labels:
    if isinstance(node, LabelName):
        return frozenset((fold(node.this),))
    if isinstance(node, LabelAll):
        return labels_of(node.parts, valid, fold)
    if isinstance(node, LabelOne):
        parts = [_of(part, valid, fold) for part in node.parts]
        return (
            None
            if None in parts
            else frozenset().union(*(part or () for part in parts))
        )
    if isinstance(node, LabelNot) and isinstance(node.this, LabelName):
        return valid - {fold(node.this.this)} or None
    return None
