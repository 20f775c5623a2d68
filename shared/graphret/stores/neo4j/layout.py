"""How a graph lies in Neo4j: which property is the id, the name and the text, and what of it is hidden.

What graphret writes itself (`OWN`): a node has its labels and ``__Graphret__``, which has a unique constraint on ``id``
for looking up; the properties ``id``, ``name`` and ``text`` where they are not empty, and its own beside them. An edge
has ``weight`` where it is not 1, ``source_row`` and ``target_row``. A property whose name is one of these is stored
behind ``properties.``, as is one in a graph of others whose name is hidden there. Names that begin with ``graphret_``
are for graphret's own use, and never read as properties:

===================== ==================================================================================
``graphret_id``       an id that is too long for an index; ``id`` then has a digest of it
``graphret_labels``   the labels in their order, where that is not the alphabet's
``graphret_null``     the names of properties that are none
``graphret_json``     the names of properties that are stored as JSON text
``graphret_at.PATH``  a value inside of such a property, for conditions; ``graphret_in.PATH``: the items of a list,
                      ``graphret_none.PATH``: none, where another property could stand for it
===================== ==================================================================================
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from graphret.errors import InvalidInput
from graphret.stores.neo4j.names import quote

MARKER = "__Graphret__"
CONSTRAINT = "graphret_id"
RESERVED = "graphret_"
LONG_ID = "graphret_id"
LABELS = "graphret_labels"
NULLS = "graphret_null"
JSON = "graphret_json"
AT = "graphret_at."
IN = "graphret_in."
NONE = "graphret_none."
ROWS = ("source_row", "target_row")
#: What indexes in the database keep beside a node: its document and its vector. They are long, so they stay there.
INDEXED = ("graphret_title", "graphret_text", "graphret_terms", "graphret_lengths", "graphret_embedding")
_PREFIX = "properties."
_FIELDS = ("id", "name", "text")
#: What an index puts on the nodes of a graph that has no label of its own.
TEXT_LABEL = "__GraphretText__"
#: Labels that tools keep for themselves.
_INTERNAL = (TEXT_LABEL, "_Bloom_Perspective_", "_Bloom_Scene_")
#: An index holds strings of about 8 kB.
_ID_BYTES = 4000
_ID_SHOWN = 1000
_DIGEST = re.compile(r"…[0-9a-f]{64}\Z")
_ELEMENT_ID = re.compile(r"\d+:[0-9a-fA-F-]{36}:\d+\Z")
#: The longest number as text: -2.2250738585072014E-308 has 24 characters.
_LONGEST_NUMBER = 24


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the fields of nodes are.

    Parameters
    ----------
    id
        The property that is the id, a string or a number; nodes without one go by their element id, as all do where it
        is `None`.
    name, text
        The properties that are the name and the text: the first of them that a node has as a string.
    label
        The label of every node of the graph, by which ids are looked up; nodes without it are not read, and nodes that
        are written get it. For speed the database needs an index or a constraint on this label and the id, which is
        made when something is first written if the layout is `lossless`, and left to its owner otherwise. It is shown
        like any other unless graphret wrote the graph.
    hidden_labels
        Labels that nodes do not show.
    hidden
        Properties of nodes that are never read, such as embeddings.
    entity_label
        A hidden label that is written with nodes which have a name, or no text.
    lossless
        Whether all that graphret writes comes back as it was: long ids, properties that are named like a field, nested
        values and the order of labels are written in the way that the module says.
    own
        Whether graphret wrote all of it.
    dynamic
        Whether the server takes the relation of a new edge from a parameter, so that one plan does for all relations.
    """

    id: str | None = None
    name: tuple[str, ...] = ("name", "title")
    text: tuple[str, ...] = ("text", "description", "summary", "content")
    label: str | None = None
    hidden_labels: tuple[str, ...] = _INTERNAL
    hidden: tuple[str, ...] = ("embedding", *INDEXED)
    entity_label: str | None = None
    lossless: bool = False
    own: bool = False
    dynamic: bool = False

    def hiding(self, properties: Iterable[str]) -> Layout:
        """The layout with more properties of nodes never read."""
        return replace(self, hidden=tuple(dict.fromkeys((*self.hidden, *properties))))

    @property
    def may_share_ids(self) -> bool:
        """Whether several nodes may have one id: others make them, and 5 and "5" are one."""
        return self.id is not None and not self.own

    # Cypher

    def node(self, variable: str) -> str:
        """A pattern for a node of the graph."""
        return f"({variable}:{quote(self.label)})" if self.label else f"({variable})"

    def id_of(self, node: str) -> str:
        """An expression for the id of what `node` is."""
        if self.own:
            return f"coalesce({node}.{LONG_ID}, {node}.id)"
        if self.id is None:
            return f"elementId({node})"
        value = f"{node}.{quote(self.id)}"
        kinds = f"{value} IS :: STRING NOT NULL OR {value} IS :: INTEGER NOT NULL OR {value} IS :: FLOAT NOT NULL"
        known = f"CASE WHEN ({kinds}) AND {value} = {value} THEN toString({value}) END"  # NaN equals nothing
        long = f"{node}.{LONG_ID}, " if self.lossless else ""
        return f"coalesce({long}{known}, elementId({node}))"

    def order_of(self, node: str) -> str:
        """An expression that orders by id, from the index where graphret made one."""
        return f"{node}.id" if self.own else self.id_of(node)

    def among(self, node: str, ids: Sequence[str], parameters: dict[str, object]) -> str:
        """A condition that the node's id is one of `ids`; adds to the parameters."""
        if self.own:
            parameters["keys"] = [key_of(i) for i in ids]
            return f"{node}.id IN $keys"
        of_elements = [i for i in ids if _ELEMENT_ID.match(i)]
        if self.id is None:
            parameters["keys"] = of_elements
            return f"elementId({node}) IN $keys"
        numbers = [number for i in ids if (number := number_of(i)) is not None]
        parameters["keys"] = [*map(self.id_key, ids), *numbers]
        condition = f"{node}.{quote(self.id)} IN $keys"
        if of_elements:
            parameters["elements"] = of_elements
            condition = f"({condition} OR elementId({node}) IN $elements)"
        if not of_elements and not numbers:
            return condition
        parameters["ids"] = list(ids)
        return f"({condition} AND {self.id_of(node)} IN $ids)"  # 1 equals 1.0, and an element with an id goes by that

    def text_of(self, node: str, candidates: Sequence[str]) -> str:
        """An expression for the name or the text of what `node` is."""
        if self.own:
            return f"coalesce({node}.{quote(candidates[0])}, '')"
        parts = [
            f"CASE WHEN {p} IS :: STRING NOT NULL OR {p} IS :: INTEGER NOT NULL THEN toString({p}) END"
            for p in (f"{node}.{quote(name)}" for name in candidates)
        ]
        return f"coalesce({', '.join([*parts, chr(39) * 2])})"

    def values_of(self, node: str) -> str:
        """An expression for the properties of what `node` is, as a map; what is hidden stays in the database."""
        hidden = "".join(f", {quote(name)}: null" for name in self.hidden)
        return f"{node} {{.*{hidden}}}"

    def id_key(self, node_id: str) -> str:
        """What is stored as the id of a node, and looked up."""
        return key_of(node_id) if self.lossless else node_id

    # names

    @property
    def unseen_labels(self) -> frozenset[str]:
        """The labels that nodes do not show."""
        return frozenset((*self.hidden_labels, *([self.label] if self.label and self.own else ())))

    @property
    def _fields(self) -> tuple[str, ...]:
        """Names of properties that mean something else."""
        return (*_FIELDS, *self.hidden)

    def key(self, name: str, value: object = "") -> str | None:
        """Where the property of this name is stored; `None` where a node cannot have such a property."""
        return None if not self.lossless and self.is_doubtful(name, value) else self.place(name)

    def place(self, name: str, value: object = None) -> str:
        """Where the property of this name is stored if a node can have it."""
        return escaped(name, self._fields if self.lossless else self.hidden)

    def is_doubtful(self, name: str, value: object) -> bool:
        """Whether a field has this very name, so that it depends on the database whether such a property lies there."""
        return not self.own and self._is_field(name) and (self.lossless or self._is_said(name, value))

    def property(self, key: str, value: object) -> str | None:
        """The name of the property that is stored there; `None` where it is no property."""
        if not self.own and self._is_field(key) and not self._is_said(key, value):
            return key
        if self.lossless:
            return unescaped(key, self._fields)
        return None if self._is_field(key) else unescaped(key, self.hidden)

    def unsaid(self, node: str, name: str) -> str | None:
        """An expression for what stands where a field of this very name is, and is no id, name or text; else null.

        It is read as a property, for it would be lost. `None` where no field has the name.
        """
        if self.own or not self._is_field(name):
            return None
        value = f"{node}.{quote(name)}"
        kinds = ("STRING", "INTEGER", "FLOAT") if name == "id" else ("STRING", "INTEGER")
        said = " OR ".join(f"{value} IS :: {kind} NOT NULL" for kind in kinds)
        return f"CASE WHEN {said} THEN null ELSE {value} END"

    def _is_said(self, name: str, value: object) -> bool:
        """Whether a field of this name says this value: a name may be a string or a number, and not a list."""
        return isinstance(value, (str, int, float) if name == "id" else (str, int)) and not isinstance(value, bool)

    def _is_field(self, name: str) -> bool:
        """Whether a field has this very name; there is no place for a property beside it in a layout of others."""
        return name == self.id == "id" or name == self.name[0] == "name" or name == self.text[0] == "text"

    def labels(self, found: Iterable[str], ordered: object = None) -> tuple[str, ...]:
        """The labels of a node as they are read: in the order it was given, else by the alphabet, ``_`` last."""
        shown = set(found) - self.unseen_labels
        if isinstance(ordered, list) and set(ordered) == shown:
            return tuple(ordered)
        return tuple(sorted(shown, key=lambda label: (label.startswith("_"), label)))


