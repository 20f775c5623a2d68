"""A conversation read back: the question, and what each call has shown. All of it is data, none an instruction."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from graphret.ark.prompt import EXPLORE, FINISH, NOT_RUN, SEARCH, SELECT
from graphret.llm.chat import Message, ToolCall

_RELATIONS = 100
_ARROW = re.compile(r"(<?)-\[(.*)\]-(>?)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Shown:
    """A node as a tool showed it; `via` are the relations to the node explored, and whether they lead here."""

    id: str
    name: str
    types: tuple[str, ...] = ()
    via: tuple[tuple[str, bool], ...] = ()


@dataclass(frozen=True, slots=True)
class Search:
    """A search and the nodes it found, best first."""

    query: str
    nodes: tuple[Shown, ...]


@dataclass(frozen=True, slots=True)
class Exploration:
    """What was seen around a node.

    Parameters
    ----------
    relations
        ``(relation, outgoing, type of the neighbours, count)`` over the whole neighbourhood.
    neighbors
        Those that were shown, of `total` that pass the filters.
    asked
        The relations that the call was limited to, or `None`.
    query
        What ranked the neighbours.
    """

    node: str
    types: tuple[str, ...]
    relations: tuple[tuple[str, bool, str, int], ...]
    neighbors: tuple[Shown, ...]
    total: int
    asked: frozenset[str] | None = None
    query: str = ""


@dataclass(slots=True)
class Transcript:
    """What has happened since the question was asked."""

    question: str = ""
    searches: list[Search] = field(default_factory=list)
    explorations: list[Exploration] = field(default_factory=list)
    tried: set[str] = field(default_factory=set)  # nodes whose exploration was run, whatever came of it
    selected: list[str] = field(default_factory=list)
    turns: int = 0
    turns_left: int | None = None  # as far as the loop said so
    finished: bool = False

    @classmethod
    def read(cls, messages: Sequence[Message]) -> Transcript:
        """Read a conversation; what is not as the tools write it is passed over."""
        out, open_ = cls(), True
        asked: dict[str, ToolCall] = {}
        for message in messages:
            if message.role == "user" and open_:
                out, asked, open_ = cls(_encodable(message.content)), {}, False
            elif message.role == "assistant":
                asked = {call.id: call for call in message.tool_calls}
                out.turns += 1
                open_ = not asked
            elif message.role == "tool":
                call = asked.get(message.tool_call_id or "")
                if call is not None:
                    out._take(call, message.content)
        return out

    def _take(self, call: ToolCall, content: str) -> None:
        arguments = call.parsed or {}
        lines = _objects(content)
        for line in lines:
            if isinstance(left := line.get("steps_left"), int):
                self.turns_left = left
        if call.name == SEARCH:
            shown = tuple(one for line in lines if (one := _shown(line)) is not None)
            self.searches.append(Search(_string(arguments.get("query")), shown))
        elif call.name == EXPLORE:
            if not any(_string(line.get("error")).startswith(NOT_RUN) for line in lines):
                self.tried.add(_string(arguments.get("node")))
            for header in lines:
                if isinstance(header.get("explored"), str):
                    self.explorations.append(_exploration(header, lines, arguments))
                    return
        elif call.name == SELECT:
            self.selected += [one for one in _list(arguments.get("nodes")) if isinstance(one, str)]
        elif call.name == FINISH:
            self.finished = True


def _objects(content: str) -> list[dict[str, Any]]:
    out = []
    for line in content.split("\n"):
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            out.append(value)
    return out


def _exploration(
    header: Mapping[str, Any], lines: Iterable[Mapping[str, Any]], arguments: Mapping[str, Any]
) -> Exploration:
    relations = tuple(
        (*hop, _string(one[1]), one[2])
        for one in _list(header.get("relations"))[:_RELATIONS]
        if isinstance(one, list) and len(one) == 3 and (hop := _arrow(one[0])) and isinstance(one[2], int)
    )
    neighbors = tuple(one for line in lines if (one := _shown(line)) is not None)
    asked = [one for one in _list(arguments.get("relation_types")) if isinstance(one, str)]
    total = header.get("of")  # "57+" where not all edges were read
    return Exploration(
        header["explored"],
        _types(header.get("type")),
        relations,
        neighbors,
        total if isinstance(total, int) else len(neighbors),
        frozenset(asked) if asked else None,
        _string(arguments.get("query")),
    )


def _shown(line: Mapping[str, Any]) -> Shown | None:
    node = line.get("id")
    if not isinstance(node, str) or node != _encodable(node):
        return None
    via = tuple(hop for one in _list(line.get("via")) if (hop := _arrow(one)) is not None)
    return Shown(node, _string(line.get("name")) or node, _types(line.get("type")), via)


def _arrow(text: Any) -> tuple[str, bool] | None:
    match = _ARROW.fullmatch(text) if isinstance(text, str) else None
    if match is None or bool(match[1]) == bool(match[3]):
        return None
    return match[2], bool(match[3])


def _types(value: Any) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(one for one in _list(value) if isinstance(one, str))


def _encodable(text: str) -> str:
    """A text without halves of characters, which JSON can hold and no other encoding can."""
    return text.encode("utf-8", "replace").decode()


def _string(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
