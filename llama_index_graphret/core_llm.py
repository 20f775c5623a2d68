"""A graphret `ChatModel` where LlamaIndex wants an LLM that calls tools."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llama_index.core.base.llms.types import (
    ChatMessage,
    ChatResponse,
    ChatResponseAsyncGen,
    ChatResponseGen,
    CompletionResponse,
    CompletionResponseAsyncGen,
    CompletionResponseGen,
    LLMMetadata,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
)
from llama_index.core.bridge.pydantic import Field, PrivateAttr
from llama_index.core.llms.callbacks import llm_chat_callback, llm_completion_callback
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.llms.llm import ToolSelection
from llama_index.core.tools import BaseTool

import graphret
from graphret.errors import InvalidInput
from graphret.llm import ChatModel, Message, Reply, Role, Tool
from llama_index_graphret.chat import calls_of, native_of, to_message

_READ = (TextBlock, ToolCallBlock, ThinkingBlock)  # what other models thought is not handed on
_SAMPLING = ("temperature", "max_tokens", "timeout")
_ROLES: dict[str, Role] = {"system": "system", "developer": "system", "user": "user", "tool": "tool"}  # else assistant


class CoreLLM(FunctionCallingLLM):
    """A graphret `ChatModel` as a LlamaIndex LLM: for query engines, and for agents with tools.

    A stream has one piece. `temperature`, `max_tokens` and `timeout` of a call are handed on; a model calls what tools
    it likes, so that a wish for one of them is not.

    Parameters
    ----------
    model, context_window
        The model, and how many tokens it reads, for what LlamaIndex fits into its prompts.

    Examples
    --------
    >>> from graphret.llm import OpenAIChat
    >>> llm = CoreLLM(OpenAIChat("qwen3-8b", "http://localhost:8000/v1"))
    >>> llm.metadata.model_name, llm.metadata.is_function_calling_model
    ('qwen3-8b', True)
    """

    context_window: int = Field(default=128_000, description="How many tokens the model reads.", gt=0)
    _model: ChatModel = PrivateAttr()

    def __init__(self, model: ChatModel, *, context_window: int = 128_000) -> None:
        if not isinstance(model, ChatModel):
            raise InvalidInput(f"model: a graphret ChatModel is expected, not {type(model).__name__}")
        super().__init__(context_window=context_window)
        self._model = model

    @classmethod
    def class_name(cls) -> str:
        return "CoreLLM"

    @property
    def metadata(self) -> LLMMetadata:
        name, window = self._model.name, self.context_window
        return LLMMetadata(model_name=name, context_window=window, is_chat_model=True, is_function_calling_model=True)

    @llm_chat_callback()
    def chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        return _response(self._model.chat(_messages(messages), **_options(kwargs)))

    @llm_chat_callback()
    async def achat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        return _response(await self._model.achat(_messages(messages), **_options(kwargs)))

    @llm_chat_callback()
    def stream_chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponseGen:
        return (_response(self._model.chat(given, **_options(kwargs))) for given in [_messages(messages)])

    @llm_chat_callback()
    async def astream_chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponseAsyncGen:
        return (_response(await self._model.achat(given, **_options(kwargs))) for given in [_messages(messages)])

    @llm_completion_callback()
    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        return _completion(self._model.chat([Message.user(prompt)], **_options(kwargs)))

    @llm_completion_callback()
    async def acomplete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        return _completion(await self._model.achat([Message.user(prompt)], **_options(kwargs)))

    @llm_completion_callback()
    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponseGen:
        return (_completion(self._model.chat([Message.user(one)], **_options(kwargs))) for one in [prompt])

    @llm_completion_callback()
    async def astream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponseAsyncGen:
        return (_completion(await self._model.achat([Message.user(one)], **_options(kwargs))) for one in [prompt])

    def _prepare_chat_with_tools(
        self, tools: Sequence[BaseTool], user_msg: Any = None, chat_history: Any = None, *_: Any, **kwargs: Any
    ) -> dict[str, Any]:
        asked = [ChatMessage(user_msg)] if isinstance(user_msg, str) else [user_msg] if user_msg else []
        return {"messages": [*(chat_history or []), *asked], "tools": list(tools), **kwargs}

    def _validate_chat_with_tools_response(
        self, response: ChatResponse, tools: Sequence[BaseTool], allow_parallel_tool_calls: bool = False, **kwargs: Any
    ) -> ChatResponse:
        calls = [block for block in response.message.blocks if isinstance(block, ToolCallBlock)]
        dropped = [] if allow_parallel_tool_calls else calls[1:]
        response.message.blocks = [block for block in response.message.blocks if block not in dropped]
        return response

    def get_tool_calls_from_response(
        self, response: ChatResponse, error_on_no_tool_call: bool = True, **kwargs: Any
    ) -> list[ToolSelection]:
        """Return what the model asks to be run; arguments that are no JSON object count as none."""
        calls = calls_of(response.message)
        if not calls and error_on_no_tool_call:
            raise ValueError(f"{self._model.name} called no tool")
        return [ToolSelection(tool_id=one.id, tool_name=one.name, tool_kwargs=one.parsed or {}) for one in calls]


class ScriptedExplorer(CoreLLM):
    """A fixed policy that explores a graph with ARK's tools, as a LlamaIndex LLM; it is no language model.

    See `graphret.ark.ScriptedExplorer`. It drives `ArkRetriever`, and those LlamaIndex agents that offer `ark_tools`
    by function calling: `FunctionAgent`, and an `AgentWorkflow` of such. It ends by naming the nodes that it takes for
    the answer. A `ReActAgent`, a `CodeActAgent` or a query engine wants an LLM.
    """

    def __init__(self) -> None:
        super().__init__(graphret.ScriptedExplorer(), context_window=1_000_000)


def _messages(messages: Sequence[ChatMessage]) -> list[Message]:
    """Return LlamaIndex's messages as graphret's; a tool's message gets the name that its call has."""
    out: list[Message] = []
    names: dict[str, str] = {}
    for message in messages:
        role = _ROLES.get(message.role.value, "assistant")
        if other := [one.block_type for one in message.blocks if not isinstance(one, _READ)]:
            raise InvalidInput(f"messages: graphret's chat models read text, not {other[0]}")
        text = "\n".join(block.text for block in message.blocks if isinstance(block, TextBlock))
        if role == "tool":
            call = message.additional_kwargs.get("tool_call_id")
            out.append(Message(role, text, tool_call_id=call, name=names.get(call or "")))
        elif role == "assistant":
            calls = calls_of(message)
            names |= {call.id: call.name for call in calls}
            out.append(Message(role, text, calls, native=native_of(message)))
        else:
            out.append(Message(role, text))
    return out


def _options(given: dict[str, Any]) -> dict[str, Any]:
    """Return what of LlamaIndex's options a `ChatModel` takes."""
    metadata = [one.metadata for one in given.get("tools") or ()]
    tools = [Tool(one.get_name(), one.description, one.get_parameters_dict()) for one in metadata]
    return {"tools": tools or None, **{name: given[name] for name in _SAMPLING if name in given}}


def _response(reply: Reply) -> ChatResponse:
    usage = {"prompt_tokens": reply.usage.input_tokens, "completion_tokens": reply.usage.output_tokens}
    return ChatResponse(message=to_message(reply.message), delta=reply.text, raw={"usage": usage})


def _completion(reply: Reply) -> CompletionResponse:
    return CompletionResponse(text=reply.text, delta=reply.text)
