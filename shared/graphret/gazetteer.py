"""Finding many names in a text at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import ahocorasick

from graphret.text import Token, tokenize


class Match(NamedTuple):
    """A name found in a text: which name, and where in the text as it was given."""

    name_index: int
    start: int
    end: int


class Gazetteer:
    """A list of names that can be looked for in texts, in time linear in the text (Aho-Corasick over words).

    Names and texts are compared word by word as `graphret.text.normalize_name` makes them, so that case, accents and
    punctuation do not matter and a name is never found inside a word. Of two names that normalise to the same words
    the first is found; names with no letter or digit are never found.

    Parameters
    ----------
    names
        The names; matches refer to them by position.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._word_ids: dict[str, int] = {}
        self._automaton = ahocorasick.Automaton(ahocorasick.STORE_ANY, ahocorasick.KEY_SEQUENCE)
        for index, name in enumerate(names):
            key = tuple(self._word_ids.setdefault(word, len(self._word_ids) + 1) for word, _, _ in tokenize(name))
            if key and key not in self._automaton:
                self._automaton.add_word(key, (index, len(key)))
        self._size = len(self._automaton)
        if self._size:
            self._automaton.make_automaton()

    def __len__(self) -> int:
        """How many different names can be found."""
        return self._size

    def find(self, text: str) -> list[Match]:
        """Return the names in a text, from left to right, the longest where several begin, none overlapping."""
        return self.find_tokens(tokenize(text))

    def find_tokens(self, tokens: Sequence[Token]) -> list[Match]:
        """Do as `find` with a text that `graphret.text.tokenize` has already read."""
        if not self._size or not tokens:
            return []
        known = self._word_ids
        sequence = tuple([known.get(word, 0) for word, _, _ in tokens])
        return [
            Match(index, tokens[last - length + 1][1], tokens[last][2])
            for last, (index, length) in self._automaton.iter_long(sequence)
        ]
