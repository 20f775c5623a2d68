"""ARK as a LangGraph graph: what goes in and out, agents at once, streams, limits,
checkpoints, approval.
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from threading import Barrier
from typing import Annotated, Any, TypedDict

import pytest
from ark_support import Follows, call, selecting
from chat_clients import langchain_openai
from langchain_parts import (
    ASK,
    FULL,
    INDEX,
    QUESTION,
    RANKED,
    SELECTIONS,
    STORE,
    Meeting,
    asked,
    graph,
    ids,
    models,
    stops,
    thread,
)
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.graph import START, StateGraph
from langgraph.types import Command, Send

from graphret.ark import Ark, ArkRun, ArkSettings
from graphret.errors import InvalidInput, RetrievalFailed
from graphret.llm.chat import ChatError, Message
from graphret.testing.openai_server import OpenAIServer, status, tool_calls
from graphret.trace import Trace
from langchain_graphret import create_ark_agent
from langchain_graphret.ark import by_agent
from langchain_graphret.ark.graph import ArkGraph

both_ways = pytest.mark.parametrize("awaited", [False, True])


async def run(compiled: ArkGraph, awaited: bool, given: Any = ASK) -> Any:
    return await compiled.ainvoke(given) if awaited else compiled.invoke(given)


# -- what goes in and comes out


def test_a_question_in_and_ranked_evidence_out() -> None:
    runs: list[ArkRun] = []
    state = graph(on_run=runs.append).invoke(ASK)
    assert set(state) == {"question", "agents", "votes", "hits", "rows", "trace"}
    assert json.loads(json.dumps(state)) == state
    assert [vote["id"] for vote in state["votes"]] == RANKED
    assert Trace.from_dict(state["trace"]).stages[0].details["agents"] == 3
    for sessions in (
        state["agents"],
        [session.to_dict() for session in runs[0].sessions],
    ):
        assert [agent["selection"] for agent in sessions] == [
            list(nodes) for nodes in SELECTIONS
        ]
    assert runs[0].seconds > 0


@both_ways
@pytest.mark.parametrize(("k", "where"), [(1, None), (3, {"year": {"$gte": 1992}})])
async def test_it_answers_as_the_core_does(awaited: bool, k: int, where: Any) -> None:
    expected = Ark(models(), STORE, INDEX, settings=FULL).retrieve(QUESTION, k, where)
    state = await run(graph(), awaited, {"question": QUESTION, "k": k, "where": where})
    assert state["hits"] == [hit.to_dict() for hit in expected]


def test_malformed_input_is_refused_before_any_model_is_asked() -> None:
    asks = models()
    for wrong, error in (
        ({"question": " "}, "question"),
        ({"k": 0}, "k"),
        ({"where": {"year": {"$near": 1}}}, "near"),
    ):
        with pytest.raises(InvalidInput, match=error):
            graph(asks).invoke({"question": QUESTION, **wrong})
    assert asked(asks) == [0, 0, 0]


def test_models_temperatures_and_hints_are_given_to_agents() -> None:
    asks = models()
    state = graph(asks, temperature=[0.1, None, 0.9], hints="Films only.").invoke(ASK)
    assert [model.temperatures[0] for model in asks] == [0.1, None, 0.9]
    assert [agent["model"] for agent in state["agents"]] == ["m0", "m1", "m2"]
    assert all(
        "Films only." in agent["messages"][0]["content"] for agent in state["agents"]
    )
    assert len(graph(models()[0], n_agents=2).invoke(ASK)["agents"]) == 2
    for wrong in (
        {"model": models()[:2]},
        {"temperature": [0.1]},
        {"approve": ["explore_neighbourhood"]},
    ):
        with pytest.raises(InvalidInput, match=next(iter(wrong))):
            graph(**wrong)


# -- at once


def test_agents_do_not_wait_for_one_another() -> None:
    """The first reply of one agent waits until the others are asked for their third."""
    gate, when = Barrier(3), (0, 2, 2)
    compiled = graph(
        [Meeting(selecting(*SELECTIONS[i]), {when[i]: gate}, f"m{i}") for i in range(3)]
    )
    assert ids(compiled.invoke(ASK))[:3] == RANKED


def test_more_agents_than_threads_of_a_small_machine_run_at_once() -> None:
    gates = {0: Barrier(12)}
    asks = [Meeting(selecting("f1"), gates, f"m{i}") for i in range(12)]
    assert stops(graph(asks, n_agents=12).invoke(ASK)) == ["finished"] * 12


async def test_cancelling_stops_every_agent() -> None:
    asks = models(waits=[30.0] * 3)
    task = asyncio.create_task(graph(asks).ainvoke(ASK))
    while sum(model.running for model in asks) < 3:  # noqa: ASYNC110 -- all at once
        await asyncio.sleep(0.001)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [model.running for model in asks] == [0, 0, 0]


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
        assert mine[0]["calls"] == [
            {"tool": "global_search", "arguments": {"query": "Bob Bell"}}
        ]
        assert mine[1]["calls"][0]["nodes"] == ["p1"]
        assert mine[-1]["selection"] == list(SELECTIONS[agent - 1])
    json.dumps([event for _, event in events])


# -- limits and faults


@pytest.mark.parametrize(("limit", "steps"), [(5, 1), (8, 2), (9, 3)])
async def test_an_agent_ends_before_the_recursion_limit(limit: int, steps: int) -> None:
    state = graph().invoke(ASK, {"recursion_limit": limit})
    assert [len(agent["steps"]) for agent in state["agents"]] == [steps] * 3
    assert stops(state) == ["finished" if steps == 3 else "steps"] * 3
    assert len(state["hits"]) == 4


@pytest.mark.parametrize("streamed", [False, True])
def test_over_http_through_a_langchain_model(streamed: bool) -> None:
    broken = '{"node": "p1"'  # LangChain completes what was streamed
    look = tool_calls(
        ("global_search", {"query": "Bob Bell"}),
        ("no_such_tool", {}),
        ("explore_neighborhood", broken),
    )
    play = [
        status(429, retry_after=0.01),
        look,
        tool_calls(("select", {"nodes": ["p1", "zz"]}), ("finish", {})),
    ]
    with OpenAIServer(play) as server:
        compiled = graph(langchain_openai(server.base_url), n_agents=1)
        parts = list(
            compiled.stream(
                ASK, stream_mode=["messages", "values"] if streamed else ["values"]
            )
        )
        assert [bool(request.body.get("stream")) for request in server.requests] == [
            streamed
        ] * 3
    state: Any = parts[-1][1]
    assert stops(state) == ["finished"]
    assert ids(state)[0] == "p1"
    texts = [
        message["content"]
        for message in state["agents"][0]["messages"]
        if message["role"] == "tool"
    ]
    assert ["error" in text for text in texts] == [
        False,
        True,
        not streamed,
        True,
        False,
    ]


# -- in graphs of one's own


class Several(TypedDict, total=False):
    question: str
    agents: Annotated[list[dict[str, Any]], by_agent]


async def test_several_agents_in_ones_own_graph() -> None:
    agent = create_ark_agent(models(), STORE, INDEX, n_agents=3, settings=FULL)
    builder = StateGraph(Several)
    builder.add_node("explore", agent)
    builder.add_conditional_edges(
        START,
        lambda state: [Send("explore", {**state, "agent": n}) for n in range(3)],
        ["explore"],
    )
    compiled = builder.compile()
    result = await compiled.ainvoke({"question": QUESTION})
    events = [
        event
        async for event in compiled.astream_events({"question": QUESTION}, version="v2")
    ]
    for answer in (result, events[-1]["data"]["output"]):
        assert [agent_state["selection"] for agent_state in answer["agents"]] == [
            list(nodes) for nodes in SELECTIONS
        ]
    with pytest.raises(InvalidInput, match="agent: expected a number from 0 to 2"):
        agent.invoke({"question": QUESTION, "agent": 3})


EXPECTED = graph().invoke(ASK)
OTHER = "films by Ann Archer"


@pytest.fixture
def saver() -> InMemorySaver:
    """Reads what LANGGRAPH_STRICT_MSGPACK lets it read, and logs what it does not."""
    return InMemorySaver(serde=JsonPlusSerializer(allowed_msgpack_modules=None))


def same(found: Any) -> bool:
    """Whether all but the seconds are those of a run that was never stopped."""
    return bool(
        found["hits"] == EXPECTED["hits"]
        and found["votes"] == EXPECTED["votes"]
        and [agent["messages"] for agent in found["agents"]]
        == [agent["messages"] for agent in EXPECTED["agents"]]
    )


# -- stopping and going on


class Stumbles(Follows):
    """Fails once, at the reply of this number; `paid` counts the replies that
    it gave.
    """

    def __init__(self, model: Follows, at: int) -> None:
        super().__init__(self._policy, model.name)
        self.inner = model
        self.at = at
        self.paid = 0

    def _policy(self, messages: Sequence[Message]) -> Any:
        if self.paid == self.at:
            self.at = -1
            raise ChatError("it is gone", model=self.name, reason="server", status=500)
        self.paid += 1
        return self.inner.policy(messages)


@pytest.mark.parametrize("at", [0, 2])
def test_a_run_that_broke_off_goes_on_where_it_was(tmp_path: Path, at: int) -> None:
    """Each time in a graph made anew, as another process would."""
    sqlite = pytest.importorskip("langgraph.checkpoint.sqlite")
    asks: list[Any] = [
        Stumbles(model, at if i == 1 else -1) for i, model in enumerate(models())
    ]
    with sqlite.SqliteSaver.from_conn_string(str(tmp_path / "checkpoints.db")) as saver:
        saver.serde = JsonPlusSerializer(allowed_msgpack_modules=None)
        with pytest.raises(RetrievalFailed, match="it is gone"):
            graph(asks, on_failure="raise", checkpointer=saver).invoke(ASK, thread())
        assert same(
            graph(asks, on_failure="raise", checkpointer=saver).invoke(None, thread())
        )
    assert [model.paid for model in asks] == [3, 3, 3]


def test_a_thread_takes_one_question_after_another(saver: InMemorySaver) -> None:
    compiled = graph(checkpointer=saver)
    assert same(compiled.invoke(ASK, thread()))
    output = compiled.invoke(
        {"question": OTHER, "k": 1, "where": {"label": "genre"}}, thread()
    )
    assert [agent["question"] for agent in output["agents"]] == [OTHER] * 3
    assert len(output["hits"]) == 1
    assert (
        len(compiled.invoke({"question": OTHER}, thread())["hits"]) == 10
    )  # k and filter were of that question
    assert same(compiled.invoke(ASK, thread()))


# -- approval


def waiting(found: Any) -> dict[int, Any]:
    """The interrupts, by the number of the agent that waits."""
    return {
        pending.value["agent"]: pending for pending in found.get("__interrupt__", ())
    }


def answer(found: Any, say: Any) -> Command[Any]:
    return Command(
        resume={pending.id: say(pending.value) for pending in waiting(found).values()}
    )


@pytest.mark.parametrize("awaited", [False, True])
async def test_a_person_approves_the_calls_of_several_agents_at_once(
    saver: InMemorySaver, caplog: pytest.LogCaptureFixture, awaited: bool
) -> None:
    asks = models()
    compiled = graph(asks, approve=True, checkpointer=saver)

    async def go(given: Any) -> Any:
        return (
            await compiled.ainvoke(given, thread())
            if awaited
            else compiled.invoke(given, thread())
        )

    state = await go(ASK)
    assert sorted(waiting(state)) == [1, 2, 3]
    assert waiting(state)[1].value == {
        "agent": 1,
        "step": 1,
        "question": QUESTION,
        "calls": [
            {
                "id": "call_1_0",
                "tool": "global_search",
                "arguments": {"query": "Bob Bell"},
            }
        ],
    }
    assert asked(asks) == [1, 1, 1]
    state = await go(answer(state, lambda value: True))
    assert [len(pending.value["calls"]) for pending in waiting(state).values()] == [
        2,
        2,
        2,
    ]
    state = await go(
        answer(
            state,
            lambda value: {call["id"]: True for call in value["calls"]},
        )
    )
    assert same(state)  # nothing to approve in a step that only selects and finishes
    assert asked(asks) == [3, 3, 3]
    for snapshot in compiled.get_state_history(thread()):
        json.dumps(snapshot.values)
    assert "msgpack" not in caplog.text


def test_refused_calls_are_answered_to_the_model(saver: InMemorySaver) -> None:
    compiled = graph(approve=["explore_neighborhood"], checkpointer=saver)
    state = compiled.invoke(ASK, thread())

    def say(value: Any) -> Any:
        first, second = (call["id"] for call in value["calls"])
        return {
            1: [second],
            2: {first: True},
            3: {first: True, second: "too many films"},
        }[value["agent"]]

    state = compiled.invoke(answer(state, say), thread())
    texts_by_agent = [
        [
            message["content"]
            for message in agent["messages"]
            if message.get("name") == "explore_neighborhood"
        ]
        for agent in state["agents"]
    ]
    refused = [
        ["A person refused this call" in text for text in texts]
        for texts in texts_by_agent
    ]
    assert refused == [[True, True], [False, True], [False, True]]
    assert "too many films" in texts_by_agent[2][1]
    assert [call["failed"] for call in state["agents"][0]["steps"][1]["calls"]] == [
        True,
        True,
    ]
    assert ids(state)[0] == "f4"  # the second agent and the third were shown it


@pytest.mark.parametrize(
    ("seconds", "elsewhere", "stop"), [(60, True, "finished"), (8, False, "seconds")]
)
def test_waiting_costs_no_time_and_a_run_is_handed_on_once(
    saver: InMemorySaver,
    seconds: float,
    elsewhere: bool,
    stop: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock, runs = [0.0], list[ArkRun]()
    monkeypatch.setattr(time, "perf_counter", lambda: clock[0])

    def slow(messages: Sequence[Message]) -> Any:
        clock[0] += 5
        return selecting("f1")(messages)

    settings = ArkSettings(n_agents=1, max_seconds=seconds)
    options: Any = {
        "n_agents": 1,
        "approve": ["global_search"],
        "on_run": runs.append,
        "checkpointer": saver,
    }
    graphs = [graph(Follows(slow), settings=settings, k=1, **options) for _ in range(2)]
    state = graphs[0].invoke({"question": QUESTION}, thread())
    assert runs == []
    clock[0] += 1000
    state = graphs[elsewhere].invoke(answer(state, lambda _: True), thread())
    assert [agent["stop"] for agent in state["agents"]] == [stop]
    assert [run.seconds for run in runs] == [15 if stop == "finished" else 10]
    assert len(state["hits"]) == 1
