"""LlamaIndex language models as graphret's `ChatModel`."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Unpack

from llama_index.core.base.llms.types import (
    ChatMessage,
    ChatResponse,
    ContentBlock,
    MessageRole,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
)
from llama_index.core.bridge.pydantic import BaseModel, Field, create_model
from llama_index.core.llms import LLM
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.tools import FunctionTool, ToolMetadata

from graphret.errors import InvalidInput
from graphret.llm import ChatError, ChatOptions, Message, Reply, Tool, ToolCall, Usage
from graphret.llm.errors import as_chat_error

_SPENT = (("input_tokens", "output_tokens"), ("prompt_tokens", "completion_tokens"))
# Additional arguments that say no more than text, calls and usage do.
_SAID_ELSEWHERE = frozenset({"tool_calls", "function_call", "refusal", "total_tokens"}.union(*_SPENT))
_NATIVE = "graphret_native"
_TYPES = {"string": str, "integer": int, "number": float, "boolean": bool, "array": list[Any], "object": dict[str, Any]}


class LlamaIndexChat:
    """A LlamaIndex LLM as a graphret `ChatModel`.

    Tools go through `FunctionCallingLLM.chat_with_tools`. A wish for JSON is ignored, since LlamaIndex has no common
    way to ask for a schema: state it in the messages, as `graphret.llm.ask_json` does. Temperature and token limit are
    passed to the model's ``chat``, so that a model that knows neither raises; a timeout holds where it is awaited.

    Examples
    --------
    >>> from llama_index.core.llms import MockLLM
    >>> LlamaIndexChat(MockLLM()).chat([Message.user("Who directed Heat?")]).text
    'user: Who directed Heat?\\nassistant: '
    """

    def __init__(self, llm: LLM) -> None:
        if not isinstance(llm, LLM):
            raise InvalidInput(f"llm: a LlamaIndex LLM is expected, not {type(llm).__name__}")
        self.llm = llm
        model = llm.metadata.model_name
        self.name = model if model and model != "unknown" else llm.class_name()
        self._origin = f"llama_index:{llm.class_name()}:{self.name}"

    def chat(self, messages: Sequence[Message], **options: Unpack[ChatOptions]) -> Reply:
        """Answer a conversation; see `ChatModel.chat`."""
        method, arguments = self._request(messages, options)
        try:
            return self._reply(getattr(self.llm, method)(**arguments))
        except Exception as error:
            raise as_chat_error(error, self.name) from error

    async def achat(self, messages: Sequence[Message], **options: Unpack[ChatOptions]) -> Reply:
        """`chat`, awaiting the model."""
        method, arguments = self._request(messages, options)
        timeout = options.get("timeout")
        try:
            async with asyncio.timeout(timeout):
                return self._reply(await getattr(self.llm, f"a{method}")(**arguments))
        except Exception as error:
            raise as_chat_error(error, self.name, timeout=timeout) from error

    def _request(self, messages: Sequence[Message], options: ChatOptions) -> tuple[str, dict[str, Any]]:
        """Return the method of the LLM to call, and its arguments."""
        sampling = {"temperature": options.get("temperature"), "max_tokens": options.get("max_tokens")}
        given: dict[str, Any] = {key: value for key, value in sampling.items() if value is not None}
        history = [self._message(message) for message in messages]
        tools = options.get("tools")
        if not tools:
            return "chat", {"messages": history, **given}
        if not (isinstance(self.llm, FunctionCallingLLM) and self.llm.metadata.is_function_calling_model):
            raise ChatError(f"{self.llm.class_name()} calls no tools", model=self.name, reason="bad_request")
        offered = [FunctionTool(fn=_refuse, metadata=SchemaMetadata(tool)) for tool in tools]
        given |= {"tools": offered, "chat_history": history, "allow_parallel_tool_calls": True}
        return "chat_with_tools", given

    def _message(self, message: Message) -> ChatMessage:
        native = (message.native or {}).get(self._origin)
        return to_message(message) if native is None else ChatMessage.model_validate(native)

    def _reply(self, response: ChatResponse) -> Reply:
        message = response.message
        calls = calls_of(message)
        if not calls and isinstance(self.llm, FunctionCallingLLM):  # which may keep them in a place of its own
            found = self.llm.get_tool_calls_from_response(response, error_on_no_tool_call=False)
            calls = tuple(ToolCall(one.tool_id, one.tool_name, json.dumps(one.tool_kwargs)) for one in found)
        text = "".join(block.text for block in message.blocks if isinstance(block, TextBlock))
        choices = _get(response.raw, "choices")
        ended = _get(choices[0], "finish_reason") if choices else None
        reason = ended if ended in ("length", "content_filter") else "tool_calls" if calls else "stop"
        native = None if (kept := _native(message)) is None else {self._origin: kept}
        return Reply(text, calls, _usage(response), reason, self.name, native)


def to_message(message: Message) -> ChatMessage:
    """Return a graphret message as LlamaIndex's."""
    blocks: list[ContentBlock] = []
    if message.native:
        blocks.append(ThinkingBlock(additional_information={_NATIVE: dict(message.native)}))
    if message.content or not message.tool_calls:
        blocks.append(TextBlock(text=message.content))
    for call in message.tool_calls:
        # servers that render arguments into a prompt fail on ones that are not JSON
        arguments = json.dumps({"malformed": call.arguments} if call.parsed is None else call.parsed)
        blocks.append(ToolCallBlock(tool_call_id=call.id, tool_name=call.name, tool_kwargs=arguments))
    extra = {"tool_call_id": message.tool_call_id, "name": message.name}
    given = {key: value for key, value in extra.items() if value is not None}
    return ChatMessage(role=MessageRole(message.role), blocks=blocks, additional_kwargs=given)


