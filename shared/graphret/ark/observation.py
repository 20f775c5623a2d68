"""What a tool returns to a model: JSON Lines within a budget of tokens, in which data stays inside JSON strings."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from graphret.schema.text import estimate_tokens
from graphret.search.analysis import Analyzer
from graphret.text import tokenize

# What may begin a control token of a chat template: <|im_end|>, </s>, <｜tool▁sep｜>, [INST]. Servers take such words
# for their own wherever they stand.
_CONTROL = re.compile(r"<(?=/?[A-Za-z_|｜])|\[(?=/?[A-Z_]+\])")
_JOINERS = "\u200c\u200d"  # part of the spelling of Persian, Hindi and emoji
_SHARES = (1.0, 0.5, 0.25, 0.0)
_ANALYZER = Analyzer()
_MARK = "…"
_LEAST = 10  # characters of a text worth showing

#: Makes the first line of an observation, given how many nodes are shown, whether any or their texts were cut, and how
#: short it must be: from 0, in full, to `LEVELS` − 1, the numbers alone.
Header: TypeAlias = Callable[[int, bool, int], dict[str, Any]]
LEVELS = 3

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
    wrong
        What is wrong with the call as the model made it; empty where nothing is.
    """

    text: str
    nodes: tuple[str, ...] = ()
    edges: tuple[tuple[str, str, str], ...] = ()
    total: int = 0
    failed: bool = False
    wrong: str = ""


@dataclass(frozen=True, slots=True)
class Entry:
    """A node to be shown: the fields of its line, and its text, which is shortened as far as must be."""

    fields: dict[str, Any]
    text: str = ""


def json_line(value: Any) -> str:
    """Return a JSON value on one line, every character that breaks a line, is invisible or turns the writing escaped.

    So is the first of what may be a control token of a model's. The value comes back unchanged from `json.loads`.
    """
    text = _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(value, ensure_ascii=False))
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in _JOINERS else json.dumps(c)[1:-1] for c in text)


def failure(
    message: str, nodes: Sequence[str] = (), max_tokens: int | None = None, *, wrong: str | None = None
) -> Observation:
    """Return the answer to a call that could not be run: an instruction, which may name the nodes `nodes`.

    `wrong` is the message, unless something else is given: empty where it is not the model that is at fault.
    """
    text, wrong = json_line({"error": message}), message if wrong is None else wrong
    while max_tokens is not None and estimate_tokens(text) > max_tokens:
        message, nodes = shortened(message, len(message) // 2), ()
        text = json_line({"error": message})
    return Observation(text, tuple(nodes), failed=True, wrong=wrong)


def quoted(value: str, longest: int = 100) -> str:
    """Return a string from a model or a graph in quotes, escaped and shortened, for use in a sentence."""
    return json_line(shortened(value, longest))


def shortened(value: str, longest: int) -> str:
    """Return a string, or its beginning and an ellipsis where it is longer."""
    return value if len(value) <= longest else value[: longest - 1] + "…"


def fitting(
    header: Header, entries: Sequence[Entry], terms: frozenset[str], *, snippet_chars: int, max_tokens: int
) -> tuple[str, list[int]]:
    """Write a header and as many entries as fit, the first ones; their texts are cut before any is left out.

    Parameters
    ----------
    header
        Makes the first line.
    entries
        What to show, the most important first. One whose line takes half of the tokens without its text is left out.
    terms
        What the excerpts of texts turn around.
    snippet_chars
        Longest excerpt.

    Returns
    -------
    text, shown
        The text, and which of the entries it shows.
    """
    half = max_tokens // 2
    level = next((n for n in range(LEVELS) if estimate_tokens(json_line(header(0, True, n))) <= half), LEVELS - 1)
    bare = [json_line(entry.fields) for entry in entries]
    shown = [i for i, line in enumerate(bare) if estimate_tokens(line) <= half]
    cut = level > 0 or len(shown) < len(entries)

    def written(lines: Sequence[str], cut: bool) -> str:
        return "\n".join([json_line(header(len(lines), cut, level)), *lines])

    room = 2.5 * max_tokens - len(written([bare[i] for i in shown], True))  # as estimate_tokens counts
    for share in _SHARES:
        longest = round(snippet_chars * share)
        if share and sum(min(len(entries[i].text), longest) for i in shown) > room:
            continue  # it cannot fit
        texts = [excerpt(entries[i].text, terms, longest) for i in shown]
        text = written([_with_text(bare[i], one) for i, one in zip(shown, texts, strict=True)], cut or share < 1.0)
        if estimate_tokens(text) <= max_tokens:
            return text, shown
    while estimate_tokens(text := written([bare[i] for i in shown], True)) > max_tokens and shown:
        shown.pop()
    return text, shown


def _with_text(line: str, text: str) -> str:
    return f'{line[:-1]}, "text": {json_line(text)}}}' if text else line


def query_terms(query: str | None) -> frozenset[str]:
    """Return the terms of a query that excerpts turn around."""
    return frozenset(_ANALYZER(query)) if query else frozenset()


def excerpt(text: str, terms: frozenset[str], longest: int) -> str:
    """Return at most `longest` characters of a text on one line, around the first of some terms, or its beginning.

    Nothing where `longest` is next to none. Characters that cannot be seen are left out.
    """
    if longest < _LEAST:
        return ""
    line = " ".join(text.split())
    line = line if line.isprintable() else "".join(c for c in line if c.isprintable() or c in _JOINERS)
    if len(line) <= longest:
        return line
    size = longest - 2 * len(_MARK)
    begin = max(0, min(_first(line, terms) - size // 3, len(line) - size))
    end = begin + size
    if begin and (space := line.find(" ", begin, begin + 20)) >= 0:
        begin = space + 1
    if end < len(line) and (space := line.rfind(" ", max(end - 20, begin + 1), end)) >= 0:
        end = space
    return (_MARK if begin else "") + line[begin:end] + (_MARK if end < len(line) else "")


def _first(line: str, terms: frozenset[str]) -> int:
    """Where the first of some terms begins in a text; words that begin alike are looked at closely."""
    begins = tuple(term[:-1] if len(term) > 3 else term for term in terms)  # stemming may change the last letter
    found = (at for word, at, _ in tokenize(line) if word.startswith(begins) and not terms.isdisjoint(_ANALYZER(word)))
    return next(found, 0) if terms else 0
