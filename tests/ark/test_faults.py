"""Models that fail or talk nonsense, over HTTP through each kind of client: a ranked answer, a trace that says so."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from chat_clients import CLIENTS, chat_model

from graphret import BM25Index, MemoryStore
from graphret.ark import Ark, ArkSettings
from graphret.errors import RetrievalFailed
from graphret.testing.openai_server import (
    Behaviour,
    OpenAIServer,
    Request,
    cut,
    empty,
    slow,
    status,
    text,
    tool_call,
    tool_calls,
)
from graphret.types import Edge, Node, Retrieval, Stage

QUESTION = "Which films did Tom Hanks star in?"
NODES = [
    Node("Tom Hanks", ("person",), "Tom Hanks"),
    Node("Penny Marshall", ("person",), "Penny Marshall"),
    Node("Big", ("movie",), "Big", "A boy wakes up as a man."),
    Node("Cast Away", ("movie",), "Cast Away", "A man alone on an island."),
    Node("Awakenings", ("movie",), "Awakenings", "A doctor and his patients."),
    Node("1988", ("year",), "1988"),
    *(Node(f"Film {i}", ("movie",), f"Film {i}", "Another film, which some other people star in.") for i in range(6)),
]
EDGES = [
    Edge("Big", "starred_actors", "Tom Hanks"),
    Edge("Cast Away", "starred_actors", "Tom Hanks"),
    Edge("Big", "directed_by", "Penny Marshall"),
    Edge("Awakenings", "directed_by", "Penny Marshall"),
    Edge("Big", "release_year", "1988"),
]
STORE = MemoryStore.of(NODES, EDGES)
INDEX = BM25Index.build(NODES)

LOOK = tool_calls(
    ("global_search", {"query": "Tom Hanks"}),
    ("explore_neighborhood", {"node": "Tom Hanks", "relation_types": ["starred_actors"]}),
)
CHOOSE = tool_calls(("select", {"nodes": ["Cast Away", "Big"]}))
END = tool_call("finish")

Play = Callable[[Request], Behaviour]


def turn(request: Request) -> int:
    """How often the agent has been answered."""
    return sum(message["role"] == "assistant" for message in request.messages)


def playing(*turns: Behaviour) -> Play:
    """A model that answers an agent's turns in this order, and the last one for ever."""
    return lambda request: turns[min(turn(request), len(turns) - 1)]


def stumbling(fault: Behaviour, *turns: Behaviour) -> Play:
    """A model that plays a fault once at each turn before it answers."""
    stumbled: set[int] = set()

    def play(request: Request) -> Behaviour:
        if turn(request) not in stumbled:
            stumbled.add(turn(request))
            return fault
        return playing(*turns)(request)

    return play


def ark_of(model: Any, *, n_agents: int = 1, on_failure: str = "fallback", **options: Any) -> Ark:
    settings = ArkSettings(n_agents=n_agents, **{"max_steps": 6, **options})
    return Ark(STORE, INDEX, model, settings=settings, on_failure=on_failure)


def agent(found: Retrieval, number: int = 1) -> dict[str, Any]:
    """How an agent ended, by the trace."""
    [stage] = [stage for stage in found.trace.stages if stage.name == f"explore/agent {number}"]
    return stage.details


def steps(found: Retrieval, number: int = 1) -> list[Stage]:
    return [stage for stage in found.trace.stages if stage.name.startswith(f"explore/agent {number}/step")]


def calls(found: Retrieval, number: int = 1) -> list[dict[str, Any]]:
    return [call for stage in steps(found, number) for call in stage.details["calls"]]


def told(server: OpenAIServer) -> str:
    """All that the model was told by tools in the last conversation."""
    return "\n".join(str(m["content"]) for m in server.requests[-1].messages if m["role"] == "tool")


def require_ranked(found: Retrieval, k: int = 5) -> None:
    assert len(found.hits) == k == len(set(found.ids))
    assert all(hit.evidence for hit in found.hits)
    scores = [hit.score for hit in found.hits]
    assert scores == sorted(scores, reverse=True)


