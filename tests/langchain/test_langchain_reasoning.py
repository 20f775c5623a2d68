"""LangChain chat models that think: their reasoning and its signatures are handed back as they came."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from langgraph_parts import INDEX, STORE

from graphret.llm import Message
from langchain_graphret import create_ark_graph
from langchain_graphret.chat import from_message, to_message

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


def test_a_graphret_model_keeps_it_in_langchain_s_messages() -> None:
    message = Message.assistant("well", native={"openai:m": {"reasoning_content": "hm"}})
    assert from_message(to_message(message)).native == message.native
