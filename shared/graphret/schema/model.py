"""`GraphSchema`: a graph's kinds of nodes, relations and properties."""

from __future__ import annotations

import bisect
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import Any, NamedTuple, TypeVar

from graphret.errors import InvalidInput
from graphret.schema.text import (
    date_format,
    estimate_tokens,
    quote_name,
    quote_value,
)
from graphret.where import PROPERTIES

_Value = TypeVar("_Value")

_VALUES = 3
_TEXTUAL = ("STRING", "MAP", "ANY")  # types of which a value may hold words
_PARTS = ("sampled_relations", "sampled_properties", "sampled_relation_properties")


@dataclass(frozen=True, slots=True)
class PropertySchema:
    """The type, coverage and values of a property of one label or relation.

    Parameters
    ----------
    type
        ``STRING``, ``INTEGER``, ``FLOAT``, ``BOOLEAN``, ``DATE``, ``TIME``,
        ``DATE_TIME``, ``DURATION``, ``POINT``, ``MAP``, ``LIST OF`` one of these, or
        ``ANY`` where values of several types were seen.
    coverage
        Share of the nodes or edges with the property, 0 to 1.
    examples
        A few of its values, the most frequent first.
    values
        All its values, where they are few and recur, such as the states of an order.
        Schemas are compared without it.
    """

    type: str = "ANY"
    coverage: float = 1.0
    examples: tuple[Any, ...] = ()
    values: tuple[Any, ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class GraphSchema:
    """The labels, relations and properties of a graph.

    Labels and relations have the names of nodes and edges, which `neighbors` takes;
    properties, a node's own fields among them, have the names that a query reads. Where
    queries need another name for a label or relation, `cypher_labels` and
    `cypher_relations` have it, and `in_cypher` uses it.

    Parameters
    ----------
    labels
        The number of nodes with each label.
    relations
        The number of edges of each ``(source label, relation, target label)``; an edge
        counts under every pair of the labels of its ends, as a query finds it by each.
    properties
        For each label its properties by name.
    relation_properties
        For each relation its properties by name.
    sampled_relations
        The relations that may lack a triple.
    sampled_properties
        The labels that may lack a property; an empty one stands for nodes without a
        label.
    sampled_relation_properties
        The relations that may lack a property.
    cypher_labels
        The names in queries of labels with another name there; `None` for one that
        queries cannot use, such as a second label in Ladybug that differs from a
        table's name only in case.
    cypher_relations
        The names in queries of relations with another name there.
    cypher_names
        For each label the property with the name of its nodes, where queries use
        another one than ``name``. Schemas are compared without it.
    columns, relation_columns
        For each label, and each relation, what queries may read though it has no value,
        such as the weight of edges that all have weight 1 in Ladybug. A `MemoryStore`
        answers no queries; here it has the fields of nodes and edges, which queries of
        the database that it is written to may read. Schemas are compared without it.
    """

    labels: Mapping[str, int]
    relations: Mapping[tuple[str, str, str], int]
    properties: Mapping[str, Mapping[str, PropertySchema]] = field(default_factory=dict)
    relation_properties: Mapping[str, Mapping[str, PropertySchema]] = field(
        default_factory=dict
    )
    sampled_relations: AbstractSet[str] = frozenset()
    sampled_properties: AbstractSet[str] = frozenset()
    sampled_relation_properties: AbstractSet[str] = frozenset()
    cypher_labels: Mapping[str, str | None] = field(default_factory=dict)
    cypher_relations: Mapping[str, str] = field(default_factory=dict)
    cypher_names: Mapping[str, str] = field(default_factory=dict, compare=False)
    columns: Mapping[str, AbstractSet[str]] = field(default_factory=dict, compare=False)
    relation_columns: Mapping[str, AbstractSet[str]] = field(
        default_factory=dict, compare=False
    )

    def __post_init__(self) -> None:
        for name in _PARTS:
            object.__setattr__(self, name, frozenset(getattr(self, name)))
        for name in ("columns", "relation_columns"):
            columns = {
                owner: frozenset(names) for owner, names in getattr(self, name).items()
            }
            object.__setattr__(self, name, columns)

    @property
    def sampled(self) -> bool:
        """Whether anything was sampled: counts may be estimates, rarities missing."""
        return any(getattr(self, name) for name in _PARTS)

    @property
    def relation_names(self) -> list[str]:
        """The names of the relations, in order."""
        return sorted(
            {relation for _, relation, _ in self.relations}
            | set(self.relation_properties)
        )

    def textual_properties(self) -> list[str]:
        """Return the properties of nodes that may hold words, in order."""
        names = {
            name.removeprefix(PROPERTIES)
            for by_name in self.properties.values()
            for name, about in by_name.items()
            if about.type.rpartition("LIST OF ")[2] in _TEXTUAL
        }
        return sorted(names)

    def in_cypher(self) -> GraphSchema:
        """Return the schema with the names in queries, without unqueryable labels."""
        if not self.cypher_labels and not self.cypher_relations:
            return self
        labels, relations = self.cypher_labels, self.cypher_relations
        return self.renamed(
            lambda label: labels.get(label, label),
            lambda name: relations.get(name, name),
        )

    def renamed(
        self,
        label_of: Callable[[str], str | None],
        relation_of: Callable[[str], str],
        property_of: Callable[[str], str] = str,
    ) -> GraphSchema:
        """Return the schema with other names, without labels renamed to `None`."""
        labels = self._labels_renamed(label_of)

        def by_label(values: Mapping[str, _Value]) -> dict[str, _Value]:
            return {
                labels[label]: value
                for label, value in values.items()
                if label in labels
            }

        def by_relation(values: Mapping[str, _Value]) -> dict[str, _Value]:
            return {relation_of(name): value for name, value in values.items()}

        def by_property(
            by_owner: Mapping[str, Mapping[str, PropertySchema]],
        ) -> dict[str, Mapping[str, PropertySchema]]:
            return {
                owner: {property_of(name): p for name, p in properties.items()}
                for owner, properties in by_owner.items()
            }

        return replace(
            self,
            labels=by_label(self.labels),
            relations={
                (labels[source], relation_of(relation), labels[target]): count
                for (source, relation, target), count in self.relations.items()
                if source in labels and target in labels
            },
            properties=by_label(by_property(self.properties)),
            relation_properties=by_relation(by_property(self.relation_properties)),
            sampled_relations={relation_of(name) for name in self.sampled_relations},
            sampled_properties={
                labels.get(label, label) for label in self.sampled_properties
            },
            sampled_relation_properties={
                relation_of(name) for name in self.sampled_relation_properties
            },
            cypher_labels={},
            cypher_relations={},
            cypher_names=by_label(self.cypher_names),
            columns=by_label(self.columns),
            relation_columns=by_relation(self.relation_columns),
        )

    def _labels_renamed(self, label_of: Callable[[str], str | None]) -> dict[str, str]:
        """Return the new name of every label that has one."""
        end_labels = {
            end for source, _, target in self.relations for end in (source, target)
        }
        names = {
            label: label_of(label)
            for label in {*self.labels, *self.properties, *self.columns, *end_labels}
        }
        return {label: name for label, name in names.items() if name is not None}

    def text(
        self, max_tokens: int | None = None, *, cypher: bool = True, values: bool = True
    ) -> str:
        """Return the schema for a prompt: labels, properties, triples and their counts.

        The most frequent come first. If the text is too long, examples are left out
        first, then properties, then rare labels and triples; the text then says how
        much. The same schema gives the same text. Values are quoted, shortened and put
        on one line; names that do not fit on a line are left out.

        Parameters
        ----------
        max_tokens
            The most tokens, as `graphret.schema.text.estimate_tokens` counts them;
            `None` is no limit.
        cypher
            Whether labels and relations have their names in queries, or else those of
            nodes and edges.
        values
            Whether examples of values are shown.

        Raises
        ------
        InvalidInput
            When `max_tokens` is too few even for a note that everything was left out.
        """
        return _write(self.in_cypher() if cypher else self, max_tokens, values)

    def to_dict(self) -> dict[str, Any]:
        """Return the schema as JSON; other values, such as dates, become text."""
        return {
            "labels": dict(self.labels),
            "relations": [
                {"source": source, "relation": relation, "target": target, "count": n}
                for (source, relation, target), n in self.relations.items()
            ],
            "properties": _properties_out(self.properties),
            "relation_properties": _properties_out(self.relation_properties),
            "sampled": self.sampled,
            **{name: sorted(getattr(self, name)) for name in _PARTS},
            "cypher_labels": dict(self.cypher_labels),
            "cypher_relations": dict(self.cypher_relations),
            "cypher_names": dict(self.cypher_names),
            "columns": {label: sorted(names) for label, names in self.columns.items()},
            "relation_columns": {
                name: sorted(names) for name, names in self.relation_columns.items()
            },
        }


def _properties_out(
    properties: Mapping[str, Mapping[str, PropertySchema]],
) -> dict[str, Any]:
    return {
        owner: {
            name: {
                "type": p.type,
                "coverage": p.coverage,
                "examples": [_json(value) for value in p.examples],
                "values": [_json(value) for value in p.values],
            }
            for name, p in of_owner.items()
        }
        for owner, of_owner in properties.items()
    }


def _json(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [_json(v) for v in value]
    if isinstance(value, Mapping):
        return {str(key): _json(v) for key, v in value.items()}
    return (
        value
        if value is None or isinstance(value, (str, int, float, bool))
        else str(value)
    )


# -- as text


class _Piece(NamedTuple):
    """Something to show, by kind.

    The kinds are ``label``, ``triple``, ``property``, ``edge property`` and
    ``examples``.
    """

    kind: str
    owner: Any
    name: str = ""
    of: str = ""

    @property
    def fits(self) -> bool:
        """Whether all its names can be quoted; a node may have no label."""
        names = [*(self.owner if self.kind == "triple" else [self.owner]), self.name]
        return any(names) and all(quote_name(name) for name in names if name)


def _write(schema: GraphSchema, max_tokens: int | None, values: bool) -> str:
    """Write as much of a schema as fits."""
    candidates = [
        piece for piece in _pieces(schema) if values or piece.kind != "examples"
    ]
    pieces = [piece for piece in candidates if piece.fits]
    missing = [piece for piece in candidates if not piece.fits]
    if max_tokens is None:
        return _render(schema, pieces, missing)

    def too_long(n: int) -> bool:
        return (
            estimate_tokens(_render(schema, pieces[:n], [*missing, *pieces[n:]]))
            > max_tokens
        )

    n = bisect.bisect_left(range(len(pieces) + 1), True, key=too_long) - 1
    if n < 0:
        raise InvalidInput(
            f"max_tokens: expected enough for a note on what is left out, got"
            f" {max_tokens}"
        )
    return _render(schema, pieces[:n], [*missing, *pieces[n:]])


def _pieces(schema: GraphSchema) -> list[_Piece]:
    """Return the pieces of a schema, the most important first."""
    labels = [
        _Piece("label", label)
        for label, _ in sorted(schema.labels.items(), key=lambda x: (-x[1], x[0]))
    ]
    triples = [
        _Piece("triple", key)
        for key, _ in sorted(schema.relations.items(), key=lambda x: (-x[1], x[0]))
    ]
    frame = [piece for pair in zip_longest(labels, triples) for piece in pair if piece]
    of_relation: Counter[str] = Counter()
    for (_, relation, _), n in schema.relations.items():
        of_relation[relation] += n
    described = [
        *_of_owners("property", schema.properties, schema.labels),
        *_of_owners("edge property", schema.relation_properties, of_relation),
    ]
    described.sort(key=lambda item: item[0])
    properties = [piece for _, piece, _ in described]
    examples = [
        _Piece("examples", p.owner, p.name, p.kind)
        for _, p, property_schema in described
        if property_schema.examples
    ]
    return [*frame, *properties, *examples]


def _of_owners(
    kind: str,
    properties: Mapping[str, Mapping[str, PropertySchema]],
    counts: Mapping[str, int],
) -> Iterator[tuple[tuple[float, str, str, str], _Piece, PropertySchema]]:
    """Yield the properties of labels or relations, with keys to sort them by count."""
    for owner, of_owner in properties.items():
        for name, schema in of_owner.items():
            count = schema.coverage * counts.get(owner, 0)
            yield (-count, kind, owner, name), _Piece(kind, owner, name), schema


def _render(schema: GraphSchema, shown: list[_Piece], missing: list[_Piece]) -> str:
    """Return the shown pieces of a schema as text, with notes on what is missing."""
    properties = _properties_by_owner(schema, shown)
    lines = [
        *_node_lines(schema, shown, properties["property"]),
        *_triple_lines(schema, shown),
        *_relation_lines(properties["edge property"]),
    ]
    if not schema.labels and not schema.relations:
        lines.append("The graph is empty.")
    if note := _left_out(missing):
        lines.append(note)
    if schema.sampled:
        lines.append(_sampled(schema))
    return "\n".join(lines)


def _properties_by_owner(
    schema: GraphSchema, shown: list[_Piece]
) -> dict[str, dict[str, list[str]]]:
    """Return the properties shown as text, by kind of property and by owner."""
    with_examples = {(p.of, p.owner, p.name) for p in shown if p.kind == "examples"}
    described = {
        "property": schema.properties,
        "edge property": schema.relation_properties,
    }
    texts: dict[str, dict[str, list[str]]] = {kind: {} for kind in described}
    for p in shown:
        if p.kind not in described:
            continue
        of_property = described[p.kind][p.owner][p.name]
        text = f"{quote_name(p.name)}: {_type(of_property.type)}"
        if form := date_format(of_property.examples):
            text += f" as {form}"
        if (p.kind, p.owner, p.name) in with_examples:
            values = of_property.values or of_property.examples[:_VALUES]
            word = "one of" if of_property.values else "e.g."
            text += f" {word} {', '.join(map(quote_value, values))}"
        texts[p.kind].setdefault(p.owner, []).append(text)
    return texts


def _node_lines(
    schema: GraphSchema, shown: list[_Piece], properties: dict[str, list[str]]
) -> Iterator[str]:
    """Yield the labels shown, then those with only their properties shown."""
    labels = [p.owner for p in shown if p.kind == "label"]
    owners = dict.fromkeys([*labels, *properties])
    if owners:
        yield "Nodes, how many, and their properties:"
    for label in owners:
        count = f" {schema.labels.get(label, 0):,}" if label else ""
        yield f"{_node(label)}{count}{_braces(properties.get(label, []))}"


def _triple_lines(schema: GraphSchema, shown: list[_Piece]) -> Iterator[str]:
    """Yield the triples shown with their counts."""
    triples = [p.owner for p in shown if p.kind == "triple"]
    if triples:
        yield "Relations and how many:"
    for source, relation, target in triples:
        count = schema.relations[source, relation, target]
        yield f"{_node(source)}-[:{quote_name(relation)}]->{_node(target)} {count:,}"


def _relation_lines(properties: dict[str, list[str]]) -> Iterator[str]:
    """Yield the relations with the properties shown."""
    if properties:
        yield "Properties of relations:"
    for relation, texts in properties.items():
        yield f"[:{quote_name(relation)}]{_braces(texts)}"


def _sampled(schema: GraphSchema) -> str:
    """Return the note on what comes from a sample."""
    properties = schema.sampled_properties or schema.sampled_relation_properties
    kinds = {"relations": schema.sampled_relations, "properties": properties}
    sampled = [kind for kind, names in kinds.items() if names]
    return f"Seen in a sample: there may be more {', '.join(sampled)}."


def _left_out(missing: list[_Piece]) -> str:
    kinds = (
        ("labels", ("label",)),
        ("relations", ("triple",)),
        ("properties", ("property", "edge property")),
    )
    counts = {word: sum(p.kind in kinds for p in missing) for word, kinds in kinds}
    words = [f"{n:,} {word}" for word, n in counts.items() if n]
    if not words and missing:
        words = ["examples"]
    return f"Left out: {', '.join(words)}." if words else ""


def _node(label: str) -> str:
    return f"(:{quote_name(label)})" if label else "()"


def _type(kind: str) -> str:
    return kind if re.fullmatch(r"[A-Z_ ]{1,40}", kind) else "ANY"


def _braces(texts: list[str]) -> str:
    return f" {{{'; '.join(texts)}}}" if texts else ""
