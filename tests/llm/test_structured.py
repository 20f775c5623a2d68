"""JSON out of whatever a model answers."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from pydantic import BaseModel, TypeAdapter

from graphret.errors import InvalidInput
from graphret.llm import ChatError, Message, OpenAIChat, aask_json, ask_json
from graphret.llm.structured import parse_json
from graphret.testing.openai_server import Behaviour, OpenAIServer, json_text, status, text


@dataclass
class City:
    title: str
    people: int | None = None
    rivers: list[str] = field(default_factory=list)


WHERE = [Message.user("Where is it?")]
ULM = City("Ulm", 126_000)
CITY = TypeAdapter(City)


def chat(server: OpenAIServer) -> OpenAIChat:
    return OpenAIChat("tiny", server.base_url, max_retries=0, timeout=5)


@pytest.mark.parametrize(
    "said",
    [
        ' \n{"title": "Ulm", "people": 126000}\n',
        '```\n{"title": "Ulm", "people": 126000}',
        'Sure! Here it is:\n```JSON\n{"title": "Ulm", "people": 126000}\n```\nAnything else?',
        'The set {x} has it: {"title": "Ulm", "people": 126000} (see [1]).',
        '<think>Is it {"title": "Bonn"}?</think>{"title": "Ulm", "people": 126000}',
        '{"note": "not this"} but {"title": "Ulm", "people": 126000, "unasked": true}',
    ],
)
def test_json_is_found(said: str) -> None:
    assert parse_json(said, CITY) == (ULM, None)


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ("", "empty"),
        ("I do not know.", "Invalid JSON"),
        ('{"title": "Ulm", "peo', "Invalid JSON"),
        ('See: {"title": 5}', "title: Input should be a valid string"),
        ('{"title": "Ulm", "people": NaN}', "people: "),
        ('{"title": ' + "[" * 100_000, "Invalid JSON"),
        ("{" * 300_000, "Invalid JSON"),
    ],
)
def test_what_cannot_be_used_is_explained(said: str, problem: str) -> None:
    value, found = parse_json(said, CITY)
    assert value is None
    assert problem in (found or "")
    assert len(found or "") < 500


def test_schema_is_asked_for_twice_over() -> None:
    with OpenAIServer([json_text({"title": "Ulm", "people": 126_000})]) as server:
        value, usage, attempts = ask_json(chat(server), [Message.system("Be exact."), *WHERE], City)
    assert (value, attempts) == (ULM, 1)
    assert usage.input_tokens > 5
    sent = server.requests[0].body
    assert [message["role"] for message in sent["messages"]] == ["system", "user"]
    assert sent["messages"][0]["content"].startswith("Be exact.\n\nAnswer with one JSON value")
    assert sent["response_format"]["json_schema"]["strict"] is True


async def test_malformed_truncated_and_empty_replies_are_repaired() -> None:
    wrong = [text('{"title": "Ulm", "people": "many"}'), text(""), text('{"title": "U', finish_reason="length")]
    with OpenAIServer([*wrong, json_text({"title": "Ulm"})]) as server:
        answer = await aask_json(chat(server), WHERE, City, repairs=3)
    assert (answer.value, answer.attempts) == (City("Ulm"), 4)
    asked = [[message["role"] for message in request.messages] for request in server.requests]
    assert asked[1:3] == [["system", "user", "assistant", "user"], ["system", "user", "user"]]
    said = [request.messages[-1]["content"] for request in server.requests]
    assert "people: Input should be a valid integer" in said[1]
    assert "token limit" in said[3]


@pytest.mark.parametrize(
    ("then", "reason", "tokens"), [(text("no idea"), "invalid_reply", 4), (status(500), "server", 2)]
)
def test_what_fails_in_the_end_still_counts_what_it_cost(then: Behaviour, reason: str, tokens: int) -> None:
    with OpenAIServer([text("no idea"), then]) as server, pytest.raises(ChatError) as caught:
        ask_json(chat(server), WHERE, City)
    assert (caught.value.reason, caught.value.usage.output_tokens, len(server.requests)) == (reason, tokens, 2)


def test_any_type_will_do_and_native_can_be_off() -> None:
    class Model(BaseModel):
        x: int

    with OpenAIServer([text("[1, 2]"), text('{"x": 3}'), text('{"x": 4}')]) as server:
        model = chat(server)
        assert ask_json(model, WHERE, list[int]).value == [1, 2]
        assert ask_json(model, WHERE, Model).value == Model(x=3)
        assert ask_json(model, WHERE, TypeAdapter(dict[str, int]), native=False).value == {"x": 4}
    formats = [request.body.get("response_format", {}).get("type") for request in server.requests]
    assert formats == [None, "json_schema", None]
    with pytest.raises(InvalidInput, match="empty"):
        ask_json(model, [], City)
