"""The name of a source: one rule for all ways into the corpus.

It is the title in the metadata or in front matter; else the heading that is the title;
else the stem of the file's name; else, by `HeuristicMetadata`, the lead sentence. A
name is plain text, without HTML, Markdown or a file extension. A further heading is
named after its page: “Page › Heading”.
"""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import unquote, urlsplit

_TITLE_KEYS = ("title", "Title", "document_title", "name")
_FILE_KEYS = ("file_path", "source", "file_name", "filename", "path", "url")
_HEADING_KEY = "Header 1"  # of LangChain's MarkdownHeaderTextSplitter
_SECTION_KEYS = tuple(f"Header {level}" for level in range(2, 7))

TAG = re.compile(r"<[a-zA-Z/!][^<>]*>")
_MARKS_AROUND = re.compile(
    # Marks between letters belong to the word: snake_case. The first mark comes before
    # what is asked of the place, since a search skips to it.
    r"([*_](?<!\w.)[*_]{0,2})(?=\S)((?:[^*_]|(?<=\w)[*_]++(?=\w))+?)(?<=\S)\1(?!\w)"
)
_MARKS = (
    (re.compile(r"!\[[^\[\]]*\]\([^()]*\)"), " "),  # an image is no name
    # A link is its text.
    (
        re.compile(
            r"\[([^\[\]]*)\]"
            r"(?:\([^()]*(?:\([^()]*\)[^()]*)*+\)|\[[^\[\]]*\])"
        ),
        r"\1",
    ),
    (TAG, " "),
    (re.compile(r"\{\s*+[#.:][^{}]*\}\s*$"), ""),  # an anchor or a class
    (_MARKS_AROUND, r"\2"),
    (_MARKS_AROUND, r"\2"),  # emphasis within emphasis
    (re.compile(r"`+|\\(?=[\\`*_{}\[\]()#+.!|-])"), ""),
)
_ANY_MARK = re.compile(r"[\[<{*_`\\]")
_SUFFIX = (
    r"\.(?:md|markdown|mdx|rst|txt|csv|tsv|jsonl?|html?"
    r"|pdf|docx?|pptx?|xlsx?|ipynb|xml)$"
)
_EXTENSION, _PATH = (
    re.compile(_SUFFIX, re.IGNORECASE),
    re.compile(rf"[/\\]|{_SUFFIX}", re.IGNORECASE),
)
_NO_STEM = re.compile(
    r"\A(?:index|readme|untitled|document|page|file|data|tmp\w{8}"
    r"|[0-9a-f-]{16,}|[\d\W_]+)$",
    re.IGNORECASE,
)
_LONGEST = 200
#: A line of a PDF's first page that tells how the file came about.
_ABOUT_FILE = re.compile(
    r"\b(?:generated|created|produced|downloaded|printed) (?:by|from|on|with)\b"
    r"|\barxiv:|\bdoi:|://|\bpage \d",
    re.IGNORECASE,
)
_TITLE_LINES, _TITLE_WORDS = 12, 15


def clean_name(text: object) -> str:
    """Return a text as a name, without markup and file extension, or empty."""
    name = text if isinstance(text, str) else ""
    if _ANY_MARK.search(name):
        for pattern, plain in _MARKS:
            name = pattern.sub(plain, name)
    name = _EXTENSION.sub("", " ".join(html.unescape(name).split()))
    return name if any(map(str.isalnum, name)) and len(name) <= _LONGEST else ""


def given_title(metadata: Mapping[str, Any]) -> str:
    """Return the title in the metadata of a document or chunk, or an empty string."""
    return next(
        (name for key in _TITLE_KEYS if (name := clean_name(metadata.get(key)))), ""
    )


def given_heading(metadata: Mapping[str, Any]) -> str:
    """Return the top-level heading that a splitter wrote into a chunk's metadata.

    It is the title of the page or, further down, one of its sections.
    """
    return clean_name(metadata.get(_HEADING_KEY))


def given_name(metadata: Mapping[str, Any]) -> str:
    """Return the name in the metadata: the title, else the top-level heading."""
    return given_title(metadata) or given_heading(metadata)


def name_on_page(page: str, heading: str) -> str:
    """Return the name of a part of a page with its own heading: “Page › Heading”."""
    return page if heading in ("", page) else f"{page} › {heading}"


def given_section(metadata: Mapping[str, Any]) -> str:
    """Return the path of headings that a splitter wrote into the metadata.

    The title is not part of it.
    """
    return " > ".join(
        name for key in _SECTION_KEYS if (name := clean_name(metadata.get(key)))
    )


def file_of(metadata: Mapping[str, Any]) -> str:
    """Return the path or address in the metadata, or an empty string.

    ``source`` counts only where it looks like a path.
    """
    files = (
        (key, value)
        for key in _FILE_KEYS
        if isinstance(value := metadata.get(key), str) and value
    )
    return next(
        (value for key, value in files if key != "source" or _PATH.search(value)), ""
    )


def stem_of(file: str) -> str:
    """Return the name in a path or address; empty for ``index``, numbers and such."""
    path = unquote(urlsplit(file).path) if "://" in file else file
    stem = _EXTENSION.sub("", PurePosixPath(path.replace("\\", "/")).name)
    name = clean_name(stem if " " in stem else stem.replace("_", " ").replace("-", " "))
    return "" if _NO_STEM.match(name) else name


def title_of_pdf(file: str, text: str) -> str:
    """Return the title on the first page of a PDF whose file name says nothing.

    It is the first line that reads like a title. For other files it is empty.
    """
    if not file.lower().endswith(".pdf") or stem_of(file):
        return ""
    lines = (line.strip() for line in text[:5_000].split("\n"))
    for line in [line for line in lines if line][:_TITLE_LINES]:
        n_words, letters = len(line.split()), sum(map(str.isalpha, line))
        titled = line[0].isalnum() and not line[0].islower() and line[-1] not in ".,;:"
        if (
            titled
            and 1 < n_words <= _TITLE_WORDS
            and 2 * letters > len(line)
            and not _ABOUT_FILE.search(line)
        ):
            return clean_name(line)
    return ""
