"""How a graph lies in Neo4j: which property is the id, the name and the text, and what
of it is hidden.

A graph that graphret wrote: a node has its labels and ``__Graphret__``, with a unique
constraint on ``id``; the properties ``id``, ``name`` and ``text`` where they are not
empty, and its own beside them. An edge has ``weight`` where it is not 1, ``source_row``
and ``target_row``.

A graph that something else wrote is read as it is. What graphret adds to it are nodes
with the label ``__GraphretAdded__``, and edges with the property ``graphret_added``;
nothing else there is changed.

A property whose name is taken, by a field or by something hidden, is stored behind
``properties.``. Names that begin with ``graphret_`` are never read as properties:
``graphret_labels`` has the labels in their order where that is not the alphabet's,
``graphret_json`` the names of properties that are stored as JSON text.
"""

from __future__ import annotations

import json
import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

from graphret.errors import InvalidInput
from graphret.types import Edge, EdgeKey, Node
from graphret.validation import edge_words, json_value

#: What an option that names properties takes: one, several of which the first that a
#: node has counts, or either by label.
PropertyNames: TypeAlias = "str | Sequence[str] | Mapping[str, str | Sequence[str]]"

MARKER = "__Graphret__"
CONSTRAINT = "graphret_id"
ADDED, ADDED_EDGE = "__GraphretAdded__", "graphret_added"
LABELS, JSON = "graphret_labels", "graphret_json"
#: What a text index keeps beside a node, and the label that it puts on nodes of a graph
#: which has none of its own.
INDEXED = ("graphret_title", "graphret_text", "graphret_names", "graphret_embedding")
TEXT_LABEL = "__GraphretText__"