OWN = Layout("id", ("name",), ("text",), MARKER, (), INDEXED, lossless=True, own=True)
#: What LlamaIndex's ``Neo4jPropertyGraphStore`` writes; `label` is for databases in which nothing else is.
LLAMA_INDEX = Layout(
    "id",
    ("name",),
    ("text",),
    None,
    ("__Node__", "__Entity__", *_INTERNAL),
    entity_label="__Entity__",
    lossless=True,
)
FOREIGN = Layout()


def layout_of(
    id_property: str | None,
    name_property: str | Sequence[str] | None,
    text_property: str | Sequence[str] | None,
    label: str | None,
) -> Layout | None:
    """Return the layout that options describe, `None` where none is given."""
    if id_property is None and name_property is None and text_property is None and label is None:
        return None

    def names(what: str, given: str | Sequence[str] | None, default: tuple[str, ...]) -> tuple[str, ...]:
        if not isinstance(given, str | Sequence | None):
            raise InvalidInput(f"{what}: a property or a list of them is expected, not {given!r}")
        chosen = default if given is None else (given,) if isinstance(given, str) else tuple(given)
        for name in chosen:
            quote(name, what)
        if not chosen:
            raise InvalidInput(f"{what}: at least one property is expected")
        return chosen

    if id_property is not None:
        quote(id_property, "id_property")
    if label is not None:
        quote(label, "label")
    name = names("name_property", name_property, FOREIGN.name)
    text = names("text_property", text_property, FOREIGN.text)
    return replace(FOREIGN, id=id_property, name=name, text=text, label=label)


