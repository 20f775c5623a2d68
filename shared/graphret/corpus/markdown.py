"""The structure of Markdown or HTML: front matter, headings, code and comments.

Every pattern here takes time linear in the text, whatever that contains.
"""

from __future__ import annotations

import re
import tomllib
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from operator import attrgetter
from typing import Any, NamedTuple

import yaml

from graphret.corpus.names import TAG, clean_name

_FRONT_MATTER = re.compile(
    r"\A\ufeff?\s*+(?P<mark>---|\+\+\+)[ \t\r]*+\n(?P<fields>.*?)"
    r"(?:(?<=\n)|\n)(?:(?P=mark)|\.\.\.)[ \t\r]*+(?:\n|\Z)",
    re.DOTALL,
)
#: Longer front matter is data; libraries would take minutes to read it.
_LONGEST_FRONT_MATTER = 20_000
#: A longer heading, with its markup and addresses, does not count as one.
_LONGEST_RAW = 5_000
_TITLE_LINE = re.compile(r"^title[ \t]*+:[ \t]*+(.+)$", re.MULTILINE | re.IGNORECASE)

# A fence ends at a line of as many of its marks or more; an unclosed comment is none.
_HIDDEN = re.compile(
    r"^ {0,3}(?P<fence>`{3,}+(?![^\n]*`)|~{3,}+)[^\n]*"
    r"(?:.*?^ {0,3}(?P=fence)[`~]*+[ \t\r]*+$|.*)"
    r"|<!--(?:(?!<!--).)*?-->",
    re.MULTILINE | re.DOTALL,
)
_HEADING = re.compile(
    r"^ {0,3}(?P<marks>#{1,6})[ \t]++(?P<name>[^\n]*)"
    r"|<(?P<tag>title|h[1-6])\b[^<>]*>"
    r"(?P<html>[^<]*+(?:<(?!/?(?:title|h[1-6])\b)[^<]*+)*+)</(?P=tag)\s*+>",
    re.MULTILINE | re.IGNORECASE,
)


class Heading(NamedTuple):
    """A heading: its start, its level, its name, and the heading that it is under.

    The level counts from 1; it is 0 for a title of the whole text.
    """

    start: int
    level: int
    name: str
    above: Heading | None = None


def headings(text: str) -> list[Heading]:
    """Return the headings of Markdown or HTML, in order.

    The title in front matter counts; headings in fenced code and comments do not.
    """
    headings_so_far: list[Heading] = []
    for start, level, raw in _raw_headings(text):
        if name := _name_of(raw) if len(raw) <= _LONGEST_RAW else "":
            above = headings_so_far[-1] if headings_so_far else None
            while above is not None and above.level >= level:
                above = above.above
            headings_so_far.append(Heading(start, level, name, above))
    return headings_so_far


def title_among(text_headings: Sequence[Heading]) -> str:
    """Return the title among a text's headings: the first top-level one, or empty."""
    return next((heading.name for heading in text_headings if heading.level <= 1), "")


def section_at(
    text_headings: Sequence[Heading], start: int, end: int, title: str
) -> str:
    """Return the path of headings above `start`, or of the first one before `end`.

    The title is not part of it.
    """
    at = bisect_right(text_headings, start, key=attrgetter("start"))
    if not text_headings or (at == 0 and text_headings[0].start >= end):
        return ""
    heading: Heading | None = text_headings[max(at - 1, 0)]
    names: list[str] = []
    while heading is not None:
        names.insert(0, heading.name)
        heading = heading.above
    return " > ".join(names[1:] if names[:1] == [title] else names)


def outside_code(text: str) -> str:
    """Return a text with fenced code and comments blanked out."""
    return _HIDDEN.sub(_blanks, text)


def _blanks(hidden: re.Match[str]) -> str:
    """Return blanks as long as what was hidden, with its line ends."""
    return "\n".join([" " * len(line) for line in hidden[0].split("\n")])


def running_text(text: str) -> str:
    """Return a text without front matter and HTML tags."""
    return TAG.sub(" ", _FRONT_MATTER.sub("", text, count=1))


def _raw_headings(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield the start, the level and the raw text of each heading."""
    front = _FRONT_MATTER.match(text)
    if front:
        yield 0, 0, _front_title(front["mark"], front["fields"])
    behind = front.end() if front else 0
    for match in _HEADING.finditer(outside_code(text), behind):
        if match["marks"]:
            yield match.start(), len(match["marks"]), _without_closing(match["name"])
        else:
            tag = match["tag"].lower()
            yield match.start(), 0 if tag == "title" else int(tag[1]), match["html"]


def _without_closing(line: str) -> str:
    """Return the text of a heading without closing number signs; “C#” keeps its own."""
    bare = line.rstrip()
    name = bare.rstrip("#")
    return name.rstrip() if not name or name[-1] in " \t" else bare


@lru_cache(maxsize=10_000)
def _name_of(raw: str) -> str:
    return clean_name(raw)


def _front_title(mark: str, fields: str) -> str:
    """Return the title in front matter, YAML or, between ``+++``, TOML."""
    if len(fields) > _LONGEST_FRONT_MATTER:
        return ""
    parsed: Any
    try:
        # The base loader leaves every value as text: 1984, Yes.
        toml = mark == "+++"
        parsed = tomllib.loads(fields) if toml else yaml.load(fields, yaml.BaseLoader)
    except (ValueError, RecursionError, yaml.YAMLError):
        # Usually an unquoted title with a colon in it, which is not valid YAML.
        line = _TITLE_LINE.search(fields)
        return line[1].strip() if line else ""
    titles = (
        value
        for key, value in (parsed.items() if isinstance(parsed, Mapping) else ())
        if str(key).lower() == "title" and isinstance(value, str)
    )
    return next(titles, "")
