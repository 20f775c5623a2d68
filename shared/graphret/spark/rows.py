"""The nodes in what a query returns: as nodes, within paths, lists and maps, or as
texts that name them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from graphret.search.index import TextIndex
from graphret.stores.base import GraphStore, Rows
from graphret.text import normalize_name
from graphret.types import Edge, Node

_TEXTS = 200  # that stand in place of nodes, and are looked up
_CHARS, _ITEMS = 200, 10  # of a value that is shown


def nodes_of(rows: Rows, store: GraphStore, index: TextIndex) -> list[list[Node]]:
    """Return the nodes of each row: those of its first value that holds some, or else
    those that its texts name.

    A text names the node of which it is the id, or else one that is called so; nodes
    are told by texts only where no row holds any.
    """
    found = [
        next(filter(None, (list(_nodes_in(value)) for value in row)), [])
        for row in rows.rows
    ]
    if any(found):
        return found
    named = [[text for value in row for text in _texts_in(value)] for row in rows.rows]
    known = _called(
        list(dict.fromkeys(text for texts in named for text in texts))[:_TEXTS],
        store,
        index,
    )
    return [[known[text] for text in texts if text in known] for texts in named]


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
