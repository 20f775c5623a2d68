"""A graphret chat model as LangChain's, the other direction of `LangChainChat`; and a policy in its place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, BaseMessage, InvalidToolCall
from langchain_core.messages.ai import UsageMetadata
from langchain_core.messages.tool import tool_call
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import ConfigDict, Field, field_validator

import graphret
from graphret.errors import InvalidInput
from graphret.llm import ChatModel, Reply, Tool
from langchain_graphret.chat import NATIVE, from_message


class CoreChat(BaseChatModel):
    """Let LangChain and LangGraph speak to a graphret chat model: `OpenAIChat`, or one of your own.

    Parameters
    ----------
    core
        The chat model. Retries are its own.
    temperature, max_tokens, timeout
        What calls hand on, where they say nothing else.

    Notes
    -----
    Text and tool calls are handed on, nothing else; a message with an image is an `InvalidInput`. graphret's models
    cannot be forced to call a tool, so `tool_choice` is a wish that is dropped.

    Examples
    --------
    >>> from graphret.llm import OpenAIChat
    >>> model = CoreChat(core=OpenAIChat("qwen3", base_url="http://localhost:8000/v1"))
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    core: Any = Field(repr=False)
    temperature: float | None = None
    max_tokens: int | None = None
    timeout: float | None = None

    @field_validator("core")
    @classmethod
    def _check(cls, value: ChatModel) -> ChatModel:
        if not isinstance(value, ChatModel):
            raise InvalidInput(f"core: a graphret chat model is expected, not {type(value).__name__}")
        return value

    @property
    def model_name(self) -> str:
        """The model's name, which traces show."""
        return str(self.core.name)

    @property
    def _llm_type(self) -> str:
        return "graphret"

    def bind_tools(
        self, tools: Sequence[Any], *, tool_choice: str | None = None, **kwargs: Any
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """Offer tools to the model, in any form that LangChain takes."""
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools], **kwargs)

    def _generate(
        self, messages: list[BaseMessage], stop: list[str] | None = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        return _result(self.core.chat(list(map(from_message, messages)), **self._options(kwargs)), stop)

    async def _agenerate(
        self, messages: list[BaseMessage], stop: list[str] | None = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        return _result(await self.core.achat(list(map(from_message, messages)), **self._options(kwargs)), stop)

    def _options(self, asked: dict[str, Any]) -> dict[str, Any]:
        functions = [tool["function"] for tool in asked.get("tools") or ()]
        tools = [Tool(f["name"], f.get("description", ""), f.get("parameters") or {}) for f in functions]
        own = {"temperature": self.temperature, "max_tokens": self.max_tokens, "timeout": self.timeout}
        return {"tools": tools or None} | {name: asked.get(name, value) for name, value in own.items()}


class ScriptedExplorer(CoreChat):
    """A fixed policy that explores a graph with ARK's tools, in the place of a chat model; it is no language model.

    See `graphret.ark.ScriptedExplorer`. It drives any LangChain agent that offers `ark_tools`; where `select` and
    `finish` are not among the tools, it ends with a message that calls none.

    Examples
    --------
    >>> from langchain_graphret import ScriptedExplorer
    >>> reply = ScriptedExplorer().invoke("Who directed Heat?")
    >>> reply.tool_calls[0]["name"]
    'global_search'
    """

    core: Any = Field(default_factory=graphret.ScriptedExplorer, repr=False)


def _result(reply: Reply, stop: list[str] | None) -> ChatResult:
    text, usage = reply.text, reply.usage
    for word in stop or ():
        text = text.split(word, 1)[0]
    message = AIMessage(
        text,
        tool_calls=[tool_call(name=c.name, args=c.parsed, id=c.id) for c in reply.tool_calls if c.parsed is not None],
        invalid_tool_calls=[
            InvalidToolCall(type="invalid_tool_call", name=c.name, args=c.arguments, id=c.id, error=c.error)
            for c in reply.tool_calls
            if c.parsed is None
        ],
        usage_metadata=UsageMetadata(
            input_tokens=usage.input_tokens, output_tokens=usage.output_tokens, total_tokens=usage.total_tokens
        ),
        additional_kwargs={NATIVE: dict(reply.native)} if reply.native else {},
        response_metadata={"finish_reason": reply.finish_reason, "model_name": reply.model},
    )
    return ChatResult(generations=[ChatGeneration(message=message)])
