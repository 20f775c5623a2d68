"""ARK as a LangGraph graph: what goes in and comes out, agents at once, streams, limits, budgets, faults."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Sequence
from typing import Annotated, Any, TypedDict

import pytest
from ark_support import Follows, call, selecting, turns
from chat_clients import langchain_openai
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
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
    thread,
)

from graphret.ark import Ark, ArkSettings, Run
from graphret.errors import InvalidInput, RetrievalFailed
from graphret.llm.chat import Message
from graphret.testing.openai_server import OpenAIServer, status, tool_calls
from graphret.types import Trace
from langchain_graphret import ScriptedExplorer, create_ark_agent, create_ark_graph
from langchain_graphret.ark import by_agent

# -- what goes in and comes out


async def test_a_question_in_and_ranked_evidence_out_in_both_forms() -> None:
    found = graph().invoke(ASK)
    assert set(found) == {"question", "agents", "votes", "hits", "trace"}
    assert json.loads(json.dumps(found)) == found
    assert ids(found)[:3] == RANKED
    assert len(found["hits"]) == 4
    best, filled = found["hits"][0], found["hits"][3]
    assert best["name"] == "Dark Red"
    assert best["evidence"][0]["properties"] == {"votes": 3, "of": 3, "agents": [1, 2, 3]}
    assert (best["evidence"][1]["source"], best["evidence"][1]["relation"]) == ("p1", "directed_by")
    assert filled["evidence"][-1]["kind"] == "fill"
    assert [vote["id"] for vote in found["votes"]] == RANKED
    assert [agent["selection"] for agent in found["agents"]] == [list(nodes) for nodes in SELECTIONS]
    names = [stage["name"] for stage in found["trace"]["stages"]]
    assert {"explore", "explore/agent 3/step 3", "vote"} <= set(names)
    awaited = await graph().ainvoke(ASK)
    assert (awaited["hits"], awaited["votes"]) == (found["hits"], found["votes"])


async def test_it_answers_as_the_core_does() -> None:
    for k, where in ((1, None), (4, None), (3, {"year": {"$gte": 1992}})):
        expected = Ark(models(), STORE, INDEX, settings=FULL).retrieve(QUESTION, k, where)
        given: Any = {"question": QUESTION, "k": k, "where": where}
        assert graph().invoke(given)["hits"] == (await graph().ainvoke(given))["hits"]
        assert graph().invoke(given)["hits"] == [hit.to_dict() for hit in expected]


@pytest.mark.parametrize(
    ("given", "named"),
    [({"question": 3}, "question"), ({"k": 0}, "k"), ({"where": {"year": {"$near": 1}}}, "near")],
)
def test_malformed_input_is_refused_before_any_model_is_asked(given: Any, named: str) -> None:
    asks = models()
    with pytest.raises(InvalidInput, match=named):
        graph(asks).invoke(given if "question" in given or not given else {"question": QUESTION, **given})
    assert asked(asks) == [0, 0, 0]


def test_a_blank_question_is_answered_without_agents() -> None:
    asks = models()
    found = graph(asks).invoke({"question": "  "})
    assert asked(asks) == [0, 0, 0]
    assert found["votes"] == []


def test_models_temperatures_steps_and_hints_are_given_to_agents() -> None:
    asks = models()
    found = graph(asks, temperature=[0.1, None, 0.9], hints="Films only.", max_steps=2).invoke(ASK)
    assert [model.temperatures[0] for model in asks] == [0.1, None, 0.9]
    assert [agent["model"] for agent in found["agents"]] == ["m0", "m1", "m2"]
    assert stops(found) == ["steps"] * 3
    assert all("Films only." in agent["messages"][0]["content"] for agent in found["agents"])
    assert len(graph(models()[0], n_agents=2).invoke(ASK)["agents"]) == 2
    with pytest.raises(InvalidInput, match="model"):
        graph(models()[:2])
    with pytest.raises(InvalidInput, match="settings: ArkSettings are expected, not dict"):
        graph(settings={"n_agents": 2})
    with pytest.raises(InvalidInput, match="temperature"):
        graph(models(), temperature=[0.1])
    with pytest.raises(InvalidInput, match="model"):
        graph("gpt-4o")


# -- at once


@pytest.mark.parametrize("form", ["blocking", "awaited"])
async def test_all_agents_are_under_way_at_once(form: str) -> None:
    gates = {reply: Gate(3) for reply in range(3)}
    asks = [Meeting(selecting(*nodes), gates, f"m{i}") for i, nodes in enumerate(SELECTIONS)]
    compiled = graph(asks)
    found = await (asyncio.to_thread(compiled.invoke, ASK) if form == "blocking" else compiled.ainvoke(ASK))
    assert ids(found)[:3] == RANKED


@pytest.mark.parametrize("form", ["blocking", "awaited"])
async def test_agents_do_not_wait_for_one_another(form: str) -> None:
    """The first reply of one agent waits until the others are asked for their third."""
    gate = Gate(3)
    when = (0, 2, 2)
    compiled = graph([Meeting(selecting(*SELECTIONS[i]), {when[i]: gate}, f"m{i}") for i in range(3)])
    found = await (asyncio.to_thread(compiled.invoke, ASK) if form == "blocking" else compiled.ainvoke(ASK))
    assert ids(found)[:3] == RANKED


def test_more_agents_than_threads_of_a_small_machine_run_at_once() -> None:
    gates = {0: Gate(12)}
    asks = [Meeting(selecting("f1"), gates, f"m{i}") for i in range(12)]
    assert stops(graph(asks, n_agents=12).invoke(ASK)) == ["finished"] * 12


# -- streams


@pytest.mark.parametrize("form", ["blocking", "awaited"])
async def test_steps_are_streamed_as_they_happen(form: str) -> None:
    compiled = graph()
    if form == "blocking":
        events = list(compiled.stream(ASK, stream_mode="custom", subgraphs=True))
    else:
        events = [event async for event in compiled.astream(ASK, stream_mode="custom", subgraphs=True)]
    assert {namespace[0].split(":")[0] for namespace, _ in events} == {"agent"}
    for agent in (1, 2, 3):
        mine = [event for _, event in events if event["agent"] == agent]
        assert [event["event"] for event in mine] == ["reply", "step"] * 3 + ["end"]
        assert mine[0]["calls"] == [{"tool": "global_search", "arguments": {"query": "Bob Bell"}}]
        assert mine[1]["calls"][0]["nodes"] == ["p1"]
        assert mine[-1]["selection"] == list(SELECTIONS[agent - 1])
    json.dumps([event for _, event in events])


def test_a_step_is_streamed_before_the_next_is_asked_for() -> None:
    came = {step: threading.Event() for step in (1, 2, 3)}

    def waiting(messages: Sequence[Message]) -> Any:
        """Nothing is said until all steps before it have come."""
        done = sum(message.role == "assistant" for message in messages)
        assert done == 0 or came[done].wait(10)
        return selecting("f1")(messages)

    for _, event in graph(Follows(waiting), n_agents=1).stream(ASK, stream_mode="custom", subgraphs=True):
        if event["event"] == "step":
            came[event["step"]].set()
    assert [step for step in came if came[step].is_set()] == [1, 2, 3]


def test_updates_show_each_agents_steps() -> None:
    chunks = [
        update
        for namespace, update in graph().stream(ASK, stream_mode="updates", subgraphs=True)
        if namespace and "tools" in update
    ]
    assert len(chunks) == 9
    assert sorted(len(update["tools"]["agents"][0]["steps"]) for update in chunks) == [1, 1, 1, 2, 2, 2, 3, 3, 3]


@pytest.mark.parametrize("mode", ["checkpoints", "debug", "tasks", "values"])
@pytest.mark.parametrize("form", ["blocking", "awaited"])
async def test_every_stream_is_json_also_of_a_graph_around_it(form: str, mode: Any) -> None:
    builder = StateGraph(Own)
    builder.add_node("explore", graph())
    builder.add_edge(START, "explore")
    for compiled in (graph(checkpointer=InMemorySaver()), builder.compile(checkpointer=InMemorySaver())):
        options: Any = {"stream_mode": mode, "subgraphs": True}
        given: Any = {"question": QUESTION}
        if form == "blocking":
            events = list(compiled.stream(given, thread(), **options))
        else:
            events = [event async for event in compiled.astream(given, thread(), **options)]
        json.dumps(events)


async def test_events_tell_of_models_and_nodes_below_the_graph() -> None:
    compiled = graph(ScriptedExplorer(), n_agents=3)
    events = [event async for event in compiled.astream_events(ASK, version="v2")]
    answer = events[-1]["data"]["output"]
    assert len(answer["hits"]) == 4
    nodes = {event["metadata"].get("langgraph_node") for event in events if event["event"] == "on_chat_model_end"}
    assert nodes == {"model"}
    ran = [event["name"] for event in events if event["event"] == "on_tool_end"]
    done = [one["tool"] for agent in answer["agents"] for step in agent["steps"] for one in step["calls"]]
    assert sorted(ran) == sorted(tool for tool in done if tool not in ("select", "finish"))


def test_a_models_words_are_streamed_with_its_agent() -> None:
    chunks = list(graph(ScriptedExplorer()).stream(ASK, stream_mode="messages", subgraphs=True))
    assert len({namespace for namespace, _ in chunks}) == 3
    assert {said["langgraph_node"] for _, (_, said) in chunks} == {"model"}


# -- limits


def test_agents_that_could_still_change_the_top_go_on() -> None:
    found = graph(models(("f4",), ("f1",), ("f1",)), settings=ArkSettings(settle=1)).invoke(ASK)
    assert ids(found)[0] == "f1"
    assert stops(found)[1:] == ["finished", "finished"]


# -- faults


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


def test_the_scripted_explorer_drives_it() -> None:
    found = create_ark_graph(ScriptedExplorer(), STORE, INDEX, n_agents=1).invoke(
        {"question": "which films were directed by [Bob Bell]", "k": 2}
    )
    assert set(ids(found)) == {"f1", "f4"}
    assert stops(found) == ["finished"]


async def test_cancelling_stops_every_agent() -> None:
    gates = {0: Gate(3), 1: Gate(4)}
    task = asyncio.create_task(graph([Meeting(selecting("f1"), gates, f"m{i}") for i in range(3)]).ainvoke(ASK))
    await asyncio.wait_for(gates[0].open.wait(), 10)
    while gates[1].waiting < 3:  # noqa: ASYNC110 -- they are about to
        await asyncio.sleep(0.001)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert gates[1].waiting == 0


# -- in graphs of one's own


class Own(TypedDict, total=False):
    question: str
    agents: Any
    selection: list[str]
    answer: str


class Several(TypedDict, total=False):
    question: str
    agents: Annotated[list[dict[str, Any]], by_agent]


async def test_the_agent_is_a_node_of_ones_own_graph() -> None:
    builder = StateGraph(Own)
    builder.add_node("explore", create_ark_agent(models()[0], STORE, INDEX, max_steps=5))
    builder.add_node("respond", lambda state: {"answer": ", ".join(state["selection"])})
    builder.add_edge(START, "explore")
    builder.add_edge("explore", "respond")
    builder.add_edge("respond", END)
    compiled = builder.compile(checkpointer=InMemorySaver())
    assert compiled.invoke({"question": QUESTION}, thread())["answer"] == "f1, f4"
    again = await compiled.ainvoke({"question": QUESTION}, thread())  # what an earlier run left is not taken up
    assert len(again["agents"][0]["steps"]) == 3


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
    assert found["question"] == QUESTION
    with pytest.raises(InvalidInput, match="agent: a number from 0 to 2"):
        agent.invoke({"question": QUESTION, "agent": 3})


def test_the_whole_graph_is_a_node_of_a_chat() -> None:
    def explore(state: MessagesState) -> Any:
        found = graph().invoke({"question": str(state["messages"][-1].text), "k": 2})
        return {"messages": [AIMessage(", ".join(hit["name"] for hit in found["hits"]))]}

    builder = StateGraph(MessagesState)
    builder.add_node("explore", explore)
    builder.add_edge(START, "explore")
    state = builder.compile().invoke({"messages": [HumanMessage(QUESTION)]})
    assert state["messages"][-1].text == "Dark Red, Blue Dusk"


@pytest.mark.parametrize("limit", range(5, 12))
async def test_an_agent_ends_before_the_recursion_limit(limit: int) -> None:
    config: Any = {"recursion_limit": limit}
    for found in (graph().invoke(ASK, config), await graph().ainvoke(ASK, config)):
        steps = min(3, (limit - 3) // 2)
        assert [len(agent["steps"]) for agent in found["agents"]] == [steps] * 3
        assert stops(found) == ["finished" if steps == 3 else "steps"] * 3
        assert len(found["hits"]) == 4


def test_agents_do_not_ask_again_once_the_vote_is_settled() -> None:
    """The third waits with its first reply until the two that agree have finished."""
    others_done = threading.Event()
    timer = threading.Timer(0.5, others_done.set)

    def slow(messages: Sequence[Message]) -> Any:
        others_done.wait(10)
        return [call("global_search", query="Bob Bell")]

    timer.start()
    quick = Follows(selecting("f4"))
    found = graph([quick, quick, Follows(slow)], settings=ArkSettings()).invoke(ASK)
    assert stops(found) == ["finished", "finished", "settled"]


def test_a_run_that_came_to_its_vote_is_handed_on_and_shown() -> None:
    runs: list[Run] = []
    found = graph(on_run=runs.append).invoke(ASK)
    assert [session.selection for session in runs[0].sessions] == [list(nodes) for nodes in SELECTIONS]
    assert runs[0].seconds > 0
    page = Trace.from_dict(found["trace"]).html(title=QUESTION)
    assert all(f"Agent {agent}, step 3" in page for agent in (1, 2, 3))


@pytest.mark.parametrize("form", ["blocking", "awaited"])
async def test_calls_are_runs_of_tools_for_callbacks(form: str) -> None:
    class Heard(BaseCallbackHandler):
        def on_tool_end(self, output: Any, **about: Any) -> None:
            heard.append(output.text)

    heard: list[str] = []
    looks = [call("global_search", "a", query="Bob Bell"), call("explore_neighborhood", "b", node="nobody")]
    compiled, config = graph(Follows(turns(looks)), n_agents=1), {"callbacks": [Heard()]}
    found = await (
        asyncio.to_thread(compiled.invoke, ASK, config) if form == "blocking" else compiled.ainvoke(ASK, config)  # type: ignore[arg-type]
    )
    said = [message["content"] for message in found["agents"][0]["messages"] if message["role"] == "tool"]
    assert heard == said[:2]


def test_an_agent_that_is_alone_must_select_something_where_it_raises() -> None:
    agent = create_ark_agent(Follows(turns()), STORE, INDEX, on_failure="raise")
    with pytest.raises(RetrievalFailed, match="no agent selected a node"):
        agent.invoke({"question": QUESTION})
    several = create_ark_agent(Follows(turns()), STORE, INDEX, n_agents=2, on_failure="raise")
    assert several.invoke({"question": QUESTION, "agent": 1})["selection"] == []
