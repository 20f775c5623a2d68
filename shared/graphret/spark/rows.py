"""What a query returned: the nodes in it, within paths, lists and maps or named by
texts, and the rows that hold values instead.
"""

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
    """What a row says: the nodes that it holds or names, and its values by column where
    they say more than the nodes do.
    """

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
        nodes_by_row = _named(rows.rows, store, index)
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
    """Whether the values of a row are names of its nodes, and nothing more; beside the
    name of the node that they are of, they may be its properties.
    """
    names = {normalize_name(name) for node in nodes for name in (node.name, node.id)}
    others = [value for value in values if not _are_names(value, names)]
    if len(others) == len(values):
        return False
    if columns.owner is None:
        return not others
    known = [_plain(one) for node in nodes for one in node.properties.values()]
    return all(value is None or _plain(value) in known for value in others)


def _are_names(value: Any, names: Collection[str]) -> bool:
    """Whether a value is one of some names, or a list of such."""
    texts = value if isinstance(value, list) else [value]
    return bool(texts) and all(
        isinstance(text, str) and normalize_name(text) in names for text in texts
    )


def _plain(value: Any) -> Any:
    """Return a value in JSON types: edges as dictionaries, dates and the like as
    text.
    """
    if isinstance(value, Edge):
        return _plain(value.to_dict())
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if value is None or isinstance(value, str | bool | int):
        return value
    return value if isinstance(value, float) and math.isfinite(value) else str(value)


def _named(
    rows: Sequence[Sequence[Any]], store: GraphStore, index: TextIndex
) -> list[list[Node]]:
    """Return the nodes that the texts of each row name."""
    named = [[text for value in row for text in _texts_in(value)] for row in rows]
    texts = list(dict.fromkeys(text for of_row in named for text in of_row))[:_TEXTS]
    known = _called(texts, store, index)
    return [[known[text] for text in of_row if text in known] for of_row in named]


def shown(value: Any) -> Any:
    """Return a value for a reader: nodes by name, edges by relation, long texts and
    lists cut.
    """
    if isinstance(value, Node):
        return value.name or value.id
    if isinstance(value, Edge):
        return value.relation
    if isinstance(value, list):
        return [shown(one) for one in value[:_ITEMS]]
    if isinstance(value, dict):
        return {str(key): shown(one) for key, one in list(value.items())[:_ITEMS]}
    return value[:_CHARS] if isinstance(value, str) else value


def _called(
    texts: Sequence[str], store: GraphStore, index: TextIndex
) -> dict[str, Node]:
    known = {
        text: node
        for text, node in zip(texts, store.get(texts), strict=True)
        if node is not None
    }
    others = [text for text in texts if text not in known]
    matches = index.search(others, 3) if others else []
    nodes = {
        node.id: node
        for node in store.get([i for found in matches for i in found.ids])
        if node is not None
    }
    for text, found in zip(others, matches, strict=True):
        for node in (nodes[i] for i in found.ids if i in nodes):
            if text not in known and normalize_name(node.name) == normalize_name(text):
                known[text] = node
    return known


def _nodes_in(value: Any) -> Iterator[Node]:
    """The nodes of a value: itself, or those of a path, a list or a map."""
    if isinstance(value, Node):
        yield value
    elif isinstance(value, list | dict):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _nodes_in(one)


def _texts_in(value: Any) -> Iterator[str]:
    if isinstance(value, str) and value:
        yield value
    elif isinstance(value, list):
        for one in value:
            yield from _texts_in(one)
