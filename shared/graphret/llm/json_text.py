"""The JSON values in what a model wrote, as models write JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

# How many opening brackets JSON is looked for from, and how many of them and of the
# characters behind one are repaired.
_MOST_OPENINGS, _MOST_REPAIRED, _MOST_REPAIRED_CHARS = 64, 16, 20_000
_OPENING = re.compile(r"[{\[]")
_DECODER = json.JSONDecoder(strict=False)  # takes line breaks within a string
# What models write of Python and JavaScript in JSON, with the strings, which are kept.
_TOKEN = re.compile(
    r"""
    \"{3}(?P<long>.*?)(?:\"{3}|\Z)
  | "(?P<string>(?:[^"\\]|\\.)*)(?:"|\Z)
  | '(?P<single>(?:[^'\\]|\\.)*)(?:'|\Z)
  | (?P<comment>//[^\n]*|/\*.*?(?:\*/|\Z))
  | (?P<comma>,)(?=\s*[}\]])
  | (?P<word>[^\W\d]\w*)(?P<key>(?=\s*:))?
    """,
    re.DOTALL | re.VERBOSE,
)
_ESCAPE = re.compile(r"""\\(?:(["\\/bfnrtu])|(.))""", re.DOTALL)
_WORDS = {"True": "true", "False": "false", "None": "null"}
# In how many objects an answer may be wrapped.
_MOST_WRAPPINGS = 3


def json_values(text: str) -> Iterator[Any]:
    """Yield the JSON values in a text: the whole, or what its opening brackets begin.

    Trailing commas, comments, line breaks in strings, single quotes and names without
    quotes are read as they are meant.

    Examples
    --------
    >>> list(json_values("Sure: {'names': ['Ulm',],}"))
    [{'names': ['Ulm']}, ['Ulm']]
    """
    try:
        yield json.loads(text, strict=False)
        return
    except (ValueError, RecursionError):
        position, repaired = 0, 0
    for _ in range(_MOST_OPENINGS):
        opening = _OPENING.search(text, position)
        if opening is None:
            return
        start = opening.start()
        try:
            value, position = _DECODER.raw_decode(text, start)
        except (ValueError, RecursionError):
            position, repaired = opening.end(), repaired + 1
            if repaired > _MOST_REPAIRED:
                continue
            try:
                value, _ = _DECODER.raw_decode(
                    _repaired(text[start : start + _MOST_REPAIRED_CHARS])
                )
            except (ValueError, RecursionError):
                continue
        yield value


def readings(value: Any, schema: Mapping[str, Any]) -> Iterator[Any]:
    """Yield what a JSON value may mean by a JSON schema.

    First itself, then without what it is wrapped in, or as the only required field.

    Examples
    --------
    >>> names = {"type": "object", "properties": {"names": {}}, "required": ["names"]}
    >>> list(readings({"answer": {"names": ["Ulm"]}}, names))
    [{'answer': {'names': ['Ulm']}}, {'names': ['Ulm']}]
    >>> list(readings(["Ulm"], names))
    [['Ulm'], {'names': ['Ulm']}]
    """
    fields, required = schema.get("properties", {}), schema.get("required", [])
    value = read_object(value)
    for _ in range(_MOST_WRAPPINGS):
        parts: list[Any] = []
        if isinstance(value, Mapping):
            present = value.keys() & fields.keys()
            # Where all fields have defaults, any object would be an answer.
            if present or required or not value or not fields:
                yield value
            parts = [] if present else list(value.values())
        else:
            yield value
            if len(required) == 1:
                yield {required[0]: value}
            parts = value if isinstance(value, list) else []
        inner = [part for part in map(read_object, parts) if isinstance(part, Mapping)]
        if len(inner) != 1:
            return
        value = inner[0]


def read_object(value: Any) -> Any:
    """Return the JSON object that a text is; any other value as it is."""
    if not isinstance(value, str) or not value.lstrip().startswith("{"):
        return value
    return next(json_values(value), value)


def _repaired(text: str) -> str:
    return _TOKEN.sub(_repaired_token, text)


def _repaired_token(token: re.Match[str]) -> str:
    if token["comma"] or token["comment"]:
        return ""
    if token["word"]:
        word = _WORDS.get(token["word"], token["word"])
        return f'"{word}"' if token["key"] is not None else word
    if token["long"] is not None:
        return json.dumps(token["long"])
    if token["single"] is not None:
        content = token["single"].replace('"', '\\"')
    else:
        content = token["string"]
    # All quotes escaped are Python's way; some are a text's own, as in 'O\'Hara'.
    quoted = token["string"] is not None and "'" in _ESCAPE.sub("", content)

    def escape(match: re.Match[str]) -> str:
        right, wrong = match.groups()
        plain = right is None and wrong in ("\n" if quoted else "'\n")
        return wrong if plain else match[0] if right else f"\\\\{wrong}"

    return f'"{_ESCAPE.sub(escape, content)}"'
