"""What is known about a node besides its text, and the contract of whoever finds it out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
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
    topic
        What the node is about, in a phrase or a sentence.
    title
        A title, for a node that has none.
    entities
        Names of what the node mentions, each once, in order of appearance.
    events
        What happens in it, one short sentence each.
    summary
        A few sentences.
    description
        What a table or an object is.
    column_descriptions
        For a table: what each column holds, by its header.
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
        listed = {key: [*getattr(self, key)] for key in ("entities", "events")}
        pairs = {"column_descriptions": {**self.column_descriptions}, "relationships": [*map(list, self.relationships)]}
        texts = {key: getattr(self, key) for key in ("topic", "title", "summary", "description")}
        return {key: value for key, value in {**texts, **listed, **pairs}.items() if value}


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

    What the user gave wins over what is extracted. A field that an earlier call filled is filled anew.

    Raises
    ------
    ModelError
        If the extractor does not answer with one `Metadata` a node.
    """
    bare = [without_extracted(node) for node in nodes]
    answered = extractor.extract(bare)
    if len(answered) != len(bare):
        raise ModelError(f"the metadata extractor answered for {len(answered)} of {len(bare)} nodes")
    described = []
    for node, metadata in zip(bare, answered, strict=True):
        given = node.properties
        new = {name: value for name, value in metadata.to_properties().items() if not given.get(name)}
        name = node.name or new.get("title", "")
        filled = [*sorted(new), *(["name"] if name != node.name else [])]
        properties = {**given, **new, EXTRACTED: filled} if new else given
        described.append(replace(node, name=name, properties=properties))
    return described


def without_extracted(node: Node) -> Node:
    """Return the node as it was before `describe`."""
    if not (filled := node.properties.get(EXTRACTED)):
        return node
    gone = {*filled, EXTRACTED} - {"name"}  # which stands for the node's: a property of this name is the user's
    properties = {key: value for key, value in node.properties.items() if key not in gone}
    return replace(node, name="" if "name" in filled else node.name, properties=properties)
