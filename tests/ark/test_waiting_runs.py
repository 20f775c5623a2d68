"""A run that waits for a person: its clock stands still meanwhile, and it is handed on once."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import pytest
from ark_support import Follows, films, index_of, selecting
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from graphret.ark import ArkSettings, Run
from graphret.llm.chat import Message
from langchain_graphret import create_ark_graph

STORE = films()
INDEX = index_of(STORE)


@pytest.mark.parametrize(("seconds", "elsewhere", "stop"), [(60, True, "finished"), (8, False, "seconds")])
def test_waiting_costs_no_time_and_a_run_is_handed_on_once(
    seconds: float, elsewhere: bool, stop: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, runs, saver = [0.0], list[Run](), InMemorySaver()
    monkeypatch.setattr(time, "perf_counter", lambda: clock[0])

    def slow(messages: Sequence[Message]) -> Any:
        clock[0] += 5
        return selecting("f1")(messages)

    def graph() -> Any:
        settings = ArkSettings(n_agents=1, max_seconds=seconds)
        options: Any = {"settings": settings, "n_agents": 1, "approve": ["global_search"], "on_run": runs.append}
        return create_ark_graph(Follows(slow), STORE, INDEX, k=1, checkpointer=saver, **options)

    thread: Any = {"configurable": {"thread_id": "1"}}
    compiled = graph()
    found = compiled.invoke({"question": "films by Bob Bell"}, thread)
    assert runs == []
    clock[0] += 1000
    [waiting] = found["__interrupt__"]
    found = (graph() if elsewhere else compiled).invoke(Command(resume={waiting.id: True}), thread)
    assert [agent["stop"] for agent in found["agents"]] == [stop]
    assert [run.seconds for run in runs] == [15 if stop == "finished" else 10]
    assert len(found["hits"]) == 1