def require_protocol(server: OpenAIServer) -> None:
    """Whatever the model wrote, what goes back to it is well-formed."""
    for request in server.requests:
        for message in request.messages:
            for call in message.get("tool_calls") or ():
                assert isinstance(json.loads(call["function"]["arguments"]), dict)
    json.dumps([dict(request.body) for request in server.requests], ensure_ascii=False).encode()


# -- failures of the endpoint


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("fault", [status(429, retry_after=0.02), status(500, retry_after=0.02)], ids=["429", "500"])
def test_what_passes_is_waited_for(client: str, fault: Behaviour) -> None:
    with OpenAIServer(stumbling(fault, LOOK, CHOOSE, END)) as server:
        found = ark_of(chat_model(client, server.base_url, retries=2)).retrieve(QUESTION, 5)
        assert len(server.requests) == 6
        waited = [b.at - a.at for a, b in zip(server.requests[::2], server.requests[1::2], strict=True)]
        assert min(waited) >= 0.02
    require_ranked(found)
    assert found.ids[:2] == ["Cast Away", "Big"]
    assert agent(found)["stop"] == "finished"
    assert not found.trace.fallbacks


FAILURES = {
    "429": (status(429, "too many requests", retry_after=0.01), "429"),
    "500": (status(500, "on fire", retry_after=0.01), "500"),
    "cut": (cut("this reply breaks off in the middle of its stream"), "connection"),
    "cut quietly": (replace(CHOOSE, cut="quiet"), "connection"),
    "time-out": (slow(30), "time"),
}


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("fault", FAILURES)
def test_what_does_not_pass_ends_in_what_was_selected(client: str, fault: str) -> None:
    behaviour, says = FAILURES[fault]
    retries = 1 if fault in ("429", "500") else 0
    with OpenAIServer(playing(LOOK, CHOOSE, behaviour)) as server:
        model = chat_model(client, server.base_url, retries=retries, timeout=0.25 if fault == "time-out" else 5.0)
        found = asyncio.run(ark_of(model).aretrieve(QUESTION, 5))
        require_ranked(found)
        assert found.ids[:2] == ["Cast Away", "Big"]
        assert [e.kind for e in found.hits[2].evidence][-1] == "fill"
        ended = agent(found)
        assert (ended["stop"], ended["selected"]) == ("failed", ["Cast Away", "Big"])
        assert says in ended["error"]
        [note] = found.trace.fallbacks
        assert note.details == {"failed": "agent 1", "error": ended["error"]}
        with pytest.raises(RetrievalFailed, match=says):
            ark_of(model, on_failure="raise").retrieve(QUESTION, 5)


@pytest.mark.parametrize("client", CLIENTS)
def test_a_model_that_never_answers_leaves_the_search(client: str) -> None:
    with OpenAIServer(default=status(500, retry_after=0.01)) as server:
        found = ark_of(chat_model(client, server.base_url, retries=1), n_agents=3).retrieve(QUESTION, 5)
    require_ranked(found)
    assert {e.kind for hit in found.hits for e in hit.evidence} == {"seed"}
    assert [note.details.get("failed") for note in found.trace.fallbacks][:3] == ["agent 1", "agent 2", "agent 3"]


