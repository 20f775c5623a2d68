"""What a tool returns to a model: JSON Lines within a budget of tokens.

Data stays inside JSON strings.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from typing import Any

from graphret.ark.settings import ArkSettings
from graphret.schema.text import estimate_tokens
from graphret.search.analysis import Analyzer
from graphret.text import tokenize
from graphret.types import Evidence

# What may begin a control token of a chat template: <|im_end|>, </s>, <｜tool▁sep｜>,
# [INST]. Servers take such words for their own wherever they stand.
_CONTROL = re.compile(r"<(?=/?[A-Za-z_|｜])|\[(?=/?[A-Z_]+\])")
_JOINERS = "\u200c\u200d"  # part of the spelling of Persian, Hindi and emoji
_ANALYZER = Analyzer()
_MARK = "…"
_TEXTS_SHARE = 0.25  # of the room, which properties leave to texts
_LEAST = 10  # characters of a text worth showing
_CHARS = 2.5  # in a token, as `estimate_tokens` has it
LONGEST_ERROR = 1_000  # characters of an error that a model is told
_HITS_TOKENS = ArkSettings().observation_tokens
ADDED = 30  # tokens of the budget that are left for what a session adds: the steps left


@dataclass(frozen=True, slots=True)
class Observation:
    """What a tool call came to.

    `text` is all that a model gets: JSON objects, one a line, the first of which says
    what follows. `nodes` has the ids of the nodes shown, in order, `edges` the
    ``(source, relation, target)`` of the edges shown, and `total` says how many nodes
    there are, shown or not. One that `failed` could not be run, and the text says what
    to do instead.
    """

    text: str
    nodes: tuple[str, ...] = ()
    edges: tuple[tuple[str, str, str], ...] = ()
    total: int = 0
    failed: bool = False


@dataclass(frozen=True, slots=True)
class NodeEntry:
    """A node to be shown: the fields of its line, its text and its properties.

    The text is shortened as far as necessary; properties are left out without room.
    """

    fields: dict[str, Any]
    text: str = ""
    properties: Mapping[str, Any] = field(default_factory=dict)

    def with_properties(self, most: int) -> dict[str, Any]:
        """Return the fields, and at most so many properties, where there are some."""
        shown = dict(islice(self.properties.items(), most))
        return self.fields | ({"properties": shown} if shown else {})


def json_line(value: Any) -> str:
    """Return a JSON value on one line without spaces.

    Every character that breaks a line, is invisible or changes the direction of writing
    is escaped.

    What a chat template may take for a control token is escaped too; the value stays
    the same.
    """
    text = _CONTROL.sub(
        lambda match: f"\\u{ord(match[0]):04x}",
        json.dumps(value, ensure_ascii=False, separators=(",", ":")),
    )
    if text.isprintable():
        return text
    return "".join(
        c if c.isprintable() or c in _JOINERS else json.dumps(c)[1:-1] for c in text
    )


def encodable(text: str) -> str:
    """Return a text without lone surrogates, which cannot be encoded.

    A cut-off escape leaves them.
    """
    return text.encode("utf-8", "replace").decode("utf-8")


def failure(message: str, nodes: Sequence[str] = ()) -> Observation:
    """Return the observation of a call that could not be run.

    The message tells the model what to do; it may name some `nodes`.
    """
    return Observation(
        json_line({"error": shortened(message, LONGEST_ERROR)}),
        tuple(nodes),
        failed=True,
    )


def quoted(value: str, longest: int = 100) -> str:
    """Return a model's or a graph's string, quoted, escaped and shortened."""
    return json_line(shortened(value, longest))


def shortened(value: str, longest: int) -> str:
    """Return a string, or its beginning and an ellipsis where it is longer."""
    return value if len(value) <= longest else value[: longest - 1] + _MARK


def fitting(
    head: Mapping[str, Any],
    entries: Sequence[NodeEntry],
    query: str | None,
    *,
    snippet_chars: int,
    max_tokens: int,
) -> tuple[str, list[int]]:
    """Write a first line and the first entries that fit; return the text and these.

    Texts are cut, to what is around the words of `query`, and properties are left out
    before any entry is.
    Of a head that takes half of the tokens the longest fields are left out, as is an
    entry that does so without its text. The head says how many entries are "shown"
    where it has such a field or they are not all, and whether anything is "cut".
    """
    half, brief = max_tokens // 2, dict(head)
    while estimate_tokens(json_line(brief)) > half:
        del brief[max(brief, key=lambda name: len(json_line(brief[name])))]
    room = _CHARS * max_tokens - len(json_line(brief))
    bare, all_properties = _without_texts(entries, room)
    shown = [i for i, line in enumerate(bare) if estimate_tokens(line) <= half]
    longest, room = snippet_chars, room - sum(len(bare[i]) for i in shown)
    while True:
        # texts longer than the room cannot fit, and are not written
        if (
            not longest
            or sum(min(len(entries[i].text), longest) for i in shown) <= room
        ):
            partly = len(shown) < len(entries)
            first = brief | (
                {"shown": len(shown)} if partly or "shown" in brief else {}
            )
            all_shown = all_properties and not partly and len(brief) == len(head)
            if not all_shown or longest < snippet_chars:
                first["cut"] = True
            texts = ((bare[i], excerpt(entries[i].text, query, longest)) for i in shown)
            lines = (
                f'{line[:-1]},"text":{json_line(text)}}}' if text else line
                for line, text in texts
            )
            text = "\n".join([json_line(first), *lines])
            if not shown or estimate_tokens(text) <= max_tokens:
                return text, shown
        if longest:
            longest = longest // 2 if longest >= 5 * _LEAST else 0
        else:
            shown.pop()


def _without_texts(entries: Sequence[NodeEntry], room: float) -> tuple[list[str], bool]:
    """Write entries without texts, with as many properties of each as there is room.

    Returns whether these are all.
    """
    if any(entry.text for entry in entries):
        room *= 1 - _TEXTS_SHARE
    most = most_of_all = max((len(entry.properties) for entry in entries), default=0)
    while True:
        lines = [json_line(entry.with_properties(most)) for entry in entries]
        if not most or sum(map(len, lines)) <= room:
            return lines, most == most_of_all
        most //= 2


def hits_text(question: str, hits: Sequence[Mapping[str, Any]], **more: Any) -> str:
    """Write as many hits as fit below a first line, each with its evidence.

    `more` are further fields of that line, hits are `Hit.to_dict`.
    """
    head = {"shown": 0, "of": len(hits), **more}
    return fitting(
        head,
        [_entry(hit) for hit in hits],
        question,
        snippet_chars=1000,
        max_tokens=_HITS_TOKENS,
    )[0]


def _entry(hit: Mapping[str, Any]) -> NodeEntry:
    name = {"name": hit["name"]} if hit["name"] not in ("", hit["id"]) else {}
    why = [str(Evidence(**evidence)) for evidence in hit["evidence"][:3]]
    return NodeEntry(
        {"id": hit["id"], **name, "type": hit["labels"], "because": why}, hit["text"]
    )


def excerpt(text: str, query: str | None, longest: int) -> str:
    """Return at most `longest` characters of a text, on one line.

    They are around a word like one of the query, or the beginning.

    Nothing where `longest` is next to none. Characters that cannot be seen are left
    out.
    """
    if longest < _LEAST:
        return ""
    line = " ".join(text.split())
    line = (
        line
        if line.isprintable()
        else "".join(c for c in line if c.isprintable() or c in _JOINERS)
    )
    if len(line) <= longest:
        return line
    size = longest - 2 * len(_MARK)
    begins = _beginnings(query or "")
    first = (
        next((at for word, at, _ in tokenize(line) if word.startswith(begins)), 0)
        if begins
        else 0
    )
    begin = max(0, min(first - size // 3, len(line) - size))
    if begin:
        begin = (
            line.find(" ", begin, begin + 20) + 1 or begin
        )  # at a word, where one is near
    return (
        (_MARK if begin else "")
        + line[begin : begin + size]
        + (_MARK if begin + size < len(line) else "")
    )


@lru_cache(maxsize=16)
def _beginnings(query: str) -> tuple[str, ...]:
    """How words like those of a query begin: stemming may change the last letter."""
    return tuple(term[:-1] if len(term) > 3 else term for term in _ANALYZER(query))
