"""Models that think: what their providers want to see again beside text and calls is handed back as it came."""

from __future__ import annotations

import json
from typing import Any

import pytest
from ark_support import films, index_of

from graphret.ark import Ark, ArkSession, ArkSettings, Recorder, read_runs
from graphret.llm import Message, OpenAIChat, Reply
from graphret.testing.openai_server import Behaviour, OpenAIServer, Request, body, status

CALLS = (
    ("global_search", {"query": "Bob Bell"}),
    ("select", {"nodes": ["p1"]}),
    ("finish", {}),
)


def thinking(turn: int, of: str = "message") -> Behaviour:
    """The reply of a turn: a call, and a thought in the message, or its signature in the call."""
    name, arguments = CALLS[turn]
    call: dict[str, Any] = {
        "id": f"c{turn}",
        "type": "function",
        "function": {"name": name, "arguments": json.dumps(arguments)},
    }
    message: dict[str, Any] = {"role": "assistant", "content": None, "tool_calls": [call]}
    if of == "message":
        message["reasoning_content"] = f"thought {turn}"
    else:
        call["extra_content"] = {"google": {"thought_signature": f"s{turn}"}}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    whole = {"id": "x", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice], "usage": usage}
    return body(json.dumps(whole))


def said(request: Request) -> list[Any]:
    return [message for message in request.messages if message["role"] == "assistant"]


def wants_thoughts(request: Request) -> Behaviour:
    """As DeepSeek's endpoint does."""
    if any(message.get("reasoning_content") != f"thought {turn}" for turn, message in enumerate(said(request))):
        return status(400, "The reasoning_content in the thinking mode must be passed back")
    return thinking(len(said(request)))


def wants_signatures(request: Request) -> Behaviour:
    """As Google's endpoint does."""
    for turn, message in enumerate(said(request)):
        signed = {"google": {"thought_signature": f"s{turn}"}}
        if any(call.get("extra_content") != signed for call in message["tool_calls"]):
            return status(400, "Function call is missing a thought_signature")
    return thinking(len(said(request)), "call")


def refuses_thoughts(request: Request) -> Behaviour:
    """As Groq's endpoint does."""
    if any("reasoning_content" in message for message in said(request)):
        return status(400, "property 'reasoning_content' is unsupported")
    return thinking(len(said(request)))


@pytest.mark.parametrize("endpoint", [wants_thoughts, wants_signatures, refuses_thoughts])
async def test_an_endpoint_gets_back_what_it_wants(endpoint: Any, tmp_path: Any) -> None:
    store = films()
    path = tmp_path / "runs.jsonl"
    with OpenAIServer(endpoint) as server:
        model = OpenAIChat("m", server.base_url, max_retries=0)
        ark = Ark(model, store, index_of(store), settings=ArkSettings(n_agents=1), on_run=Recorder(path))
        found = [ark.retrieve("films by Bob Bell"), await ark.aretrieve("films by Bob Bell")]
        asked = len(server.requests)
    for retrieval in found:
        assert retrieval.hits[0].id == "p1"
        [summary] = [stage for stage in retrieval.trace.stages if stage.name == "explore"]
        assert summary.details["stopped"] == {"finished": 1}
    # one that refuses is told once, and never again
    assert asked == 2 * len(CALLS) + (endpoint is refuses_thoughts)
    assert "thought" not in path.read_text()
    assert len(read_runs(path)) == 2


def test_it_survives_a_session_put_away_and_is_lost_with_a_turn_that_was_changed() -> None:
    """A signature is of what was signed: a reply that was mended before it goes back has none."""
    native = {"openai:m": {"message": {"reasoning_content": "hm"}, "tool_calls": {}}}
    session = ArkSession("who?", "explore")
    session.receive(Reply("hm", native=native))
    session.observe()
    again = ArkSession.from_dict(json.loads(json.dumps(session.to_dict())))
    assert again.messages == session.messages
    assert again.messages[2].native == native
    session.receive(Reply("half a \ud800 pair", native=native))
    assert session.messages[-1].native is None


def test_another_model_s_is_ignored() -> None:
    theirs = Message.assistant("hm", native={"openai:other": {"message": {"reasoning_content": "x"}, "tool_calls": {}}})
    with OpenAIServer(["ok"]) as server:
        OpenAIChat("m", server.base_url).chat([Message.user("hi"), theirs, Message.user("and?")])
    assert "reasoning_content" not in server.requests[0].messages[1]