def number_of(node_id: str) -> int | float | None:
    """Return the number whose text an id may be, `None` where there is none that Neo4j holds."""
    if len(node_id) > _LONGEST_NUMBER:
        return None
    for kind in (int, float):
        try:
            number = kind(node_id)
        except ValueError:
            continue
        return number if isinstance(number, float) or -(2**63) <= number < 2**63 else None
    return None


def may_be_other(node_id: str) -> bool:
    """Whether an id may be that of a node which has another as its property: a number, or none at all."""
    return number_of(node_id) is not None or may_be_element(node_id)


def may_be_element(node_id: str) -> bool:
    """Whether an id may be the element id of a node that has no other."""
    return _ELEMENT_ID.match(node_id) is not None


def is_id(value: object, node_id: str) -> bool:
    """Whether a node with this value for its id may go by `node_id`; one that goes by its element id may have any."""
    if isinstance(value, str):
        known = value == node_id
    else:
        number = number_of(node_id)
        known = number is not None and type(value) is type(number) and value == number
    return known or may_be_element(node_id)


def key_of(node_id: str) -> str:
    """Return what the index holds for an id: the id itself, or a digest of one that is too long."""
    if len(node_id.encode("utf-8", "surrogatepass")) <= _ID_BYTES and not _DIGEST.search(node_id):
        return node_id
    digest = hashlib.sha256(node_id.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{node_id[:_ID_SHOWN]}…{digest}"


def escaped(name: str, fields: Sequence[str]) -> str:
    """Return where a property is stored, given the names that mean something else."""
    return _PREFIX + name if _taken(name, fields) else name


def unescaped(key: str, fields: Sequence[str]) -> str | None:
    """Return the name of the property that is stored there, `None` where it is no property."""
    if key in fields or key.startswith(RESERVED):
        return None
    name = key.removeprefix(_PREFIX)
    return name if name != key and _taken(name, fields) else key


def _taken(name: str, fields: Sequence[str]) -> bool:
    while name not in fields and not name.startswith(RESERVED):
        if not name.startswith(_PREFIX):
            return False
        name = name.removeprefix(_PREFIX)
    return True
