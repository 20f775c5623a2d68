"""A LangChain chat model as graphret's `ChatModel`."""

from __future__ import annotations

import asyncio
import contextvars
import json
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from functools import lru_cache
from typing import Any, TypeVar

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.runnables import Runnable, RunnableBinding, RunnableWithFallbacks
from langchain_core.runnables.base import RunnableBindingBase

from graphret.errors import InvalidInput
from graphret.llm.chat import ChatError, Message, Reply, Tool, ToolCall, Usage
from graphret.llm.failing import as_chat_error
from langchain_graphret._arguments import tool_calls, unreadable_calls, written
from langchain_graphret._endings import Endings
from langchain_graphret._streamed import Streamed, streamed

T = TypeVar("T")

# Blocks of a message that are more than text, a call of a tool or a model's reasoning.
_MEDIA = frozenset({"image", "image_url", "audio", "input_audio", "video", "file"})

# Blocks and additional arguments that say no more than text and calls do.
_PLAIN = frozenset({"type", "text", "id", "name", "input", "args", "index", "annotations"})
_SAID_ELSEWHERE = frozenset({"tool_calls", "function_call", "refusal", "parsed"})

#: Where the additional arguments of a LangChain message keep `Message.native`.
NATIVE = "graphret_native"


class LangChainChat:
    """Let graphret's methods speak to any LangChain chat model.

    Parameters
    ----------
    model
        The chat model, or what stands for one: with fallbacks, with a configuration, configurable. Retries are its own
        (``max_retries`` with most providers).
    name
        What traces and cache keys show; by default the model's name.
    structured
        Whether `json_schema` is handed over, through ``with_structured_output``; a model that cannot goes without.
    says_why_ended
        Whether the model's server says why a reply ended. `False` is for the few that never do; a stream that breaks
        off quietly is then taken for a whole reply.

    Notes
    -----
    `temperature` and `max_tokens` of a call are set on a copy of the model where it has fields of these names, and are
    arguments of its call otherwise. A `timeout` is kept here: an asynchronous call is cancelled, a blocking one is left
    behind in its thread. Tools win over `json_schema` where both are given. Calls made within a chain or a graph are
    traced there. A reply without the reason of its end, as a stream that broke off quietly leaves it, is a `ChatError`:
    of every model that speaks OpenAI's protocol, and of any other whose provider has given a reason before.

    A call's arguments that are JSON but no object keep LangChain from making a message of a reply that is not streamed.
    They come back as a call without a name, since its error has them alone: what else the reply said is lost. Those of
    a streamed reply are read as they were written; LangChain itself completes what breaks off.

    Examples
    --------
    >>> from langchain_core.language_models import GenericFakeChatModel
    >>> model = LangChainChat(GenericFakeChatModel(messages=iter(["Jane Austen"])), name="fake")
    >>> model.chat([Message.user("Who wrote Emma?")]).text
    'Jane Austen'
    """

    def __init__(
        self,
        model: BaseChatModel | Runnable[Any, Any],
        *,
        name: str | None = None,
        structured: bool = True,
        says_why_ended: bool = True,
    ) -> None:
        if not is_chat_model(model):
            raise InvalidInput(f"model: a LangChain chat model is expected, not {type(model).__name__}")
        self.model: Any = model  # of a runnable also what it hands on to the model inside
        self.name = name or _name_of(model)
        self.structured = structured
        self._origin = f"langchain:{type(model).__name__}:{self.name}"
        self._message = lru_cache(maxsize=2048)(self._to_message)  # a turn of an agent hands over all those before it
        self._endings = Endings(model, said=says_why_ended)
        self._bound: tuple[tuple[Tool, ...], Runnable[Any, Any]] | None = None

    def __repr__(self) -> str:
        return f"LangChainChat({self.name!r})"

    def chat(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[Tool] | None = None,
        temperature: float | None = None,
        max_tokens: int | None = None,
        json_schema: Mapping[str, Any] | None = None,
        timeout: float | None = None,
    ) -> Reply:
        """Answer a conversation; see `ChatModel.chat`."""
        runnable, options = self._runnable(tools, temperature, max_tokens, json_schema)
        given = [self._message(message) for message in messages]
        try:
            with streamed() as taken:
                answer = _within(timeout, lambda: runnable.invoke(given, **options))
        except Exception as error:
            if calls := unreadable_calls(error):
                return self._of_calls(calls, structured=json_schema is not None and not tools)
            raise self._failure(error, tools, timeout) from error
        return self._reply(answer, taken)

    async def achat(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[Tool] | None = None,
        temperature: float | None = None,
        max_tokens: int | None = None,
        json_schema: Mapping[str, Any] | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - the contract of ChatModel
    ) -> Reply:
        """`chat` without blocking the event loop; see `ChatModel.achat`."""
        runnable, options = self._runnable(tools, temperature, max_tokens, json_schema)
        given = [self._message(message) for message in messages]
        try:
            with streamed() as taken:
                async with asyncio.timeout(timeout):
                    answer = await runnable.ainvoke(given, **options)
        except Exception as error:
            if calls := unreadable_calls(error):
                return self._of_calls(calls, structured=json_schema is not None and not tools)
            raise self._failure(error, tools, timeout) from error
        return self._reply(answer, taken)

    def _runnable(
        self,
        tools: Sequence[Tool] | None,
        temperature: float | None,
        max_tokens: int | None,
        json_schema: Mapping[str, Any] | None,
    ) -> tuple[Runnable[Any, Any], dict[str, Any]]:
        wanted = {"temperature": temperature, "max_tokens": max_tokens}
        given = {key: value for key, value in wanted.items() if value is not None}
        own = type(self.model).model_fields if isinstance(self.model, BaseChatModel) else ()
        fields = {key: value for key, value in given.items() if key in own}
        options = {key: value for key, value in given.items() if key not in fields}
        model = self.model.model_copy(update=fields) if fields else self.model
        if tools:
            bound = self._with_tools(model, tuple(tools))
            return _unbound(bound, options)
        if json_schema is not None and self.structured:
            try:
                titled = {"title": "answer", "description": "The answer.", **json_schema}
                return model.with_structured_output(titled, include_raw=True), {}
            except Exception:
                pass  # a wish that the model cannot grant: the messages say it too
        return model, options

    def _with_tools(self, model: Any, tools: tuple[Tool, ...]) -> Runnable[Any, Any]:
        known = self._bound
        if model is self.model and known is not None and known[0] == tools:  # as in all turns of an agent
            return known[1]
        try:
            bound = _bind(model, [tool.to_dict() for tool in tools])
        except Exception as error:
            raise self._toolless(error) from error
        if model is self.model:
            self._bound = tools, bound
        return bound

    def _failure(self, error: Exception, tools: Sequence[Tool] | None, timeout: float | None) -> Exception:
        if isinstance(error, NotImplementedError) and tools:
            return self._toolless(error)
        return as_chat_error(error, self.name, timeout=timeout)

    def _toolless(self, error: Exception) -> ChatError:
        """What a model that cannot bind tools, or has not implemented what it is asked for, raised."""
        said = f": {type(error).__name__}: {error}" if str(error) else ""
        return ChatError(f"the model takes no tools{said}", model=self.name, reason="bad_request")

    def _to_message(self, message: Message) -> BaseMessage:
        native = (message.native or {}).get(self._origin)
        return to_message(message) if native is None else AIMessage(**native)

    def _of_calls(self, calls: tuple[ToolCall, ...], structured: bool) -> Reply:
        """What is left of a reply that LangChain could make no message of."""
        if structured:
            return Reply(calls[0].arguments, model=self.name)
        return Reply(tool_calls=calls, finish_reason="tool_calls", model=self.name)

    def _reply(self, answer: Any, taken: Streamed) -> Reply:
        structured = isinstance(answer, Mapping)
        message = answer.get("raw") if structured else answer
        if not isinstance(message, AIMessage):
            kind = type(message).__name__
            raise ChatError(f"the answer is no message but a {kind}", model=self.name, reason="invalid_reply")
        text, calls = str(message.text), taken.calls(message) or tool_calls(message)
        if structured:  # given as the call of a tool that stands for the schema, by most models
            parsed = answer.get("parsed")
            if isinstance(parsed, Mapping):
                text = written(dict(parsed))
            elif calls and not text.strip():
                text = calls[0].arguments
            calls = ()
        said = message.response_metadata
        reason = self._endings.reason(said)
        if reason is None:
            broken = "the stream broke off before its end: the reply has no finish_reason"
            raise ChatError(broken, model=self.name, reason="connection", usage=_usage(message))
        return Reply(
            text=text,
            tool_calls=calls,
            usage=_usage(message),
            finish_reason=_finish(reason, bool(calls), structured),
            model=str(said.get("model_name") or said.get("model") or self.name),
            native=None if structured or (native := _native(message)) is None else {self._origin: native},
        )


