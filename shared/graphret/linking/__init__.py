"""From what a question calls things to the nodes of a graph, with no language model."""

from graphret.linking.linker import LinkedNode, Linker
from graphret.linking.mentions import MentionSpan
from graphret.linking.names import NameIndex

__all__ = ["LinkedNode", "Linker", "MentionSpan", "NameIndex"]
