"""Endpoints that refuse a temperature or a JSON schema: asked once more without it, by
every client, and remembered.
"""

from __future__ import annotations

import asyncio

import pytest
from chat_clients import chat_model

from graphret.llm import ChatError, Message
from graphret.testing.openai_server import Behaviour, OpenAIServer, Request, status

HELLO = [Message.user("hello there")]
SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}}}
CLIENTS = ["openai", "langchain", "llama_index"]
OF_SCHEMAS = [
    (400, "Invalid parameter: 'response_format' of type 'json_schema'"),
    (400, "This model does not support response format"),
    (400, "JSON mode is not enabled for this model"),
    (400, "Failed to convert the schema to GBNF"),
    (422, "response_format: Extra inputs are not permitted"),
    (400, "Structured outputs need version 2"),
    (500, "failed to parse grammar"),
    (500, "Internal Server Error"),
    (501, "Not Implemented"),
    (400, "Bad Request"),
    (422, "Unprocessable Entity"),
]
OF_TEMPERATURE = [
    (400, "Unsupported parameter: 'temperature' is not supported with this model."),
    (400, "Only the default (1) value of temperature is supported"),
    (400, "invalid temperature: only 1 is allowed for this model"),
    (400, "`temperature` has to be a strictly positive float"),
    (400, "temperature must be > 0"),
    (422, "temperature: extra fields not permitted"),
    (400, "`temperature` is deprecated for this model."),
    (500, "NotImplementedError: temperature"),
    (501, "Not Implemented"),
    (400, "Unsupported parameter"),
]


def refuses(field: str, code: int, said: str) -> OpenAIServer:
    def answer(request: Request) -> Behaviour | str:
        return status(code, said) if field in request.body else '{"name": "Ulm"}'

    return OpenAIServer(answer)


async def ask(server: OpenAIServer, client: str, awaited: bool) -> list[str]:
    """Ask one model twice for JSON."""
    model = chat_model(client, server.base_url, retries=0)
    if awaited:
        return [(await model.achat(HELLO, json_schema=SCHEMA)).text for _ in range(2)]
    return [model.chat(HELLO, json_schema=SCHEMA).text for _ in range(2)]


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize(("code", "said"), OF_SCHEMAS)
def test_a_schema_that_is_refused_is_left_out_from_then_on(
    code: int, said: str, client: str
) -> None:
    with refuses("response_format", code, said) as server:
        replies = asyncio.run(ask(server, client, awaited=code == 400))
    assert replies == ['{"name": "Ulm"}'] * 2
    sent = [
        request.body.get("response_format", {}).get("type")
        for request in server.requests
    ]
    assert sent[0] == "json_schema"
    assert sent[-2:] == [None, None]
    assert len(sent) <= 4


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize(("code", "said"), OF_TEMPERATURE)
def test_a_temperature_that_is_refused_is_left_out_from_then_on(
    code: int, said: str, client: str
) -> None:
    def answer(request: Request) -> Behaviour | str:
        ours = request.body.get("temperature") == 0.0
        return status(code, said) if ours else "hi"

    with OpenAIServer(answer) as server:
        model = chat_model(client, server.base_url, retries=0)
        for _ in range(2):
            assert model.chat(HELLO, temperature=0.0).text == "hi"
    sent = [request.body.get("temperature") for request in server.requests]
    assert sent[0] == 0.0
    assert len(sent) == 3


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize(
    ("code", "said"),
    [
        (400, "maximum context length is 8192 tokens"),
        (400, "tools are not supported"),
        (400, "temperature must be between 0 and 2"),
        (401, "response_format needs a key"),
        (503, "temperature"),
    ],
)
def test_another_complaint_stands(code: int, said: str, client: str) -> None:
    with OpenAIServer(default=status(code, said)) as server:
        model = chat_model(client, server.base_url, retries=0)
        with pytest.raises(ChatError, match=said.split()[0]):
            model.chat(HELLO, json_schema=SCHEMA, temperature=5.0)
    assert len(server.requests) == 1


@pytest.mark.parametrize("client", CLIENTS)
def test_an_endpoint_that_is_down_is_asked_once_more_and_nothing_is_remembered(
    client: str,
) -> None:
    down = status(500, "on fire")
    script = [down, status(500, "again"), '{"name": "Ulm"}', down]
    with OpenAIServer(script) as server:
        model = chat_model(client, server.base_url, retries=0)
        with pytest.raises(ChatError, match="on fire"):
            model.chat(HELLO, json_schema=SCHEMA)
        assert model.chat(HELLO, json_schema=SCHEMA).text == '{"name": "Ulm"}'
        with pytest.raises(ChatError, match="on fire"):
            model.chat(HELLO, json_schema=SCHEMA)  # it has taken a schema before
    formats = ["response_format" in request.body for request in server.requests]
    assert formats == [True, False, True, True]


@pytest.mark.parametrize("client", CLIENTS)
def test_a_schema_is_sent_to_openai_by_every_client(client: str) -> None:
    with OpenAIServer(default='{"name": "Ulm"}') as server:
        asyncio.run(ask(server, client, awaited=True))
    [sent, _] = [request.body["response_format"] for request in server.requests]
    assert sent["type"] == "json_schema"
    assert "name" in sent["json_schema"]["schema"]["properties"]
