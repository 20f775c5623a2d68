"""A graph's layout in Neo4j: its properties for id, name and text, and hidden ones.

In a graph that graphret wrote, a node has its labels and ``__Graphret__``, with a
unique constraint on ``id``; the properties ``id``, ``name`` and ``text`` unless they
are empty, and its own. An edge has ``weight`` if it is not 1, ``source_row`` and
``target_row``.

A graph that another program wrote is read as it is. graphret only adds nodes with the
label ``__GraphretAdded__``, and edges with the property ``graphret_added``; nothing
else is changed.

A property with a reserved name, of a field or of something hidden, is stored with the
prefix ``properties.``. Names that begin with ``graphret_`` are never read as
properties: ``graphret_labels`` has the order of labels if it is not alphabetical, and
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
#: The properties that a text index adds to a node, and the label that it gives nodes of
#: a graph without a common label.
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
)  # internal labels of graphret and LlamaIndex
#: A number as text, which may be an id.
_NUMBER = re.compile(r"-?\d{1,18}(\.\d+)?")


@dataclass(frozen=True, slots=True)
class Layout:
    """The properties of nodes' fields, as the options of a `Neo4jStore` say."""

    #: Nodes without this property go by their element id; if it is `None`, all do.
    id: str | None = None
    #: The name and the text are the first of these that a node has, unless `names` and
    #: `texts` say otherwise for one of its labels.
    name: tuple[str, ...] = ("name", "title")
    text: tuple[str, ...] = ("text", "description", "summary", "content")
    label: str | None = None
    hidden: tuple[str, ...] = ("embedding", *INDEXED)
    own: bool = False  # graphret wrote the whole graph
    added: bool = False  # graphret added nodes to another program's graph
    name_is_given: bool = False  # `name` is the user's option and not a guess
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

    def labels(
        self, node_labels: Iterable[str], ordered: Any = None
    ) -> tuple[str, ...]:
        """Return a node's visible labels, in the stored order or alphabetically.

        In the latter, labels that begin with ``_`` come last.
        """
        shown = set(node_labels) - self.unseen_labels
        if isinstance(ordered, list) and set(ordered) == shown:
            return tuple(ordered)
        return tuple(sorted(shown, key=lambda label: (label.startswith("_"), label)))

    def node(self, variable: str) -> str:
        """Return a pattern for a node of the graph."""
        return f"({variable})" if self.label is None else f"({self.in_graph(variable)})"

    def in_graph(self, variable: str) -> str:
        """Return a condition that a node belongs to the graph."""
        if self.label is None:
            return "true"
        return f"{variable}:{quote(self.label)}{f'|{ADDED}' if self.added else ''}"

    def id_of(self, node: str) -> str:
        """Return an expression for the id of the variable or expression `node`."""
        if self.own:
            return f"{node}.id"
        if self.id is None:
            return f"elementId({node})"
        return f"coalesce(toStringOrNull({node}.{quote(self.id)}), elementId({node}))"

    def among(self, node: str, ids: Sequence[str], parameters: dict[str, Any]) -> str:
        """Return a condition, for an index, that the node's id is one of `ids`.

        Its parameters are added to `parameters`.
        """
        parameters["ids"] = list(ids)
        if self.own:
            return f"{node}.id IN $ids"
        parameters["elements"] = [
            node_id for node_id in ids if node_id.count(":") == 2
        ]  # as 4:uuid:17
        alternatives = (
            [f"elementId({node}) IN $elements"]
            if self.id is None or parameters["elements"]
            else []
        )
        if self.id is not None:
            numbers = (
                float(node_id) if "." in node_id else int(node_id)
                for node_id in ids
                if _NUMBER.fullmatch(node_id)
            )
            parameters["keys"] = [*ids, *numbers]
            alternatives.append(f"{node}.{quote(self.id)} IN $keys")
        return f"({' OR '.join(alternatives)}) AND {self.id_of(node)} IN $ids"

    def properties_of(
        self, what: Literal["name", "text"], labels: Iterable[str]
    ) -> tuple[str, ...]:
        """Return the properties for the name or text of nodes with some labels.

        The first one that a node has counts.
        """
        chosen, usual = self._choice(what)
        return next(
            (chosen[label] for label in sorted(labels) if label in chosen), usual
        )

    def text_of(self, node: str, what: Literal["name", "text"]) -> str:
        """Return an expression for the name or the text of `node`."""
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
        """Return an expression for the map of `node`'s visible properties."""
        return (
            f"{node} {{.*{''.join(f', {quote(name)}: null' for name in self.hidden)}}}"
        )

    def reserved_names(
        self, labels: Iterable[str] = (), *, written: bool
    ) -> tuple[str, ...]:
        """Return the names of fields and hidden properties.

        `written` is for nodes that graphret writes.
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
        """Return the properties for the name and the text of a node that is written."""
        label_list = list(labels)
        name = self.properties_of("name", label_list) or self.name
        text = self.properties_of("text", label_list) or self.text
        return name[0], text[0]


OWN = Layout("id", ("name",), ("text",), MARKER, INDEXED, own=True)

#: The number of all nodes, and of those with each label that tells a layout.
COUNTS = " UNION ALL ".join(
    f"MATCH (n{label}) RETURN count(n) AS n"
    for label in ("", f":{MARKER}", f":{_LLAMA_NODE}", f":{ADDED}")
)


def detected(
    counts: Sequence[int], described: Layout | None, hidden: Sequence[str]
) -> Layout:
    """Return a graph's layout from the result of `COUNTS` and the user's options."""
    all_nodes, graphret_nodes, llama_nodes, added_nodes = counts
    if described is not None:
        layout = described
    elif graphret_nodes or not all_nodes:
        layout = OWN
    elif llama_nodes:  # LlamaIndex's Neo4jPropertyGraphStore wrote it, or part of it
        layout = Layout(
            "id",
            ("name",),
            ("text",),
            _LLAMA_NODE if llama_nodes + added_nodes == all_nodes else None,
        )
    else:
        layout = Layout()
    return replace(
        layout,
        added=added_nodes > 0 and not layout.own,
        hidden=(*layout.hidden, *hidden),
    )


def described(**options: Any) -> Layout | None:
    """Return the layout of options (`id`, `name`, `text`, `label`), if any."""
    options_given = {
        what: option for what, option in options.items() if option is not None
    }
    if not options_given:
        return None
    for what, option in options_given.items():
        if isinstance(option, str):
            quote(option, what if what == "label" else f"{what}_property")
    layout = Layout(id=options_given.get("id"), label=options_given.get("label"))
    if isinstance(name := options_given.get("name"), Mapping):
        layout = replace(layout, names=_by_label(name, "name_property"))
    elif name is not None:
        layout = replace(
            layout, name=_listed(name, "name_property"), name_is_given=True
        )
    if isinstance(text := options_given.get("text"), Mapping):
        layout = replace(layout, texts=_by_label(text, "text_property"))
    elif text is not None:
        layout = replace(layout, text=_listed(text, "text_property"))
    return layout


def _by_label(
    names_by_label: Mapping[str, str | Sequence[str]], what: str
) -> dict[str, tuple[str, ...]]:
    for label in names_by_label:
        quote(label, f"{what}: a label")
    return {label: _listed(names, what) for label, names in names_by_label.items()}


def _listed(names: Any, what: str) -> tuple[str, ...]:
    listed = tuple(names) if isinstance(names, list | tuple) else (names,)
    for name in listed or ("",):
        quote(name, what)
    return listed


def _first_text(node: str, names: Sequence[str]) -> str:
    """Return an expression for the first of some properties with a text value."""
    texts = "".join(f"toStringOrNull({node}.{quote(name)}), " for name in names)
    return f"coalesce({texts}'')"


def quote(name: str, what: str = "name") -> str:
    """Return a quoted name; refuse one that is empty or has a null character.

    A backslash is written as its Unicode escape: Neo4j replaces such escapes before it
    parses the text, so that ``\\u0060`` in a name would end it.
    """
    if not isinstance(name, str) or not name or "\0" in name:
        raise InvalidInput(
            f"{what}: expected a non-empty string without null characters, got {name!r}"
        )
    return "`" + name.replace("`", "``").replace("\\", "\\u005C") + "`"


def escaped(name: str, reserved: Sequence[str]) -> str:
    """Return the key under which a property is stored, given the reserved names."""
    return (
        _PREFIX + name
        if name in reserved or name.startswith((_RESERVED, _PREFIX))
        else name
    )


def unescaped(key: str, reserved: Sequence[str]) -> str | None:
    """Return the name of the property stored under a key, or `None`."""
    return (
        None
        if key in reserved or key.startswith(_RESERVED)
        else key.removeprefix(_PREFIX)
    )


def node_rows(
    layout: Layout, nodes: Mapping[str, Node]
) -> dict[tuple[str, ...], list[list[Any]]]:
    """Return nodes as rows of id and properties, by labels; refuse malformed names."""
    rows: dict[tuple[str, ...], list[list[Any]]] = defaultdict(list)
    for node in nodes.values():
        what = f"node {node.id!r}"
        labels = tuple(dict.fromkeys(node.labels))
        reserved = layout.reserved_names(labels, written=True)
        values = _stored(node.properties, reserved, what)
        for candidates, value in (
            (layout.properties_of("name", labels) or layout.name, node.name),
            (layout.properties_of("text", labels) or layout.text, node.text),
        ):
            if (
                value or len(candidates) > 1
            ):  # an empty value keeps the next candidate from being read instead
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
    """Return edges by relation, as rows of source, target, rows and properties."""
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
    properties: Mapping[str, Any], reserved: Sequence[str], what: str
) -> dict[str, Any]:
    """Return properties as Neo4j stores them: without nulls, maps and mixed lists."""
    values: dict[str, Any] = {}
    texts: list[str] = []
    for name, value in properties.items():
        if value is None:
            continue
        key = escaped(name, reserved)
        quote(key, f"{what}: the name of a property")
        if _is_held(value):
            values[key] = value
        else:
            values[key] = json.dumps(value, ensure_ascii=False)
            texts.append(name)
    return {**values, JSON: texts} if texts else values


def _is_held(value: Any) -> bool:
    """Whether Neo4j can store a value: a scalar, or a list of one kind of scalar."""
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
    """Return the node for a row of a query."""
    return Node(
        node_id,
        layout.labels(labels, values.get(LABELS)),
        _text_in(values, layout.properties_of("name", labels)),
        _text_in(values, layout.properties_of("text", labels)),
        _loaded(values, layout.reserved_names(labels, written=layout.marker in labels)),
    )


def edge_from(
    source: str, relation: str, target: str, values: Mapping[str, Any]
) -> Edge:
    """Return the edge for a row of a query, with weight 1 unless it is a number."""
    weight = values.get("weight", 1.0)
    weighed = (
        isinstance(weight, int | float)
        and not isinstance(weight, bool)
        and math.isfinite(weight)
    )
    properties = _loaded(values, _EDGE_FIELDS if weighed else ())
    return Edge(source, relation, target, float(weight) if weighed else 1.0, properties)


def _text_in(values: Mapping[str, Any], candidates: tuple[str, ...]) -> str:
    """Return the first property with a text value, or one that can be shown as text."""
    for name in candidates:
        value = json_value(values.get(name))
        if isinstance(value, str | int | float):
            return str(value)
    return ""


def _loaded(values: Mapping[str, Any], reserved: Sequence[str]) -> dict[str, Any]:
    """Return properties as before `_stored`; other programs' values as JSON values."""
    properties: dict[str, Any] = {}
    for key, value in values.items():
        if (name := unescaped(key, reserved)) is not None and (
            read := json_value(value)
        ) is not None:
            properties[name] = read
    for name in values.get(JSON) or ():
        properties[name] = json.loads(properties[name])
    return properties
