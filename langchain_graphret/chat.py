"""A LangChain chat model as graphret's `ChatModel`."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias, Unpack

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, convert_to_messages
from langchain_core.runnables import Runnable
from langchain_core.runnables.base import RunnableBindingBase

from graphret.errors import InvalidInput
from graphret.llm import (
    ChatError,
    ChatModel,
    ChatOptions,
    Message,
    Reply,
    ToolCall,
    Usage,
)
from graphret.llm.errors import as_chat_error
from graphret.llm.openai_wire import content_text, token_usage
from graphret.llm.refusals import JSON_SCHEMA, TEMPERATURE, Refusals

#: A chat model of LangChain, a runnable around one, or a graphret one.
ChatModelLike: TypeAlias = BaseChatModel | Runnable[Any, Any] | ChatModel

# Additional arguments that repeat text and calls.
_REPEATED = frozenset({"tool_calls", "function_call", "refusal", "parsed"})
# The fields that restore a message.
_WHOLE = {
    "content",
    "additional_kwargs",
    "tool_calls",
    "id",
    "name",
    "response_metadata",
}
# Providers' reasons why a reply ended; others are passed on in lower case.
_ENDS = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "tool_use": "tool_calls",
}
_ENDS |= {"safety": "content_filter", "model_length": "length"}


class LangChainChat:
    """Let graphret's methods use any LangChain chat model.

    Parameters
    ----------
    model
        The chat model, or a runnable around one: with fallbacks, with a configuration,
        configurable. Retries are its own (``max_retries`` with most providers).

    Notes
    -----
    `temperature` and `max_tokens` of a call are set on a copy of the model where it has
    fields of these names, and are arguments of its call otherwise. A `timeout` cancels
    an awaited call; a blocking one has the model's own. A `json_schema` goes through
    ``with_structured_output``, and a model that cannot goes without. What the endpoint
    refuses of temperature and schema is left out, and the object remembers that. Calls
    made within a chain or a graph are traced there.

    Examples
    --------
    >>> from langchain_core.language_models import GenericFakeChatModel
    >>> model = LangChainChat(GenericFakeChatModel(messages=iter(["Jane Austen"])))
    >>> model.chat([Message.user("Who wrote Emma?")]).text
    'Jane Austen'
    """

    def __init__(self, model: BaseChatModel | Runnable[Any, Any]) -> None:
        if not _is_chat_model(model):
            raise InvalidInput(
                f"model: expected a LangChain chat model, got {type(model).__name__}"
            )
        self.model: Any = (
            model  # of a runnable also what it hands on to the model inside
        )
        self.name = _name_of(model)
        self._origin = f"langchain:{type(model).__name__}:{self.name}"
        self._refusals = Refusals(self.name)

    def chat(
        self, messages: Sequence[Message], **options: Unpack[ChatOptions]
    ) -> Reply:
        """Answer a conversation; see `ChatModel.chat`."""
        conversation = [self._message(message) for message in messages]
        attempt = self._refusals.attempt()
        while True:
            remaining = _without(options, attempt.left_out)
            try:
                runnable, arguments = self._runnable(remaining)
                answer = runnable.invoke(conversation, **arguments)
                attempt.succeeded(_in_openai_names(remaining))
                return self._reply(answer)
            except Exception as error:
                if (cut := self._cut_reply(error)) is not None:
                    return cut
                if not attempt.failed(error, _in_openai_names(remaining)):
                    raise self._failure(attempt.problem or error, options) from error

    async def achat(
        self, messages: Sequence[Message], **options: Unpack[ChatOptions]
    ) -> Reply:
        """`chat` without blocking the event loop; see `ChatModel.achat`."""
        conversation = [self._message(message) for message in messages]
        attempt = self._refusals.attempt()
        while True:
            remaining = _without(options, attempt.left_out)
            try:
                runnable, arguments = self._runnable(remaining)
                async with asyncio.timeout(options.get("timeout")):
                    answer = await runnable.ainvoke(conversation, **arguments)
                attempt.succeeded(_in_openai_names(remaining))
                return self._reply(answer)
            except Exception as error:
                if (cut := self._cut_reply(error)) is not None:
                    return cut
                if not attempt.failed(error, _in_openai_names(remaining)):
                    raise self._failure(attempt.problem or error, options) from error

    def _runnable(
        self, options: ChatOptions
    ) -> tuple[Runnable[Any, Any], dict[str, Any]]:
        """Return the model for a call with these options, and the call's arguments."""
        sampling = {
            "temperature": options.get("temperature"),
            "max_tokens": options.get("max_tokens"),
        }
        arguments = {key: value for key, value in sampling.items() if value is not None}
        model = self.model
        if isinstance(model, BaseChatModel):
            fields = {
                key: arguments.pop(key)
                for key in list(arguments)
                if key in type(model).model_fields
            }
            model = model.model_copy(update=fields) if fields else model
        if tools := options.get("tools"):
            return _bind(model, [tool.to_dict() for tool in tools]), arguments
        if (schema := options.get("json_schema")) is not None:
            try:
                titled = {"title": "answer", "description": "The answer.", **schema}
                return model.with_structured_output(titled, include_raw=True), {}
            except Exception:
                pass  # not supported by the model; the messages state the schema, too
        return model, arguments

    def _cut_reply(self, error: Exception) -> Reply | None:
        """Return the reply in OpenAI's error for a structured reply that was cut."""
        completion: Any = getattr(error, "completion", None)
        if not getattr(completion, "choices", None):
            return None
        text = content_text(completion.choices[0].message.content)
        return Reply(text, (), token_usage(completion.usage), "length", self.name)

    def _failure(self, error: Exception, options: ChatOptions) -> Exception:
        if options.get("tools") and isinstance(
            error, (NotImplementedError, AttributeError)
        ):
            return ChatError(
                f"the model takes no tools: {error!r}",
                model=self.name,
                reason="bad_request",
            )
        return as_chat_error(error, self.name, timeout=options.get("timeout"))

    def _message(self, message: Message) -> BaseMessage:
        native = (message.native or {}).get(self._origin)
        return to_message(message) if native is None else AIMessage(**native)

    def _reply(self, answer: Any) -> Reply:
        structured = isinstance(answer, Mapping)
        message = answer.get("raw") if structured else answer
        if not isinstance(message, AIMessage):
            kind = type(message).__name__
            raise ChatError(
                f"expected a message as the reply, got a {kind}",
                model=self.name,
                reason="invalid_reply",
            )
        metadata, usage = message.response_metadata, message.usage_metadata
        text, calls = str(message.text), _calls_of(message)
        if structured:  # most models reply by calling a tool that stands for the schema
            text, calls = calls[0].arguments if calls else text, ()
        reason = str(
            metadata.get("finish_reason") or metadata.get("stop_reason") or ""
        ).lower()
        reason = _ENDS.get(reason, reason) or ("tool_calls" if calls else "stop")
        native = None if structured else _native(message)
        return Reply(
            text,
            calls,
            Usage(usage["input_tokens"], usage["output_tokens"]) if usage else Usage(),
            "stop" if structured and reason == "tool_calls" else reason,
            str(metadata.get("model_name") or metadata.get("model") or self.name),
            {self._origin: native} if native else None,
        )


