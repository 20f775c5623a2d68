"""Doubles of models that explore a graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from graphret.ark.prompt import SEARCH
from graphret.ark.scripted import Call, ScriptedExplorer, Transcript, ending, explorations, follow
from graphret.ark.settings import MAX_K
from graphret.planning.paths import Hop


class OracleExplorer(ScriptedExplorer):
    """A test double in the place of a chat model that is told where each question starts and which relations to follow.

    What it cannot reach with ARK's tools, no model can: it selects all ends of the path, those that most paths lead to
    first. `paths` has for each question the id of the node where it starts, and the relations from there, each with
    whether it is followed from its source to its target.
    """

    name = "oracle-explorer"

    def __init__(self, paths: Mapping[str, tuple[str, Sequence[tuple[str, bool]]]]) -> None:
        super().__init__()
        self.paths = paths

    def next_calls(self, seen: Transcript) -> list[Call]:
        """Return the calls to make now."""
        start, path = self.paths.get(seen.question, ("", ()))
        if not start or not path:
            return ending([])
        if not seen.searches:
            return [(SEARCH, {"query": start, "k": MAX_K})]
        walk = follow(start, [Hop(relation, outgoing) for relation, outgoing in path], seen)
        if walk is None or (seen.turns > 1 and start not in seen.explorations):
            return ending([])
        return explorations([walk], seen) or ending(sorted(walk.ends, key=lambda end: -walk.ends[end]))