def native_of(message: ChatMessage) -> Mapping[str, Any] | None:
    """Return `Message.native`, as `to_message` has put it."""
    found = (b.additional_information.get(_NATIVE) for b in message.blocks if isinstance(b, ThinkingBlock))
    return next((native for native in found if isinstance(native, Mapping)), None)


def calls_of(message: ChatMessage) -> tuple[ToolCall, ...]:
    """Return the tool calls in a message, with their arguments as the model wrote them."""
    blocks = [block for block in message.blocks if isinstance(block, ToolCallBlock)]
    said = [one.tool_kwargs if isinstance(one.tool_kwargs, str) else json.dumps(one.tool_kwargs) for one in blocks]
    numbered = enumerate(zip(blocks, said, strict=True))
    return tuple(ToolCall(one.tool_call_id or f"call_{i}", one.tool_name, given) for i, (one, given) in numbered)


def _native(message: ChatMessage) -> dict[str, Any] | None:
    """Return a message as JSON where it holds more than text and calls: a model's reasoning, signatures."""
    said = {key for key, value in message.additional_kwargs.items() if value} - _SAID_ELSEWHERE
    if not said and all(isinstance(block, (TextBlock, ToolCallBlock)) for block in message.blocks):
        return None
    try:
        return message.model_dump(mode="json")
    except ValueError:  # bytes, which are no JSON
        return None


class SchemaMetadata(ToolMetadata):
    """Tool metadata with a JSON schema as it is, rather than one made from a pydantic model.

    Such a model is made of it for the agents that ask for one.
    """

    def __init__(self, tool: Tool) -> None:
        super().__init__(description=tool.description, name=tool.name, fn_schema=_model(tool))
        self._parameters = dict(tool.parameters)

    def get_parameters_dict(self) -> dict[str, Any]:
        """The JSON schema of the arguments."""
        return dict(self._parameters)


@lru_cache(maxsize=64)
def _model(tool: Tool) -> type[BaseModel]:
    required = tool.parameters.get("required", ())
    fields: dict[str, Any] = {}
    for name, given in tool.parameters.get("properties", {}).items():
        kind = _TYPES.get(str(given.get("type")), Any)
        says = Field(... if name in required else None, description=given.get("description"))
        fields[name] = (kind if name in required else kind | None, says)
    return create_model(tool.name, **fields)


def _refuse(**arguments: Any) -> str:
    raise NotImplementedError("graphret runs its tools itself")


def _usage(response: ChatResponse) -> Usage:
    for holder in (_get(response.raw, "usage"), response.additional_kwargs):
        for names in _SPENT:
            read, written = (_get(holder, name) for name in names)
            if isinstance(read, int) and isinstance(written, int):
                return Usage(read, written)
    return Usage()


def _get(holder: Any, name: str) -> Any:
    return holder.get(name) if isinstance(holder, Mapping) else getattr(holder, name, None)
