"""Models that talk nonsense, over HTTP through each kind of client: an instruction and a ranked answer, or an error."""

from __future__ import annotations

import asyncio
from itertools import product
from typing import Any

import pytest
from ark_faults import (
    CHOOSE,
    END,
    LOOK,
    QUESTION,
    agent,
    ark_of,
    calls,
    playing,
    require_protocol,
    require_raised,
    require_ranked,
    steps,
    told,
    turn,
)
from chat_clients import CLIENTS, chat_model

from graphret.errors import RetrievalFailed
from graphret.testing.openai_server import (
    Behaviour,
    OpenAIServer,
    Request,
    empty,
    text,
    tool_call,
    tool_calls,
)


def explore(**arguments: Any) -> Behaviour:
    return tool_call("explore_neighborhood", {"node": "Tom Hanks", **arguments})


#: What a model does, what it is told, and how the error ends that is raised instead: call and what is wrong with it.
NONSENSE = {
    "empty reply": (empty(), "Call a tool", ": the reply is empty"),
    "talk": (text("I think it was Big."), "Call a tool", None),
    "not JSON": (
        tool_call("global_search", '{"query": "Tom Hanks", "k": 1'),
        "not valid JSON",
        ', global_search "{.*": the arguments of global_search are not valid JSON: .*',
    ),
    "two objects": (
        tool_calls(("global_search", "{}{}"), ("finish", '{}{"nodes": []}')),
        "not valid JSON",
        ', global_search "{}{}": the arguments of global_search are not valid JSON: .*',
    ),
    "null": (tool_call("global_search", "null"), "needs a query", ", global_search {}: global_search needs a query.*"),
    "a list": (  # of LangChain's message of a reply that is no stream nothing is left but the arguments
        tool_call("global_search", '["Tom Hanks"]'),
        "are a list, not a JSON object",
        r", (global_search|unnamed) .*: the arguments of .* are a list, not a JSON object\..*",
    ),
    "nested deeply": (
        tool_call("global_search", f'{{"query": {"[" * 980}1{"]" * 980}}}'),
        None,
        ", global_search .*: .*",
    ),
    "no such tool": (
        tool_call("web_search", {"query": "Tom Hanks"}),
        'There is no tool \\"web_search\\"',
        ', web_search {"query": "Tom Hanks"}: There is no tool "web_search".* There are global_search, .*',
    ),
    "a tool's name that is none": (
        tool_call("search the web!", {"query": "Tom Hanks"}),
        "There is no tool",
        ", search_the_web_ .*: There is no tool .*",
    ),
    "no such node": (
        explore(node="tom hank"),
        'There is no node \\"tom hank\\"',
        ', explore_neighborhood {"node": "tom hank"}: There is no node "tom hank". Closest: "Tom Hanks".*',
    ),
    "half a character": (
        tool_call("explore_neighborhood", '{"node": "Tom \\ud800 Hanks"}'),
        "There is no node",
        ", explore_neighborhood .*: There is no node .*",
    ),
    "no such relation": (
        explore(relation_types=["starred_actor"]),
        'There is no relation \\"starred_actor\\"',
        ', explore_neighborhood .*: There is no relation "starred_actor". Closest: "starred_actors".*',
    ),
    "no such type": (
        explore(node_types=["movies"]),
        'There is no node type \\"movies\\"',
        ', explore_neighborhood .*: There is no node type "movies". Closest: "movie".*',
    ),
    "never seen": (
        tool_call("select", {"nodes": ["Awakenings", "Atlantis"]}),
        "No tool has shown a node",
        ', select .*: No tool has shown a node "Awakenings". No tool has shown a node "Atlantis".',
    ),
    "half a character selected": (
        tool_call("select", '{"nodes": ["Tom \\ud800"]}'),
        "No tool has shown a node",
        ", select .*: No tool has shown a node .*",
    ),
    "select nothing": (tool_call("select", {"nodes": []}), "select takes", ', select {"nodes": .*}: select takes .*'),
    "wrong arguments": (
        tool_call("global_search", {"q": "Tom Hanks"}),
        "no argument",
        ', global_search {"q": "Tom Hanks"}: global_search has no argument "q".*',
    ),
}


# LangChain mends what is streamed, and makes no message of what is no object.
MENDED = {("not JSON", "langchain_streaming"), ("two objects", "langchain_streaming")}
REFUSED = {("a list", "langchain"), ("nested deeply", "langchain")}


