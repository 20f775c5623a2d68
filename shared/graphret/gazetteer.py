"""Finding many names in a text at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import NamedTuple

from ahocorasick_rs import AhoCorasick, Implementation

from graphret.contracts import Lock
from graphret.text import Token, tokenize, words


class Match(NamedTuple):
    """A name found in a text: which name, and where in the text as it was given."""

    name_index: int
    start: int
    end: int


class Gazetteer:
    """A list of names that can be looked for in texts, in time linear in the text.

    Names and texts are compared word by word as `graphret.text.words` makes them, so that case, accents and punctuation
    do not matter and a name is never found inside a word. Of two names of the same words the first is found.

    An Aho-Corasick automaton (Aho and Corasick, 1975) finds all names at all places. As it takes no name once it is
    built, there are several, the later ones smaller, as in a log-structured merge tree (O'Neil et al., 1996): the names
    added since the last search become one when next asked, together with those of the automata before it that hold less
    than twice as many. A name discarded is passed over; when most are, the rest are put into one anew.

    Several threads may search at once; a change must be alone. Matches refer to names by position.
    """

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._names: dict[str, int] = {}
        self._levels: list[tuple[AhoCorasick, list[str]]] = []  # the largest first
        # Each name is in one level or among the new ones; those of them that are no longer in _names are gone.
        self._new: list[str] = []
        self._gone: set[str] = set()
        self._building = Lock()
        self._next = 0
        for name in names:
            self.add(name)

    def __len__(self) -> int:
        """How many different names can be found."""
        return len(self._names)

    def add(self, name: str) -> int | None:
        """Add a name, and return the position that its matches have: a new one, or that of its equal.

        Every call takes a position, as if the name were appended to a list. `None` is for what has no word.
        """
        position, self._next = self._next, self._next + 1
        normal = " ".join(words(name))
        if not normal:
            return None
        known = self._names.setdefault(normal, position)
        if known == position:
            if normal in self._gone:
                self._gone.remove(normal)
            else:
                self._new.append(normal)
        return known

    def discard(self, name: str) -> None:
        """Find a name, and those equal to it, no longer."""
        normal = " ".join(words(name))
        if self._names.pop(normal, None) is not None:
            self._gone.add(normal)

    def position(self, name: str) -> int | None:
        """Return the position that the matches of a name have, `None` if it is not among these."""
        return self._names.get(" ".join(words(name)))

    def find(self, text: str) -> list[Match]:
        """Return the names in a text, from left to right, the longest where several begin, none overlapping."""
        return self.find_tokens(tokenize(text))

    def find_tokens(self, tokens: Sequence[Token]) -> list[Match]:
        """Do as `find` with a text that `tokenize` has read."""
        found = self.find_words([word for word, _, _ in tokens])
        return [Match(index, tokens[first][1], tokens[last - 1][2]) for index, first, last in found]

    def find_words(self, words: Sequence[str]) -> list[Match]:
        """Do as `find` with normalised words; the places in the matches are those of words."""
        matches: list[Match] = []
        for match in self.find_every(words):
            if not matches or match.start >= matches[-1].end:
                matches.append(match)
        return matches

    def find_every(self, words: Sequence[str]) -> list[Match]:
        """Return every name in normalised words, overlapping or not, by where it begins, the longest first."""
        if self._new or len(self._gone) > len(self._names):
            with self._building:
                self._settle()
        text = f" {' '.join(words)} "
        # The space before a word is that behind the one before it: where it is in the text, to which word it is.
        place = {at: word for word, at in enumerate(accumulate((len(word) + 1 for word in words), initial=0))}
        matches = [
            Match(position, place[start], place[end - 1])
            for automaton, names in self._levels
            for index, start, end in automaton.find_matches_as_indexes(text, overlapping=True)
            if (position := self._names.get(names[index])) is not None
        ]
        return sorted(matches, key=lambda match: (match.start, -match.end))

    def _settle(self) -> None:
        """Put the names added since the last search, and those of smaller levels, into an automaton."""
        names, kept, anew = self._new, list(self._levels), len(self._gone) > len(self._names)
        if not (names or anew):  # another thread was first
            return
        while kept and (anew or len(kept[-1][1]) < 2 * len(names)):
            names = kept.pop()[1] + names
        living = sorted(name for name in names if name in self._names)  # in order it is built in half the time
        if living:
            bounded = [f" {name} " for name in living]  # which tells a name from a part of a word
            small = Implementation.ContiguousNFA
            kept.append((AhoCorasick(bounded, store_patterns=False, implementation=small), living))
        self._levels = kept
        self._gone.difference_update(names)
        self._new = []
