"""The signals that SAGE compares nodes by, as data, and the texts that they compare."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graphret.nodes import NodeTable
from graphret.numeric import gathered
from graphret.search.fields import NodeText
from graphret.types import Node

DOCUMENT, TABLE, RECORD = 0, 1, 2
"""Roles of nodes: labelled "Document", labelled "Table", and all others."""

ROLES = ("document", "table", "record")

#: The field that is all that a node says; its embeddings are those of the search.
CONTENT = "content"
# The properties that a field is read from, the first that says something; others are
# read from that of their name.
_PROPERTIES = {
    "description": ("description", "summary"),
    "summary": ("summary", "description"),
}


@dataclass(frozen=True, slots=True)
class Signal:
    """The cosine of a field of the left node and a field of the right node."""

    name: str
    kind: str
    left: str
    right: str

    @property
    def roles(self) -> tuple[int, int]:
        """The roles of the two sides."""
        left, right = map(ROLES.index, self.kind.split("-"))
        return left, right


#: What makes nodes similar, by the names of SAGE, table 3 and appendix B: section 2.1
#: B, with the title and description of tables as in its tables 17 and 19. Shared
#: entities make edges of their own.
SIGNALS: tuple[Signal, ...] = (
    Signal("topic_similarity", "document-document", "topic", "topic"),
    Signal("content_similarity", "document-document", CONTENT, CONTENT),
    Signal("column_similarity", "table-table", "columns", "columns"),
    Signal("title_similarity", "table-table", "title", "title"),
    Signal("description_similarity", "table-table", "description", "description"),
    Signal("column_similarity", "document-table", CONTENT, "columns"),
    Signal("topic_title_similarity", "document-table", "topic", "title"),
    Signal("topic_summary_similarity", "document-table", "topic", "summary"),
    Signal("title_similarity", "record-record", "title", "title"),
    Signal("description_similarity", "record-record", CONTENT, CONTENT),
)


def role_of(labels: Collection[str]) -> int:
    """Return the role of a node with these labels."""
    return DOCUMENT if "Document" in labels else TABLE if "Table" in labels else RECORD


def roles_of(nodes: NodeTable) -> NDArray[np.int8]:
    """Return the role of each node of a table, ``(n,)``."""
    of_label_sets = np.asarray([*map(role_of, nodes.label_sets)], np.int8)
    return gathered(of_label_sets, nodes.labels)


def text_of(node: Node, name: str, text: NodeText) -> str:
    """Return a field of a node as text, empty where it has none.

    `text` says how a node becomes its content.
    """
    given = node.properties
    if name == CONTENT:
        return text.text(node).strip()
    if name == "columns":  # each header, with its description where there is one
        described = given.get("column_descriptions") or {}
        parts = [
            (str(one), str(described.get(one) or ""))
            for one in given.get("table_header") or ()
            if one
        ]
        return ", ".join(
            f"{header}: {about}" if about else header for header, about in parts
        ).strip()
    values = (given.get(key) for key in _PROPERTIES.get(name, (name,)))
    found = next(
        (value.strip() for value in values if isinstance(value, str) and value.strip()),
        "",
    )
    return found or (node.name.strip() if name == "title" else "")