def to_message(message: Message) -> BaseMessage:
    """Return a graphret message as LangChain's."""
    if message.role == "system":
        return SystemMessage(message.content, name=message.name)
    if message.role == "user":
        return HumanMessage(message.content, name=message.name)
    if message.role == "tool":
        return ToolMessage(message.content, tool_call_id=message.tool_call_id, name=message.name)
    calls = [
        {
            "type": "tool_call",
            "id": call.id,
            "name": call.name,
            # every call must be in the conversation, for its answer follows
            "args": call.parsed if call.parsed is not None else {"malformed": call.arguments},
        }
        for call in message.tool_calls
    ]
    native = {NATIVE: dict(message.native)} if message.native else {}
    return AIMessage(message.content, tool_calls=calls, name=message.name, additional_kwargs=native)


def _native(message: AIMessage) -> dict[str, Any] | None:
    """Return a message as JSON where it holds more than text and calls: a model's reasoning, signatures.

    `None` also where it cannot be handed back: a call without an id, or whose arguments are no JSON, would stay without
    an answer, and bytes do not survive.
    """
    blocks = message.content if isinstance(message.content, list) else []
    said = {key for key, value in message.additional_kwargs.items() if value} - _SAID_ELSEWHERE
    if not (said or any(map(_says_more, blocks))):
        return None
    if message.invalid_tool_calls or not all(call["id"] for call in message.tool_calls):
        return None
    metadata = {key: value for key, value in message.response_metadata.items() if isinstance(value, (str, int, bool))}
    whole = {
        "content": message.content,
        "additional_kwargs": message.additional_kwargs,
        "response_metadata": metadata,
        "tool_calls": message.tool_calls,
        "id": message.id,
        "name": message.name,
    }
    try:
        kept: dict[str, Any] = json.loads(json.dumps(whole, allow_nan=False))
    except (TypeError, ValueError, RecursionError):
        return None
    return kept


