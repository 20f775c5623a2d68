"""What a tool returns to a model: JSON Lines within a budget of tokens, in which data stays inside JSON strings."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from graphret.schema.text import estimate_tokens
from graphret.search.analysis import Analyzer
from graphret.text import tokenize

# What may begin a control token of a chat template: <|im_end|>, </s>, <｜tool▁sep｜>, [INST]. Servers take such words
# for their own wherever they stand.
_CONTROL = re.compile(r"<(?=/?[A-Za-z_|｜])|\[(?=/?[A-Z_]+\])")
_JOINERS = "\u200c\u200d"  # part of the spelling of Persian, Hindi and emoji
_ANALYZER = Analyzer()
_MARK = "…"
_LEAST = 10  # characters of a text worth showing
_CHARS = 2.5  # in a token, as `estimate_tokens` has it

#: Characters of an error that a model is told.
LONGEST_ERROR = 1_000

#: Tokens of the budget that are left for what a session adds: that the answer is from memory, and the steps left.
ADDED = 30


@dataclass(frozen=True, slots=True)
class Observation:
    """What a tool call came to.

    Parameters
    ----------
    text
        All that a model gets: JSON objects, one a line, the first of which says what follows.
    nodes
        Ids of the nodes shown, in order.
    edges
        ``(source, relation, target)`` of the edges shown.
    total
        How many nodes there are, shown or not.
    failed
        Whether the call could not be run, so that the text says what to do instead.
    """

    text: str
    nodes: tuple[str, ...] = ()
    edges: tuple[tuple[str, str, str], ...] = ()
    total: int = 0
    failed: bool = False


@dataclass(frozen=True, slots=True)
class Entry:
    """A node to be shown: the fields of its line, and its text, which is shortened as far as must be."""

    fields: dict[str, Any]
    text: str = ""


def json_line(value: Any) -> str:
    """Return a JSON value on one line, every character that breaks a line, is invisible or turns the writing escaped.

    What a chat template may take for a control token is escaped too; the value stays the same.
    """
    text = _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(value, ensure_ascii=False))
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in _JOINERS else json.dumps(c)[1:-1] for c in text)


def encodable(text: str) -> str:
    """Return the text without lone surrogates, which a cut-off escape leaves, and which nothing can encode."""
    return text.encode("utf-8", "replace").decode("utf-8")


def failure(message: str, nodes: Sequence[str] = ()) -> Observation:
    """Return the answer to a call that could not be run: an instruction, which may name the nodes `nodes`."""
    return Observation(json_line({"error": shortened(message, LONGEST_ERROR)}), tuple(nodes), failed=True)


def quoted(value: str, longest: int = 100) -> str:
    """Return a string from a model or a graph in quotes, escaped and shortened, for use in a sentence."""
    return json_line(shortened(value, longest))


def shortened(value: str, longest: int) -> str:
    """Return a string, or its beginning and an ellipsis where it is longer."""
    return value if len(value) <= longest else value[: longest - 1] + _MARK


def fitting(
    head: Mapping[str, Any], entries: Sequence[Entry], query: str | None, *, snippet_chars: int, max_tokens: int
) -> tuple[str, list[int]]:
    """Write a first line and as many entries as fit, the first ones; their texts are cut before any is left out.

    Parameters
    ----------
    head
        The first line, whose longest fields are left out where it takes half of the tokens. It says how many entries
        are "shown" where it has such a field or they are not all, and whether anything is "cut".
    entries
        What to show, the most important first. One whose line takes half of the tokens without its text is left out.
    query
        Has the words that excerpts of texts turn around.
    snippet_chars
        Longest excerpt.

    Returns
    -------
    text, shown
        The text, and which of the entries it shows.
    """
    half, brief = max_tokens // 2, dict(head)
    while estimate_tokens(json_line(brief)) > half:
        brief.pop(max(brief, key=lambda name: len(json_line(brief[name]))))
    bare = [json_line(entry.fields) for entry in entries]
    shown = [i for i, line in enumerate(bare) if estimate_tokens(line) <= half]

    def written(longest: int) -> str:
        first = dict(brief)
        if "shown" in first or len(shown) < len(entries):
            first["shown"] = len(shown)
        if len(brief) < len(head) or longest < snippet_chars or len(shown) < len(entries):
            first["cut"] = True
        lines = [_with_text(bare[i], excerpt(entries[i].text, query, longest)) for i in shown]
        return "\n".join([json_line(first), *lines])

    room = _CHARS * max_tokens - sum(len(bare[i]) for i in shown)
    for longest in (snippet_chars, snippet_chars // 2, snippet_chars // 4, 0):
        if longest and sum(min(len(entries[i].text), longest) for i in shown) > room:
            continue  # it cannot fit
        if estimate_tokens(text := written(longest)) <= max_tokens:
            return text, shown
    while shown and estimate_tokens(text) > max_tokens:
        shown.pop()
        text = written(0)
    return text, shown


def _with_text(line: str, text: str) -> str:
    return f'{line[:-1]}, "text": {json_line(text)}}}' if text else line


def excerpt(text: str, query: str | None, longest: int) -> str:
    """Return at most `longest` characters of a text on one line, around the first word of a query, or its beginning.

    Nothing where `longest` is next to none. Characters that cannot be seen are left out.
    """
    if longest < _LEAST:
        return ""
    line = " ".join(text.split())
    line = line if line.isprintable() else "".join(c for c in line if c.isprintable() or c in _JOINERS)
    if len(line) <= longest:
        return line
    size = longest - 2 * len(_MARK)
    begin = max(0, min(_first(line, _terms(query or "")) - size // 3, len(line) - size))
    more = begin + size < len(line)
    part = line[begin : begin + size]
    part = part[part.find(" ", 0, 20) + 1 :] if begin else part
    part = part[: space if more and (space := part.rfind(" ", max(1, len(part) - 20))) > 0 else None]
    return (_MARK if begin else "") + part + (_MARK if more else "")


@lru_cache(maxsize=16)
def _terms(query: str) -> frozenset[str]:
    return frozenset(_ANALYZER(query))


def _first(line: str, terms: frozenset[str]) -> int:
    """Where the first of some terms begins in a text; words that begin alike are looked at closely."""
    begins = tuple(term[:-1] if len(term) > 3 else term for term in terms)  # stemming may change the last letter
    found = (at for word, at, _ in tokenize(line) if word.startswith(begins) and not terms.isdisjoint(_ANALYZER(word)))
    return next(found, 0) if terms else 0
