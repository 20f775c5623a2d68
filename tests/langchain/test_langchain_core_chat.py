"""graphret's chat models, and `ScriptedExplorer`, as LangChain's."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import ChatMessage, HumanMessage, SystemMessage
from langchain_core.tools import tool
from langchain_tests.unit_tests import ChatModelUnitTests
from pydantic import ValidationError

from graphret.errors import InvalidInput
from graphret.llm import Message, OpenAIChat
from graphret.llm.chat import ToolCall
from graphret.testing.openai_server import OpenAIServer, text, tool_calls
from langchain_graphret import CoreChat, ScriptedExplorer
from langchain_graphret.chat import from_message, to_message


class TestCoreChat(ChatModelUnitTests):
    """LangChain's own suite."""

    @property
    def chat_model_class(self) -> type[BaseChatModel]:
        return CoreChat

    @property
    def chat_model_params(self) -> dict[str, Any]:
        return {"core": OpenAIChat("m", "http://localhost:1/v1", api_key="none")}

    @pytest.mark.xfail(reason="a benchmark of seconds that asserts nothing", run=False)
    def test_init_time(self) -> None:  # type: ignore[override]
        """See the reason."""


@tool
def search(query: str) -> str:
    """Search."""
    return query


def served(server: OpenAIServer, **options: Any) -> CoreChat:
    return CoreChat(core=OpenAIChat("m", server.base_url, api_key="none", max_retries=0), **options)


async def test_text_calls_and_usage_come_back_over_http() -> None:
    play = [text("Jane Austen"), tool_calls(("search", {"query": "Emma"}), ("search", "{oops"))] * 2
    with OpenAIServer(play) as server:
        model = served(server, temperature=0.3)
        for form in ("blocking", "awaited"):
            asked = [SystemMessage("Be brief."), HumanMessage("Who wrote Emma?")]
            options: Any = {"stop": [" Aus"], "max_tokens": 5}
            said = model.invoke(asked, **options) if form == "blocking" else await model.ainvoke(asked, **options)
            assert said.text == "Jane"
            assert said.usage_metadata is not None
            assert said.usage_metadata["total_tokens"] > 0
            assert said.response_metadata["finish_reason"] == "stop"
            bound = model.bind_tools([search])
            called = bound.invoke(asked) if form == "blocking" else await bound.ainvoke(asked)
            assert [call["args"] for call in called.tool_calls] == [{"query": "Emma"}]
            assert [call["args"] for call in called.invalid_tool_calls] == ["{oops"]
        assert server.requests[0].body["temperature"] == 0.3
        assert 5 in server.requests[0].body.values()
        assert [one["function"]["name"] for one in server.requests[1].body["tools"]] == ["search"]


def test_there_and_back_a_message_is_the_same() -> None:
    calls = (ToolCall("c1", "search", '{"query": "x"}'),)
    for message in (
        Message.system("Be brief."),
        Message.user("Who?"),
        Message.assistant("I look.", calls),
        Message.tool(calls[0], "found"),
    ):
        assert from_message(to_message(message)) == message


def test_what_a_core_model_cannot_read_is_refused() -> None:
    image: Any = [{"type": "text", "text": "see"}, {"type": "image_url", "image_url": {"url": "http://x/y.png"}}]
    with pytest.raises(InvalidInput, match="image_url"):
        ScriptedExplorer().invoke([HumanMessage(image)])
    with pytest.raises(InvalidInput, match="critic"):
        from_message(ChatMessage("hello", role="critic"))
    with pytest.raises(ValidationError, match="core"):
        CoreChat(core="gpt-4o")
