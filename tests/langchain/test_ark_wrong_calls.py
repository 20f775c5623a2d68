"""Calls that make no sense, agents that do not finish: where `on_failure` is "raise" the graph raises, and says why."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any, TypedDict

import pytest
from ark_support import Follows, call, turns
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command, Send
from langgraph_parts import ASK, FULL, INDEX, QUESTION, STORE, asked, graph, ids, models, stops, thread

from graphret.ark import Run
from graphret.errors import RetrievalFailed
from graphret.llm.chat import Message
from langchain_graphret import create_ark_agent
from langchain_graphret.ark.state import by_agent

SEARCH = [call("global_search", query="Bob Bell")]
MISSPELT = [call("global_search", "a", query="Dark Red"), call("explore_neighborhood", "b", node="Bob Bel")]
END = [call("select", nodes=["p1"]), call("finish")]
WRONG = 'agent 3, step 2, explore_neighborhood {"node": "Bob Bel"}: There is no node "Bob Bel". Closest: "p1"'


@pytest.mark.parametrize("saved", [False, True])
@pytest.mark.parametrize("form", ["blocking", "awaited"])
async def test_a_wrong_call_is_answered_or_raised(form: str, saved: bool) -> None:
    async def answer(**options: Any) -> Any:
        agents = [*models()[:2], Follows(turns(SEARCH, MISSPELT, END))]
        one = graph(agents, checkpointer=InMemorySaver() if saved else None, **options)
        given = (ASK, thread())
        return await (asyncio.to_thread(one.invoke, *given) if form == "blocking" else one.ainvoke(*given))

    found = await answer()
    assert stops(found) == ["finished"] * 3
    assert [one["failed"] for one in found["agents"][2]["steps"][1]["calls"]] == [False, True]
    runs: list[Run] = []
    with pytest.raises(RetrievalFailed) as raised:
        await answer(on_failure="raise", on_run=runs.append)
    assert str(raised.value).startswith(f"ark failed: {WRONG}")
    assert len(runs[0].sessions[2].steps) == 2
    assert runs[0].sessions[2].stop == "failed"
    assert str(runs[0].sessions[2].error).startswith(WRONG)


def test_of_fifty_calls_in_one_turn_those_too_many_are_answered_or_raised() -> None:
    agent = Follows(turns([call("global_search", str(i), query=f"film {i}") for i in range(50)], END))
    found = graph(agent, n_agents=1).invoke(ASK)
    wrong = "the reply has more than 32 calls, and this one was not run"
    said = [one["error"] or "" for one in found["agents"][0]["steps"][0]["calls"]]
    assert ["make it again in a later reply" in one for one in said] == [False] * 32 + [True] * 18
    with pytest.raises(RetrievalFailed, match=f"agent 1, step 1, global_search .*film 32.*: {wrong}"):
        graph(agent, n_agents=1, on_failure="raise").invoke(ASK)


def test_it_stops_the_others_before_they_are_asked_again() -> None:
    steps = 300
    goes_on = [Follows(turns(*([[call("global_search", query=f"film {i}")] for i in range(steps)]))) for _ in range(2)]
    agents = [*goes_on, Follows(turns(SEARCH, MISSPELT, END))]
    settings = replace(FULL, max_steps=steps, remember=False)
    with pytest.raises(RetrievalFailed, match="agent 3, step 2"):
        graph(agents, on_failure="raise", settings=settings, checkpointer=InMemorySaver()).invoke(ASK, thread())
    assert max(asked(goes_on)) < steps


def test_a_run_that_raised_goes_on_with_an_instruction_where_that_is_wanted() -> None:
    saver = InMemorySaver()
    agents = [*models()[:2], Follows(turns(SEARCH, MISSPELT, END))]
    for given in (ASK, None):  # the reply is there, and as wrong as before
        with pytest.raises(RetrievalFailed, match="agent 3, step 2"):
            graph(agents, on_failure="raise", checkpointer=saver).invoke(given, thread())
        assert agents[2].asked == 2
    found = graph(agents, checkpointer=saver).invoke(None, thread())
    assert (stops(found), ids(found)[0], agents[2].asked) == (["finished"] * 3, "f1", 3)


@pytest.mark.parametrize("reply", [[], [call("select", nodes=["f0"])], [call("global_search", query="x", k="many")]])
def test_each_kind_of_fault_is_raised(reply: Any) -> None:
    runs: list[Run] = []
    compiled = graph(Follows(turns(SEARCH, reply, END)), n_agents=1, on_failure="raise", on_run=runs.append)
    with pytest.raises(RetrievalFailed, match=r"agent 1, step 2(, (select|global_search) .*)?: "):
        compiled.invoke(ASK)
    assert [step.error for step in runs[0].sessions[0].steps] == ["", ""]


def test_a_reply_that_runs_nothing_is_asked_for_again() -> None:
    saver, once = InMemorySaver(), [call("select", nodes=["f0"])]

    def policy(messages: Sequence[Message]) -> Any:
        return once.pop() and [call("select", nodes=["f0"])] if len(messages) > 3 and once else good(messages)

    good = turns(SEARCH, END)
    compiled = graph(Follows(policy), n_agents=1, on_failure="raise", checkpointer=saver)
    with pytest.raises(RetrievalFailed, match="agent 1, step 2, select"):
        compiled.invoke(ASK, thread())
    assert ids(compiled.invoke(None, thread()))[0] == "p1"


def test_a_call_that_a_person_refuses_is_no_wrong_call() -> None:
    twice = [call("explore_neighborhood", "a", node="p1"), call("explore_neighborhood", "b", node="p1")]
    agent = Follows(turns(SEARCH, twice, END))
    ask_about = ["explore_neighborhood"]
    compiled = graph(agent, n_agents=1, on_failure="raise", approve=ask_about, checkpointer=InMemorySaver())
    assert "__interrupt__" in compiled.invoke(ASK, thread())
    found = compiled.invoke(Command(resume=False), thread())
    assert [one["failed"] for one in found["agents"][0]["steps"][1]["calls"]] == [True, True]
    assert (stops(found), ids(found)[0]) == (["finished"], "p1")


@pytest.mark.parametrize("saver", [None, InMemorySaver()])
async def test_where_it_raises_each_agent_must_finish_within_its_steps(saver: Any) -> None:
    never = Follows(turns(*([[call("global_search", query="Bell"), call("select", nodes=["p1"])]] * 50)))
    agents, error = [*models()[:2], never], 'it did not finish in its 6 steps, with "p1" selected'
    found = graph(agents, max_steps=6).invoke(ASK)
    assert (stops(found), found["agents"][2]["error"]) == (["finished", "finished", "steps"], error)
    assert error in [stage.get("error") for stage in found["trace"]["stages"]]
    compiled = graph(agents, max_steps=6, on_failure="raise", checkpointer=saver)
    with pytest.raises(RetrievalFailed, match=f"^ark failed: agent 3: {error}"):
        compiled.invoke(ASK, thread("blocking"))
    with pytest.raises(RetrievalFailed, match=f"^ark failed: agent 3: {error}"):
        await compiled.ainvoke(ASK, thread("awaited"))


@pytest.mark.parametrize("limit", range(1, 5))
def test_where_it_raises_a_recursion_limit_must_leave_room_to_finish(limit: int) -> None:
    with pytest.raises(RetrievalFailed, match="leaves no room" if limit < 3 else f"in its {limit - 2} steps?,"):
        graph(on_failure="raise").invoke(ASK, {"recursion_limit": limit})
    with pytest.raises(RetrievalFailed, match="leaves no room" if limit < 3 else f"in its {limit - 2} steps?,"):
        create_ark_agent(models()[0], STORE, INDEX, on_failure="raise").invoke(
            {"question": QUESTION}, {"recursion_limit": limit}
        )


NOTHING = r"^ark failed: no agent selected a node \(agent 1 finished\)"


class Own(TypedDict):
    question: str
    selection: list[str]


class Several(TypedDict):
    question: str
    agents: Annotated[list[Any], by_agent]


@pytest.mark.parametrize("form", ["blocking", "awaited", "streamed"])
@pytest.mark.parametrize("saver", [None, InMemorySaver()])
async def test_an_agent_that_is_alone_must_select_something(form: str, saver: Any) -> None:
    async def answer(**options: Any) -> Any:
        builder = StateGraph(Own)
        builder.add_node("explore", create_ark_agent(Follows(turns(SEARCH)), STORE, INDEX, **options))
        builder.add_edge(START, "explore")
        one = builder.compile(checkpointer=saver)
        given: Any = {"question": QUESTION}, thread(f"{form} {options}")
        if form == "blocking":
            return await asyncio.to_thread(one.invoke, *given)
        return await one.ainvoke(*given) if form == "awaited" else list(one.stream(*given))[-1]["explore"]

    assert (await answer())["selection"] == []
    with pytest.raises(RetrievalFailed, match=NOTHING):
        await answer(on_failure="raise")


def test_an_agent_that_is_one_of_several_may_select_nothing() -> None:
    builder = StateGraph(Several)
    agents = [*models()[:2], Follows(turns(SEARCH))]
    builder.add_node("explore", create_ark_agent(agents, STORE, INDEX, n_agents=3, settings=FULL, on_failure="raise"))
    builder.add_conditional_edges(
        START, lambda state: [Send("explore", {**state, "agent": number}) for number in range(3)], ["explore"]
    )
    found = builder.compile().invoke({"question": QUESTION, "agents": []})
    assert [one["selection"] for one in found["agents"]] == [["f1", "f4"], ["f4", "f1"], []]


@pytest.mark.parametrize(("budget", "why"), [({"max_seconds": 1e-9}, "seconds"), ({"max_tokens": 1}, "tokens")])
def test_an_agent_that_is_alone_must_select_something_within_its_budgets(budget: Any, why: str) -> None:
    settings = replace(FULL, **budget)
    agent = create_ark_agent(Follows(turns(SEARCH)), STORE, INDEX, settings=settings, on_failure="raise")
    with pytest.raises(RetrievalFailed, match=rf"no agent selected a node \(agent 1 {why}"):
        agent.invoke({"question": QUESTION})


@pytest.mark.parametrize("approve", [None, True])
@pytest.mark.parametrize("elsewhere", [False, True])
def test_an_agent_that_selected_nothing_is_asked_for_its_end_again(approve: Any, elsewhere: bool) -> None:
    """In the process that it failed in, and in another."""
    saver, ends = InMemorySaver(), [[call("finish")], END]

    def policy(messages: Sequence[Message]) -> Any:
        return ends.pop(0) if len(messages) > 3 else SEARCH

    def made() -> Any:
        return create_ark_agent(
            Follows(policy), STORE, INDEX, approve=approve, on_failure="raise", checkpointer=saver, settings=FULL
        )

    agent = made()
    given: Any = {"question": QUESTION}
    if approve:
        assert "__interrupt__" in agent.invoke(given, thread())
        given = Command(resume=True)
    with pytest.raises(RetrievalFailed, match=NOTHING):
        agent.invoke(given, thread())
    found = (made() if elsewhere else agent).invoke(None, thread())
    assert (found["selection"], found["agents"][0]["stop"], ends) == (["p1"], "finished", [])
    assert len(found["agents"][0]["steps"]) == 2


def test_an_agent_that_failed_alone_goes_on_where_it_failed() -> None:
    replies = [SEARCH, [call("select", nodes=["f0"])], END]
    agent = create_ark_agent(
        Follows(lambda _: replies.pop(0)), STORE, INDEX, on_failure="raise", checkpointer=InMemorySaver()
    )
    with pytest.raises(RetrievalFailed, match="agent 1, step 2, select"):
        agent.invoke({"question": QUESTION}, thread())
    assert agent.invoke(None, thread())["selection"] == ["p1"]
