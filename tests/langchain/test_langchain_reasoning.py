"""LangChain chat models that think: their reasoning and its signatures are handed back as they came."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatResult
from langgraph_parts import INDEX, STORE
from test_langchain_chat import Scripted

from graphret.llm import Message
from langchain_graphret import create_ark_graph
from langchain_graphret.chat import from_message, to_message

CALLS = (("global_search", {"query": "Bob Bell"}), ("select", {"nodes": ["p1"]}), ("finish", {}))
ASK: Any = {"question": "films by Bob Bell"}


def signed(turn: int, signs_in: str) -> AIMessage:
    name, arguments = CALLS[turn]
    call: Any = {"name": name, "args": arguments, "id": f"c{turn}", "type": "tool_call"}
    if signs_in == "additional":
        return AIMessage("", tool_calls=[call], additional_kwargs={"signature": f"s{turn}"})
    thought = {"type": "thinking", "thinking": "hm", "signature": f"s{turn}"}
    return AIMessage(
        [thought, {"type": "tool_use", "id": f"c{turn}", "name": name, "input": arguments}], tool_calls=[call]
    )


class Thinker(Scripted):
    """As Anthropic's and Google's models: refuses a conversation in which a turn of its own lost its signature."""

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        for turn, message in enumerate(one for one in messages if isinstance(one, AIMessage)):
            held = {**message.additional_kwargs, **(message.content[0] if message.content else {})}  # type: ignore[dict-item]
            if held.get("signature") != f"s{turn}":
                raise ValueError("400: a thinking block, with its signature, is expected before tool_use")
        return super()._generate(messages, *args, **kwargs)


@pytest.mark.parametrize("signs_in", ["content", "additional"])
async def test_agents_of_thinking_models_come_to_their_ends(signs_in: str) -> None:
    model = Thinker(*[signed(turn, signs_in) for turn in (0, 1, 2, 0, 1, 2)])
    graph = create_ark_graph(model, STORE, INDEX, n_agents=1)
    for answer in (graph.invoke(ASK), await graph.ainvoke(ASK)):
        assert [agent["stop"] for agent in answer["agents"]] == ["finished"]
        assert answer["hits"][0]["id"] == "p1"


def test_a_graphret_model_keeps_it_in_langchain_s_messages() -> None:
    message = Message.assistant("well", native={"openai:m": {"reasoning_content": "hm"}})
    assert from_message(to_message(message)).native == message.native
