"""`Transcript`: what the tools have shown since a question was asked, read back from the conversation."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import product
from typing import Any

from graphret.ark.arguments import read_arrow
from graphret.ark.observation import encodable
from graphret.ark.prompt import EXPLORE, FINISH, SEARCH, SELECT
from graphret.llm.chat import Message
from graphret.planning.paths import PathSpace
from graphret.planning.words import Lexicon


@dataclass(frozen=True, slots=True)
class Neighbor:
    """A node as it was seen; `via` are the relations to the node explored, and whether they lead here."""

    id: str
    name: str
    types: tuple[str, ...] = ()
    via: tuple[tuple[str, bool], ...] = ()


@dataclass(frozen=True, slots=True)
class Explored:
    """What was seen around a node: the `neighbors` shown, of the relations `asked` for or, with `None`, of all.

    `relations` has ``(relation, outgoing, type of the neighbours, count)`` over the whole neighbourhood.
    """

    node: str
    types: tuple[str, ...]
    relations: tuple[tuple[str, bool, str, int], ...]
    neighbors: tuple[Neighbor, ...]
    asked: frozenset[str] | None = None


@dataclass(slots=True)
class Transcript:
    """What has happened since the last question of a conversation: the nodes that each search found, best first, the
    explorations by node, what was selected, and the replies given.
    """

    question: str = ""
    searches: list[tuple[Neighbor, ...]] = field(default_factory=list)
    explorations: dict[str, list[Explored]] = field(default_factory=dict)
    selected: list[str] = field(default_factory=list)
    turns: int = 0
    finished: bool = False

    @classmethod
    def read(cls, messages: Sequence[Message]) -> Transcript:
        """Read a conversation; what is not as the tools write it is passed over."""
        begin = max((place for place, message in enumerate(messages) if message.role == "user"), default=None)
        if begin is None:
            return cls()
        out, since = cls(encodable(messages[begin].content)), messages[begin + 1 :]
        out.turns = sum(message.role == "assistant" for message in since)
        asked = {call.id: call for message in since for call in message.tool_calls}
        for message in since:
            call = asked.get(message.tool_call_id or "") if message.role == "tool" else None
            if call is not None:
                out._take(call.name, call.parsed or {}, *_shown(message.content))
        return out

    def space(self, lexicon: Lexicon) -> PathSpace:
        """The kinds of paths that the explorations have shown."""
        triples: Counter[tuple[str, str, str]] = Counter()
        totals: Counter[str] = Counter()
        explored = [one for looks in self.explorations.values() for one in looks]
        shown = {way for one in explored for other in one.neighbors for way in other.via}
        for one in explored:
            edges = [(way, other.types, 1) for other in one.neighbors for way in other.via]
            # of what is only counted no more than the first type is said
            edges += [((name, out), (kind,), n) for name, out, kind, n in one.relations if (name, out) not in shown]
            for (relation, outgoing), types, n in edges:
                totals[relation] += n
                for pair in product(one.types or ("",), types or ("",)):
                    source, target = pair if outgoing else pair[::-1]
                    triples[source, relation, target] += n
        return _space(frozenset(triples.items()), frozenset(totals.items()), lexicon)

    def _take(self, tool: str, given: dict[str, Any], head: dict[str, Any] | None, shown: tuple[Neighbor, ...]) -> None:
        if tool == SEARCH:
            self.searches.append(shown)
        elif tool == EXPLORE and head is not None:
            limits = frozenset(given.get("relation_types") or ()) or None
            counts = ((*_way(arrow), label, int(str(n).rstrip("+"))) for arrow, label, n in head.get("relations", ()))
            explored = Explored(head["explored"], _types(head), tuple(counts), shown, limits)
            self.explorations.setdefault(explored.node, []).append(explored)
        elif tool == SELECT:
            self.selected += given.get("nodes", ())
        elif tool == FINISH:
            self.finished = True


@lru_cache(maxsize=64)  # from turn to turn, little new is known
def _space(
    triples: frozenset[tuple[tuple[str, str, str], int]], totals: frozenset[tuple[str, int]], lexicon: Lexicon
) -> PathSpace:
    return PathSpace(dict(triples), dict(totals), lexicon)


@lru_cache(maxsize=1024)  # a conversation is read anew in each turn
def _shown(content: str) -> tuple[dict[str, Any] | None, tuple[Neighbor, ...]]:
    """The line that says what was explored, if any, and the nodes shown."""
    lines: list[dict[str, Any]] = []
    for text in content.split("\n"):
        with suppress(ValueError):
            line = json.loads(text)
            lines += [line] if isinstance(line, dict) else []
    shown = tuple(
        Neighbor(line["id"], line.get("name", line["id"]), _types(line), tuple(map(_way, line.get("via", ()))))
        for line in lines
        if "id" in line
    )
    return next((line for line in lines if "explored" in line), None), shown


def _types(line: dict[str, Any]) -> tuple[str, ...]:
    types = line.get("type", ())
    return (types,) if isinstance(types, str) else tuple(types)


def _way(arrow: str) -> tuple[str, bool]:
    relation, outgoing = read_arrow(arrow)
    return relation, bool(outgoing)
