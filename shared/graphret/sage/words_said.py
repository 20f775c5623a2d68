"""Which nodes say a name: the words of every node, in their order."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphret.change import Change
from graphret.numeric import unique
from graphret.sage.codes import CodeLists, Codes
from graphret.search.postings import Postings
from graphret.storage import Bundle, Parts
from graphret.text import words as words_of
from graphret.types import Node

# Stands between the stretches of a node's text: no name goes across.
_BREAK = ""
_CONTEXT = ("section", "introduction", "table_context")


@dataclass(frozen=True, eq=False)
class WordsSaid:
    """The words of nodes, in titles, texts, cells and what stands around these.

    What a search finds is a matter of its settings; here no word is left out, and none
    cut to its stem.
    """

    vocabulary: Codes = field(default_factory=lambda: Codes([_BREAK]))
    said: CodeLists = field(default_factory=lambda: CodeLists.of([]))
    postings: Postings = field(default_factory=lambda: Postings.of(CodeLists.of([])))

    def read(self, node: Node) -> list[int]:
        """Return the words of a node, by their numbers."""
        return self.vocabulary.of_each(_words(node))

    def changed(self, change: Change, fresh: CodeLists | None = None) -> WordsSaid:
        """Return the words after a change.

        `fresh` is what `read` finds in the fresh nodes, where it is known.
        """
        if fresh is None:
            (fresh,) = CodeLists.read(change.nodes, self.read)
        said = self.said.changed(change, fresh)
        postings = self.postings.changed(change.splice) or Postings.of(said)
        return WordsSaid(self.vocabulary.packed(), said, postings)

    def parts(self) -> Parts:
        """The words as they are saved."""
        parts = self.said.parts()
        parts.add("vocabulary", self.vocabulary.parts())
        parts.add("postings", self.postings.parts(self.said))
        return parts

    @classmethod
    def from_bundle(cls, bundle: Bundle) -> WordsSaid:
        """Open saved words."""
        vocabulary = Codes.from_bundle(bundle.sub("vocabulary"))
        said = CodeLists.from_bundle(bundle)
        postings = Postings.from_bundle(bundle.sub("postings"), len(said))
        return cls(vocabulary, said, postings)

    def saying(self, phrases: Iterable[Sequence[str]]) -> NDArray[np.int64]:
        """Return the nodes, ascending, that say one of the phrases, word by word."""
        coded = ((phrase, self.vocabulary.find(phrase)) for phrase in phrases)
        sought = [codes for phrase, codes in coded if 0 < len(phrase) == len(codes)]
        rarest = [min(codes.tolist(), key=self.postings.count) for codes in sought]
        nodes_by_word = self._nodes_by_word(unique(np.asarray(rarest, np.int64)))
        found = [np.zeros(0, np.int64)]
        for codes, word in zip(sought, rarest, strict=True):
            found.append(self._following(codes, unique(nodes_by_word[word])))
        return unique(*found)

    def _following(
        self, codes: NDArray[np.int64], nodes: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Return those of some nodes that say some words one behind the other."""
        words, starts = self.said.take(nodes).pack()
        owners = np.repeat(nodes, np.diff(starts))
        at = np.arange(max(len(words) - len(codes) + 1, 0))
        for offset, word in enumerate(codes.tolist()):  # a break stands between nodes
            at = at[words[at + offset] == word]
        return owners[at]

    def covering(
        self,
        names: Collection[Sequence[str]],
        rarity: Callable[[str], float],
        share: float,
        among: NDArray[np.bool_],
    ) -> NDArray[np.int64]:
        """Return, ascending, the nodes that say enough words of one of some names.

        Enough words make up `share` of the name's rarity. `among`, ``(n,)``, says which
        nodes are considered.
        """
        bags = [frozenset(name) for name in names]
        words = sorted(frozenset().union(*bags))
        nodes_by_word = {
            self.vocabulary[code]: nodes[among[nodes]]
            for code, nodes in self._nodes_by_word(self.vocabulary.find(words)).items()
        }
        none = np.zeros(0, np.int64)
        found = [none]
        for bag in bags:
            covered, said = np.zeros(len(among)), [none]
            for word in bag & nodes_by_word.keys():
                covered[nodes_by_word[word]] += rarity(word)  # once a node
                said.append(nodes_by_word[word])
            saying = unique(*said)
            enough = share * sum(map(rarity, bag))
            found.append(saying[covered[saying] >= enough])
        return unique(*found)

    def _nodes_by_word(self, codes: NDArray[np.int64]) -> dict[int, NDArray[Any]]:
        """Return the nodes that say each of some words, ascending."""
        found = self.postings.occurrences(codes, self.said)
        said_by = np.split(found.owners, found.starts[1:-1])
        return dict(zip(codes.tolist(), said_by, strict=False))


def _words(node: Node) -> Iterator[str]:
    """Yield the words of a node, with a break behind each stretch of its text."""
    given = node.properties
    header = " ".join(str(cell) for cell in given.get("table_header") or ())
    around = [node.name, header, *(str(given.get(key) or "") for key in _CONTEXT)]
    cells = (str(cell) for row in given.get("table_rows") or () for cell in row)
    for stretch in (*around, node.text, *cells):
        if stretch:
            yield from words_of(stretch)
            yield _BREAK
