"""The part of a text that says most about a query."""

from __future__ import annotations

import re
from functools import lru_cache

from graphret.search.analysis import Analyzer
from graphret.text import tokenize

_ANALYZER = Analyzer()
_MARK = "…"
_MATCHES = 200
_LEAST = 10  # characters worth showing
_CONTEXT = 3  # one part in three of the room that is left goes before the match


def query_terms(query: str | None) -> frozenset[str]:
    """Return the terms of a query that excerpts turn around."""
    return frozenset(_ANALYZER(query)) if query else frozenset()


def excerpt(text: str, terms: frozenset[str], longest: int) -> str:
    """Return at most `longest` characters of a text on one line, around the place where most terms stand together.

    Without a term in the text it is its beginning; nothing where `longest` is next to none. Characters that cannot be
    seen are left out.
    """
    if longest < _LEAST:
        return ""
    clean = one_line(text)
    if len(clean) <= longest:
        return clean
    begin, end = _window(clean, terms, longest - 2 * len(_MARK))
    if begin:
        space = clean.find(" ", begin, begin + 20)
        begin = space + 1 if space >= 0 else begin
    if end < len(clean):
        space = clean.rfind(" ", max(end - 20, begin + 1), end)
        end = space if space >= 0 else end
    return (_MARK if begin else "") + clean[begin:end] + (_MARK if end < len(clean) else "")


def one_line(text: str) -> str:
    """Return a text with its white space collapsed and without characters that cannot be seen."""
    line = " ".join(text.split())
    return line if line.isprintable() else "".join(c for c in line if c.isprintable() or c in "\u200c\u200d")


def _window(text: str, terms: frozenset[str], size: int) -> tuple[int, int]:
    size = max(size, 1)
    best, first, last = 0, 0, 0
    matches = _matches(text, terms) if terms else []
    for i, (start, _, _) in enumerate(matches):
        together = set()
        for _, end, term in matches[i:]:
            if end - start > size:
                break
            together.add(term)
            if len(together) > best:
                best, first, last = len(together), start, end
    begin = max(0, min(first - (size - (last - first)) // _CONTEXT, len(text) - size))
    return begin, begin + size


def _matches(text: str, terms: frozenset[str]) -> list[tuple[int, int, str]]:
    """Return where terms stand in a text, ``(start, end, term)``; words that begin alike are looked at closely."""
    found = []
    text = text.replace(_MARK, " ")  # of an excerpt, no word; without it most are ASCII
    if text.isascii():
        words = [(m[0].lower(), m.start(), m.end()) for m in _beginning(terms).finditer(text)]
    else:
        starts = tuple(map(_stable, terms))
        words = [word for word in tokenize(text) if word[0].startswith(starts)]
    for word, start, end in words:
        term = next(iter(_ANALYZER(word)), None)
        if term in terms:
            found.append((start, end, term))
            if len(found) == _MATCHES:
                break
    return found


@lru_cache(maxsize=64)
def _beginning(terms: frozenset[str]) -> re.Pattern[str]:
    starts = "|".join(map(re.escape, sorted(map(_stable, terms))))
    return re.compile(rf"(?<![a-z0-9])(?:{starts})[a-z0-9]*", re.IGNORECASE | re.ASCII)


def _stable(term: str) -> str:
    """How the words begin that have a term: stemming may change its last letter."""
    return term[:-1] if len(term) > 3 else term
