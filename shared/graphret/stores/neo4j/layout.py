"""How a graph lies in Neo4j: which property is the id, the name and the text, and what of it is hidden.

A graph that graphret wrote (`OWN`): a node has its labels and ``__Graphret__``, with a unique constraint on ``id``; the
properties ``id``, ``name`` and ``text`` where they are not empty, and its own beside them. An edge has ``weight`` where
it is not 1, ``source_row`` and ``target_row``.

A graph that something else wrote is read as it is. What graphret adds to it are nodes with the label
``__GraphretAdded__``, and edges with the property ``graphret_added``; nothing else there is changed.

A property whose name is taken, by a field or by something hidden, is stored behind ``properties.``. Names that begin
with ``graphret_`` are never read as properties: ``graphret_labels`` has the labels in their order where that is not the
alphabet's, ``graphret_null`` the names of properties that are null, ``graphret_json`` of those stored as JSON text.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from graphret.errors import InvalidInput

MARKER = "__Graphret__"
CONSTRAINT = "graphret_id"
ADDED, ADDED_EDGE = "__GraphretAdded__", "graphret_added"
LABELS, NULLS, JSON = "graphret_labels", "graphret_null", "graphret_json"
ROWS = ("source_row", "target_row")
#: What a text index keeps beside a node, and the label that it puts on nodes of a graph which has none of its own.
INDEXED = ("graphret_title", "graphret_text", "graphret_names", "graphret_embedding")
TEXT_LABEL = "__GraphretText__"

_RESERVED, _PREFIX = "graphret_", "properties."
_FIELDS = ("id", "name", "text")
#: Labels that tools keep for themselves.
_INTERNAL = (TEXT_LABEL, "_Bloom_Perspective_", "_Bloom_Scene_")
_LLAMA_NODE = "__Node__"
_LONGEST_NAME = 16_383
#: The longest number as text: -2.2250738585072014E-308 has 24 characters.
_LONGEST_NUMBER = 24


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the fields of nodes are.

    Parameters
    ----------
    id
        The property that is the id, a string or a number, shown as text; nodes without one go by their element id, as
        all do where it is `None`.
    name, text
        The properties that are the name and the text: the first of them that a node has.
    label
        The label of every node of the graph; nodes without it are not read. Looking up an id is quick where the
        database has an index on this label and the id.
    hidden_labels, hidden
        Labels and properties that nodes do not show, such as embeddings.
    own
        Whether graphret wrote all of it.
    added
        Whether there are nodes that graphret added to the graph of something else.
    """

    id: str | None = None
    name: tuple[str, ...] = ("name", "title")
    text: tuple[str, ...] = ("text", "description", "summary", "content")
    label: str | None = None
    hidden_labels: tuple[str, ...] = _INTERNAL
    hidden: tuple[str, ...] = ("embedding", *INDEXED)
    own: bool = False
    added: bool = False

    def hiding(self, properties: Iterable[str]) -> Layout:
        """The layout with more properties of nodes never read."""
        return replace(self, hidden=tuple(dict.fromkeys((*self.hidden, *properties))))

    # labels

    @property
    def marker(self) -> str:
        """The label of the nodes that graphret writes."""
        return self.label if self.own and self.label else ADDED

    @property
    def unseen_labels(self) -> frozenset[str]:
        """The labels that nodes do not show."""
        return frozenset((*self.hidden_labels, self.marker, ADDED))

    def labels(self, found: Iterable[str], ordered: Any = None) -> tuple[str, ...]:
        """The labels of a node as they are read: in the order it was given, else by the alphabet, ``_`` last."""
        shown = set(found) - self.unseen_labels
        if isinstance(ordered, list) and set(ordered) == shown:
            return tuple(ordered)
        return tuple(sorted(shown, key=lambda label: (label.startswith("_"), label)))

    # Cypher

    def node(self, variable: str) -> str:
        """A pattern for a node of the graph."""
        return f"({variable})" if self.label is None else f"({self.bears(variable)})"

    def bears(self, variable: str) -> str:
        """A condition that a node is of the graph."""
        if self.label is None:
            return "true"
        beside = f"|{quote(ADDED)}" if self.added else ""
        return f"{variable}:{quote(self.label)}{beside}"

    def id_of(self, node: str) -> str:
        """An expression for the id of what `node` is."""
        if self.own:
            return f"{node}.id"
        if self.id is None:
            return f"elementId({node})"
        value = f"{node}.{quote(self.id)}"
        kinds = " OR ".join(f"{value} IS :: {kind} NOT NULL" for kind in ("STRING", "INTEGER", "FLOAT"))
        return f"coalesce(CASE WHEN {kinds} THEN toString({value}) END, elementId({node}))"

    def among(self, node: str, ids: Sequence[str], parameters: dict[str, Any]) -> str:
        """A condition that the node's id is one of `ids`, which an index answers; adds to the parameters."""
        parameters["ids"] = list(ids)
        if self.own:
            return f"{node}.id IN $ids"
        elements = [one for one in ids if one.count(":") == 2]  # as 4:uuid:17
        if self.id is None:
            parameters["elements"] = elements
            return f"elementId({node}) IN $elements"
        numbers = [number for one in ids if (number := _number_of(one)) is not None]
        parameters["keys"] = [*ids, *numbers]
        found = f"{node}.{quote(self.id)} IN $keys"
        if elements:
            parameters["elements"] = elements
            found = f"({found} OR elementId({node}) IN $elements)"
        return f"({found} AND {self.id_of(node)} IN $ids)" if numbers or elements else found

    def text_of(self, node: str, candidates: Sequence[str]) -> str:
        """An expression for the name or the text of what `node` is."""
        wrapped = "{}" if self.own else "toStringOrNull({})"
        return f"coalesce({', '.join(wrapped.format(f'{node}.{quote(name)}') for name in candidates)}, '')"

    def values_of(self, node: str) -> str:
        """An expression for the properties of what `node` is, as a map; what is hidden stays in the database."""
        return f"{node} {{.*{''.join(f', {quote(name)}: null' for name in self.hidden)}}}"

    # properties

    @property
    def fields(self) -> tuple[str, ...]:
        """The names of properties that are a field, and so no property of a node."""
        if self.own:
            return _FIELDS
        places = zip(_FIELDS, (self.id, self.name[0], self.text[0]), strict=True)
        return tuple(field for field, place in places if field == place)

    @property
    def written_fields(self) -> tuple[str, str, str]:
        """The properties in which a node that graphret writes has its id, its name and its text."""
        return self.id or "", self.name[0], self.text[0]

    def place(self, name: str, *, written: bool = True) -> str:
        """Where the property of this name is; `written` where graphret writes the node."""
        return escaped(name, self._taken(written))

    def property(self, key: str, *, written: bool) -> str | None:
        """The name of the property that is stored there, `None` where it is none; `written` is of graphret's nodes."""
        return unescaped(key, self._taken(written))

    def _taken(self, written: bool) -> tuple[str, ...]:
        return (*self.fields, *(self.written_fields if written else ()), *self.hidden)


