"""Models that think get back what their providers want again; coroutines in synchronous
code, answers on disk.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import closing
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import pytest
from ark_support import films, index_of

from graphret.ark import Ark, ArkSession, ArkSettings, Recorder, read_runs
from graphret.errors import StorageError
from graphret.llm import Message, OpenAIChat, Reply
from graphret.llm.cache import AnswerCache, cache_key
from graphret.llm.event_loop import run_sync
from graphret.testing.openai_server import (
    Behaviour,
    OpenAIServer,
    Request,
    body,
    status,
)

CALLS = (
    ("global_search", {"query": "Bob Bell"}),
    ("select", {"nodes": ["p1"]}),
    ("finish", {}),
)


def thinking(
    turn: int,
    *,
    message: dict[str, Any] | None = None,
    call: dict[str, Any] | None = None,
) -> Behaviour:
    """The reply of a turn: a call, with a thought in the message, or its signature in
    the call.
    """
    name, arguments = CALLS[turn]
    made = {
        "id": f"c{turn}",
        "type": "function",
        "function": {"name": name, "arguments": json.dumps(arguments)},
    }
    said = {
        "role": "assistant",
        "content": None,
        "tool_calls": [made | (call or {})],
    } | (message or {})
    choice = {"index": 0, "message": said, "finish_reason": "tool_calls"}
    return body(
        json.dumps(
            {
                "id": "x",
                "object": "chat.completion",
                "created": 0,
                "model": "m",
                "choices": [choice],
            }
        )
    )


def thought(turn: int) -> dict[str, Any]:
    return {"reasoning_content": f"thought {turn}"}


def signature(turn: int) -> dict[str, Any]:
    return {"extra_content": {"google": {"thought_signature": f"s{turn}"}}}


def replies(request: Request) -> list[Any]:
    return [message for message in request.messages if message["role"] == "assistant"]


def wants_thoughts(request: Request) -> Behaviour:
    """As DeepSeek's endpoint does."""
    turns = replies(request)
    if any(not thought(at).items() <= turn.items() for at, turn in enumerate(turns)):
        return status(
            400, "The reasoning_content in the thinking mode must be passed back"
        )
    return thinking(len(turns), message=thought(len(turns)))


def wants_signatures(request: Request) -> Behaviour:
    """As Google's endpoint does."""
    turns = replies(request)
    if any(
        not signature(at).items() <= call.items()
        for at, turn in enumerate(turns)
        for call in turn["tool_calls"]
    ):
        return status(400, "Function call is missing a thought_signature")
    return thinking(len(turns), call=signature(len(turns)))


def refuses_thoughts(request: Request) -> Behaviour:
    """As Groq's endpoint does."""
    turns = replies(request)
    if any("reasoning_content" in turn for turn in turns):
        return status(400, "property 'reasoning_content' is unsupported")
    return thinking(len(turns), message=thought(len(turns)))


@pytest.mark.parametrize(
    "endpoint", [wants_thoughts, wants_signatures, refuses_thoughts]
)
async def test_an_endpoint_gets_back_what_it_wants(
    endpoint: Any, tmp_path: Any
) -> None:
    store = films()
    path = tmp_path / "runs.jsonl"
    with OpenAIServer(endpoint) as server:
        model = OpenAIChat("m", server.base_url, max_retries=0)
        ark = Ark(
            model,
            store,
            index_of(store),
            settings=ArkSettings(n_agents=1),
            on_run=Recorder(path),
        )
        found = [
            ark.retrieve("films by Bob Bell"),
            await ark.aretrieve("films by Bob Bell"),
        ]
        asked = len(server.requests)
    for retrieval in found:
        assert retrieval.hits[0].id == "p1"
        [summary] = [
            stage for stage in retrieval.trace.stages if stage.name == "explore"
        ]
        assert summary.details["stopped"] == {"finished": 1}
    # one that refuses is told once, and never again
    assert asked == 2 * len(CALLS) + (endpoint is refuses_thoughts)
    assert "thought" not in path.read_text()
    assert len(read_runs(path)) == 2


def test_it_survives_a_session_put_away_and_is_lost_with_a_turn_that_was_changed() -> (
    None
):
    """A signature is of what was signed: a reply that was mended before it goes back
    has none.
    """
    native = {"openai:m": {"message": {"reasoning_content": "hm"}, "tool_calls": {}}}
    session = ArkSession("who?", "explore")
    session.receive(Reply("hm", native=native))
    session.observe()
    again = ArkSession.from_dict(json.loads(json.dumps(session.to_dict())))
    assert again.messages == session.messages
    assert again.messages[2].native == native
    session.receive(Reply("half a \ud800 pair", native=native))
    assert session.messages[-1].native is None
    with OpenAIServer(["ok"]) as server:  # and another model's is ignored
        OpenAIChat("other", server.base_url).chat(
            [Message.user("hi"), again.messages[2], Message.user("and?")]
        )
    assert "reasoning_content" not in server.requests[0].messages[1]


async def which_loop() -> asyncio.AbstractEventLoop:
    return asyncio.get_running_loop()


async def test_under_a_running_loop_it_runs_in_another_and_never_waits_for_itself() -> (
    None
):
    variable: ContextVar[str] = ContextVar("variable")
    variable.set("the caller's")

    async def nested() -> str:
        with (
            closing(which_loop()) as coroutine,
            pytest.raises(RuntimeError, match="await"),
        ):
            run_sync(coroutine)
        return variable.get()

    assert run_sync(which_loop()) is not asyncio.get_running_loop()
    assert run_sync(nested()) == "the caller's"


def test_answers_stay(tmp_path: Path) -> None:
    key = cache_key("m", {"b": 1, "a": [2]})
    assert key == cache_key("m", {"a": [2], "b": 1})
    assert key != cache_key("m", {"b": 1, "a": ["2"]})
    cache, other = AnswerCache(tmp_path / "new"), AnswerCache(tmp_path / "new")
    assert cache.get(key) is None
    cache.put(key, "one")
    other.put(key, "two")
    assert cache.get(key) == "two"
    assert [file.name for file in (tmp_path / "new").iterdir()] == [f"{key}.json"]
    (tmp_path / "file").write_text("")
    for use in (lambda cache: cache.get(key), lambda cache: cache.put(key, "three")):
        with pytest.raises(StorageError, match=r"file: cannot be"):
            use(AnswerCache(tmp_path / "file"))
