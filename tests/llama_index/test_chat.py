"""LlamaIndex language models as graphret's."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, MessageRole, TextBlock, ToolCallBlock
from llama_index.core.llms.mock import MockFunctionCallingLLM, MockLLM

from graphret.corpus import Document, adescribe, describe, to_nodes
from graphret.corpus.llm_metadata import LLMMetadata
from graphret.errors import InvalidInput
from graphret.llm import ChatError, ChatModel, Message, Tool, ToolCall, Usage, ask_json
from llama_index_graphret import LlamaIndexChat

TOOL = Tool("search", "Find nodes.", {"type": "object", "properties": {"query": {"type": "string"}}})


def scripted(*replies: Any) -> tuple[LlamaIndexChat, list[list[ChatMessage]], list[dict[str, Any]]]:
    """A model that gives the replies in turn; the messages and options that it got."""
    asked: list[list[ChatMessage]] = []
    options: list[dict[str, Any]] = []
    left = list(replies)

    def answer(messages: Sequence[ChatMessage], **kwargs: Any) -> ChatMessage:
        asked.append(list(messages))
        options.append(kwargs)
        reply = left.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return reply if isinstance(reply, ChatMessage) else ChatMessage(role="assistant", content=reply)

    return LlamaIndexChat(MockFunctionCallingLLM(response_generator=answer)), asked, options


def test_it_is_a_chat_model() -> None:
    chat = LlamaIndexChat(MockLLM())
    assert isinstance(chat, ChatModel)
    assert chat.name == "MockLLM"
    assert chat.chat([Message.user("hello")]).text
    assert asyncio.run(chat.achat([Message.user("hello")])).text == chat.chat([Message.user("hello")]).text


@pytest.mark.parametrize("awaited", [False, True])
def test_a_conversation_goes_over_whole(awaited: bool) -> None:
    chat, asked, options = scripted("done")
    call = ToolCall("c1", "search", '{"query": "x"}')
    messages = [
        Message.system("be brief"),
        Message.user("find x"),
        Message.assistant("looking", [call]),
        Message.tool(call, "nothing"),
    ]
    reply = asyncio.run(chat.achat(messages, max_tokens=7)) if awaited else chat.chat(messages, max_tokens=7)
    assert (reply.text, reply.tool_calls, reply.finish_reason) == ("done", (), "stop")
    [got] = asked
    assert [m.role for m in got] == [MessageRole.SYSTEM, MessageRole.USER, MessageRole.ASSISTANT, MessageRole.TOOL]
    assert got[2].blocks == [
        TextBlock(text="looking"),
        ToolCallBlock(tool_call_id="c1", tool_name="search", tool_kwargs='{"query": "x"}'),
    ]
    assert got[3].content == "nothing"
    assert got[3].additional_kwargs["tool_call_id"] == "c1"
    assert options[0]["max_tokens"] == 7
    assert "temperature" not in options[0]


@pytest.mark.parametrize("awaited", [False, True])
@pytest.mark.parametrize("arguments", ['{"query": "x"}', {"query": "x"}])
def test_tools_are_offered_and_calls_come_back(awaited: bool, arguments: Any) -> None:
    block = ToolCallBlock(tool_call_id="c9", tool_name="search", tool_kwargs=arguments)
    chat, _, options = scripted(ChatMessage(role="assistant", blocks=[block]))
    messages = [Message.user("find x")]
    reply = asyncio.run(chat.achat(messages, tools=[TOOL])) if awaited else chat.chat(messages, tools=[TOOL])
    [call] = reply.tool_calls
    assert (call.id, call.name, call.parsed, reply.finish_reason) == ("c9", "search", {"query": "x"}, "tool_calls")
    [offered] = options[0]["tools"]
    assert offered.metadata.to_openai_tool()["function"] == {
        "name": "search",
        "description": "Find nodes.",
        "parameters": dict(TOOL.parameters),
    }


def test_broken_arguments_are_handed_on_as_they_are() -> None:
    block = ToolCallBlock(tool_call_id="c9", tool_name="search", tool_kwargs='{"query": ')
    chat, _, _ = scripted(ChatMessage(role="assistant", blocks=[block]))
    [call] = chat.chat([Message.user("x")], tools=[TOOL]).tool_calls
    assert call.parsed is None
    assert call.error


def test_calls_in_the_older_form_are_read() -> None:
    raw = {"id": "c1", "type": "function", "function": {"name": "search", "arguments": '{"query": "x"}'}}
    message = ChatMessage(role="assistant", content="", additional_kwargs={"tool_calls": [raw]})
    chat, _, _ = scripted(message)
    assert chat.chat([Message.user("x")], tools=[TOOL]).tool_calls == (ToolCall("c1", "search", '{"query": "x"}'),)


@pytest.mark.parametrize("awaited", [False, True])
def test_a_failing_model_is_a_chat_error(awaited: bool) -> None:
    chat, _, _ = scripted(ConnectionError("away"))
    with pytest.raises(ChatError, match="away"):
        asyncio.run(chat.achat([Message.user("x")])) if awaited else chat.chat([Message.user("x")])


def test_a_model_that_calls_no_tools_says_so() -> None:
    with pytest.raises(ChatError, match="calls no tools"):
        LlamaIndexChat(MockLLM()).chat([Message.user("x")], tools=[TOOL])
    with pytest.raises(InvalidInput, match="LLM"):
        LlamaIndexChat("gpt")  # type: ignore[arg-type]


class Slow(MockLLM):
    """Never answers when awaited."""

    async def achat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        await asyncio.Event().wait()
        raise AssertionError


def test_waiting_ends_at_the_time_limit() -> None:
    with pytest.raises(ChatError) as failed:
        asyncio.run(LlamaIndexChat(Slow()).achat([Message.user("x")], timeout=0.01))
    assert failed.value.reason == "timeout"


@pytest.mark.parametrize(
    "usage", [{"prompt_tokens": 3, "completion_tokens": 4}, {"input_tokens": 3, "output_tokens": 4}]
)
def test_what_was_spent_and_why_it_stopped_are_read(usage: dict[str, int]) -> None:
    class Spending(MockLLM):
        """Says what it spent."""

        def chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
            raw = {"usage": usage, "choices": [{"finish_reason": "length"}]}
            return ChatResponse(message=ChatMessage(role="assistant", content="x"), raw=raw)

    reply = LlamaIndexChat(Spending()).chat([])
    assert (reply.usage, reply.finish_reason) == (Usage(3, 4), "length")


@pytest.mark.parametrize(
    ("said", "reason"), [("stop", "tool_calls"), ("tool_calls", "tool_calls"), ("length", "length")]
)
def test_calls_may_be_cut_off_too(said: str, reason: str) -> None:
    class Calling(MockLLM):
        """Calls a tool."""

        def chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
            call = ToolCallBlock(tool_call_id="1", tool_name="search", tool_kwargs={})
            raw = {"choices": [{"finish_reason": said}]}
            return ChatResponse(message=ChatMessage(role="assistant", blocks=[call]), raw=raw)

    assert LlamaIndexChat(Calling()).chat([]).finish_reason == reason


def test_json_can_be_asked_for_and_is_repaired() -> None:
    chat, asked, _ = scripted("no JSON", '{"n": 3}')
    answer = ask_json(chat, [Message.user("count")], dict[str, int])
    assert (answer.value, answer.attempts) == ({"n": 3}, 2)
    assert len(asked) == 2


@pytest.mark.parametrize("awaited", [False, True])
def test_it_writes_metadata(awaited: bool) -> None:
    nodes = to_nodes([Document("Bonn lies on the Rhine.", id="d", title="Bonn")], metadata=None)
    chat = LlamaIndexChat(MockLLM())  # answers with its prompt, which is no metadata: the rules stand in
    extractor = LLMMetadata(chat)
    [node] = asyncio.run(adescribe(nodes, extractor)) if awaited else describe(nodes, extractor)
    assert node.properties["topic"]
