"""What of a node is handed to a model: a passage as it is, a node of a graph with what
is known of it and around it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from graphret.errors import InvalidInput
from graphret.search.fields import NodeText, described
from graphret.stores.base import GraphStore
from graphret.types import Node

#: What `content=` of retrievers takes: how a node becomes text, by a `NodeText` or a
#: function.
Content: TypeAlias = NodeText | Callable[[Node], str]

#: Characters of a text from which on it speaks for itself.
LONG = 400
#: How much is said of a node of a graph: characters in all, names of neighbours by one
#: relation and direction, and edges that are read for them.
CHARS, NEIGHBORS, EDGES = 2_000, 10, 200

#: How properties begin that mark a part of a document.
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
        Another way for all nodes: a `NodeText`, which reads neighbours in `store` if it
        is bound to none, or a function.
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
        some = NodeText(
            max_chars=CHARS,
            neighbors=NEIGHBORS if self.store is not None else 0,
            max_edges=EDGES,
        )
        object.__setattr__(self, "_around", some.bound(self.store))

    def texts(self, nodes: Sequence[Node]) -> list[str]:
        """Return what a model reads of each node."""
        if isinstance(self.chosen, NodeText):
            unbound = self.chosen.source is None
            text = self.chosen.bound(self.store) if unbound else self.chosen
            return text.all_texts(nodes)
        if self.chosen is not None:
            return [self.chosen(node) for node in nodes]
        told = [node for node in nodes if not is_passage(node)]
        said = dict(
            zip(
                [node.id for node in told],
                self._around.all_texts([_told(node) for node in told]),
                strict=True,
            )
        )
        return [said.get(node.id, node.text) for node in nodes]


def is_passage(node: Node) -> bool:
    """Whether a node is a part of a document, whose text speaks for itself."""
    if not node.text:
        return False
    return (
        not node.name
        or len(node.text) >= LONG
        or not _DOCUMENTS.isdisjoint(node.labels)
        or any(name.startswith(_OF_DOCUMENTS) for name in node.properties)
    )


def _told(node: Node) -> Node:
    """A node whose text says of what kind it is, what it says and its properties."""
    kind = f"type: {node.label}" if node.label else ""
    parts = (kind, node.text, described(node))
    return replace(node, text="\n".join(filter(None, parts)))
