"""From what a question calls things to the nodes of a graph, with no language model."""

from graphret.linking.candidates import DOC, NAME, Linked, LinkRule
from graphret.linking.linker import Linker
from graphret.linking.mentions import Spot
from graphret.linking.names import NameBook

__all__ = ["DOC", "NAME", "LinkRule", "Linked", "Linker", "NameBook", "Spot"]
