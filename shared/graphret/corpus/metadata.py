"""What is known about a node besides its text, and the contract of whoever finds it out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol, runtime_checkable

from graphret.errors import ModelError
from graphret.types import Node

EXTRACTED = "extracted"
"""The property that lists what an extractor filled of a node, its ``name`` included, so that it may fill it again."""


@runtime_checkable
class MetadataExtractor(Protocol):
    """Finds out what SAGE knows of chunks, segments and records (section 2.1 A), as properties of nodes.

    They are ``topic``, ``title``, ``summary`` and, of a table, ``description``; the lists ``entities`` (names of what is
    mentioned) and ``events`` (a sentence each); ``relationships``, lists of subject, relation and object; and
    ``column_descriptions`` by the names of columns. What is empty is unknown.

    Attributes
    ----------
    corpus_wide
        Whether a node's metadata depends on the other nodes of the call, as it does where the corpus' own titles are
        looked for; if so, an update that adds nodes may change the metadata of old ones.
    """

    corpus_wide: bool

    def extract(self, nodes: Sequence[Node]) -> list[dict[str, Any]]:
        """Return the metadata of each node, in their order."""
        ...


def describe(nodes: Sequence[Node], extractor: MetadataExtractor) -> list[Node]:
    """Return the nodes with their metadata among their properties.

    What the user gave wins over what is extracted. A field that an earlier call filled is filled anew. An extractor
    that does not answer for every node is a `ModelError`.
    """
    bare = [without_extracted(node) for node in nodes]
    known = extractor.extract(bare)
    if len(known) != len(bare):
        raise ModelError(f"the metadata extractor answered for {len(known)} of {len(bare)} nodes")
    return [filled(node, own, own.get("title", ""), EXTRACTED) for node, own in zip(bare, known, strict=True)]


def without_extracted(node: Node) -> Node:
    """Return the node as it was before `describe`."""
    return without(node, node.properties.get(EXTRACTED, ()), EXTRACTED)


def filled(node: Node, found: Mapping[str, Any], name: str, listing: str) -> Node:
    """Return a node with the properties and the name that it lacks, which its property `listing` lists."""
    given, empty = node.properties, (None, "", [], {})
    new = {key: value for key, value in found.items() if value not in empty and given.get(key) in empty}
    keys = [*given.get(listing, ()), *new, *(["name"] if name and not node.name else [])]
    return replace(node, name=node.name or name, properties={**given, **new, listing: keys} if keys else given)


def without(node: Node, keys: Sequence[str], listing: str) -> Node:
    """Return a node without properties that `filled` gave it; the name stands for the node's, not for a property."""
    gone = {*keys, listing} - {"name"}
    properties = {key: value for key, value in node.properties.items() if key not in gone}
    return replace(node, name="" if "name" in keys else node.name, properties=properties) if keys else node