@pytest.mark.parametrize("client", CLIENTS)
def test_a_first_reply_that_is_cut_is_no_answer(client: str) -> None:
    """A stream that ends quietly leaves half of the calls and of their arguments: none of them is run."""
    with OpenAIServer(default=replace(LOOK, cut="quiet")) as server:
        model = chat_model(client, server.base_url, retries=0)
        found = ark_of(model).retrieve(QUESTION, 5)
        require_ranked(found)
        [step] = steps(found)
        assert "connection: " in step.details["error"]
        assert client != "langchain" or "the stream broke off before its end" in step.details["error"]
        assert (step.details["calls"], agent(found)["stop"]) == ([], "failed")
        with pytest.raises(RetrievalFailed) as raised:
            ark_of(model, on_failure="raise").retrieve(QUESTION, 5)
        assert str(raised.value) == f"ark failed: {step.details['error']}"


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("dies", [1, 2])
def test_one_agent_of_three_dies(client: str, dies: int) -> None:
    def play(request: Request) -> Behaviour:
        if request.body["model"] == "gpt-4.1" and turn(request) == dies:
            return status(500, "gone", retry_after=0.01)
        return playing(LOOK, CHOOSE, END)(request)

    with OpenAIServer(play) as server:
        names = ["gpt-4o", "gpt-4.1", "gpt-4o-mini"]
        models = [chat_model(client, server.base_url, model=name, retries=0) for name in names]
        found = ark_of(models, n_agents=3, early_stop=False).retrieve(QUESTION, 5)
        require_ranked(found)
        assert [agent(found, n)["stop"] for n in (1, 2, 3)] == ["finished", "failed", "finished"]
        votes = found.hits[0].evidence[0].properties
        assert votes == (
            {"votes": 2, "of": 3, "agents": [1, 3]} if dies == 1 else {"votes": 3, "of": 3, "agents": [1, 2, 3]}
        )
        assert [note.details["failed"] for note in found.trace.fallbacks] == ["agent 2"]
        with pytest.raises(RetrievalFailed, match="500"):
            ark_of(models, n_agents=3, early_stop=False, on_failure="raise").retrieve(QUESTION, 5)


# -- models that talk nonsense

NONSENSE = {
    "empty reply": (empty(), "Call a tool"),
    "talk": (text("I think it was Big."), "Call a tool"),
    "not JSON": (tool_call("global_search", '{"query": '), None),
    "a list": (tool_call("global_search", '["Tom Hanks"]'), None),
    "nested deeply": (tool_call("global_search", f'{{"query": {"[" * 980}1{"]" * 980}}}'), None),
    "no such tool": (tool_call("web_search", {"query": "Tom Hanks"}), 'There is no tool \\"web_search\\"'),
    "a tool's name that is none": (tool_call("search the web!", {"query": "Tom Hanks"}), "There is no tool"),
    "no such node": (tool_call("explore_neighborhood", {"node": "tom hank"}), 'There is no node \\"tom hank\\"'),
    "half a character": (tool_call("explore_neighborhood", '{"node": "Tom \\ud800 Hanks"}'), "There is no node"),
    "never seen": (tool_call("select", {"nodes": ["Awakenings", "Atlantis"]}), "No tool has shown a node"),
    "half a character selected": (tool_call("select", '{"nodes": ["Tom \\ud800"]}'), "No tool has shown a node"),
    "select nothing": (tool_call("select", {"nodes": []}), "select takes"),
    "wrong arguments": (tool_call("global_search", {"q": "Tom Hanks"}), "no argument"),
}


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("kind", NONSENSE)
def test_a_model_is_told_what_is_wrong_and_goes_on(client: str, kind: str) -> None:
    nonsense, says = NONSENSE[kind]
    talks = kind == "talk"  # of a model that has called no tool yet it would mean that it cannot
    with OpenAIServer(playing(*([LOOK, nonsense] if talks else [nonsense, LOOK]), CHOOSE, END)) as server:
        found = ark_of(chat_model(client, server.base_url, retries=0)).retrieve(QUESTION, 5)
        require_protocol(server)
        answered = server.requests[2 if talks else 1].messages[-1]
        assert says is None or says in answered["content"]
    require_ranked(found)
    assert found.ids[:2] == ["Cast Away", "Big"]
    assert (agent(found)["stop"], len(steps(found))) == ("finished", 4)


@pytest.mark.parametrize("kind", NONSENSE)
def test_a_model_that_only_talks_nonsense_is_given_up(kind: str) -> None:
    nonsense, _ = NONSENSE[kind]
    with OpenAIServer(playing(LOOK, CHOOSE, nonsense)) as server:
        model = chat_model("openai", server.base_url, retries=0)
        found = asyncio.run(ark_of(model, max_steps=20).aretrieve(QUESTION, 5))
        require_protocol(server)
    require_ranked(found)
    assert found.ids[:2] == ["Cast Away", "Big"]
    ended = agent(found)
    assert (ended["stop"], ended["error"]) == ("silent", "3 replies in a row without a usable call")
    assert len(steps(found)) == 5


