"""Endpoints that fail, over HTTP through each kind of client: a ranked answer, a trace that says so, or an error."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace

import pytest
from ark_faults import (
    CHOOSE,
    END,
    LOOK,
    QUESTION,
    agent,
    ark_of,
    playing,
    require_ranked,
    steps,
    stumbling,
    turn,
)
from chat_clients import CLIENTS, chat_model

from graphret.errors import RetrievalFailed
from graphret.testing.openai_server import (
    Behaviour,
    OpenAIServer,
    Request,
    cut,
    slow,
    status,
)

# -- failures of the endpoint


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("fault", [status(429, retry_after=0.02), status(500, retry_after=0.02)], ids=["429", "500"])
def test_what_passes_is_waited_for(client: str, fault: Behaviour) -> None:
    with OpenAIServer(stumbling(fault, LOOK, CHOOSE, END)) as server:
        found = ark_of(chat_model(client, server.base_url, retries=2)).retrieve(QUESTION, 5)
        assert len(server.requests) == 6
        waited = [b.at - a.at for a, b in zip(server.requests[::2], server.requests[1::2], strict=True)]
        assert min(waited) >= 0.02
        if client == "openai":  # what its client overcomes is no failure
            strict = ark_of(chat_model(client, server.base_url, retries=2), on_failure="raise")
            assert strict.retrieve(QUESTION, 5).ids == found.ids
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
        assert client != "langchain_streaming" or "the stream broke off before its end" in step.details["error"]
        assert (step.details["calls"], agent(found)["stop"]) == ([], "failed")
        with pytest.raises(RetrievalFailed) as raised:
            ark_of(model, on_failure="raise").retrieve(QUESTION, 5)
        assert str(raised.value) == f"ark failed: {step.details['error']}"


@pytest.mark.parametrize("client", ["openai", "langchain", "llama_index"])  # of a stream it means that it broke off
def test_a_server_that_never_says_why_a_reply_ended_is_no_fault(client: str) -> None:
    turns = [replace(reply, finish_reason="") for reply in (LOOK, CHOOSE, END)]
    with OpenAIServer(playing(*turns)) as server:
        model = chat_model(client, server.base_url, retries=0)
        found = ark_of(model, on_failure="raise").retrieve(QUESTION, 5)
    assert found.ids[:2] == ["Cast Away", "Big"]
    assert agent(found)["stop"] == "finished"


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
