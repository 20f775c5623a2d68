"""Which nodes say a name: the words of every node, in their order."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphret.change import Change
from graphret.edges import row_starts
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

    def changed(self, change: Change) -> WordsSaid:
        """Return the words after a change, reading the fresh nodes."""
        lists = (self.vocabulary.of_each(_words(node)) for node in change.nodes)
        said = self.said.changed(change, CodeLists.of(lists))
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
        found = [np.zeros(0, np.int64)]
        for phrase in phrases:
            codes = self.vocabulary.find(phrase)
            if 0 < len(phrase) == len(codes):
                rarest = min(codes.tolist(), key=self.postings.count)
                nodes, _ = self._with(np.asarray([rarest]))
                found.append(self._following(codes, np.unique(nodes)))
        return np.unique(np.concatenate(found))

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
        bags: Collection[Collection[str]],
        rarity: Callable[[str], float],
        share: float,
        among: NDArray[np.bool_],
    ) -> NDArray[np.int64]:
        """Return, ascending, the nodes that say enough words of one of the bags.

        Enough words make up `share` of the bag's rarity. `among`, ``(n,)``, says which
        nodes are considered.
        """
        words = sorted({word for bag in bags for word in bag})
        codes = self.vocabulary.find(words)
        nodes, which = self._with(codes)
        nodes, which = nodes[among[nodes]], which[among[nodes]]
        said_by = np.split(nodes, row_starts(which, len(codes))[1:-1])
        nodes_by_word = {
            self.vocabulary[code]: said
            for code, said in zip(codes.tolist(), said_by, strict=False)
        }
        none, found = np.zeros(0, np.int64), np.zeros(len(among), dtype=bool)
        for bag in bags:
            covered = np.zeros(len(among))
            for word in bag:
                covered[nodes_by_word.get(word, none)] += rarity(word)  # once a node
            found |= covered >= share * sum(map(rarity, bag))
        return np.flatnonzero(found & among)

    def _with(self, codes: NDArray[np.int64]) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Return every node that says some words, as often as it does, and which."""
        return self.postings.occurrences(codes, self.said)


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
