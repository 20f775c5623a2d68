"""Which nodes of a graph the documents of another retriever are."""

from __future__ import annotations

from collections.abc import Sequence

from langchain_core.documents import Document

from graphret.nodes import NodeTable
from langchain_graphret.documents import KEY, made_id


def node_ids(documents: Sequence[Document], nodes: NodeTable, id_key: str | None = None) -> list[str | None]:
    """Return the id of the node that each document is, `None` for those that the graph does not know.

    A document is the node whose id stands in its metadata under `id_key`, or that has its id, or that was made of a
    document without an id and with the same title and text. Vector stores give ids of their own to documents that have
    none, so the last of these is what joins a store and a graph that were built of the same documents.
    """
    return [next((one for one in _candidates(d, id_key) if nodes.find([one])[0] >= 0), None) for d in documents]


def _candidates(document: Document, id_key: str | None) -> list[str]:
    block = document.metadata.get(KEY)
    stated = [document.metadata.get(id_key) if id_key else None, document.id]
    stated.append(block.get("id") if isinstance(block, dict) else None)
    return [*(str(one) for one in stated if one), made_id(document)]
