"""LlamaIndex models that think: their thinking blocks and signatures are handed back as they came."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from ark_support import films, index_of
from llama_index.core.base.llms.types import ChatMessage, MessageRole, ThinkingBlock, ToolCallBlock
from llama_index.core.llms.mock import MockFunctionCallingLLM

from graphret.ark import ArkSettings
from graphret.llm import Message, OpenAIChat
from graphret.testing.openai_server import OpenAIServer, Request, body, status
from llama_index_graphret import ArkRetriever, CoreLLM, LlamaIndexChat, retrieval_of

CALLS = (("global_search", {"query": "Bob Bell"}), ("select", {"nodes": ["p1"]}), ("finish", {}))
STORE = films()


def thinks(messages: Sequence[ChatMessage], **_: Any) -> ChatMessage:
    """Refuse a conversation in which a turn of its own lost its signature, as Anthropic's models do."""
    turns = [message for message in messages if message.role == MessageRole.ASSISTANT]
    for turn, message in enumerate(turns):
        first = message.blocks[0]
        if not isinstance(first, ThinkingBlock) or first.additional_information.get("signature") != f"s{turn}":
            raise ValueError("400: a thinking block, with its signature, is expected before tool_use")
    name, arguments = CALLS[len(turns)]
    return ChatMessage(
        role="assistant",
        blocks=[
            ThinkingBlock(content="hm", additional_information={"signature": f"s{len(turns)}"}),
            ToolCallBlock(tool_call_id=f"c{len(turns)}", tool_name=name, tool_kwargs=arguments),
        ],
    )


def thought(request: Request) -> Any:
    """Refuse one that lost its reasoning, as DeepSeek's endpoint does."""
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


async def finishes(model: Any) -> None:
    retriever = ArkRetriever(model, STORE, index_of(STORE), settings=ArkSettings(n_agents=1))
    for nodes in (retriever.retrieve("films by Bob Bell"), await retriever.aretrieve("films by Bob Bell")):
        assert nodes[0].node.node_id == "p1"
        [summary] = [stage for stage in retrieval_of(nodes).trace.stages if stage.name == "explore"]
        assert summary.details["stopped"] == {"finished": 1}


async def test_agents_of_thinking_models_come_to_their_ends() -> None:
    await finishes(MockFunctionCallingLLM(response_generator=thinks))


async def test_a_graphret_model_keeps_it_in_llama_index_s_messages() -> None:
    with OpenAIServer(thought) as server:
        await finishes(CoreLLM(OpenAIChat("m", server.base_url, max_retries=0)))


@pytest.mark.parametrize(
    "blocks",
    [
        [ToolCallBlock(tool_call_id="c", tool_name="x", tool_kwargs={})],
        [ThinkingBlock(content="hm"), ToolCallBlock(tool_call_id=None, tool_name="x", tool_kwargs={})],
        [ThinkingBlock(additional_information={"signature": b"\xff"})],
    ],
)
def test_what_says_no_more_or_cannot_be_handed_back_is_not_kept(blocks: Any) -> None:
    model = MockFunctionCallingLLM(
        response_generator=lambda messages, **_: ChatMessage(role="assistant", blocks=blocks)
    )
    assert LlamaIndexChat(model).chat([Message.user("?")]).native is None
