"""What the tools show of nodes, and of how they are joined to the one explored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from graphret.ark.arguments import arrow
from graphret.ark.neighborhood import Neighborhood, Way
from graphret.ark.observation import NodeEntry, shortened
from graphret.corpus.metadata import EXTRACTED
from graphret.search.fields import said_properties
from graphret.types import Node

SHOWN_CHARS = 200  # of a query and of a name
_SHOWN_COUNTS = 30
_VALUE_CHARS = 80  # of a property
_SHOWN_EDGES = 3  # of several of one relation to one neighbour


def entry_of(node: Node) -> NodeEntry:
    """Return what is shown of a node: its id, name, type, properties and text.

    The text is left out where it only repeats the name.
    """
    name_field = (
        {"name": shortened(node.name, SHOWN_CHARS)}
        if node.name not in ("", node.id)
        else {}
    )
    text = "" if node.text == node.name else node.text.removeprefix(f"{node.name}\n")
    properties = said_properties(node.properties, (node.name, node.text))
    extracted = properties.pop(EXTRACTED, ())
    for name in extracted if isinstance(extracted, list | tuple) else ():
        properties.pop(name, None)  # the text says it
    return NodeEntry(
        {"id": node.id, **name_field, **kind_of(node)}, text, _brief(properties)
    )


def neighbor_entries(node: Node, neighborhood: Neighborhood) -> list[NodeEntry]:
    """Return what is shown of a node's neighbours and of the relations to them."""
    entries = []
    for other, ways in zip(neighborhood.nodes, neighborhood.via, strict=True):
        entry, names = entry_of(other), (node.name, other.name)
        via = [_shown_way(way, names) for way in ways]
        entries.append(replace(entry, fields=entry.fields | {"via": via}))
    return entries


def kind_of(node: Node) -> dict[str, Any]:
    """Return the type of a node as a field, a list where it has several."""
    labels = [label for label in node.labels if label]
    return {"type": labels[0] if len(labels) == 1 else labels} if labels else {}


def relation_counts(neighborhood: Neighborhood) -> dict[str, Any]:
    """Return the most frequent relations and the number of all others as fields.

    Each comes with the type of the neighbour.
    """
    counts = sorted(
        neighborhood.counts.items(),
        key=lambda item: (-item[1], item[0][0], not item[0][1], item[0][2]),
    )
    listed = [
        [arrow(relation, outgoing), label, f"{n}+" if neighborhood.capped else n]
        for (relation, outgoing, label), n in counts[:_SHOWN_COUNTS]
    ]
    n_others = sum(n for _, n in counts[_SHOWN_COUNTS:])
    return ({"relations": listed} if listed else {}) | (
        {"other_relations": n_others} if n_others else {}
    )


def _shown_way(way: Way, names: Sequence[str]) -> str | list[Any]:
    """An arrow, and behind it what its edges say besides the names of their ends."""
    shown = arrow(way.relation, way.outgoing)
    edges = way.properties[:_SHOWN_EDGES]
    properties = [
        _brief(said_properties(edge_properties, names)) for edge_properties in edges
    ]
    properties = [edge_properties for edge_properties in properties if edge_properties]
    return [shown, *properties] if properties else shown


def _brief(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Properties with long texts shortened."""
    return {
        name: shortened(value, _VALUE_CHARS) if isinstance(value, str) else value
        for name, value in properties.items()
    }
