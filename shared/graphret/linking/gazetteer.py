"""`Gazetteer`: many names, found in a text at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from graphret.text import Token, words


class NameMatch(NamedTuple):
    """A name found in a text: which name, and where in the text as it was given."""

    name_index: int
    start: int
    end: int


class Gazetteer:
    """A list of names that can be looked for in texts.

    Names and texts are compared word by word as `graphret.text.words` makes them. Of
    two names of the same words the first is found. At each word of a text only the
    lengths are tried that names of the same first two words have.
    """

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._names: dict[str, int] = {}
        self._lengths: dict[
            str, tuple[int, ...]
        ] = {}  # of names, by their first two words, the longest first
        self._first: set[str] = set()  # words
        self._next = 0
        for name in names:
            self.add(name)

    def add(self, name: str) -> int | None:
        """Append a name, and return the position that its matches have, which is its
        equal's; `None` without a word.
        """
        return self.add_words(words(name))

    def add_words(self, own: Sequence[str]) -> int | None:
        """Do as `add` with the words of a name, as `graphret.text.words` makes them."""
        position, self._next = self._next, self._next + 1
        if not own:
            return None
        self._first.add(own[0])
        head, known = " ".join(own[:2]), self._lengths
        if len(own) > 1 and len(own) not in known.get(head, ()):
            known[head] = tuple(sorted((*known.get(head, ()), len(own)), reverse=True))
        return self._names.setdefault(" ".join(own), position)

    def discard(self, name: str) -> None:
        """Find a name, and those equal to it, no longer."""
        self._names.pop(" ".join(words(name)), None)

    def __copy__(self) -> Gazetteer:
        """Return a list of the same names, which changes by itself."""
        other = object.__new__(Gazetteer)
        other._names, other._lengths = self._names.copy(), self._lengths.copy()
        other._first, other._next = self._first.copy(), self._next
        return other

    def position(self, name: str) -> int | None:
        """Return the position that the matches of a name have, `None` if it is not
        among these.
        """
        return self._names.get(" ".join(words(name)))

    def find_tokens(self, tokens: Sequence[Token]) -> list[NameMatch]:
        """Return the names in a text that `tokenize` has read, from left to right, the
        longest where several begin.
        """
        found = self.find_words([word for word, _, _ in tokens])
        return [
            NameMatch(index, tokens[first][1], tokens[last - 1][2])
            for index, first, last in found
        ]

    def find_words(self, words: Sequence[str]) -> list[NameMatch]:
        """Do as `find_tokens` with normalised words; the places in the matches are
        those of words.
        """
        matches: list[NameMatch] = []
        for match in self.find_every(words):
            if not matches or match.start >= matches[-1].end:
                matches.append(match)
        return matches

    def find_every(self, words: Sequence[str]) -> list[NameMatch]:
        """Return every name in normalised words, overlapping or not, by where it
        begins, the longest first.
        """
        names, lengths, first, matches = (
            self._names.get,
            self._lengths.get,
            self._first,
            [],
        )
        for start in [i for i, word in enumerate(words) if word in first]:
            word = words[start]
            following = words[start + 1] if start + 1 < len(words) else ""
            for length in lengths(f"{word} {following}", ()):
                if start + length > len(words):
                    continue
                if (
                    position := names(" ".join(words[start : start + length]))
                ) is not None:
                    matches.append(NameMatch(position, start, start + length))
            if (position := names(word)) is not None:
                matches.append(NameMatch(position, start, start + 1))
        return matches