@pytest.mark.parametrize("client", CLIENTS)
def test_a_model_that_never_made_sense_is_a_failure(client: str) -> None:
    with OpenAIServer(default=empty()) as server:
        model = chat_model(client, server.base_url, retries=0)
        found = ark_of(model).retrieve(QUESTION, 5)
        require_ranked(found)
        assert "without a usable call" in str(found.trace.fallbacks[0].details)
        with pytest.raises(RetrievalFailed, match="without a usable call"):
            asyncio.run(ark_of(model, on_failure="raise").aretrieve(QUESTION, 5))


@pytest.mark.parametrize("client", CLIENTS)
def test_fifty_calls_in_one_turn_are_all_answered(client: str) -> None:
    many = tool_calls(*(("global_search", {"query": f"film {i}"}) for i in range(48)), *LOOK.calls)
    with OpenAIServer(playing(many, CHOOSE, END)) as server:
        found = ark_of(chat_model(client, server.base_url, retries=0)).retrieve(QUESTION, 5)
        assert sum(message["role"] == "tool" for message in server.requests[1].messages) == 50
    assert found.ids[:2] == ["Cast Away", "Big"]
    assert len(steps(found)[0].details["calls"]) == 50


@pytest.mark.parametrize("client", CLIENTS)
def test_calls_over_the_limit_are_answered_with_an_instruction(client: str) -> None:
    many = tool_calls(*LOOK.calls, *(("global_search", {"query": f"film {i}"}) for i in range(48)))
    with OpenAIServer(playing(many, CHOOSE, END)) as server:
        found = ark_of(chat_model(client, server.base_url, retries=0), max_calls=10).retrieve(QUESTION, 5)
        assert told(server).count("This call was not run") == 40
    assert found.ids[:2] == ["Cast Away", "Big"]
    assert sum(call["failed"] for call in calls(found)) == 40


@pytest.mark.parametrize("client", CLIENTS)
def test_a_model_that_never_finishes(client: str) -> None:
    def play(request: Request) -> Behaviour:
        again = tool_call("global_search", {"query": f"film {turn(request)}"})
        return playing(LOOK, CHOOSE)(request) if turn(request) < 2 else again

    with OpenAIServer(play) as server:
        found = ark_of(chat_model(client, server.base_url, retries=0)).retrieve(QUESTION, 5)
        assert len(server.requests) == 6
        assert told(server).endswith('{"steps_left": 1}')
        with pytest.raises(RetrievalFailed, match=r"no agent finished \(agent 1 steps\)"):
            ark_of(chat_model(client, server.base_url, retries=0), on_failure="raise").retrieve(QUESTION, 5)
    require_ranked(found)
    assert found.ids[:2] == ["Cast Away", "Big"]
    assert agent(found)["stop"] == "steps"


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("wanted", [["The Lost Film"], ["Big", 7], "Nobody"])
def test_selections_of_nothing_seen_leave_the_search(client: str, wanted: Any) -> None:
    with OpenAIServer(playing(tool_calls(("select", {"nodes": wanted}), ("finish", {})))) as server:
        model = chat_model(client, server.base_url, retries=0)
        found = ark_of(model).retrieve(QUESTION, 5)
        with pytest.raises(RetrievalFailed, match="no agent selected a node"):
            ark_of(model, on_failure="raise").retrieve(QUESTION, 5)
    require_ranked(found)
    assert found.trace.fallbacks[0].details == {"reason": "no agent selected a node that qualifies"}


