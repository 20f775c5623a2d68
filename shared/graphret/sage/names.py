"""What nodes are called, and which words can be a name that a text says."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from graphret.corpus.metadata import named_by_lead
from graphret.stopwords import NAME_STOP_WORDS
from graphret.text import normalize_name, short_names
from graphret.types import Node

#: Longer names are not looked for.
MAX_NAME_WORDS = 12


def names_of(node: Node) -> list[str]:
    """Return by what others may call a node: its name first, then what else it is
    called.

    A name that was made of the node's own first words, for want of another, is empty
    here: it can be shown, and nobody else calls the node so. A record is also called by
    its id; those of chunks and segments are made.
    """
    aliases = node.properties.get("aliases") or ()
    listed = [aliases] if isinstance(aliases, str) else aliases
    given = [alias for alias in listed if isinstance(alias, str)]
    made = "source_id" in node.properties or node.label in ("Document", "Table")
    name = "" if named_by_lead(node) else node.name
    # a year in a cell means no film
    short = [one for one in short_names(name) if not one.isdigit()]
    return [name, *short, *given, *([] if made else [node.id])]


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
