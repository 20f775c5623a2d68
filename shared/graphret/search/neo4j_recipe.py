"""How an index in Neo4j reads nodes, written down with the index itself.

A full-text index is over one property more than its documents: one that no node has, whose name is the recipe. So it is
there from the moment the index is, goes with it, and puts nothing into the graph.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from graphret.errors import StoreMismatch
from graphret.search.fields import NodeText
from graphret.stores.neo4j.names import quote

_PREFIX = "graphret_reads "
#: How documents that name neighbours are kept: their terms and lengths are apart since 2.
_LAYOUT, _KEPT_AS = "layout", 2
_SETTINGS = ("properties", "neighbors", "relations", "direction", "only", "aliases")


def recipe(text: NodeText) -> str:
    """Return the name of the property that says how nodes are read."""
    layout = _layout(text)
    return _PREFIX + json.dumps(_read(text) | ({} if layout is None else {_LAYOUT: layout}), sort_keys=True)


def without_recipe(properties: Iterable[str] | None) -> list[str]:
    """Return what an index is over, but for its recipe."""
    return [name for name in properties or () if not name.startswith(_PREFIX)]


def recorded_text(rows: Iterable[Sequence[Any]], fulltext: str) -> NodeText | None:
    """Return how an index reads nodes; `None` where it is not there or does not say.

    Parameters
    ----------
    rows
        Name, type, state, options, labels and properties of each index of the database.
    fulltext
        The name of the index.
    """
    for name, _, _, _, _, properties in rows:
        for said in properties or ():
            if name == fulltext and said.startswith(_PREFIX):
                read = json.loads(said.removeprefix(_PREFIX))
                layout, text = read.pop(_LAYOUT, None), NodeText.from_dict(read)
                return text if layout == _layout(text) else None
    return None


def require_recipe(rows: Iterable[Sequence[Any]], fulltext: str, text: NodeText) -> None:
    """Raise a `StoreMismatch` that names both if an index that is there reads nodes in another way."""
    found, drop = recorded_text(rows, fulltext), f"DROP INDEX {quote(fulltext)}"
    if found is None:
        raise StoreMismatch(
            f"the index {fulltext!r} does not say how it reads nodes, as one of an earlier graphret: drop it ({drop}) "
            "and create it again"
        )
    if _read(found) != _read(text):
        raise StoreMismatch(
            f"the index {fulltext!r} holds the documents of {_shown(found)}, which those of {_shown(text)} would "
            f"overwrite: take that text (text=), or drop the index ({drop}) and create it again"
        )


def _layout(text: NodeText) -> int | None:
    return _KEPT_AS if text.reads_neighbors else None


def _read(text: NodeText) -> dict[str, Any]:
    """The settings on which the words of a document depend, but for those that read nothing."""
    settings = text.to_dict()
    return {name: settings[name] for name in _SETTINGS if settings.get(name) not in (None, [])}


def _shown(text: NodeText) -> str:
    settings = (f"{name}={tuple(v) if isinstance(v, list) else v!r}" for name, v in _read(text).items())
    return f"NodeText({', '.join(settings)})"
