"""`Gazetteer`: many names, found in a text at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from itertools import chain
from typing import NamedTuple

import numpy as np

from graphret.columns import TextArray
from graphret.linking.layered import Layered
from graphret.storage import Bundle, Parts
from graphret.text import words
from graphret.text_index import SavedLists, TextIndex, starts_of


class NameMatch(NamedTuple):
    """A name found in words: which name, and its first word and the one behind it."""

    name_index: int
    start: int
    end: int


class Gazetteer:
    """A list of names to find in texts.

    Names and texts are compared by the words of `graphret.text.words`. Of two names
    with the same words the first is found. At each word of a text only the lengths of
    names with the same first two words are tried.

    Names come and go by `add` and `discard`, or else by `changed`, which makes the next
    list and shares with it what stays the same.
    """

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._added: dict[str, int] = {}
        self._names = Layered[str, int](self._added)
        # The lengths of names by their first two words, the longest first; the first
        # words of these names; the names of one word. All stay when a name goes, as
        # they only say where to look.
        self._lengths: dict[str, tuple[int, ...]] = {}
        self._saved_lengths: Mapping[str, tuple[int, ...]] | None = None
        self._first: set[str] = set()
        self._single: set[str] = set()
        self._next = 0
        for name in names:
            self.add(name)

    def parts(self) -> Parts:
        """What is saved beside the names."""
        saved = self._saved_lengths or {}
        lengths = dict(saved.items()) | self._lengths
        parts = Parts(
            {
                "starts": starts_of(lengths.values()),
                "lengths": np.fromiter(chain.from_iterable(lengths.values()), np.int32),
            }
        )
        parts.add("heads", TextIndex.of(TextArray.of_strings(lengths)).parts())
        parts.add_texts("first", TextArray.of_strings(sorted(self._first)))
        parts.add_texts("single", TextArray.of_strings(sorted(self._single)))
        return parts

    @classmethod
    def from_bundle(cls, bundle: Bundle, names: TextIndex) -> Gazetteer:
        """Open what was saved beside names; they can be changed by `changed` alone."""
        gazetteer = cls()
        gazetteer._names, gazetteer._next = Layered(names), len(names)
        heads = TextIndex.from_bundle(bundle.sub("heads"))
        starts, lengths = bundle.arrays["starts"], bundle.arrays["lengths"]
        gazetteer._saved_lengths = SavedLists(
            heads, starts, lambda at: lengths[at].tolist()
        )
        gazetteer._first = set(bundle.texts("first").tolist())
        gazetteer._single = set(bundle.texts("single").tolist())
        return gazetteer

    def add(self, name: str) -> int | None:
        """Append a name and return the position of its matches, `None` without a word.

        Equal names share the position of the first one.
        """
        return self.add_words(words(name))

    def add_words(self, of_name: Sequence[str]) -> int | None:
        """Do as `add` with the words of a name, as `graphret.text.words` makes them."""
        position, self._next = self._next, self._next + 1
        if not of_name:
            return None
        self._look_for(of_name)
        return self._added.setdefault(" ".join(of_name), position)

    def _look_for(self, of_name: Sequence[str]) -> None:
        """Try the length of a name where its first words stand."""
        first, *others = of_name
        if not others:
            self._single.add(first)
            return
        self._first.add(first)
        head, length = f"{first} {others[0]}", len(of_name)
        lengths = self._lengths_of(head)
        if length not in lengths:
            self._lengths[head] = tuple(sorted((*lengths, length), reverse=True))

    def _lengths_of(self, head: str, default: tuple[int, ...] = ()) -> tuple[int, ...]:
        """Return the lengths of the names that begin with two words."""
        if (known := self._lengths.get(head)) or self._saved_lengths is None:
            return known or default
        return self._saved_lengths.get(head, default)

    def changed(
        self, come: Iterable[Sequence[str]], gone: Iterable[Sequence[str]]
    ) -> Gazetteer:
        """Return the gazetteer with some names added, and others removed.

        They are given by their words. Neither list can be altered any more.
        """
        changes: dict[str, int | None] = {" ".join(name): None for name in gone}
        after = copy(self)
        for of_name in come:
            self._look_for(of_name)
            if (name := " ".join(of_name)) not in self._names:
                changes[name], after._next = after._next, after._next + 1
        after._names = self._names.changed(changes)
        return after

    def discard(self, name: str) -> None:
        """Remove a name, and those equal to it."""
        self._added.pop(" ".join(words(name)), None)

    def __iter__(self) -> Iterator[str]:
        """Go through the names, each as its words with spaces between."""
        return iter(self._names)

    def position(self, name: str) -> int | None:
        """Return the position of a name's matches, `None` for an unknown name."""
        return self._names.get(" ".join(words(name)))

    def find_words(self, words: Sequence[str]) -> list[NameMatch]:
        """Return the names in normalised words, from left to right, without overlaps.

        Where several begin, the longest is returned.
        """
        matches: list[NameMatch] = []
        for match in self.find_every(words):
            if not matches or match.start >= matches[-1].end:
                matches.append(match)
        return matches

    def find_every(self, words: Sequence[str]) -> list[NameMatch]:
        """Return every name in normalised words, overlapping ones too.

        They are ordered by their first word, then the longest first.
        """
        position_of, first, single = self._names.getter, self._first, self._single
        lengths_of = (
            self._lengths.get if self._saved_lengths is None else self._lengths_of
        )
        places = [i for i, word in enumerate(words) if word in first or word in single]
        matches: list[NameMatch] = []
        for start in places:
            word, lengths = words[start], tuple[int, ...]()
            if word in first and start + 1 < len(words):
                lengths = lengths_of(f"{word} {words[start + 1]}", ())
            for length in (*lengths, 1) if word in single else lengths:
                end = start + length
                if end <= len(words):
                    position = position_of(" ".join(words[start:end]))
                    if position is not None:
                        matches.append(NameMatch(position, start, end))
        return matches
