"""What a capable model answered to the prompts of GRASP and ARK, replayed.

The replies are recorded, not made by a rule: a model that worked on this repository
read the prompts as they are now, and wrote one plan, or one turn of calls after the
other, for questions of MetaQA's development set over the excerpt in the package, and
for questions over the business graph of ``graphret bench plans``. Answers to the former
are what the question's path of relations reaches in the excerpt.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from graphret import Ark, ArkSettings, BM25Index
from graphret.evaluation.spark import filled
from graphret.graphs import read_tables
from graphret.graphs.example import KB
from graphret.graphs.metaqa import read_metaqa
from graphret.grasp import LLMPlanner, PlanRetriever
from graphret.llm.chat import Message, Reply, ToolCall
from graphret.stores import GraphStore, MemoryStore

HERE = Path(__file__).parent
BUSINESS = HERE.parent / "benchmarks" / "plans" / "business"
Recorded = Mapping[str, Any]


def recorded(name: str) -> list[Any]:
    lines = (HERE / name).read_text("utf-8").splitlines()
    return [pytest.param(one, id=one["question"]) for one in map(json.loads, lines)]


class Replayed:
    """A chat model that gives recorded replies, one after the other."""

    name = "recorded"

    def __init__(self, replies: Sequence[Reply]) -> None:
        self.replies = iter(replies)

    def chat(self, messages: Sequence[Message], **options: Any) -> Reply:
        return next(self.replies)

    async def achat(self, messages: Sequence[Message], **options: Any) -> Reply:
        return next(self.replies)


@pytest.fixture(scope="module")
def graphs() -> dict[str, MemoryStore]:
    tables = read_tables([BUSINESS / "nodes.jsonl", BUSINESS / "edges.jsonl"])
    return {"business": tables.store(), "films": read_metaqa(KB).store()}


@pytest.fixture(scope="module", params=["memory", "ladybug"])
def stores(
    request: pytest.FixtureRequest, graphs: dict[str, MemoryStore]
) -> Iterator[Mapping[str, GraphStore]]:
    if request.param == "memory":
        yield graphs
    else:
        with (
            filled(graphs["business"], None) as business,
            filled(graphs["films"], None) as films,
        ):
            yield {"business": business, "films": films}


@pytest.mark.parametrize("one", recorded("grasp_plans.jsonl"))
def test_recorded_plans_find_the_answers(
    one: Recorded, stores: Mapping[str, GraphStore]
) -> None:
    store = stores[one["graph"]]
    planner = LLMPlanner(Replayed([Reply(one["reply"])]), store)
    found = PlanRetriever(planner, store).retrieve(one["question"], 100)
    assert not found.trace.fallbacks
    if "cannot" in one["reply"]:
        assert found.signals.doubts == ("no plan can say: the sum of freight",)
    elif '"count"' in one["reply"]:
        assert found.rows == [{"count": 3}]
    else:
        assert set(found.ids) == set(one["answers"])


@pytest.mark.parametrize("one", recorded("ark_sessions.jsonl"))
def test_recorded_agents_select_the_answers(
    one: Recorded, graphs: dict[str, MemoryStore]
) -> None:
    store = graphs[one["graph"]]
    replies = [
        Reply(
            tool_calls=tuple(
                ToolCall(f"{turn}-{place}", call["tool"], json.dumps(call["arguments"]))
                for place, call in enumerate(calls)
            )
        )
        for turn, calls in enumerate(one["turns"])
    ]
    agent = Ark(
        Replayed(replies),
        store,
        BM25Index.of_store(store),
        settings=ArkSettings(n_agents=1),
        fill=False,
        on_failure="raise",
    )
    assert set(agent.retrieve(one["question"], 100).ids) == set(one["answers"])
