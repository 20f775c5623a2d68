"""What is known about a node besides its text, and the contract of whoever finds it out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Protocol, runtime_checkable

from graphret.errors import ModelError
from graphret.types import Node

EXTRACTED = "extracted"
"""The property that lists what an extractor filled of a node, its ``name`` included, so that it may fill it again."""


@dataclass(frozen=True, slots=True)
class Metadata:
    """Metadata of one chunk, segment or record (SAGE, section 2.1 A); what is empty is unknown.

    Parameters
    ----------
    topic, title, summary
        What the node is about, in a phrase or a sentence; a title, for a node that has none; a few sentences.
    entities, events
        Names of what the node mentions, each once, in order of appearance; what happens in it, a short sentence each.
    description, column_descriptions
        What a table is, and what each of its columns holds, by its header.
    relationships
        What the text states, as ``(subject, relation, object)``.
    """

    topic: str = ""
    title: str = ""
    entities: tuple[str, ...] = ()
    events: tuple[str, ...] = ()
    summary: str = ""
    description: str = ""
    column_descriptions: Mapping[str, str] = field(default_factory=dict, hash=False)
    relationships: tuple[tuple[str, str, str], ...] = ()

    def to_properties(self) -> dict[str, Any]:
        """The known fields as JSON values, under the names that nodes use for them."""
        known = {one.name: getattr(self, one.name) for one in fields(self)}
        lists = {key: [*known[key]] for key in ("entities", "events")}
        lists["relationships"] = [[*stated] for stated in self.relationships]
        columns = {"column_descriptions": dict(self.column_descriptions)}
        return {key: value for key, value in {**known, **lists, **columns}.items() if value}


@runtime_checkable
class MetadataExtractor(Protocol):
    """Finds out the `Metadata` of nodes.

    Attributes
    ----------
    corpus_wide
        Whether a node's metadata depends on the other nodes of the call, as it does where the corpus' own titles are
        looked for; if so, an update that adds nodes may change the metadata of old ones.
    """

    corpus_wide: bool

    def extract(self, nodes: Sequence[Node]) -> list[Metadata]:
        """Return the metadata of each node, in their order."""
        ...


def describe(nodes: Sequence[Node], extractor: MetadataExtractor) -> list[Node]:
    """Return the nodes with their metadata among their properties.

    What the user gave wins over what is extracted. A field that an earlier call filled is filled anew. An extractor
    that does not answer with one `Metadata` a node is a `ModelError`.
    """
    bare = [without_extracted(node) for node in nodes]
    answered = extractor.extract(bare)
    if len(answered) != len(bare):
        raise ModelError(f"the metadata extractor answered for {len(answered)} of {len(bare)} nodes")
    known = [metadata.to_properties() for metadata in answered]
    return [filled(node, own, own.get("title", ""), EXTRACTED) for node, own in zip(bare, known, strict=True)]


def without_extracted(node: Node) -> Node:
    """Return the node as it was before `describe`."""
    return without(node, node.properties.get(EXTRACTED, ()), EXTRACTED)


def filled(node: Node, found: Mapping[str, Any], name: str, listing: str) -> Node:
    """Return a node with the properties and the name that it lacks, which its property `listing` lists."""
    given = node.properties
    new = {key: value for key, value in found.items() if value not in (None, "") and given.get(key) in (None, "", [])}
    keys = [*given.get(listing, ()), *new, *(["name"] if name and not node.name else [])]
    return replace(node, name=node.name or name, properties={**given, **new, listing: keys} if keys else given)


def without(node: Node, keys: Sequence[str], listing: str) -> Node:
    """Return a node without properties that `filled` gave it; the name stands for the node's, not for a property."""
    gone = {*keys, listing} - {"name"}
    properties = {key: value for key, value in node.properties.items() if key not in gone}
    return replace(node, name="" if "name" in keys else node.name, properties=properties) if keys else node
