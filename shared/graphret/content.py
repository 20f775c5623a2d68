"""The text of a node for a model: a passage, or a graph node with its surroundings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from graphret.errors import InvalidInput
from graphret.search.fields import NodeText, described
from graphret.stores.base import GraphStore
from graphret.types import Node

#: The type of retrievers' `content=`: a `NodeText` or a function of a node.
Content: TypeAlias = NodeText | Callable[[Node], str]

#: The least characters of a text that is a passage by itself.
LONG = 400
#: The most characters of a graph node's text, names of neighbours by one relation and
#: direction, and edges that are read for them.
CHARS, NEIGHBORS, EDGES = 2_000, 10, 200

#: The prefixes of properties that mark a part of a document.
_OF_DOCUMENTS = ("chunk_", "table_", "source_id", "llama_index", "_node_content")
_DOCUMENTS = frozenset(("Document", "Chunk", "Table", "text_chunk"))


@dataclass(frozen=True)
class NodeContent:
    """Turn nodes into what a model reads.

    A passage (a part of a document, a long text, a text without a name) is its text.
    Any other node is its name, its text, its properties and the names of its
    neighbours by relation, in at most `CHARS` characters.

    Parameters
    ----------
    store
        Where neighbours are looked up; without one they are left out.
    chosen
        Replaces this for all nodes: a `NodeText`, which reads neighbours in `store`
        unless it is bound to another, or a function.
    """

    store: GraphStore | None = None
    chosen: Content | None = None
    _around: NodeText = field(init=False, repr=False)

    def __post_init__(self) -> None:
        chosen = self.chosen
        if not (chosen is None or isinstance(chosen, NodeText) or callable(chosen)):
            raise InvalidInput(
                "content: expected a NodeText or a function of a node, got"
                f" {type(chosen).__name__}"
            )
        around = NodeText(
            max_chars=CHARS,
            neighbors=NEIGHBORS if self.store is not None else 0,
            max_edges=EDGES,
        )
        object.__setattr__(self, "_around", around.bound(self.store))

    def texts(self, nodes: Sequence[Node]) -> list[str]:
        """Return the text of each node for a model."""
        if isinstance(self.chosen, NodeText):
            unbound = self.chosen.source is None
            text = self.chosen.bound(self.store) if unbound else self.chosen
            return text.all_texts(nodes)
        if self.chosen is not None:
            return [self.chosen(node) for node in nodes]
        graph_nodes = [node for node in nodes if not is_passage(node)]
        texts = self._around.all_texts([_with_details(node) for node in graph_nodes])
        text_by_id = dict(zip([node.id for node in graph_nodes], texts, strict=True))
        return [text_by_id.get(node.id, node.text) for node in nodes]


def is_passage(node: Node) -> bool:
    """Whether a node is a part of a document, whose text is enough by itself."""
    if not node.text:
        return False
    return (
        not node.name
        or len(node.text) >= LONG
        or not _DOCUMENTS.isdisjoint(node.labels)
        or any(name.startswith(_OF_DOCUMENTS) for name in node.properties)
    )


def _with_details(node: Node) -> Node:
    """Return a node whose text also has its label and its properties."""
    kind = f"type: {node.label}" if node.label else ""
    parts = (kind, node.text, described(node))
    return replace(node, text="\n".join(filter(None, parts)))
