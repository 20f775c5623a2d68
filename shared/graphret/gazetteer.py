"""Finding many names in a text at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from graphret.text import Token, tokenize


class Match(NamedTuple):
    """A name found in a text: which name, and where in the text as it was given."""

    name_index: int
    start: int
    end: int


class Gazetteer:
    """A list of names that can be looked for in texts, in time linear in the text.

    Names and texts are compared word by word as `graphret.text.normalize_name` makes them, so that case, accents and
    punctuation do not matter and a name is never found inside a word. Of two names that normalise to the same words
    the first is found; names with no letter or digit are never found.

    Runs of words are looked up by hash, told apart by their first two words. An Aho-Corasick automaton was tried and
    was slower; pyahocorasick's `iter_long` also misses matches behind a longer name that nearly matched.

    Parameters
    ----------
    names
        The names; matches refer to them by position.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._names: dict[str, int] = {}
        self._lengths: dict[str, tuple[int, ...]] = {}  # of the names of two words or more, by their first two
        lengths: dict[str, set[int]] = {}
        for index, name in enumerate(names):
            words = [word for word, _, _ in tokenize(name)]
            if not words:
                continue
            self._names.setdefault(" ".join(words), index)
            if len(words) > 1:
                lengths.setdefault(" ".join(words[:2]), set()).add(len(words))
        self._first_words = {pair.split(" ", 1)[0] for pair in lengths}
        self._lengths = {pair: tuple(sorted(found, reverse=True)) for pair, found in lengths.items()}

    def __len__(self) -> int:
        """How many different names can be found."""
        return len(self._names)

    def find(self, text: str) -> list[Match]:
        """Return the names in a text, from left to right, the longest where several begin, none overlapping."""
        return self.find_tokens(tokenize(text))

    def find_tokens(self, tokens: Sequence[Token]) -> list[Match]:
        """Do as `find` with a text that `graphret.text.tokenize` has already read."""
        found = self.find_words([word for word, _, _ in tokens])
        return [Match(index, tokens[first][1], tokens[last - 1][2]) for index, first, last in found]

    def find_words(self, words: Sequence[str]) -> list[Match]:
        """Do as `find` with normalised words; the places in the matches are those of words."""
        names, first_words = self._names, self._first_words
        matches: list[Match] = []
        free = 0
        for i, word in enumerate(words):
            if i < free:
                continue
            length = self._longest(words, i) if word in first_words else 0
            if not length and word in names:
                length = 1
            if length:
                free = i + length
                matches.append(Match(names[word if length == 1 else " ".join(words[i:free])], i, free))
        return matches

    def _longest(self, words: Sequence[str], i: int) -> int:
        """Return the length of the longest name of two words or more that begins at word i, or 0."""
        left = len(words) - i
        for length in self._lengths.get(" ".join(words[i : i + 2]), ()):
            if length <= left and " ".join(words[i : i + length]) in self._names:
                return length
        return 0