def _without(options: ChatOptions, left_out: Collection[str]) -> ChatOptions:
    """Return the options of a call without those that its endpoint refuses."""
    remaining = options.copy()
    if TEMPERATURE in left_out:
        remaining.pop("temperature", None)
    if JSON_SCHEMA in left_out:
        remaining.pop("json_schema", None)
    return remaining


def _in_openai_names(options: ChatOptions) -> dict[str, Any]:
    """Return the arguments that an endpoint may refuse, as OpenAI's API names them."""
    has_schema = options.get("json_schema") is not None and not options.get("tools")
    return {
        "temperature": options.get("temperature"),
        **({"response_format": {"type": JSON_SCHEMA}} if has_schema else {}),
    }


def as_core_model(model: Any) -> Any:
    """Return a LangChain chat model as graphret's, and anything else as it is."""
    return LangChainChat(model) if _is_chat_model(model) else model


def to_message(message: Message) -> BaseMessage:
    calls = (
        call.parsed if call.parsed is not None else {"malformed": call.arguments}
        for call in message.tool_calls
    )
    sound = [
        replace(call, arguments=json.dumps(read))
        for call, read in zip(message.tool_calls, calls, strict=True)
    ]
    [converted] = convert_to_messages(
        [replace(message, tool_calls=tuple(sound)).to_dict()]
    )
    return converted


def _calls_of(message: AIMessage) -> tuple[ToolCall, ...]:
    """Return a message's tool calls, those with unreadable arguments last."""
    valid = [
        (call["id"], call["name"], json.dumps(call["args"], ensure_ascii=False))
        for call in message.tool_calls
    ]
    invalid = [
        (call["id"], call["name"] or "", call["args"] or "")
        for call in message.invalid_tool_calls
    ]
    return tuple(
        ToolCall(id_ or f"call_{i}", name, arguments)
        for i, (id_, name, arguments) in enumerate([*valid, *invalid])
    )


def _is_chat_model(model: Any) -> bool:
    """Whether this is a LangChain chat model, or a runnable that binds tools as one."""
    # with a configuration, arguments or retries
    if isinstance(model, RunnableBindingBase):
        return _is_chat_model(model.bound)
    return isinstance(model, BaseChatModel) or (
        isinstance(model, Runnable) and hasattr(model, "bind_tools")
    )


def _bind(model: Any, tools: list[dict[str, Any]]) -> Runnable[Any, Any]:
    """Bind tools to a model, or to the one inside a binding, to keep what it binds."""
    if isinstance(model, RunnableBindingBase):
        return model.model_copy(update={"bound": _bind(model.bound, tools)})
    bound: Runnable[Any, Any] = model.bind_tools(tools)
    return bound


def _name_of(model: Any) -> str:
    # bindings, fallbacks
    while inner := getattr(model, "bound", None) or getattr(model, "runnable", None):
        model = inner
    candidates = (
        getattr(model, field, None)
        for field in ("model_name", "model", "model_id", "_llm_type")
    )
    return next(
        (name for name in candidates if isinstance(name, str) and name),
        type(model).__name__,
    )


def _native(message: AIMessage) -> dict[str, Any] | None:
    """Return a message as JSON if it may have more than text and calls, or `None`.

    It may have a model's reasoning or signatures. It is also `None` if the message
    cannot be sent back: a call without an id or with malformed arguments could not be
    answered.
    """
    extra = {
        key for key, value in message.additional_kwargs.items() if value
    } - _REPEATED
    if not extra and isinstance(message.content, str):
        return None
    if message.invalid_tool_calls or not all(call["id"] for call in message.tool_calls):
        return None
    try:
        return message.model_dump(mode="json", include=_WHOLE)
    except ValueError:
        return None
