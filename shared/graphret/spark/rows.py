"""What a query returned: nodes, also by name or within paths and lists, and values."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from graphret.search.index import TextIndex
from graphret.stores.base import GraphStore, Rows
from graphret.text import normalize_name
from graphret.types import Edge, Node

_TEXTS = 200  # that stand in place of nodes, and are looked up
_CHARS, _ITEMS = 200, 10  # of a value that is shown


@dataclass(frozen=True, slots=True)
class Columns:
    """What the columns of a query are.

    Parameters
    ----------
    entities
        The places of those that are nodes or paths, and no values.
    owner
        The place of the node that a repair added, of which the values are; `None` where
        none was added.
    """

    entities: Collection[int] = ()
    owner: int | None = None


@dataclass(frozen=True, slots=True)
class ReadRow:
    """The nodes that a row holds or names, and the values that say more than these."""

    nodes: list[Node]
    values: dict[str, Any] | None = None


def read_rows(
    rows: Rows, columns: Columns, store: GraphStore, index: TextIndex
) -> list[ReadRow]:
    """Return what each row says.

    The nodes of a row are those of its first value that holds some, or else those that
    its texts name: a text names the node of which it is the id, or else one that is
    called so. Nodes are told by texts only where no row holds any.
    """
    nodes_by_row = [
        next(filter(None, (list(_nodes_in(value)) for value in row)), [])
        for row in rows.rows
    ]
    if not any(nodes_by_row):
        nodes_by_row = _nodes_by_row(rows.rows, store, index)
    read = []
    for row, nodes in zip(rows.rows, nodes_by_row, strict=True):
        values = {
            column: value
            for place, (column, value) in enumerate(zip(rows.columns, row, strict=True))
            if place != columns.owner
        }
        is_answer = (
            len(columns.entities) < len(values)
            and not any(_nodes_in(values))
            and not _stands_for_nodes(values.values(), nodes, columns)
        )
        plain = {column: _plain(value) for column, value in values.items()}
        read.append(ReadRow(nodes, plain if is_answer else None))
    return read


def _stands_for_nodes(
    values: Collection[Any], nodes: Sequence[Node], columns: Columns
) -> bool:
    """Whether the values of a row are only names of its nodes.

    Beside the name of the node that they belong to, they may also be its properties.
    """
    names = {normalize_name(name) for node in nodes for name in (node.name, node.id)}
    other_values = [value for value in values if not _are_names(value, names)]
    if len(other_values) == len(values):
        return False
    if columns.owner is None:
        return not other_values
    stored_values = [
        _plain(stored) for node in nodes for stored in node.properties.values()
    ]
    return all(
        value is None or _plain(value) in stored_values for value in other_values
    )


def _are_names(value: Any, names: Collection[str]) -> bool:
    """Whether a value is one of some names, or a list of such."""
    texts = value if isinstance(value, list) else [value]
    return bool(texts) and all(
        isinstance(text, str) and normalize_name(text) in names for text in texts
    )


def _plain(value: Any) -> Any:
    """Return a value in JSON types: edges as dictionaries, dates and others as text."""
    if isinstance(value, Edge):
        return _plain(value.to_dict())
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if value is None or isinstance(value, str | bool | int):
        return value
    return value if isinstance(value, float) and math.isfinite(value) else str(value)


def _nodes_by_row(
    rows: Sequence[Sequence[Any]], store: GraphStore, index: TextIndex
) -> list[list[Node]]:
    """Return the nodes that the texts of each row name."""
    texts_by_row = [
        [text for value in row for text in _texts_in(value)] for row in rows
    ]
    texts = list(dict.fromkeys(text for of_row in texts_by_row for text in of_row))[
        :_TEXTS
    ]
    nodes_by_text = _nodes_by_text(texts, store, index)
    return [
        [nodes_by_text[text] for text in of_row if text in nodes_by_text]
        for of_row in texts_by_row
    ]


def shown(value: Any) -> Any:
    """Return a value for a reader: names for nodes, long texts and lists cut."""
    if isinstance(value, Node):
        return value.name or value.id
    if isinstance(value, Edge):
        return value.relation
    if isinstance(value, list):
        return [shown(item) for item in value[:_ITEMS]]
    if isinstance(value, dict):
        return {str(key): shown(item) for key, item in list(value.items())[:_ITEMS]}
    return value[:_CHARS] if isinstance(value, str) else value


def _nodes_by_text(
    texts: Sequence[str], store: GraphStore, index: TextIndex
) -> dict[str, Node]:
    nodes_by_text = {
        text: node
        for text, node in zip(texts, store.get(texts), strict=True)
        if node is not None
    }
    unknown = [text for text in texts if text not in nodes_by_text]
    matches = index.search(unknown, 3) if unknown else []
    nodes = {
        node.id: node
        for node in store.get([i for hits in matches for i in hits.ids])
        if node is not None
    }
    for text, hits in zip(unknown, matches, strict=True):
        for node in (nodes[i] for i in hits.ids if i in nodes):
            if text not in nodes_by_text and normalize_name(
                node.name
            ) == normalize_name(text):
                nodes_by_text[text] = node
    return nodes_by_text


def _nodes_in(value: Any) -> Iterator[Node]:
    """The nodes of a value: itself, or those of a path, a list or a map."""
    if isinstance(value, Node):
        yield value
    elif isinstance(value, list | dict):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _nodes_in(item)


def _texts_in(value: Any) -> Iterator[str]:
    if isinstance(value, str) and value:
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _texts_in(item)