def _says_more(block: Any) -> bool:
    if not isinstance(block, dict):
        return False
    return block.get("type") not in ("text", "tool_use", "tool_call") or not block.keys() <= _PLAIN


def from_message(message: BaseMessage) -> Message:
    """Return a LangChain message as graphret's; the inverse of `to_message`.

    Raises
    ------
    InvalidInput
        When it is of a kind that graphret has none of, or says something that is no text.
    """
    if isinstance(message.content, list):
        kinds = {block.get("type") for block in message.content if isinstance(block, dict)}
        if media := sorted(map(str, kinds & _MEDIA)):
            raise InvalidInput(f"messages: graphret's chat models read text, not {', '.join(media)}")
    text = str(message.text)
    if isinstance(message, AIMessage):
        native = message.additional_kwargs.get(NATIVE)
        return Message("assistant", text, tool_calls(message), name=message.name, native=native)
    if isinstance(message, ToolMessage):
        return Message("tool", text, tool_call_id=message.tool_call_id, name=message.name)
    if isinstance(message, (SystemMessage, HumanMessage)):
        return Message("system" if isinstance(message, SystemMessage) else "user", text, name=message.name)
    raise InvalidInput(f"messages: a {type(message).__name__} cannot be handed to a graphret chat model")


def _bind(model: Any, tools: list[dict[str, Any]]) -> Runnable[Any, Any]:
    """Offer tools to a model, or to the one inside a binding, which alone would lose what it binds."""
    if not isinstance(model, RunnableBindingBase):
        bound: Runnable[Any, Any] = model.bind_tools(tools)
        return bound
    kept = {name: value for name, value in model.kwargs.items() if name not in ("tools", "tool_choice")}
    return model.model_copy(update={"bound": _bind(model.bound, tools), "kwargs": kept})


