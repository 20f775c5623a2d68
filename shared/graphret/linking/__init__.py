"""From what a question calls things to the nodes of a graph, with no language model."""

from graphret.linking.linker import Linked, Linker
from graphret.linking.mentions import Spot
from graphret.linking.names import NameIndex

__all__ = ["Linked", "Linker", "NameIndex", "Spot"]
