"""ARK as a LangGraph graph: what goes in and comes out, agents at once, streams, limits, budgets, faults."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Sequence
from typing import Annotated, Any, TypedDict

import pytest
from ark_support import Follows, call, selecting
from chat_clients import langchain_openai
from langgraph.graph import START, StateGraph
from langgraph.types import Send
from langgraph_parts import (
    ASK,
    FULL,
    INDEX,
    QUESTION,
    RANKED,
    SELECTIONS,
    STORE,
    Gate,
    Meeting,
    asked,
    graph,
    ids,
    models,
    stops,
)

from graphret.ark import Ark, ArkSettings, Run
from graphret.errors import InvalidInput
from graphret.llm.chat import Message
from graphret.testing.openai_server import OpenAIServer, status, tool_calls
from graphret.types import Trace
from langchain_graphret import create_ark_agent
from langchain_graphret.ark import by_agent
from langchain_graphret.ark.graph import ArkGraph

both_ways = pytest.mark.parametrize("awaited", [False, True])


async def run(compiled: ArkGraph, awaited: bool, given: Any = ASK) -> Any:
    return await compiled.ainvoke(given) if awaited else compiled.invoke(given)


# -- what goes in and comes out


def test_a_question_in_and_ranked_evidence_out() -> None:
    runs: list[Run] = []
    found = graph(on_run=runs.append).invoke(ASK)
    assert set(found) == {"question", "agents", "votes", "hits", "trace"}
    assert json.loads(json.dumps(found)) == found
    assert [vote["id"] for vote in found["votes"]] == RANKED
    assert Trace.from_dict(found["trace"]).stages[0].details["agents"] == 3
    for sessions in (found["agents"], [session.to_dict() for session in runs[0].sessions]):
        assert [agent["selection"] for agent in sessions] == [list(nodes) for nodes in SELECTIONS]
    assert runs[0].seconds > 0


@both_ways
@pytest.mark.parametrize(("k", "where"), [(1, None), (3, {"year": {"$gte": 1992}})])
async def test_it_answers_as_the_core_does(awaited: bool, k: int, where: Any) -> None:
    expected = Ark(models(), STORE, INDEX, settings=FULL).retrieve(QUESTION, k, where)
    found = await run(graph(), awaited, {"question": QUESTION, "k": k, "where": where})
    assert found["hits"] == [hit.to_dict() for hit in expected]


def test_malformed_input_is_refused_before_any_model_is_asked() -> None:
    asks = models()
    for wrong, named in (({"question": " "}, "question"), ({"k": 0}, "k"), ({"where": {"year": {"$near": 1}}}, "near")):
        with pytest.raises(InvalidInput, match=named):
            graph(asks).invoke({"question": QUESTION, **wrong})
    assert asked(asks) == [0, 0, 0]


def test_models_temperatures_and_hints_are_given_to_agents() -> None:
    asks = models()
    found = graph(asks, temperature=[0.1, None, 0.9], hints="Films only.").invoke(ASK)
    assert [model.temperatures[0] for model in asks] == [0.1, None, 0.9]
    assert [agent["model"] for agent in found["agents"]] == ["m0", "m1", "m2"]
    assert all("Films only." in agent["messages"][0]["content"] for agent in found["agents"])
    assert len(graph(models()[0], n_agents=2).invoke(ASK)["agents"]) == 2
    for wrong in ({"model": models()[:2]}, {"temperature": [0.1]}, {"approve": ["explore_neighbourhood"]}):
        with pytest.raises(InvalidInput, match=next(iter(wrong))):
            graph(**wrong)


# -- at once


@both_ways
async def test_agents_do_not_wait_for_one_another(awaited: bool) -> None:
    """The first reply of one agent waits until the others are asked for their third."""
    gate, when = Gate(3), (0, 2, 2)
    compiled = graph([Meeting(selecting(*SELECTIONS[i]), {when[i]: gate}, f"m{i}") for i in range(3)])
    assert ids(await run(compiled, awaited))[:3] == RANKED


def test_more_agents_than_threads_of_a_small_machine_run_at_once() -> None:
    gates = {0: Gate(12)}
    asks = [Meeting(selecting("f1"), gates, f"m{i}") for i in range(12)]
    assert stops(graph(asks, n_agents=12).invoke(ASK)) == ["finished"] * 12


async def test_cancelling_stops_every_agent() -> None:
    gate = Gate(4)
    task = asyncio.create_task(graph([Meeting(selecting("f1"), {1: gate}, f"m{i}") for i in range(3)]).ainvoke(ASK))
    while gate.waiting < 3:  # noqa: ASYNC110 -- they are about to
        await asyncio.sleep(0.001)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert gate.waiting == 0


def test_agents_do_not_ask_again_once_the_vote_is_settled() -> None:
    """The third waits with its first reply until the two that agree have ended."""
    ended = threading.Semaphore(0)

    def slow(messages: Sequence[Message]) -> Any:
        assert ended.acquire(timeout=10)
        assert ended.acquire(timeout=10)
        return [call("global_search", query="Bob Bell")]

    quick = Follows(selecting("f4"))
    compiled = graph([quick, quick, Follows(slow)], settings=ArkSettings())
    stopped = {}
    for _, event in compiled.stream(ASK, stream_mode="custom", subgraphs=True):
        if event["event"] == "end":
            stopped[event["agent"]] = event["stop"]
            ended.release()
    assert stopped == {1: "finished", 2: "finished", 3: "settled"}


# -- streams


@both_ways
async def test_steps_are_streamed_as_they_happen(awaited: bool) -> None:
    compiled, options = graph(), {"stream_mode": "custom", "subgraphs": True}
    if awaited:
        events: Any = [event async for event in compiled.astream(ASK, **options)]  # type: ignore[arg-type]
    else:
        events = list(compiled.stream(ASK, **options))  # type: ignore[arg-type]
    for agent in (1, 2, 3):
        mine = [event for _, event in events if event["agent"] == agent]
        assert [event["event"] for event in mine] == ["reply", "step"] * 3 + ["end"]
        assert mine[0]["calls"] == [{"tool": "global_search", "arguments": {"query": "Bob Bell"}}]
        assert mine[1]["calls"][0]["nodes"] == ["p1"]
        assert mine[-1]["selection"] == list(SELECTIONS[agent - 1])
    json.dumps([event for _, event in events])


# -- limits and faults


@pytest.mark.parametrize(("limit", "steps"), [(5, 1), (8, 2), (9, 3)])
async def test_an_agent_ends_before_the_recursion_limit(limit: int, steps: int) -> None:
    found = graph().invoke(ASK, {"recursion_limit": limit})
    assert [len(agent["steps"]) for agent in found["agents"]] == [steps] * 3
    assert stops(found) == ["finished" if steps == 3 else "steps"] * 3
    assert len(found["hits"]) == 4


@pytest.mark.parametrize("streamed", [False, True])
def test_over_http_through_a_langchain_model(streamed: bool) -> None:
    broken = '{"node": "p1"'  # LangChain completes what was streamed
    look = tool_calls(("global_search", {"query": "Bob Bell"}), ("no_such_tool", {}), ("explore_neighborhood", broken))
    play = [status(429, retry_after=0.01), look, tool_calls(("select", {"nodes": ["p1", "zz"]}), ("finish", {}))]
    with OpenAIServer(play) as server:
        compiled = graph(langchain_openai(server.base_url), n_agents=1)
        parts = list(compiled.stream(ASK, stream_mode=["messages", "values"] if streamed else ["values"]))
        assert [bool(request.body.get("stream")) for request in server.requests] == [streamed] * 3
    found: Any = parts[-1][1]
    assert stops(found) == ["finished"]
    assert ids(found)[0] == "p1"
    said = [message["content"] for message in found["agents"][0]["messages"] if message["role"] == "tool"]
    assert ["error" in text for text in said] == [False, True, not streamed, True, False]


# -- in graphs of one's own


class Several(TypedDict, total=False):
    question: str
    agents: Annotated[list[dict[str, Any]], by_agent]


async def test_several_agents_in_ones_own_graph() -> None:
    agent = create_ark_agent(models(), STORE, INDEX, n_agents=3, settings=FULL)
    builder = StateGraph(Several)
    builder.add_node("explore", agent)
    builder.add_conditional_edges(
        START, lambda state: [Send("explore", {**state, "agent": n}) for n in range(3)], ["explore"]
    )
    compiled = builder.compile()
    found = await compiled.ainvoke({"question": QUESTION})
    events = [event async for event in compiled.astream_events({"question": QUESTION}, version="v2")]
    for answer in (found, events[-1]["data"]["output"]):
        assert [one["selection"] for one in answer["agents"]] == [list(nodes) for nodes in SELECTIONS]
    with pytest.raises(InvalidInput, match="agent: a number from 0 to 2"):
        agent.invoke({"question": QUESTION, "agent": 3})
