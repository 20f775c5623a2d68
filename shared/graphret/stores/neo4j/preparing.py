"""Nodes and edges as the rows in which they are written: all checked first, grouped by what a query has to name."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from graphret.errors import InvalidInput, StoreMismatch
from graphret.stores.neo4j.layout import LABELS, LONG_ID, RESERVED, ROWS, Layout, is_id, may_be_element
from graphret.stores.neo4j.names import quote
from graphret.stores.neo4j.placing import NOTHING, Said, lost, placed
from graphret.stores.neo4j.values import NESTED, edge_key, stored
from graphret.types import Edge, Node, require_id
from graphret.validation import require_edge, require_properties

#: Nodes or edges in one statement.
BATCH = 5_000
#: More properties of the nodes of a batch, by id: names that begin with ``graphret_``, which are not read back.
Writer: TypeAlias = Callable[[Sequence[Node]], Mapping[str, Mapping[str, Any]]]


@dataclass(slots=True)
class Change:
    """Nodes and edges ready to be written, grouped by what a query has to name.

    `nodes` has rows by labels: of id and properties, and in a graph of others what is `Said`. `edges` has rows of
    source, target, two rows and properties by relation.
    """

    nodes: dict[tuple[str, ...], list[list[Any]]] = field(default_factory=lambda: defaultdict(list))
    edges: dict[str, list[list[Any]]] = field(default_factory=lambda: defaultdict(list))


def prepared(
    layout: Layout, nodes: Iterable[Node], edges: Iterable[Edge], nested: str, writers: Sequence[Writer]
) -> Change:
    """Check nodes and edges, and lay them out.

    Raises
    ------
    InvalidInput
        When one is malformed or an id comes twice.
    StoreMismatch
        When nodes of this layout have no property for their id.
    """
    require_writable(layout)
    change, fresh = Change(), list(nodes)
    seen: set[str] = set()
    for node in fresh:
        if require_id(node.id, "node") in seen:
            raise InvalidInput(f"node {node.id!r}: the id comes twice")
        seen.add(node.id)
    extras = _written(writers, fresh)
    for node in fresh:
        labels, values, *said = _node_row(layout, node, nested)
        change.nodes[labels].append([layout.id_key(node.id), values | extras.get(node.id, {}), *said])
    distinct: dict[tuple[Any, ...], list[Any]] = {}
    for edge in edges:
        row = _edge_row(layout, edge, nested)
        distinct[edge.relation, *row[:4]] = row
    for (relation, *_), row in distinct.items():
        change.edges[relation].append(row)
    return change


def check(layout: Layout, nodes: Iterable[Node], edges: Iterable[Edge], nested: str) -> None:
    """Check nodes and edges one by one, as those that are not there yet, and keep nothing of them."""
    require_writable(layout)
    for node in nodes:
        require_id(node.id, "node")
        labels, values, *said = _node_row(layout, node, nested)
        if said:
            values = placed(layout, values, said[0], NOTHING)
        _require_text([labels, values], f"node {node.id!r}")
    for edge in edges:
        row = _edge_row(layout, edge, nested)
        if edge.properties:
            _require_text(row, f"edge {edge.source!r} to {edge.target!r}")


def _require_text(row: Any, what: str) -> None:
    """Raise an `InvalidInput` if a row holds text that cannot be sent."""
    try:
        json.dumps(row, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise InvalidInput(f"{what}: a text holds half of a surrogate pair, which Neo4j cannot hold") from error


def require_writable(layout: Layout) -> None:
    """Raise a `StoreMismatch` if nodes of this layout have no label and property by which they are found."""
    if layout.id is None or layout.label is None:
        raise StoreMismatch(
            "this graph was not written by graphret: to write to it, name the property of its ids (id_property=) and "
            "the label that all nodes bear (label=)"
        )


def _node_row(layout: Layout, node: Node, nested: str) -> list[Any]:
    """Return the labels and the properties of a node, and in a graph of others what is `Said`."""
    what = f"node {node.id!r}"
    for name, value in (("name", node.name), ("text", node.text)):
        if not isinstance(value, str):
            raise InvalidInput(f"{what}: the {name} must be a string, not {type(value).__name__}")
    if isinstance(node.labels, str) or not all(isinstance(label, str) for label in node.labels):
        raise InvalidInput(f"{what}: the labels must be a tuple of strings")
    require_properties(node.properties, what)
    values = stored(node.properties, layout.place, nested, what, searchable=layout.lossless, foreign=not layout.own)
    said = []
    if layout.own:
        values |= {field: value for field, value in (("name", node.name), ("text", node.text)) if value}
    else:
        doubtful = {name: v for name, v in node.properties.items() if layout.is_doubtful(name, v)}
        said = [Said(node.id, node.name, node.text, doubtful)]
    assert layout.id is not None
    if not layout.lossless and layout.id in node.properties:
        given = node.properties[layout.id]
        if not (layout.id in said[0].doubtful or is_id(given, node.id)):
            raise lost(what, layout.id, "id")
        if may_be_element(node.id) and given != node.id:
            said[0].doubtful[layout.id] = given
    values[layout.id] = layout.id_key(node.id)
    if values[layout.id] != node.id:
        values[LONG_ID] = node.id
    labels = tuple(dict.fromkeys(node.labels))
    for label in labels:
        quote(label, f"{what}: a label")
        if label in layout.unseen_labels:
            raise InvalidInput(f"{what}: the label {label!r} is for the store's own use")
    if layout.label and layout.label not in layout.unseen_labels:
        labels = tuple(dict.fromkeys((*labels, layout.label)))
    if labels != layout.labels(labels):
        values[LABELS] = list(labels)
    if layout.entity_label and (node.name or not node.text):
        labels = (*labels, layout.entity_label)
    return [tuple(sorted(labels)), values, *said]


def _edge_row(layout: Layout, edge: Edge, nested: str) -> list[Any]:
    what = require_edge(edge)
    quote(edge.relation, f"{what}: the relation")
    values = stored(
        edge.properties, edge_key, nested, f"{what} ({edge.relation})", searchable=False, foreign=not layout.own
    )
    rows = [values.get(row, -1) for row in ROWS]
    if edge.weight != 1.0:
        values["weight"] = float(edge.weight)
    return [layout.id_key(edge.source), layout.id_key(edge.target), *rows, values]


def edge_keys(layout: Layout, edges: Iterable[Edge]) -> dict[str, list[list[Any]]]:
    """Return what identifies edges, by relation: source, target and rows.

    Raises
    ------
    StoreMismatch
        When nodes of this layout are not found by an id of theirs.
    """
    require_writable(layout)
    keys: dict[str, list[list[Any]]] = defaultdict(list)
    for edge in edges:
        row = _edge_row(layout, Edge(edge.source, edge.relation, edge.target, 1.0, _rows_of(edge)), "refuse")
        keys[edge.relation].append(row[:4])
    return keys


def _rows_of(edge: Edge) -> dict[str, Any]:
    return {row: edge.properties[row] for row in ROWS if row in edge.properties}


def _written(writers: Sequence[Writer], nodes: list[Node]) -> dict[str, dict[str, Any]]:
    extras: dict[str, dict[str, Any]] = defaultdict(dict)
    for writer in writers:
        for start in range(0, len(nodes), BATCH):
            for node_id, values in writer(nodes[start : start + BATCH]).items():
                for name in values:
                    if not name.startswith(RESERVED) or name in (LONG_ID, LABELS):
                        raise InvalidInput(f"writers: the property {name!r} does not begin with {RESERVED!r}")
                extras[node_id].update(values)
    return extras


def require_nested(nested: str) -> str:
    """Return what is done with nested values, and raise an `InvalidInput` if it is neither."""
    if nested not in NESTED:
        raise InvalidInput(f"nested: 'refuse' or 'json' is expected, not {nested!r}")
    return nested
