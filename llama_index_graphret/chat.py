"""LlamaIndex language models as graphret's `ChatModel`."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any, TypeAlias, Unpack

from llama_index.core.base.llms.types import (
    ChatMessage,
    ChatResponse,
    ContentBlock,
    MessageRole,
    TextBlock,
    ToolCallBlock,
)
from llama_index.core.bridge.pydantic import BaseModel
from llama_index.core.llms import LLM
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.tools import FunctionTool, ToolMetadata

from graphret.errors import InvalidInput
from graphret.llm import (
    ChatError,
    ChatModel,
    ChatOptions,
    Message,
    Reply,
    Tool,
    ToolCall,
    Usage,
)
from graphret.llm.errors import as_chat_error
from graphret.llm.openai_wire import response_format
from graphret.llm.refusals import TEMPERATURE, Refusals

#: An LLM of LlamaIndex, or a graphret chat model.
ChatModelLike: TypeAlias = LLM | ChatModel

_USAGE = (("input_tokens", "output_tokens"), ("prompt_tokens", "completion_tokens"))
# Additional arguments that repeat text, calls and usage.
_REPEATED = frozenset(
    {"tool_calls", "function_call", "refusal", "total_tokens"}.union(*_USAGE)
)


class LlamaIndexChat:
    """A LlamaIndex LLM as a graphret `ChatModel`.

    Tools go through `FunctionCallingLLM.chat_with_tools`. OpenAI's models and those
    derived from them are sent a JSON schema as ``response_format``; others are not,
    since LlamaIndex has no common way to ask for one: state it in the messages, as
    `graphret.llm.ask_json` does. Temperature and token limit are passed to the model's
    ``chat``, so that a model that knows neither raises. What the endpoint refuses of
    temperature and schema is left out, and the object remembers that. A timeout holds
    where it is awaited.

    Examples
    --------
    >>> from llama_index.core.llms import MockLLM
    >>> LlamaIndexChat(MockLLM()).chat([Message.user("Who directed Heat?")]).text
    'user: Who directed Heat?\\nassistant: '
    """

    def __init__(self, llm: LLM) -> None:
        if not isinstance(llm, LLM):
            raise InvalidInput(
                f"llm: expected a LlamaIndex LLM, got {type(llm).__name__}"
            )
        self.llm = llm
        model = llm.metadata.model_name
        self.name = model if model and model != "unknown" else llm.class_name()
        self._origin = f"llama_index:{llm.class_name()}:{self.name}"
        self._refusals = Refusals(self.name)

    def chat(
        self, messages: Sequence[Message], **options: Unpack[ChatOptions]
    ) -> Reply:
        """Answer a conversation; see `ChatModel.chat`."""
        attempt = self._refusals.attempt()
        while True:
            method, arguments = self._request(messages, options, attempt.left_out)
            try:
                response = getattr(self.llm, method)(**arguments)
                attempt.succeeded(_optional(arguments))
                return self._reply(response)
            except Exception as error:
                if not attempt.failed(error, _optional(arguments)):
                    raise as_chat_error(attempt.problem or error, self.name) from error

    async def achat(
        self, messages: Sequence[Message], **options: Unpack[ChatOptions]
    ) -> Reply:
        """`chat`, awaiting the model."""
        attempt = self._refusals.attempt()
        timeout = options.get("timeout")
        while True:
            method, arguments = self._request(messages, options, attempt.left_out)
            try:
                async with asyncio.timeout(timeout):
                    response = await getattr(self.llm, f"a{method}")(**arguments)
                attempt.succeeded(_optional(arguments))
                return self._reply(response)
            except Exception as error:
                if not attempt.failed(error, _optional(arguments)):
                    raise as_chat_error(
                        attempt.problem or error, self.name, timeout=timeout
                    ) from error

    def _request(
        self,
        messages: Sequence[Message],
        options: ChatOptions,
        left_out: Collection[str],
    ) -> tuple[str, dict[str, Any]]:
        """Return the method of the LLM to call, and its arguments."""
        schema = options.get("json_schema")
        temperature = options.get("temperature")
        sampling = {
            "temperature": None if TEMPERATURE in left_out else temperature,
            "max_tokens": options.get("max_tokens"),
            "response_format": (
                response_format(schema, left_out)
                if schema is not None and _is_openai(self.llm)
                else None
            ),
        }
        arguments: dict[str, Any] = {
            key: value for key, value in sampling.items() if value is not None
        }
        history = [self._message(message) for message in messages]
        tools = options.get("tools")
        if not tools:
            return "chat", {"messages": history, **arguments}
        arguments.pop("response_format", None)
        if not (
            isinstance(self.llm, FunctionCallingLLM)
            and self.llm.metadata.is_function_calling_model
        ):
            raise ChatError(
                f"{self.llm.class_name()} does not support tool calls",
                model=self.name,
                reason="bad_request",
            )
        offered = [
            FunctionTool(fn=_not_run, metadata=metadata_of(tool)) for tool in tools
        ]
        arguments |= {
            "tools": offered,
            "chat_history": history,
            "allow_parallel_tool_calls": True,
        }
        return "chat_with_tools", arguments

    def _message(self, message: Message) -> ChatMessage:
        native = (message.native or {}).get(self._origin)
        return (
            to_message(message)
            if native is None
            else ChatMessage.model_validate(native)
        )

    def _reply(self, response: ChatResponse) -> Reply:
        message = response.message
        calls = calls_of(message)
        # which may keep the calls in a place of its own
        if not calls and isinstance(self.llm, FunctionCallingLLM):
            selections = self.llm.get_tool_calls_from_response(
                response, error_on_no_tool_call=False
            )
            calls = tuple(
                ToolCall(
                    selection.tool_id,
                    selection.tool_name,
                    json.dumps(selection.tool_kwargs),
                )
                for selection in selections
            )
        text = "".join(
            block.text for block in message.blocks if isinstance(block, TextBlock)
        )
        choices = _get(response.raw, "choices")
        ended = _get(choices[0], "finish_reason") if choices else None
        reason = (
            ended
            if ended in ("length", "content_filter")
            else "tool_calls"
            if calls
            else "stop"
        )
        native = (
            {self._origin: message.model_dump(mode="json")}
            if _holds_more(message)
            else None
        )
        return Reply(text, calls, _usage(response), reason, self.name, native)


def _optional(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments that an endpoint may refuse, as OpenAI's API names them."""
    names = (TEMPERATURE, "response_format")
    return {name: arguments[name] for name in names if name in arguments}


