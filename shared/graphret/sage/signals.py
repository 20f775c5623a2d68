"""The signals that SAGE compares nodes by, as data, and the texts and sets that they compare."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from graphret.search.fields import NodeText
from graphret.types import Node

DOCUMENT, TABLE, RECORD = 0, 1, 2
"""Roles of nodes: labelled "Document", labelled "Table", and all others."""

ROLES = ("document", "table", "record")

#: Pairs of roles that are compared, by name.
PAIR_KINDS: Mapping[str, tuple[int, int]] = {
    "document-document": (DOCUMENT, DOCUMENT),
    "table-table": (TABLE, TABLE),
    "document-table": (DOCUMENT, TABLE),
    "record-record": (RECORD, RECORD),
}

Measure: TypeAlias = Literal["cosine", "jaccard", "count"]

_TEXTS: Mapping[int, tuple[str, ...]] = {
    DOCUMENT: ("topic", "content"),
    TABLE: ("topic", "content", "title", "columns", "description", "summary"),
    RECORD: ("title", "content"),
}
#: Fields that hold sets of names.
SETS = ("entities", "events", "relationships")


@dataclass(frozen=True, slots=True)
class Signal:
    """A similarity of two nodes: which field of the left one with which of the right one, by which measure."""

    name: str
    kind: str
    left: str
    right: str
    measure: Measure = "cosine"

    @property
    def roles(self) -> tuple[int, int]:
        """The roles of the two sides."""
        return PAIR_KINDS[self.kind]


def _signals(kind: str, *cosines: tuple[str, str, str]) -> tuple[Signal, ...]:
    return tuple(Signal(name, kind, left, right) for name, left, right in cosines)


#: Every signal, by the names of SAGE, table 3 and appendix B.
SIGNALS: tuple[Signal, ...] = (
    *_signals(
        "document-document",
        ("topic_similarity", "topic", "topic"),
        ("content_similarity", "content", "content"),
    ),
    Signal("entity_relationship_overlap", "document-document", "relationships", "relationships", measure="jaccard"),
    Signal("entity_count", "document-document", "entities", "entities", measure="count"),
    Signal("event_count", "document-document", "events", "events", measure="count"),
    *_signals(
        "table-table",
        ("topic_similarity", "topic", "topic"),
        ("content_similarity", "content", "content"),
        ("column_similarity", "columns", "columns"),
        ("title_similarity", "title", "title"),
        ("description_similarity", "description", "description"),
    ),
    Signal("entity_count", "table-table", "entities", "entities", measure="count"),
    *_signals(
        "document-table",
        ("topic_similarity", "topic", "topic"),
        ("content_similarity", "content", "content"),
        ("column_similarity", "content", "columns"),
        ("topic_title_similarity", "topic", "title"),
        ("topic_summary_similarity", "topic", "summary"),
    ),
    Signal("entity_count", "document-table", "entities", "entities", measure="count"),
    *_signals(
        "record-record",
        ("title_similarity", "title", "title"),
        ("description_similarity", "content", "content"),
    ),
    Signal("entity_count", "record-record", "entities", "entities", measure="count"),
)

#: What connects nodes unless told otherwise: section 2.1 B, with the title and description of tables as in its tables
#: 17 and 19. Table 3 also measures topics and contents of tables; name them to use them.
PAPER_SIGNALS: Mapping[str, tuple[str, ...]] = {
    "document-document": (
        "topic_similarity",
        "content_similarity",
        "entity_relationship_overlap",
        "entity_count",
        "event_count",
    ),
    "table-table": ("column_similarity", "title_similarity", "description_similarity", "entity_count"),
    "document-table": ("column_similarity", "topic_title_similarity", "topic_summary_similarity", "entity_count"),
    "record-record": ("title_similarity", "description_similarity", "entity_count"),
}


def chosen_signals(names: Mapping[str, tuple[str, ...]]) -> list[Signal]:
    """Return the signals of given names, by kind of pair, in the order of `SIGNALS`."""
    return [signal for signal in SIGNALS if signal.name in names.get(signal.kind, ())]


def role_of(labels: Collection[str]) -> int:
    """Return the role of a node with these labels."""
    return DOCUMENT if "Document" in labels else TABLE if "Table" in labels else RECORD


def texts_of(node: Node, role: int, text: NodeText) -> dict[str, str]:
    """Return the texts that a node is compared by, by field; those that are empty are left out."""
    texts = {name: _text(node, name, text).strip() for name in _TEXTS[role]}
    return {name: value for name, value in texts.items() if value}


def _text(node: Node, name: str, text: NodeText) -> str:
    given = node.properties
    if name == "content":
        return text.text(node)
    if name == "title":
        return _string(given, "title") or node.name
    if name == "columns":
        return columns_text(given)
    if name == "description":
        return _string(given, "description", "summary")
    if name == "summary":
        return _string(given, "summary", "description")
    return _string(given, name)


def columns_text(properties: Mapping[str, Any]) -> str:
    """Return the columns of a table as text: each header, with its description where there is one."""
    described = properties.get("column_descriptions") or {}
    parts = [(str(name), str(described.get(name) or "")) for name in properties.get("table_header") or () if name]
    return ", ".join(f"{name}: {about}" if about else name for name, about in parts)


def _string(properties: Mapping[str, Any], *names: str) -> str:
    for name in names:
        value = properties.get(name)
        if isinstance(value, str) and value:
            return value
    return ""


def set_of(properties: Mapping[str, Any], name: str) -> list[str]:
    """Return the names in a set of a node, a relationship as one string."""
    values = properties.get(name) or ()
    if isinstance(values, str):
        return [values]
    if name == "relationships":
        return [" | ".join(map(str, triple)) for triple in values if isinstance(triple, list | tuple)]
    return [value for value in values if isinstance(value, str)]