OWN = Layout("id", ("name",), ("text",), MARKER, (), INDEXED, own=True)
#: What LlamaIndex's ``Neo4jPropertyGraphStore`` writes; `label` is for databases in which nothing else is.
LLAMA_INDEX = Layout("id", ("name",), ("text",), hidden_labels=(_LLAMA_NODE, "__Entity__", *_INTERNAL))
FOREIGN = Layout()
LAYOUTS = {"graphret": OWN, "llama-index": LLAMA_INDEX, "foreign": FOREIGN}

#: The number of all nodes, and of those with each label that tells how a graph lies.
COUNTS = " UNION ALL ".join(
    f"MATCH {pattern} RETURN count(n) AS n"
    for pattern in ("(n)", *(f"(n:`{label}`)" for label in (MARKER, _LLAMA_NODE, ADDED)))
)


def detected(counts: Sequence[int], told: Layout | None) -> Layout:
    """Return how a graph lies, given what `COUNTS` found and what the user told."""
    everything, own, llama, added = counts
    if told is not None:
        return replace(told, added=added > 0)
    if own or not everything:
        return OWN
    if llama:
        return replace(LLAMA_INDEX, label=_LLAMA_NODE if llama + added == everything else None, added=added > 0)
    return replace(FOREIGN, added=added > 0)