@pytest.mark.parametrize("client", CLIENTS)
def test_a_model_that_asks_the_same_for_ever(client: str) -> None:
    with OpenAIServer(playing(LOOK, CHOOSE, LOOK)) as server:
        found = ark_of(chat_model(client, server.base_url, retries=0)).retrieve(QUESTION, 5)
        assert '{"answered": "from memory, as in step 1"}' in told(server)
    assert found.ids[:2] == ["Cast Away", "Big"]
    assert all(call["remembered"] for stage in steps(found)[2:] for call in stage.details["calls"])


@pytest.mark.parametrize("client", CLIENTS)
def test_a_model_that_finishes_at_once_leaves_the_search(client: str) -> None:
    with OpenAIServer(playing(END)) as server:
        model = chat_model(client, server.base_url, retries=0)
        found = asyncio.run(ark_of(model).aretrieve(QUESTION, 5))
        with pytest.raises(RetrievalFailed, match=r"no agent selected a node \(agent 1 finished\)"):
            ark_of(model, on_failure="raise").retrieve(QUESTION, 5)
    require_ranked(found)
    assert agent(found)["stop"] == "finished"
    assert {e.kind for hit in found.hits for e in hit.evidence} == {"seed"}
    assert found.trace.fallbacks[0].details == {"reason": "no agent selected a node that qualifies"}


@pytest.mark.parametrize("client", CLIENTS)
def test_replies_that_were_cut_off_say_so_in_the_trace(client: str) -> None:
    with OpenAIServer(playing(LOOK, text("I would", finish_reason="length"), CHOOSE, END)) as server:
        found = ark_of(chat_model(client, server.base_url, retries=0)).retrieve(QUESTION, 2)
    assert found.ids == ["Cast Away", "Big"]
    steps = [stage.details for stage in found.trace.stages if "step" in stage.details]
    assert [step.get("finish_reason", "") for step in steps] == ["", "length", "", ""]
    assert "the reply was cut off: length" in found.trace.html()


# -- the run


@pytest.mark.parametrize("client", CLIENTS)
async def test_cancelling_stops_every_agent(client: str) -> None:
    def play(request: Request) -> Behaviour:
        return LOOK if turn(request) == 0 else slow(30)

    with OpenAIServer(play) as server:
        task = asyncio.create_task(ark_of(chat_model(client, server.base_url), n_agents=3).aretrieve(QUESTION, 5))
        while len(server.requests) < 6:  # noqa: ASYNC110 - the server runs in a thread
            await asyncio.sleep(0.01)
        began = time.monotonic()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert time.monotonic() - began < 5
        await asyncio.sleep(0.2)
        assert len(server.requests) == 6
        assert not [one for one in asyncio.all_tasks() if "Agents._agent" in repr(one.get_coro())]


@pytest.mark.parametrize("client", CLIENTS)
def test_the_run_s_time_ends_it_with_what_was_selected(client: str) -> None:
    with OpenAIServer(playing(LOOK, CHOOSE, slow(30))) as server:
        began = time.monotonic()
        found = ark_of(chat_model(client, server.base_url), max_seconds=0.7).retrieve(QUESTION, 5)
        assert time.monotonic() - began < 5
    require_ranked(found)
    assert found.ids[:2] == ["Cast Away", "Big"]
    assert agent(found)["stop"] == "seconds"


@pytest.mark.parametrize("client", CLIENTS)
def test_one_model_answers_many_questions_blocking_and_awaited(client: str) -> None:
    """Each over the connections of the one before: nothing is sent twice."""
    with OpenAIServer(playing(LOOK, CHOOSE, END)) as server:
        ark = ark_of(chat_model(client, server.base_url, retries=1))

        async def awaited() -> None:
            assert ark.retrieve(QUESTION, 2).ids == ["Cast Away", "Big"]
            for _ in range(2):
                assert (await ark.aretrieve(QUESTION, 2)).ids == ["Cast Away", "Big"]

        for _ in range(3):
            assert ark.retrieve(QUESTION, 2).ids == ["Cast Away", "Big"]
        asyncio.run(awaited())
        assert ark.retrieve(QUESTION, 2).ids == ["Cast Away", "Big"]
        assert len(server.requests) == 3 * 7
