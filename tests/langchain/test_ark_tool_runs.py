"""LangChain's callbacks hear of the agents' calls as of runs of tools."""

from __future__ import annotations

import asyncio
import threading
from typing import Any
from uuid import UUID

import pytest
from ark_support import Follows, call, turns
from langchain_core.callbacks import BaseCallbackHandler
from langgraph_parts import ASK, graph

from graphret.ark import ArkSettings, Toolbox

CALLS = [call("global_search", "a", query="Bob Bell"), call("explore_neighborhood", "b", node="nobody")]
END = [call("select", "c", nodes=["p1"]), call("finish", "d")]


class Heard(BaseCallbackHandler):
    def __init__(self) -> None:
        self.nodes: dict[UUID, str] = {}
        self.begun: dict[UUID, tuple[str, Any, str]] = {}
        self.ended: dict[str, Any] = {}

    def on_chain_start(self, serialized: Any, inputs: Any, *, run_id: UUID, **about: Any) -> None:
        self.nodes[run_id] = about.get("name") or ""

    def on_tool_start(self, serialized: Any, input_str: str, *, run_id: UUID, **about: Any) -> None:
        self.begun[run_id] = about["tool_call_id"], about["inputs"], self.nodes[about["parent_run_id"]]

    def on_tool_end(self, output: Any, *, run_id: UUID, **about: Any) -> None:
        self.ended[self.begun[run_id][0]] = output

    def on_tool_error(self, error: BaseException, *, run_id: UUID, **about: Any) -> None:
        self.ended[self.begun[run_id][0]] = error


async def asked(form: str, compiled: Any, heard: Heard) -> Any:
    config: Any = {"callbacks": [heard]}
    return await (
        asyncio.to_thread(compiled.invoke, ASK, config) if form == "blocking" else compiled.ainvoke(ASK, config)
    )


@pytest.mark.parametrize("form", ["blocking", "awaited"])
async def test_callbacks_hear_of_calls_that_read_the_graph(form: str) -> None:
    heard = Heard()
    found = await asked(form, graph(Follows(turns(CALLS, END)), n_agents=1), heard)
    assert list(heard.begun.values()) == [
        ("a", {"query": "Bob Bell"}, "step"),
        ("b", {"node": "nobody"}, "step"),
    ]
    texts = [message["content"] for message in found["agents"][0]["messages"] if message["role"] == "tool"]
    assert [heard.ended[id].text for id in "ab"] == texts[:2]
    assert [heard.ended[id].status for id in "ab"] == ["success", "error"]
    assert [heard.ended[id].name for id in "ab"] == ["global_search", "explore_neighborhood"]


@pytest.mark.parametrize("form", ["blocking", "awaited"])
async def test_callbacks_hear_of_calls_that_a_budget_cuts_off(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    hangs, run = threading.Event(), Toolbox.run
    monkeypatch.setattr(Toolbox, "run", lambda self, *given: hangs.wait(5) and run(self, *given))
    heard = Heard()
    await asked(form, graph(Follows(turns(CALLS, END)), settings=ArkSettings(n_agents=1, max_seconds=0.1)), heard)
    hangs.set()
    assert {id: type(error) for id, error in heard.ended.items()} == {"a": TimeoutError, "b": TimeoutError}


async def test_a_stream_of_events_has_them() -> None:
    compiled = graph(Follows(turns(CALLS, END)), n_agents=1)
    events = [event async for event in compiled.astream_events(ASK, version="v2")]
    assert [event["name"] for event in events if event["event"] == "on_tool_end"] == [
        "global_search",
        "explore_neighborhood",
    ]
