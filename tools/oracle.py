"""Are the two operations of ARK enough?

Agents that are told where each question of MetaQA starts and what to follow.

``python tools/oracle.py --data DIR [--hops 1,2,3] [--limit N]``, with DIR as for
``graphret bench metaqa``.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path

from graphret.ark import Ark, ArkRun, ArkSettings
from graphret.ark.prompt import SEARCH
from graphret.ark.scripted import (
    Call,
    ScriptedExplorer,
    Transcript,
    ending,
    explorations,
    follow,
)
from graphret.ark.settings import MAX_K
from graphret.evaluation.metaqa import HOPS, MetaQuestion, load_questions, path_ends
from graphret.evaluation.metrics import percent
from graphret.graphs import read_metaqa
from graphret.planning import Hop
from graphret.search.bm25 import BM25Index
from graphret.stores import MemoryStore


class OracleExplorer(ScriptedExplorer):
    """An upper bound for models with ARK's tools: it selects the ends of the gold path.

    Those that most paths lead to come first. `paths` has for each question the id of
    the node where it starts, and the relations from there, each with whether it is
    followed from its source to its target.
    """

    name = "oracle-explorer"

    def __init__(
        self, paths: Mapping[str, tuple[str, Sequence[tuple[str, bool]]]]
    ) -> None:
        super().__init__()
        self.paths = paths

    def next_calls(self, seen: Transcript) -> list[Call]:
        """Return the calls to make now."""
        start, path = self.paths.get(seen.question, ("", ()))
        if not start or not path:
            return ending([])
        if not seen.searches:
            return [(SEARCH, {"query": start, "k": MAX_K})]
        walk = follow(
            start, [Hop(relation, outgoing) for relation, outgoing in path], seen
        )
        if walk is None or (seen.turns > 1 and start not in seen.explorations):
            return ending([])
        return explorations([walk], seen) or ending(
            sorted(walk.ends, key=lambda end: -walk.ends[end])
        )


def measured(store: MemoryStore, questions: Sequence[MetaQuestion]) -> dict[str, float]:
    """Return the selection's metrics over questions whose own path reaches an answer.

    ``any`` is the share with a right answer selected, ``first`` with one selected
    first, ``all`` the mean share of the right answers there that were selected;
    ``calls`` and ``steps`` are means over all questions.
    """
    runs: list[ArkRun] = []
    model = OracleExplorer({item.text: (item.entity, item.path) for item in questions})
    ark = Ark(
        model,
        store,
        BM25Index.of_store(store),
        settings=ArkSettings(n_agents=1),
        on_run=runs.append,
    )
    shares: dict[str, list[float]] = {"any": [], "first": [], "all": []}
    for question in questions:
        ark.retrieve(question.text, 20)
        chosen = [vote.id for vote in runs[-1].votes]
        if right := question.gold & path_ends(store, question):
            shares["any"].append(float(not right.isdisjoint(chosen)))
            shares["first"].append(float(chosen[:1] != [] and chosen[0] in right))
            shares["all"].append(len(right.intersection(chosen)) / len(right))
    steps = [run.sessions[0].steps for run in runs]
    return {
        "questions": len(shares["any"]),
        **{name: percent(statistics.mean(values)) for name, values in shares.items()},
        "calls": round(
            statistics.mean(sum(len(step.calls) for step in item) for item in steps), 2
        ),
        "steps": round(statistics.mean(map(len, steps)), 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--hops", default=",".join(map(str, HOPS)))
    parser.add_argument("--limit", type=int)
    options = parser.parse_args()
    store = read_metaqa(options.data).store()
    for hops in map(int, options.hops.split(",")):
        print(
            f"{hops} hops",
            measured(store, load_questions(options.data, hops, limit=options.limit)),
        )


if __name__ == "__main__":
    main()
