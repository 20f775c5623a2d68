"""What nodes are called, and which words can be a name that a text says."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from graphret.corpus.metadata import named_by_lead
from graphret.stopwords import NAME_STOP_WORDS
from graphret.text import alias_list, normalize_name, short_names
from graphret.types import Node

#: Longer names are not looked for.
MAX_NAME_WORDS = 12


def reference_names(node: Node) -> list[str]:
    """Return the names by which other texts may refer to a node, its name first.

    This is the question that links by names ask. The name is empty where it was made
    from the node's own first words: other texts do not use it. The id of a record
    counts; ids of chunks and segments are generated. For the names that a user may ask
    by see `graphret.linking.names.linkable_names`.
    """
    has_generated_id = "source_id" in node.properties or node.label in (
        "Document",
        "Table",
    )
    name = "" if named_by_lead(node) else node.name
    # A number in a cell, such as a year, does not refer to a film of that name.
    short = [short for short in short_names(name) if not short.isdigit()]
    aliases = alias_list(node.properties.get("aliases"))
    return [name, *short, *aliases, *([] if has_generated_id else [node.id])]


def title_of(node: Node) -> str:
    """Return the title of a node for comparison, empty where it has none of its own."""
    return "" if named_by_lead(node) else normalize_name(node.name)


def parts_of(title: str) -> Iterator[str]:
    """Yield every run of words in a title that is short enough for a name."""
    words = title.split()
    for start in range(len(words)):
        for stop in range(start + 1, min(start + MAX_NAME_WORDS, len(words)) + 1):
            yield " ".join(words[start:stop])


def without_stop_words(words: Iterable[str]) -> frozenset[str]:
    """Return the words that a name cannot do without."""
    return frozenset(word for word in words if word not in NAME_STOP_WORDS)
