"""Chat models that speak to an OpenAI-compatible server, as graphret is given them: its own, LangChain's, LlamaIndex's.

LangChain's and LlamaIndex's own OpenAI packages are none of the fixed ones, so that the models here are small ones over
the official client; LlamaIndex's is tried too where it is installed.
"""

from __future__ import annotations

import importlib.util
import json
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.language_models.chat_models import agenerate_from_stream, generate_from_stream
from langchain_core.messages import AIMessageChunk, BaseMessage
from langchain_core.messages.utils import convert_to_openai_messages
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, LLMMetadata, TextBlock, ToolCallBlock
from llama_index.core.llms.mock import MockFunctionCallingLLM
from openai import AsyncOpenAI, DefaultAsyncHttpxClient, OpenAI
from pydantic import Field

from graphret.llm import ChatModel, OpenAIChat
from langchain_graphret.chat import LangChainChat
from llama_index_graphret import LlamaIndexChat

CLIENTS = ["openai", "langchain", "llama_index"]
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
    if client == "langchain":
        streaming = StreamingLangChain(model=model, options={"base_url": base_url, **options})
        return LangChainChat(streaming, says_why_ended=says_why_ended)
    if client == "llama_index":
        return LlamaIndexChat(SmallLlamaIndex(model, {"base_url": base_url, **options}))
    from llama_index.llms.openai import OpenAI as LlamaIndexOpenAI

    return LlamaIndexChat(LlamaIndexOpenAI(model=model, api_base=base_url, **options))


def _async_client(options: dict[str, Any]) -> AsyncOpenAI:
    return AsyncOpenAI(**options, http_client=DefaultAsyncHttpxClient(verify=False))


class StreamingLangChain(BaseChatModel):
    """Streams every reply, as LangChain's own model of OpenAI does under a graph."""

    model: str
    options: dict[str, Any]

    @property
    def _llm_type(self) -> str:
        return "streaming"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Any:
        return self.bind(tools=list(tools))

    def _request(self, messages: list[BaseMessage], options: dict[str, Any]) -> dict[str, Any]:
        wanted = {key: value for key, value in options.items() if key in ("tools", "temperature", "max_tokens")}
        return {
            "model": self.model,
            "messages": convert_to_openai_messages(messages),
            "stream": True,
            "stream_options": {"include_usage": True},
            **wanted,
        }

    def _stream(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> Iterator[ChatGenerationChunk]:
        with OpenAI(**self.options) as client:
            for chunk in client.chat.completions.create(**self._request(messages, kwargs)):
                yield _generation(chunk)

    async def _astream(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        async with _async_client(self.options) as client:
            async for chunk in await client.chat.completions.create(**self._request(messages, kwargs)):
                yield _generation(chunk)

    def _generate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        return generate_from_stream(self._stream(messages, stop, run_manager, **kwargs))

    async def _agenerate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        return await agenerate_from_stream(self._astream(messages, stop, run_manager, **kwargs))


def _generation(chunk: Any) -> ChatGenerationChunk:
    delta = chunk.choices[0].delta if chunk.choices else None
    pieces = [
        {"index": one.index, "id": one.id, "name": one.function.name, "args": one.function.arguments}
        for one in (delta and delta.tool_calls) or ()
    ]
    usage = chunk.usage and {
        "input_tokens": chunk.usage.prompt_tokens,
        "output_tokens": chunk.usage.completion_tokens,
        "total_tokens": chunk.usage.total_tokens,
    }
    reason = chunk.choices[0].finish_reason if chunk.choices else None
    return ChatGenerationChunk(
        message=AIMessageChunk(
            content=(delta and delta.content) or "",
            tool_call_chunks=pieces,
            usage_metadata=usage,
            response_metadata={"model_provider": "openai"} | ({"finish_reason": reason} if reason else {}),
        )
    )


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
