"""The shapes of the chat-model contract."""

from __future__ import annotations

import pytest

from graphret.errors import InvalidInput
from graphret.llm import Message, Reply, Tool, ToolCall, Usage


def nested(levels: int) -> list | int:
    return [nested(levels - 1)] if levels else 1


@pytest.mark.parametrize(
    ("raw", "parsed"),
    [
        ('{"a": 1}', {"a": 1}),
        ("", {}),
        ("  ", {}),
        (" null\n", {}),
        ("[1]", None),
        ("nul", None),
        ('{"a": NaN}', None),
        ("[" * 99_999, None),
        (f'{{"a": {"[" * 60}1{"]" * 60}}}', {"a": nested(60)}),
        (f'{{"a": {"[" * 980}1{"]" * 980}}}', None),
    ],
)
def test_arguments_of_a_tool_call(raw: str, parsed: dict | None) -> None:
    call = ToolCall("1", "walk", raw)
    assert call.parsed == parsed
    assert (call.error is None) == (parsed is not None)
    assert call.arguments == raw


def test_messages_go_to_openai_format_and_back() -> None:
    call = ToolCall("c1", "walk", '{"hops": 1}')
    reply = Reply("", (call,))
    messages = [Message.system("s"), Message.user("u"), reply.message, Message.tool(call, "found")]
    assert [Message.from_dict(message.to_dict()) for message in messages] == messages
    assert messages[3].to_dict() == {"role": "tool", "content": "found", "tool_call_id": "c1", "name": "walk"}
    assert Message.from_dict({"role": "assistant", "content": None}).content == ""


@pytest.mark.parametrize(
    "make",
    [
        lambda: Message("robot", "x"),
        lambda: Message("user", "x", (ToolCall("1", "f"),)),
        lambda: Message("tool", "x"),
        lambda: Message("user", "x", tool_call_id="1"),
        lambda: Message.from_dict({"content": "x"}),
        lambda: Message.from_dict({"role": "assistant", "tool_calls": [{"id": "1"}]}),
        lambda: Tool("two words", "x"),
        lambda: Tool("", "x"),
        lambda: Tool("x" * 65, "x"),
    ],
)
def test_malformed_is_refused(make) -> None:
    with pytest.raises(InvalidInput):
        make()


def test_values_hash_and_add() -> None:
    assert len({ToolCall("1", "f", '{"a": []}'), ToolCall("1", "f", '{"a": []}')}) == 1
    assert sum([Usage(1, 2), Usage(3, 4)], Usage()) == Usage(4, 6)
    assert Usage(1, 2).total_tokens == 3
