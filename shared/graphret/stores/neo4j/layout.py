"""How a graph lies in Neo4j: which property is the id, the name and the text, and what of it is hidden.

A graph that graphret wrote: a node has its labels and ``__Graphret__``, with a unique constraint on ``id``; the
properties ``id``, ``name`` and ``text`` where they are not empty, and its own beside them. An edge has ``weight`` where
it is not 1, ``source_row`` and ``target_row``.

A graph that something else wrote is read as it is. What graphret adds to it are nodes with the label
``__GraphretAdded__``, and edges with the property ``graphret_added``; nothing else there is changed.

A property whose name is taken, by a field or by something hidden, is stored behind ``properties.``. Names that begin
with ``graphret_`` are never read as properties: ``graphret_labels`` has the labels in their order where that is not the
alphabet's, ``graphret_json`` the names of properties that are stored as JSON text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from graphret.errors import InvalidInput

MARKER = "__Graphret__"
CONSTRAINT = "graphret_id"
ADDED, ADDED_EDGE = "__GraphretAdded__", "graphret_added"
LABELS, JSON = "graphret_labels", "graphret_json"
ROWS = ("source_row", "target_row")
#: What a text index keeps beside a node, and the label that it puts on nodes of a graph which has none of its own.
INDEXED = ("graphret_title", "graphret_text", "graphret_names", "graphret_embedding")
TEXT_LABEL = "__GraphretText__"

_RESERVED, _PREFIX = "graphret_", "properties."
_LLAMA_NODE = "__Node__"
_INTERNAL = (ADDED, TEXT_LABEL, _LLAMA_NODE, "__Entity__")  # labels of graphret's and of LlamaIndex's own
#: The text of a number that may be an id.
_NUMBER = re.compile(r"-?\d{1,18}(\.\d+)?")


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the fields of nodes are, as the options of a `Neo4jStore` say.

    `own` is true where graphret wrote all of the graph, `added` where there are nodes that it added to another's.
    """

    #: Nodes without this property go by their element id, as all do where it is `None`.
    id: str | None = None
    name: tuple[str, ...] = ("name", "title")
    text: tuple[str, ...] = ("text", "description", "summary", "content")
    label: str | None = None
    hidden: tuple[str, ...] = ("embedding", *INDEXED)
    own: bool = False
    added: bool = False

    # labels

    @property
    def marker(self) -> str:
        """The label of the nodes that graphret writes."""
        return (self.label or MARKER) if self.own else ADDED

    @property
    def unseen_labels(self) -> frozenset[str]:
        """The labels that nodes do not show."""
        return frozenset((*_INTERNAL, self.marker))

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
        return f"{variable}:{quote(self.label)}{f'|{ADDED}' if self.added else ''}"

    def id_of(self, node: str) -> str:
        """An expression for the id of what `node` is."""
        if self.own:
            return f"{node}.id"
        if self.id is None:
            return f"elementId({node})"
        return f"coalesce(toStringOrNull({node}.{quote(self.id)}), elementId({node}))"

    def among(self, node: str, ids: Sequence[str], parameters: dict[str, Any]) -> str:
        """A condition that the node's id is one of `ids`, which an index answers; adds to the parameters."""
        parameters["ids"] = list(ids)
        if self.own:
            return f"{node}.id IN $ids"
        parameters["elements"] = [one for one in ids if one.count(":") == 2]  # as 4:uuid:17
        found = [f"elementId({node}) IN $elements"] if self.id is None or parameters["elements"] else []
        if self.id is not None:
            numbers = (float(one) if "." in one else int(one) for one in ids if _NUMBER.fullmatch(one))
            parameters["keys"] = [*ids, *numbers]
            found.append(f"{node}.{quote(self.id)} IN $keys")
        return f"({' OR '.join(found)}) AND {self.id_of(node)} IN $ids"

    def text_of(self, node: str, candidates: Sequence[str]) -> str:
        """An expression for the name or the text of what `node` is."""
        return f"coalesce({', '.join(f'toStringOrNull({node}.{quote(name)})' for name in candidates)}, '')"

    def values_of(self, node: str) -> str:
        """An expression for the properties of what `node` is, as a map; what is hidden stays in the database."""
        return f"{node} {{.*{''.join(f', {quote(name)}: null' for name in self.hidden)}}}"

    # properties

    def taken(self, *, written: bool) -> tuple[str, ...]:
        """The names that mean no property: fields and what is hidden; `written` for nodes that graphret writes."""
        fields = (self.id, self.name[0], self.text[0])
        return (*(name for name in fields if name and (written or name in ("id", "name", "text"))), *self.hidden)


OWN = Layout("id", ("name",), ("text",), MARKER, INDEXED, own=True)

#: The number of all nodes, and of those with each label that tells how a graph lies.
COUNTS = " UNION ALL ".join(
    f"MATCH (n{label}) RETURN count(n) AS n" for label in ("", f":{MARKER}", f":{_LLAMA_NODE}", f":{ADDED}")
)


def detected(counts: Sequence[int], described: Layout | None, hidden: Sequence[str]) -> Layout:
    """Return how a graph lies, given what `COUNTS` found, what the user described, and the options of a layout."""
    everything, own, llama, added = counts
    if described is not None:
        found = described
    elif own or not everything:
        found = OWN
    elif llama:  # LlamaIndex's Neo4jPropertyGraphStore wrote it, or part of it
        found = Layout("id", ("name",), ("text",), _LLAMA_NODE if llama + added == everything else None)
    else:
        found = Layout()
    return replace(found, added=added > 0 and not found.own, hidden=(*found.hidden, *hidden))


def described(**options: Any) -> Layout | None:
    """Return the layout that options of a store describe (`id`, `name`, `text`, `label`), `None` where none does."""
    given = {field: option for field, option in options.items() if option is not None}
    for field, option in given.items():
        names = tuple(option) if isinstance(option, list | tuple) else (option,)
        for name in names or ("",):
            quote(name, field if field == "label" else f"{field}_property")
        given[field] = names if field in ("name", "text") else option
    return Layout(**given) if given else None


# -- names


def quote(name: str, what: str = "name") -> str:
    """Return a name as Cypher reads it back, whatever is in it.

    A backtick is doubled. A backslash is written as its own Unicode escape: Neo4j replaces such escapes before it looks
    at the text, so that ``\\u0060`` in a name would end it.

    Raises
    ------
    InvalidInput
        When it is empty, holds a null character, which Neo4j does not take, or is no string.
    """
    if not isinstance(name, str) or not name or "\0" in name:
        raise InvalidInput(f"{what}: a non-empty string without null characters is expected, not {name!r}")
    return "`" + name.replace("`", "``").replace("\\", "\\u005C") + "`"


def escaped(name: str, taken: Sequence[str]) -> str:
    """Return where a property is stored, given the names that mean something else."""
    return _PREFIX + name if name in taken or name.startswith((_RESERVED, _PREFIX)) else name


def unescaped(key: str, taken: Sequence[str]) -> str | None:
    """Return the name of the property that is stored there, `None` where it is no property."""
    return None if key in taken or key.startswith(_RESERVED) else key.removeprefix(_PREFIX)
