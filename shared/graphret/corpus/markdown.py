"""The structure of a text in Markdown or HTML: its front matter, its headings, and what
of it is code or a comment.

Every pattern here takes time in proportion to the text, whatever that holds.
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
#: Longer ones are data; libraries would take minutes to read them.
_LONGEST_FRONT_MATTER = 20_000
#: A heading with more marks and addresses around its name than this is none.
_LONGEST_RAW = 5_000
_TITLE_LINE = re.compile(r"^title[ \t]*+:[ \t]*+(.+)$", re.MULTILINE | re.IGNORECASE)

# A fence ends at one of its marks, as many or more; a comment that nothing closes is
# none.
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
    """A heading of a text: where it begins, its level from 1 (0 for a title of the
    whole), its name, and the heading that it stands under.
    """

    start: int
    level: int
    name: str
    above: Heading | None = None


def headings(text: str) -> list[Heading]:
    """Return the headings of Markdown or HTML, in order; those in fenced code and in
    comments are none, front matter's title is one.
    """
    found: list[Heading] = []
    for start, level, raw in _raw_headings(text):
        if name := _name_of(raw) if len(raw) <= _LONGEST_RAW else "":
            above = found[-1] if found else None
            while above is not None and above.level >= level:
                above = above.above
            found.append(Heading(start, level, name, above))
    return found


def title_among(found: Sequence[Heading]) -> str:
    """Return that of a text's headings which is its title, the first of the first
    level; empty where there is none.
    """
    return next((heading.name for heading in found if heading.level <= 1), "")


def section_at(found: Sequence[Heading], start: int, end: int, title: str) -> str:
    """Return the path of headings, without the title, under which the text from `start`
    begins, or that of the first heading in it.
    """
    at = bisect_right(found, start, key=attrgetter("start"))
    if not found or (at == 0 and found[0].start >= end):
        return ""
    heading: Heading | None = found[max(at - 1, 0)]
    names: list[str] = []
    while heading is not None:
        names.insert(0, heading.name)
        heading = heading.above
    return " > ".join(names[1:] if names[:1] == [title] else names)


def outside_code(text: str) -> str:
    """Return a text with blanks in place of fenced code and of comments."""
    return _HIDDEN.sub(_blanks, text)


def _blanks(hidden: re.Match[str]) -> str:
    """Return blanks as long as what was hidden, with its line ends."""
    return "\n".join([" " * len(line) for line in hidden[0].split("\n")])


def running_text(text: str) -> str:
    """Return a text without its front matter and the tags of HTML."""
    return TAG.sub(" ", _FRONT_MATTER.sub("", text, count=1))


def _raw_headings(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield where each heading begins, its level, and its text as it is written."""
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
    """Return the text of a heading without the number signs that may close it; that of
    “C#” stays.
    """
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
    given: Any
    try:
        # The base loader leaves every value the text that it is: 1984, Yes.
        toml = mark == "+++"
        given = tomllib.loads(fields) if toml else yaml.load(fields, yaml.BaseLoader)
    except (ValueError, RecursionError, yaml.YAMLError):
        # Most often an unquoted title with a colon in it, which is no YAML.
        line = _TITLE_LINE.search(fields)
        return line[1].strip() if line else ""
    titles = (
        value
        for key, value in (given.items() if isinstance(given, Mapping) else ())
        if str(key).lower() == "title" and isinstance(value, str)
    )
    return next(titles, "")