def layout_of(
    layout: str | Layout,
    id_property: str | None,
    name_property: str | Sequence[str] | None,
    text_property: str | Sequence[str] | None,
    label: str | None,
    hidden: Sequence[str],
) -> Layout | None:
    """Return the layout that options describe, `None` where it is to be seen from the database."""
    if isinstance(layout, str) and layout != "auto" and layout not in LAYOUTS:
        raise InvalidInput(f"layout: 'auto', {', '.join(map(repr, LAYOUTS))} expected, not {layout!r}")
    chosen = LAYOUTS.get(layout) if isinstance(layout, str) else layout
    options = {"id": id_property, "name": name_property, "text": text_property, "label": label}
    given: dict[str, Any] = {what: option for what, option in options.items() if option is not None}
    if given and chosen not in (None, FOREIGN):
        raise InvalidInput("layout: this says already where id, name and text are; leave the other options out")
    for what, option in given.items():
        several = what in ("name", "text") and isinstance(option, list | tuple)
        names = tuple(option) if several else (option,)
        for name in names or ("",):
            quote(name, what if what == "label" else f"{what}_property")
        given[what] = names if what in ("name", "text") else option
    if given:
        chosen = replace(FOREIGN, **given)
    return chosen if chosen is None else chosen.hiding(hidden)


# -- names


def quote(name: str, what: str = "name") -> str:
    """Return a name as Cypher reads it back, whatever is in it.

    A backtick is doubled. A backslash is written as its own Unicode escape: Neo4j replaces such escapes before it looks
    at the text, so that ``\\u0060`` in a name would end it.

    Raises
    ------
    InvalidInput
        When it is empty, too long for Neo4j, holds a null character, or is no string.
    """
    if not isinstance(name, str) or not name:
        raise InvalidInput(f"{what}: a non-empty string is expected, not {name!r}")
    if len(name) > _LONGEST_NAME:
        raise InvalidInput(f"{what}: {name[:40]!r}… has {len(name)} characters; Neo4j takes {_LONGEST_NAME}")
    if "\0" in name:
        raise InvalidInput(f"{what}: {name!r} holds a null character, which Neo4j does not take")
    return "`" + name.replace("`", "``").replace("\\", "\\u005C") + "`"


def quotable(names: Iterable[str]) -> list[str]:
    """Return the names that Neo4j can hold, quoted; nothing in a database bears the others."""
    return [quote(name) for name in names if name and len(name) <= _LONGEST_NAME and "\0" not in name]


def escaped(name: str, taken: Sequence[str]) -> str:
    """Return where a property is stored, given the names that mean something else."""
    return _PREFIX + name if name in taken or name.startswith((_RESERVED, _PREFIX)) else name


def unescaped(key: str, taken: Sequence[str]) -> str | None:
    """Return the name of the property that is stored there, `None` where it is no property."""
    return None if key in taken or key.startswith(_RESERVED) else key.removeprefix(_PREFIX)


def _number_of(node_id: str) -> int | float | None:
    """Return the number whose text an id may be, `None` where there is none that Neo4j holds."""
    for kind in (int, float) if len(node_id) <= _LONGEST_NUMBER else ():
        with suppress(ValueError):
            number = kind(node_id)
            return number if isinstance(number, float) or abs(number) < 2**63 else None
    return None
