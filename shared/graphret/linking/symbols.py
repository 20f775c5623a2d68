"""Names of symbols alone, such as *$* or *!!!*: they have no word to be found by."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Collection
from typing import NamedTuple

_SYMBOL = re.compile(r"[^\w\s]|_")
_QUOTES = frozenset("'\"`‘’“”‚„«»‹›")  # what opens in one language closes in another
_ENDS = frozenset("?!.,;:…。、！？：；")
_SIGNS = _QUOTES | _ENDS | frozenset("-–—¿¡()[]{}")
_REACH = 8  # quotes and such that are looked past beside a name


class SymbolMatch(NamedTuple):
    """A name of symbols found in a text, and whether it is all that is marked there as a name."""

    name: str
    start: int
    end: int
    marked: bool


class Symbols:
    """Names of symbols alone, to be looked for in texts in time linear in the text."""

    def __init__(self) -> None:
        self._names: set[str] = set()
        self._lengths: Counter[int] = Counter()  # how many names are so long

    def __len__(self) -> int:
        """How many there are."""
        return len(self._names)

    def add(self, name: str) -> None:
        """Add a name, one that `as_symbols` has returned."""
        if name not in self._names:
            self._names.add(name)
            self._lengths[len(name)] += 1

    def discard(self, name: str) -> None:
        """Find a name no longer."""
        if name in self._names:
            self._names.remove(name)
            self._lengths[len(name)] -= 1
            self._lengths += Counter()  # drops what is none

    def find(self, text: str, marks: Collection[tuple[int, int]]) -> list[SymbolMatch]:
        """Return the names in a text, overlapping or not, by where they begin, the longest first.

        A name is found where it is all that one of `marks` encloses, and where it stands between white space or
        brackets, quotes and the marks that end a sentence set aside ("in $?"). What is itself such marks, or dashes,
        must be more than one and have none behind it: nothing is found in "who is he ?".
        """
        if not self._names:
            return []
        lengths = sorted(self._lengths, reverse=True)
        found = []
        for match in _SYMBOL.finditer(text):
            start = match.start()
            for end in (start + length for length in lengths if start + length <= len(text)):
                name = text[start:end]
                if name in self._names and ((marked := (start, end) in marks) or _stands_alone(name, text, start, end)):
                    found.append(SymbolMatch(name, start, end, marked))
        return found


def as_symbols(name: str) -> str:
    """Return a name of symbols alone as it is compared: white space collapsed."""
    return " ".join(name.split())


def are_signs(name: str) -> bool:
    """Whether symbols are all such as hold a sentence together: ends, dashes, quotes and brackets."""
    return _SIGNS.issuperset(name.replace(" ", ""))


def _stands_alone(name: str, text: str, start: int, end: int) -> bool:
    signs = are_signs(name)
    if signs and len(name) == 1:
        return False
    before = _beside(text, start - 1, -1, _QUOTES)
    after = _beside(text, end, 1, _QUOTES if signs else _QUOTES | _ENDS)
    return (before.isspace() or unicodedata.category(before) == "Ps") and (
        after.isspace() or unicodedata.category(after) == "Pe"
    )


def _beside(text: str, at: int, step: int, passed: Collection[str]) -> str:
    """The character at a place, or the next one that is not passed over; a space for the end of the text."""
    for _ in range(_REACH):
        if not 0 <= at < len(text):
            return " "
        if text[at] not in passed:
            break
        at += step
    return text[at] if 0 <= at < len(text) else " "
