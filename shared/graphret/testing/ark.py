"""Doubles of models that explore a graph."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from graphret.ark.prompt import FINISH, SEARCH, SELECT
from graphret.ark.scripted import NEIGHBORS_K, TURN, Call, Transcript, follow
from graphret.llm.chat import Message, Reply, Tool, ToolCall
from graphret.planning.paths import Hop, Plan


class OracleExplorer:
    """A test double in the place of a chat model that is told where each question starts and which relations to follow.

    What it cannot reach with ARK's tools, no model can: it finds the start by a search, follows the path and selects
    all its ends, those that most paths lead to first.

    Parameters
    ----------
    paths
        For each question the id of the node where it starts, and the relations from there, each with whether it is
        followed from its source to its target.
    turn
        Most explorations of one reply.
    """

    name = "oracle-explorer"

    def __init__(
        self, paths: Mapping[str, tuple[str, Sequence[tuple[str, bool]]]], *, turn: int = TURN, last_turn: int = 19
    ) -> None:
        self.paths = paths
        self.turn = turn
        self.last_turn = last_turn

    def chat(self, messages: Sequence[Message], *, tools: Sequence[Tool] | None = None, **options: Any) -> Reply:
        """Return the next calls."""
        seen = Transcript.read(messages)
        calls = tuple(
            ToolCall(f"call_{seen.turns}_{number}", name, json.dumps(arguments, ensure_ascii=False))
            for number, (name, arguments) in enumerate(self._next(seen))
        )
        return Reply("" if calls else "Done.", calls, model=self.name)

    async def achat(self, messages: Sequence[Message], *, tools: Sequence[Tool] | None = None, **options: Any) -> Reply:
        """`chat`, which waits for nothing."""
        return self.chat(messages, tools=tools)

    def _next(self, seen: Transcript) -> list[Call]:
        start, path = self.paths.get(seen.question, ("", ()))
        if seen.finished or not start or not path:
            return [] if seen.finished else [(FINISH, {})]
        if not seen.searches:
            return [(SEARCH, {"query": start, "k": NEIGHBORS_K})]
        plan = Plan(tuple(Hop(relation, outgoing) for relation, outgoing in path), 0, 0.0)
        around = seen.around
        walk = follow(start, plan, around, (), "")
        wanted = [] if walk is None else walk.wanted
        wanted = [call for call in wanted if call[1]["node"] not in seen.tried or call[1]["node"] in around]
        if wanted and seen.turns < self.last_turn:
            return wanted[: self.turn]
        ends = {} if walk is None else walk.ends
        chosen = sorted(ends, key=lambda end: -ends[end])
        return ([(SELECT, {"nodes": chosen})] if chosen else []) + [(FINISH, {})]
