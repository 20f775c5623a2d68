"""LangChain chat models that think: their reasoning and its signatures are handed back as they came."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from langgraph_parts import INDEX, STORE

from graphret.llm import OpenAIChat
from graphret.testing.openai_server import OpenAIServer, Request, body, status
from langchain_graphret import CoreChat, create_ark_graph

CALLS = (("global_search", {"query": "Bob Bell"}), ("select", {"nodes": ["p1"]}), ("finish", {}))
ASK: Any = {"question": "films by Bob Bell"}


class Thinker(BaseChatModel):
    """As Anthropic's and Google's models: refuses a conversation in which a turn of its own lost its signature.

    The signature is in a block of the content, or in the additional arguments.
    """

    model_name: str = "thinker"
    signs_in: str = "content"
    asked: int = 0

    @property
    def _llm_type(self) -> str:
        return "thinker"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Runnable[Any, AIMessage]:
        return self.bind(tools=tools, **kwargs)

    def _generate(self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **_: Any) -> ChatResult:
        self.asked += 1
        turns = [message for message in messages if isinstance(message, AIMessage)]
        for turn, message in enumerate(turns):
            if self.signature(message) != f"s{turn}":
                raise ValueError("400: a thinking block, with its signature, is expected before tool_use")
        return ChatResult(generations=[ChatGeneration(message=self.reply(len(turns)))])

    def signature(self, message: AIMessage) -> Any:
        if self.signs_in == "additional":
            return message.additional_kwargs.get("signature")
        return message.content[0]["signature"] if isinstance(message.content, list) else None  # type: ignore[index]

    def reply(self, turn: int) -> AIMessage:
        name, arguments = CALLS[turn]
        call: Any = {"name": name, "args": arguments, "id": f"c{turn}", "type": "tool_call"}
        if self.signs_in == "additional":
            return AIMessage("", tool_calls=[call], additional_kwargs={"signature": f"s{turn}"})
        blocks: list[Any] = [
            {"type": "thinking", "thinking": "hm", "signature": f"s{turn}"},
            {"type": "tool_use", "id": f"c{turn}", "name": name, "input": arguments},
        ]
        return AIMessage(blocks, tool_calls=[call])


@pytest.mark.parametrize("signs_in", ["content", "additional"])
async def test_agents_of_thinking_models_come_to_their_ends(signs_in: str) -> None:
    graph = create_ark_graph(Thinker(signs_in=signs_in), STORE, INDEX, n_agents=1)
    for answer in (graph.invoke(ASK), await graph.ainvoke(ASK)):
        assert [agent["stop"] for agent in answer["agents"]] == ["finished"]
        assert answer["hits"][0]["id"] == "p1"


def thought(request: Request) -> Any:
    """As DeepSeek's endpoint does."""
    said = [message for message in request.messages if message["role"] == "assistant"]
    if any(message.get("reasoning_content") != f"thought {turn}" for turn, message in enumerate(said)):
        return status(400, "The reasoning_content in the thinking mode must be passed back")
    name, arguments = CALLS[len(said)]
    function = {"name": name, "arguments": json.dumps(arguments)}
    message = {
        "role": "assistant",
        "content": "",
        "reasoning_content": f"thought {len(said)}",
        "tool_calls": [{"id": f"c{len(said)}", "type": "function", "function": function}],
    }
    choices = [{"index": 0, "message": message, "finish_reason": "tool_calls"}]
    return body(json.dumps({"id": "x", "object": "chat.completion", "created": 0, "model": "m", "choices": choices}))


def test_a_graphret_model_keeps_it_in_langchain_s_messages() -> None:
    with OpenAIServer(thought) as server:
        model = CoreChat(core=OpenAIChat("m", server.base_url, max_retries=0))
        first = model.invoke([HumanMessage("?")])
        answer = ToolMessage("[]", tool_call_id=first.tool_calls[0]["id"])
        assert model.invoke([HumanMessage("?"), first, answer]).tool_calls[0]["name"] == "select"
        graph = create_ark_graph(model, STORE, INDEX, n_agents=1)
        assert graph.invoke(ASK)["hits"][0]["id"] == "p1"
