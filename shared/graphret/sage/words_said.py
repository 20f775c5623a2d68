"""Which nodes say a name: the words of every node, in their order."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from graphret.change import Change
from graphret.edges import row_starts
from graphret.sage.codes import CodeLists, Codes, flags
from graphret.splice import ranges
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

    vocabulary: Codes[str] = field(default_factory=lambda: Codes([_BREAK]))
    said: CodeLists = field(default_factory=lambda: CodeLists.of([]))

    def changed(self, change: Change) -> WordsSaid:
        """Return the words after a change, reading the fresh nodes."""
        lists = (self.vocabulary.of_each(_words(node)) for node in change.nodes)
        return WordsSaid(
            self.vocabulary, self.said.changed(change, CodeLists.of(lists))
        )

    def parts(self) -> Parts:
        """The words as they are saved."""
        parts = self.said.parts()
        parts.add_texts("vocabulary", self.vocabulary.texts())
        return parts

    @classmethod
    def from_bundle(cls, bundle: Bundle) -> WordsSaid:
        """Open saved words."""
        vocabulary = Codes.from_texts(bundle.texts("vocabulary"))
        return cls(vocabulary, CodeLists.from_bundle(bundle))

    def saying(self, phrases: Iterable[Sequence[str]]) -> NDArray[np.int64]:
        """Return the nodes, ascending, that say one of the phrases, word by word."""
        known = ((phrase, self.vocabulary.find(phrase)) for phrase in phrases)
        asked = [codes for phrase, codes in known if 0 < len(phrase) == len(codes)]
        places, starts = self._places(np.asarray([codes[0] for codes in asked], int))
        words, found = self.said.codes, [np.zeros(0, np.int64)]
        for codes in asked:
            at = places[ranges(starts, codes[:1])]
            at = at[at + len(codes) <= len(words)]
            for offset, word in enumerate(codes[1:].tolist(), 1):
                at = at[words[at + offset] == word]
            found.append(at)
        return np.unique(self._owners(np.concatenate(found)))

    def covering(
        self,
        bags: Collection[Collection[str]],
        rarity: Callable[[str], float],
        share: float,
        among: NDArray[np.bool_],
    ) -> NDArray[np.int64]:
        """Return the nodes among some, ``(n,)``, that say words of one of the bags
        which make up this share of its rarity, ascending.
        """
        every = self.vocabulary.find({word for bag in bags for word in bag})
        places, starts = self._places(every)
        found = np.zeros(len(among), dtype=bool)
        for bag in bags:
            covered = np.zeros(len(among))
            for word in bag:
                said = places[ranges(starts, self.vocabulary.find([word]))]
                covered[self._owners(said)] += rarity(word)  # once a node
            found |= covered >= share * sum(map(rarity, bag))
        return np.flatnonzero(found & among)

    def _places(
        self, codes: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the places of some words, those of each in turn, and where each word's
        begin, by its number.
        """
        words = self.said.codes if len(codes) else np.zeros(0, np.int32)
        places = np.flatnonzero(flags(codes, len(self.vocabulary))[words])
        order = np.argsort(words[places], kind="stable")
        return places[order], row_starts(words[places], len(self.vocabulary))

    def _owners(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.searchsorted(self.said.starts, places, side="right") - 1


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