def _usage(message: AIMessage) -> Usage:
    """The tokens that a reply says it cost: in LangChain's own place, or where its provider has put them."""
    if spent := message.usage_metadata:
        return Usage(spent["input_tokens"], spent["output_tokens"])
    for holder in (message.response_metadata.get(name) for name in ("token_usage", "usage")):
        for names in (("prompt_tokens", "completion_tokens"), ("input_tokens", "output_tokens")):
            read, written = (holder.get(name) if isinstance(holder, Mapping) else None for name in names)
            if isinstance(read, int) and isinstance(written, int):
                return Usage(read, written)
    return Usage()


def _unbound(bound: Runnable[Any, Any], options: dict[str, Any]) -> tuple[Runnable[Any, Any], dict[str, Any]]:
    """The model and the arguments that a binding would call it with: it would also merge configurations, of none."""
    if isinstance(bound, RunnableBinding) and not bound.config and not bound.config_factories:
        kind = type(bound)
        if kind.ainvoke is RunnableBinding.ainvoke and kind.invoke is RunnableBinding.invoke:
            return bound.bound, {**bound.kwargs, **options}
    return bound, options


def _finish(reason: str, calls: bool, structured: bool) -> str:
    if reason == "tool_calls" and structured:
        return "stop"
    return reason or ("tool_calls" if calls else "stop")


def is_chat_model(model: Any) -> bool:
    """Whether this is a LangChain chat model, or a runnable that binds tools as one."""
    if isinstance(model, RunnableBindingBase):  # with a configuration, arguments or retries
        return is_chat_model(model.bound)
    return isinstance(model, BaseChatModel) or (isinstance(model, Runnable) and hasattr(model, "bind_tools"))


def _name_of(model: Any) -> str:
    inner = model
    while isinstance(inner, (RunnableBindingBase, RunnableWithFallbacks)):
        inner = inner.bound if isinstance(inner, RunnableBindingBase) else inner.runnable
    named = (_attribute(inner, field) for field in ("model_name", "model", "model_id", "_llm_type"))
    return next((name for name in named if isinstance(name, str) and name), type(inner).__name__)


def _attribute(model: Any, field: str) -> Any:
    """An attribute, where there is one: a model that is configured when it is called makes itself to be asked."""
    try:
        return getattr(model, field, None)
    except Exception:
        return None


def _within(timeout: float | None, work: Callable[[], T]) -> T:
    """Do `work`; where it takes longer than `timeout` seconds, raise `TimeoutError` and leave it to its thread."""
    if timeout is None:
        return work()
    outcome: Future[T] = Future()

    def run() -> None:
        try:
            outcome.set_result(work())
        except BaseException as error:
            outcome.set_exception(error)

    threading.Thread(target=contextvars.copy_context().run, args=(run,), daemon=True).start()
    return outcome.result(timeout)
