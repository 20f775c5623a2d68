"""The properties that a question may set conditions on, their kinds and values."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, Literal, NamedTuple, TypeAlias

from graphret.linking.names import NameIndex
from graphret.linking.words import Lexicon, root
from graphret.planning.measures import speaks_of
from graphret.schema import GraphSchema, PropertySchema
from graphret.stores.base import GraphStore

#: What can be compared with the values of a property: years are whole numbers.
Kind: TypeAlias = Literal["number", "year", "date", "boolean", "text"]

#: Nodes of a label whose values are read, and most words of a value that is looked for
#: in questions.
_READ, _WORDS = 5_000, 5
_ISO = re.compile(r"\d{4}-\d{2}-\d{2}")
_YEARS = range(1000, 2200)
#: How much a word says that names a property by its name; that speaks of what it
#: measures; that names the label of its nodes as well.
NAMED, SPOKEN, OWN_LABEL = 1.0, 0.9, 0.5


class Property(NamedTuple):
    """A property of the nodes of a label."""

    label: str
    name: str
    kind: Kind
    #: Whether every node has it.
    always: bool = True


class Value(NamedTuple):
    """A text that nodes of a label have as a property, where words say it."""

    owner: Property
    value: str
    first: int
    last: int


class Properties:
    """The properties of a graph.

    Values of texts are read from the store, at most 5,000 nodes of a label, when a
    question is first asked.
    """

    def __init__(
        self, store: GraphStore, schema: GraphSchema, lexicon: Lexicon
    ) -> None:
        self._store, self._lexicon = store, lexicon
        self.every = [
            Property(label, name, kind, property_schema.coverage >= 1)
            for label, of_label in schema.properties.items()
            for name, property_schema in of_label.items()
            if (kind := kind_of(property_schema)) is not None
        ]
        self._value_index: tuple[Any, NameIndex, list[tuple[Property, str]]] | None = (
            None
        )

    def of_kinds(self, *kinds: Kind) -> list[Property]:
        """The properties whose values are of some kinds."""
        return [owner for owner in self.every if owner.kind in kinds]

    def kinship(self, word: str, owner: Property) -> float:
        """How much a word of a question says that a property is meant, 0 to 1."""
        near = self._lexicon.kinship(word, owner.name)
        near = max(near, SPOKEN if speaks_of(word, owner.name) else 0.0)
        if root(word) == root(owner.label.lower()):
            return min(near, OWN_LABEL)  # "orders" may mean their dates, or nothing
        return near

    def values(self, words: Sequence[str]) -> Iterator[Value]:
        """Go through the values of texts that some words in a row say."""
        value_index, listed = self._indexed_values()
        for name, first, last in value_index.find_every(words):
            for place in value_index.nodes_by_name(name):
                owner, value = listed[int(place)]
                yield Value(owner, value, first, last)

    def _indexed_values(self) -> tuple[NameIndex, list[tuple[Property, str]]]:
        graph = self._store.local_graph()
        if self._value_index is None or self._value_index[0] is not graph:
            listed = list(self._read())
            value_index = NameIndex(
                (str(place), value, None) for place, (_, value) in enumerate(listed)
            )
            self._value_index = graph, value_index, listed
        return self._value_index[1:]

    def _read(self) -> Iterator[tuple[Property, str]]:
        """Read the texts that nodes have, each once."""
        texts: dict[str, list[Property]] = defaultdict(list)
        for text_property in self.of_kinds("text"):
            texts[text_property.label].append(text_property)
        for label, owners in texts.items():
            blocks = self._store.nodes([label])
            nodes = islice((node for block in blocks for node in block), _READ)
            texts_read: dict[tuple[Property, str], None] = {}
            for node in nodes:
                for owner in owners:
                    value = node.properties.get(owner.name)
                    if isinstance(value, str) and len(value.split()) <= _WORDS:
                        texts_read.setdefault((owner, value))
            yield from texts_read


def kind_of(property_schema: PropertySchema) -> Kind | None:
    """Return the kind of a property's values; `None` if no question compares them."""
    examples = [value for value in property_schema.examples if value is not None]
    if property_schema.type == "BOOLEAN":
        return "boolean"
    if property_schema.type in ("DATE", "DATE_TIME"):
        return "date"
    if property_schema.type == "STRING":
        dated = examples and all(_ISO.match(str(value)) for value in examples)
        return "date" if dated else "text"
    if (
        property_schema.type == "INTEGER"
        and examples
        and all(year in _YEARS for year in examples)
    ):
        return "year"
    return "number" if property_schema.type in ("INTEGER", "FLOAT") else None