@pytest.mark.parametrize(
    ("kind", "client"), [pair for pair in product(NONSENSE, CLIENTS) if pair not in MENDED | REFUSED]
)
def test_a_model_is_told_what_is_wrong_and_goes_on(client: str, kind: str) -> None:
    nonsense, says, raises = NONSENSE[kind]
    talks = kind == "talk"  # of a model that has called no tool yet it would mean that it cannot
    with OpenAIServer(playing(*([LOOK, nonsense] if talks else [nonsense, LOOK]), CHOOSE, END)) as server:
        model = chat_model(client, server.base_url, retries=0)
        found = ark_of(model).retrieve(QUESTION, 5)
        require_protocol(server)
        answered = server.requests[2 if talks else 1].messages[-1]
        assert says is None or says in answered["content"]
        if raises is not None:
            require_raised(f"ark failed: agent 1, step 1{raises}", model)
    require_ranked(found)
    assert found.ids[:2] == ["Cast Away", "Big"]
    assert (agent(found)["stop"], len(steps(found))) == ("finished", 4)


@pytest.mark.parametrize("kind", NONSENSE)
def test_a_model_that_only_talks_nonsense_is_given_up(kind: str) -> None:
    nonsense, _, _ = NONSENSE[kind]
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
        require_raised("ark failed: agent 1, step 1: the reply is empty", model)


@pytest.mark.parametrize("client", CLIENTS)
def test_a_model_that_only_talks_is_given_up_or_raised(client: str) -> None:
    with OpenAIServer(playing(LOOK, text("I think it was Big."))) as server:
        model = chat_model(client, server.base_url, retries=0)
        assert agent(ark_of(model).retrieve(QUESTION, 5))["stop"] == "silent"
        require_raised("ark failed: agent 1: 3 replies in a row without a usable call", model)


@pytest.mark.parametrize("client", CLIENTS)
def test_fifty_calls_in_one_turn_are_all_answered_or_raised(client: str) -> None:
    many = tool_calls(*LOOK.calls, *(("global_search", {"query": f"film {i}"}) for i in range(48)))
    with OpenAIServer(playing(many, CHOOSE, END)) as server:
        model = chat_model(client, server.base_url, retries=0)
        found = ark_of(model).retrieve(QUESTION, 5)
        assert sum(message["role"] == "tool" for message in server.requests[1].messages) == 50
        assert told(server).count("of one reply only the first 32 calls are run. If you still need it, make it") == 18
        wrong = "the reply has more than 32 calls, and this one was not run"
        require_raised(f'ark failed: agent 1, step 1, global_search {{"query": "film 30"}}: {wrong}', model)
    assert found.ids[:2] == ["Cast Away", "Big"]
    said = [call["error"] or "" for call in calls(found)[:50]]
    assert ["make it again in a later reply" in one for one in said] == [False] * 32 + [True] * 18


@pytest.mark.parametrize("client", CLIENTS)
def test_a_model_that_never_finishes(client: str) -> None:
    def play(request: Request) -> Behaviour:
        again = tool_call("global_search", {"query": f"film {turn(request)}"})
        return playing(LOOK, CHOOSE)(request) if turn(request) < 2 else again

    with OpenAIServer(play) as server:
        found = ark_of(chat_model(client, server.base_url, retries=0)).retrieve(QUESTION, 5)
        assert len(server.requests) == 6
        assert told(server).endswith('{"steps_left": 1}')
        unfinished = 'it did not finish in its 6 steps, with "Cast Away", "Big" selected'
        require_raised(f"ark failed: agent 1: {unfinished}", chat_model(client, server.base_url, retries=0))
    require_ranked(found)
    assert found.ids[:2] == ["Cast Away", "Big"]
    assert (agent(found)["stop"], agent(found)["error"]) == ("steps", unfinished)


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("wanted", [["The Lost Film"], ["Big", 7], "Nobody"])
def test_selections_of_nothing_seen_leave_the_search(client: str, wanted: Any) -> None:
    with OpenAIServer(playing(tool_calls(("select", {"nodes": wanted}), ("finish", {})))) as server:
        model = chat_model(client, server.base_url, retries=0)
        found = ark_of(model).retrieve(QUESTION, 5)
        require_raised("ark failed: agent 1, step 1, select .*: (No tool has shown a node|select takes) .*", model)
    require_ranked(found)
    assert found.trace.fallbacks[0].details == {"reason": "no agent selected a node that qualifies"}


@pytest.mark.parametrize("client", CLIENTS)
def test_a_selection_of_which_one_was_never_seen_keeps_the_others_or_raises(client: str) -> None:
    some = tool_calls(("select", {"nodes": ["Bigg", "Big"]}), ("finish", {}))
    with OpenAIServer(playing(LOOK, some)) as server:
        model = chat_model(client, server.base_url, retries=0)
        assert agent(ark_of(model).retrieve(QUESTION, 5))["selected"] == ["Big"]
        require_raised(r'.* step 2, select .*: No tool has shown a node "Bigg"\. Closest: "Big"\.', model)


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