def _is_openai(llm: LLM) -> bool:
    """Whether an LLM is OpenAI's or derived from it, so that it takes a JSON schema."""
    return any(
        kind.__module__ == "llama_index.llms.openai.base" and kind.__name__ == "OpenAI"
        for kind in type(llm).__mro__
    )


def as_core_model(llm: Any) -> Any:
    """Return a LlamaIndex LLM as a graphret chat model, and anything else as it is."""
    return LlamaIndexChat(llm) if isinstance(llm, LLM) else llm


def to_message(message: Message) -> ChatMessage:
    blocks: list[ContentBlock] = []
    if message.content or not message.tool_calls:
        blocks.append(TextBlock(text=message.content))
    for call in message.tool_calls:
        # servers that render arguments into a prompt fail on ones that are not JSON
        arguments = json.dumps(
            {"malformed": call.arguments} if call.parsed is None else call.parsed
        )
        blocks.append(
            ToolCallBlock(
                tool_call_id=call.id, tool_name=call.name, tool_kwargs=arguments
            )
        )
    extra = {"tool_call_id": message.tool_call_id, "name": message.name}
    additional = {key: value for key, value in extra.items() if value is not None}
    return ChatMessage(
        role=MessageRole(message.role), blocks=blocks, additional_kwargs=additional
    )


def calls_of(message: ChatMessage) -> tuple[ToolCall, ...]:
    """Return a message's tool calls, with the arguments as the model wrote them."""
    calls = []
    for i, block in enumerate(
        block for block in message.blocks if isinstance(block, ToolCallBlock)
    ):
        arguments = (
            block.tool_kwargs
            if isinstance(block.tool_kwargs, str)
            else json.dumps(block.tool_kwargs)
        )
        calls.append(
            ToolCall(block.tool_call_id or f"call_{i}", block.tool_name, arguments)
        )
    return tuple(calls)


def metadata_of(tool: Tool) -> ToolMetadata:
    """Return a tool's metadata for LlamaIndex, with graphret's own argument schema."""

    class Arguments(BaseModel):
        @classmethod
        def model_json_schema(cls, *_: Any, **__: Any) -> dict[str, Any]:
            return dict(tool.parameters)

    return ToolMetadata(tool.description, tool.name, Arguments)


def _holds_more(message: ChatMessage) -> bool:
    """Whether a message has more than text and calls, such as a model's reasoning."""
    extra = {key for key, value in message.additional_kwargs.items() if value}
    return bool(extra - _REPEATED) or not all(
        isinstance(block, (TextBlock, ToolCallBlock)) for block in message.blocks
    )


def _not_run(**arguments: Any) -> str:
    raise NotImplementedError("graphret runs its tools itself")


def _usage(response: ChatResponse) -> Usage:
    for source in (_get(response.raw, "usage"), response.additional_kwargs):
        for names in _USAGE:
            input_tokens, output_tokens = (_get(source, name) for name in names)
            if isinstance(input_tokens, int) and isinstance(output_tokens, int):
                return Usage(input_tokens, output_tokens)
    return Usage()


def _get(source: Any, name: str) -> Any:
    return (
        source.get(name) if isinstance(source, Mapping) else getattr(source, name, None)
    )