_RESERVED, _PREFIX = "graphret_", "properties."
_LLAMA_NODE = "__Node__"
_EDGE_FIELDS = ("weight",)
_INTERNAL = (
    ADDED,
    TEXT_LABEL,
    _LLAMA_NODE,
    "__Entity__",
)  # labels of graphret's and of LlamaIndex's own
#: The text of a number that may be an id.
_NUMBER = re.compile(r"-?\d{1,18}(\.\d+)?")


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the fields of nodes are, as the options of a `Neo4jStore` say."""

    #: Nodes without this property go by their element id, as all do where it is `None`.
    id: str | None = None
    #: The name and the text are the first of these that a node has, unless `names` and
    #: `texts` say otherwise for one of its labels.
    name: tuple[str, ...] = ("name", "title")
    text: tuple[str, ...] = ("text", "description", "summary", "content")
    label: str | None = None
    hidden: tuple[str, ...] = ("embedding", *INDEXED)
    own: bool = False  # graphret wrote all of the graph
    added: bool = False  # there are nodes that graphret added to another's
    told: bool = False  # `name` is what the user said, and no guess
    names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    texts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def marker(self) -> str:
        """The label of the nodes that graphret writes."""
        return (self.label or MARKER) if self.own else ADDED

    @property
    def unseen_labels(self) -> frozenset[str]:
        """The labels that nodes do not show."""
        return frozenset((*_INTERNAL, self.marker))

    def labels(self, found: Iterable[str], ordered: Any = None) -> tuple[str, ...]:
        """The labels of a node as they are read: in the order it was given, else by the
        alphabet, ``_`` last.
        """
        shown = set(found) - self.unseen_labels
        if isinstance(ordered, list) and set(ordered) == shown:
            return tuple(ordered)
        return tuple(sorted(shown, key=lambda label: (label.startswith("_"), label)))

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
        """A condition that the node's id is one of `ids`, which an index answers; adds
        to the parameters.
        """
        parameters["ids"] = list(ids)
        if self.own:
            return f"{node}.id IN $ids"
        parameters["elements"] = [
            one for one in ids if one.count(":") == 2
        ]  # as 4:uuid:17
        found = (
            [f"elementId({node}) IN $elements"]
            if self.id is None or parameters["elements"]
            else []
        )
        if self.id is not None:
            numbers = (
                float(one) if "." in one else int(one)
                for one in ids
                if _NUMBER.fullmatch(one)
            )
            parameters["keys"] = [*ids, *numbers]
            found.append(f"{node}.{quote(self.id)} IN $keys")
        return f"({' OR '.join(found)}) AND {self.id_of(node)} IN $ids"

    def properties_of(
        self, what: Literal["name", "text"], labels: Iterable[str]
    ) -> tuple[str, ...]:
        """The properties that may be the name or the text of a node with some labels,
        the first that it has.
        """
        chosen, usual = self._choice(what)
        return next((chosen[one] for one in sorted(labels) if one in chosen), usual)

    def text_of(self, node: str, what: Literal["name", "text"]) -> str:
        """An expression for the name or the text of what `node` is."""
        chosen, usual = self._choice(what)
        cases = "".join(
            f"WHEN {node}:{quote(label)} THEN {_first_text(node, chosen[label])} "
            for label in sorted(chosen)
        )
        otherwise = _first_text(node, usual)
        return f"CASE {cases}ELSE {otherwise} END" if cases else otherwise

    def _choice(
        self, what: Literal["name", "text"]
    ) -> tuple[Mapping[str, tuple[str, ...]], tuple[str, ...]]:
        return (self.names, self.name) if what == "name" else (self.texts, self.text)

    def values_of(self, node: str) -> str:
        """An expression for the properties of what `node` is, as a map; what is hidden
        stays in the database.
        """
        return (
            f"{node} {{.*{''.join(f', {quote(name)}: null' for name in self.hidden)}}}"
        )

    def taken(self, labels: Iterable[str] = (), *, written: bool) -> tuple[str, ...]:
        """The names that mean no property: fields and what is hidden; `written` for
        nodes that graphret writes.
        """
        fields = (self.id, *self._written(labels))
        return (
            *(
                name
                for name in fields
                if name and (written or name in ("id", "name", "text"))
            ),
            *self.hidden,
        )

    def _written(self, labels: Iterable[str]) -> tuple[str, str]:
        """Where the name and the text of a node are that graphret writes."""
        borne = list(labels)
        name = self.properties_of("name", borne) or self.name
        text = self.properties_of("text", borne) or self.text
        return name[0], text[0]


OWN = Layout("id", ("name",), ("text",), MARKER, INDEXED, own=True)

#: The number of all nodes, and of those with each label that tells how a graph lies.
COUNTS = " UNION ALL ".join(
    f"MATCH (n{label}) RETURN count(n) AS n"
    for label in ("", f":{MARKER}", f":{_LLAMA_NODE}", f":{ADDED}")
)


def detected(
    counts: Sequence[int], described: Layout | None, hidden: Sequence[str]
) -> Layout:
    """Return how a graph lies, given what `COUNTS` found, what the user described, and
    the options of a layout.
    """
    everything, own, llama, added = counts
    if described is not None:
        found = described
    elif own or not everything:
        found = OWN
    elif llama:  # LlamaIndex's Neo4jPropertyGraphStore wrote it, or part of it
        found = Layout(
            "id",
            ("name",),
            ("text",),
            _LLAMA_NODE if llama + added == everything else None,
        )
    else:
        found = Layout()
    return replace(
        found, added=added > 0 and not found.own, hidden=(*found.hidden, *hidden)
    )


def described(**options: Any) -> Layout | None:
    """Return the layout that options of a store describe (`id`, `name`, `text`,
    `label`), `None` where none does.
    """
    given = {what: option for what, option in options.items() if option is not None}
    if not given:
        return None
    for what, option in given.items():
        if isinstance(option, str):
            quote(option, what if what == "label" else f"{what}_property")
    told = Layout(id=given.get("id"), label=given.get("label"))
    if isinstance(name := given.get("name"), Mapping):
        told = replace(told, names=_by_label(name, "name_property"))
    elif name is not None:
        told = replace(told, name=_listed(name, "name_property"), told=True)
    if isinstance(text := given.get("text"), Mapping):
        told = replace(told, texts=_by_label(text, "text_property"))
    elif text is not None:
        told = replace(told, text=_listed(text, "text_property"))
    return told


def _by_label(
    given: Mapping[str, str | Sequence[str]], what: str
) -> dict[str, tuple[str, ...]]:
    for label in given:
        quote(label, f"{what}: a label")
    return {label: _listed(names, what) for label, names in given.items()}


def _listed(names: Any, what: str) -> tuple[str, ...]:
    listed = tuple(names) if isinstance(names, list | tuple) else (names,)
    for name in listed or ("",):
        quote(name, what)
    return listed


def _first_text(node: str, names: Sequence[str]) -> str:
    """An expression for the first of some properties that can be shown as a text."""
    texts = "".join(f"toStringOrNull({node}.{quote(name)}), " for name in names)
    return f"coalesce({texts}'')"


def quote(name: str, what: str = "name") -> str:
    """Return a name as Cypher reads it back; an `InvalidInput` refuses one that is
    empty or has a null character.

    A backslash is written as its own Unicode escape: Neo4j replaces such escapes before
    it looks at the text, so that ``\\u0060`` in a name would end it.
    """
    if not isinstance(name, str) or not name or "\0" in name:
        raise InvalidInput(
            f"{what}: expected a non-empty string without null characters, got {name!r}"
        )
    return "`" + name.replace("`", "``").replace("\\", "\\u005C") + "`"


def escaped(name: str, taken: Sequence[str]) -> str:
    """Return where a property is stored, given the names that mean something else."""
    return (
        _PREFIX + name
        if name in taken or name.startswith((_RESERVED, _PREFIX))
        else name
    )


def unescaped(key: str, taken: Sequence[str]) -> str | None:
    """Return the name of the property that is stored there, `None` where it is no
    property.
    """
    return (
        None if key in taken or key.startswith(_RESERVED) else key.removeprefix(_PREFIX)
    )


def node_rows(
    layout: Layout, nodes: Mapping[str, Node]
) -> dict[tuple[str, ...], list[list[Any]]]:
    """Lay nodes out as rows of id and properties, by labels; an `InvalidInput` says
    what Neo4j does not hold.
    """
    rows: dict[tuple[str, ...], list[list[Any]]] = defaultdict(list)
    for node in nodes.values():
        what = f"node {node.id!r}"
        labels = tuple(dict.fromkeys(node.labels))
        taken = layout.taken(labels, written=True)
        values = _stored(node.properties, taken, what)
        for candidates, value in (
            (layout.properties_of("name", labels) or layout.name, node.name),
            (layout.properties_of("text", labels) or layout.text, node.text),
        ):
            if (
                value or len(candidates) > 1
            ):  # an empty one keeps the next candidate from being read in its place
                values[candidates[0]] = value
        values[layout.id or ""] = node.id
        for label in labels:
            quote(label, f"{what}: a label")
        if labels != layout.labels(labels):
            values[LABELS] = list(labels)
        rows[tuple(sorted(labels))].append([node.id, values])
    return rows


def edge_rows(
    layout: Layout, edges: Mapping[EdgeKey, Edge]
) -> dict[str, list[list[Any]]]:
    """Lay edges out as rows of source, target, two rows of tables and properties, by
    relation.
    """
    rows: dict[str, list[list[Any]]] = defaultdict(list)
    for (source, target, relation, *parts), edge in edges.items():
        what = f"{edge_words(edge)} ({relation})"
        quote(relation, f"{what}: the relation")
        values = _stored(edge.properties, _EDGE_FIELDS, what)
        if edge.weight != 1.0:
            values["weight"] = float(edge.weight)
        if not layout.own:
            values[ADDED_EDGE] = True
        rows[relation].append([source, target, *parts, values])
    return rows


def _stored(
    properties: Mapping[str, Any], taken: Sequence[str], what: str
) -> dict[str, Any]:
    """Return properties as Neo4j holds them, which has no null, no map and no mixed
    list.
    """
    kept: dict[str, Any] = {}
    texts: list[str] = []
    for name, value in properties.items():
        if value is None:
            continue
        key = escaped(name, taken)
        quote(key, f"{what}: the name of a property")
        if _is_held(value):
            kept[key] = value
        else:
            kept[key] = json.dumps(value, ensure_ascii=False)
            texts.append(name)
    return {**kept, JSON: texts} if texts else kept


def _is_held(value: Any) -> bool:
    """Whether Neo4j holds a JSON value: a scalar, or a list of scalars of one kind."""
    if isinstance(value, list | tuple):
        kinds = {float if type(item) is int else type(item) for item in value}
        return (
            len(kinds) <= 1 and not kinds & {list, tuple} and all(map(_is_held, value))
        )
    if isinstance(value, int):
        return -(2**63) <= value < 2**63
    return isinstance(value, str | float)


def node_from(
    layout: Layout, node_id: str, labels: list[str], values: Mapping[str, Any]
) -> Node:
    """Make a node of what a query returned of it."""
    return Node(
        node_id,
        layout.labels(labels, values.get(LABELS)),
        _text_in(values, layout.properties_of("name", labels)),
        _text_in(values, layout.properties_of("text", labels)),
        _loaded(values, layout.taken(labels, written=layout.marker in labels)),
    )


def edge_from(
    source: str, relation: str, target: str, values: Mapping[str, Any]
) -> Edge:
    """Make an edge of what a query returned of it; one without a number as its weight
    has weight 1.
    """
    weight = values.get("weight", 1.0)
    weighed = (
        isinstance(weight, int | float)
        and not isinstance(weight, bool)
        and math.isfinite(weight)
    )
    properties = _loaded(values, _EDGE_FIELDS if weighed else ())
    return Edge(source, relation, target, float(weight) if weighed else 1.0, properties)


def _text_in(values: Mapping[str, Any], candidates: tuple[str, ...]) -> str:
    """Return the first of the properties that is there as a text, or can be shown as
    one.
    """
    for name in candidates:
        value = json_value(values.get(name))
        if isinstance(value, str | int | float):
            return str(value)
    return ""


def _loaded(values: Mapping[str, Any], taken: Sequence[str]) -> dict[str, Any]:
    """Return properties as they were before `_stored`, and what something else stored
    as JSON values.
    """
    found: dict[str, Any] = {}
    for key, value in values.items():
        if (name := unescaped(key, taken)) is not None and (
            read := json_value(value)
        ) is not None:
            found[name] = read
    for name in values.get(JSON) or ():
        found[name] = json.loads(found[name])
    return found
