"""Chat models that speak to an OpenAI-compatible server, as graphret is given them: its own, LangChain's, LlamaIndex's.

LangChain's own model of OpenAI answers whole and as a stream, as it does under a graph that streams. LlamaIndex's is
none of the fixed packages, so that its model here is a small one over the official client; the package's is tried too
where it is installed.
"""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Sequence
from typing import Any

from langchain_openai import ChatOpenAI
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, LLMMetadata, TextBlock, ToolCallBlock
from llama_index.core.llms.mock import MockFunctionCallingLLM
from openai import AsyncOpenAI, DefaultAsyncHttpxClient, DefaultHttpxClient, OpenAI
from pydantic import Field, SecretStr

from graphret.llm import ChatModel, OpenAIChat
from langchain_graphret.chat import LangChainChat
from llama_index_graphret import LlamaIndexChat

CLIENTS = ["openai", "langchain", "langchain_streaming", "llama_index"]
if importlib.util.find_spec("llama_index.llms") and importlib.util.find_spec("llama_index.llms.openai"):
    CLIENTS.append("llama_index_openai")


def chat_model(
    client: str,
    base_url: str,
    *,
    model: str = "gpt-4o",
    retries: int = 1,
    timeout: float = 5.0,
    says_why_ended: bool = True,
) -> ChatModel:
    """A `ChatModel` of one of the `CLIENTS`, which asks again `retries` times."""
    options: dict[str, Any] = {"api_key": "none", "max_retries": retries, "timeout": timeout}
    if client == "openai":
        return OpenAIChat(model, base_url, **options)
    if client.startswith("langchain"):
        streaming = client == "langchain_streaming"
        asked = langchain_openai(base_url, model, retries=retries, timeout=timeout, streaming=streaming)
        return LangChainChat(asked, says_why_ended=says_why_ended)
    if client == "llama_index":
        return LlamaIndexChat(SmallLlamaIndex(model, {"base_url": base_url, **options}))
    from llama_index.llms.openai import OpenAI as LlamaIndexOpenAI

    return LlamaIndexChat(LlamaIndexOpenAI(model=model, api_base=base_url, **options))


def langchain_openai(
    base_url: str, model: str = "gpt-4o", *, retries: int = 1, timeout: float = 5.0, streaming: bool = False
) -> ChatOpenAI:
    """LangChain's own model, which loads no certificates: that takes long, and a server on this machine has none."""
    return ChatOpenAI(
        model=model,
        base_url=base_url,
        api_key=SecretStr("none"),
        max_retries=retries,
        timeout=timeout,
        streaming=streaming,
        stream_usage=True,
        http_client=DefaultHttpxClient(verify=False),
        http_async_client=_unchecked(),
    )


def _unchecked() -> DefaultAsyncHttpxClient:
    return DefaultAsyncHttpxClient(verify=False)


def _async_client(options: dict[str, Any]) -> AsyncOpenAI:
    return AsyncOpenAI(**options, http_client=_unchecked())


class SmallLlamaIndex(MockFunctionCallingLLM):
    """LlamaIndex's mock of a model that calls tools, asking a real server."""

    model: str = ""
    options: dict[str, Any] = Field(default_factory=dict)

    def __init__(self, model: str, options: dict[str, Any]) -> None:
        super().__init__()
        self.model, self.options = model, options

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(is_function_calling_model=True, is_chat_model=True, model_name=self.model)

    def _request(self, messages: Sequence[ChatMessage], options: dict[str, Any]) -> dict[str, Any]:
        tools = [tool.metadata.to_openai_tool() for tool in options.get("tools") or ()]
        wanted = {key: value for key, value in options.items() if key in ("temperature", "max_tokens")}
        request = {"model": self.model, "messages": [_openai_message(one) for one in messages], **wanted}
        return {**request, "tools": tools} if tools else request

    def chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        with OpenAI(**self.options) as client:
            return _chat_response(client.chat.completions.create(**self._request(messages, kwargs)))

    async def achat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        async with _async_client(self.options) as client:
            return _chat_response(await client.chat.completions.create(**self._request(messages, kwargs)))


def _openai_message(message: ChatMessage) -> dict[str, Any]:
    calls = [
        {
            "id": block.tool_call_id,
            "type": "function",
            "function": {
                "name": block.tool_name,
                "arguments": block.tool_kwargs if isinstance(block.tool_kwargs, str) else json.dumps(block.tool_kwargs),
            },
        }
        for block in message.blocks
        if isinstance(block, ToolCallBlock)
    ]
    out: dict[str, Any] = {"role": message.role.value, "content": message.content or ""}
    if calls:
        out["tool_calls"] = calls
    if message.role.value == "tool":
        out["tool_call_id"] = message.additional_kwargs["tool_call_id"]
    return out


def _chat_response(completion: Any) -> ChatResponse:
    said = completion.choices[0].message
    blocks: list[Any] = [TextBlock(text=said.content)] if said.content else []
    blocks += [
        ToolCallBlock(tool_call_id=one.id, tool_name=one.function.name, tool_kwargs=one.function.arguments)
        for one in said.tool_calls or ()
    ]
    return ChatResponse(message=ChatMessage(role="assistant", blocks=blocks), raw=completion)
