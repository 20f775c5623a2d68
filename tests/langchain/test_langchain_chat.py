"""LangChain chat models as graphret's `ChatModel`."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from chat_clients import langchain_openai
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models import BaseChatModel, FakeListChatModel, GenericFakeChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.output_parsers.openai_tools import parse_tool_calls
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import ConfigurableField, Runnable, RunnableLambda
from pydantic import ValidationError
from typing_extensions import TypedDict

from graphret.errors import InvalidInput
from graphret.llm import ChatError, ChatModel, Message, Tool, aask_json, ask_json
from graphret.llm.chat import ToolCall, Usage
from graphret.testing.openai_server import OpenAIServer
from langchain_graphret import LangChainChat
from langchain_graphret.chat import from_message

SEARCH = Tool("search", "Search.", {"type": "object", "properties": {"query": {"type": "string"}}})
ASK = [Message.user("Who wrote Emma?")]


class Scripted(BaseChatModel):
    """Gives its answers in turn, takes tools, and remembers what it was sent."""

    answers: list[Any]
    heard: list[Any]
    temperature: float = 0.7

    def __init__(self, *answers: Any, **fields: Any) -> None:
        super().__init__(answers=list(answers), heard=[], **fields)  # type: ignore[call-arg]

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Runnable[Any, AIMessage]:
        return self.bind(tools=tools, **kwargs)

    def _generate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        self.heard.append((messages, self.temperature, kwargs))
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return ChatResult(generations=[ChatGeneration(message=answer)])


async def test_text_comes_back_in_both_forms() -> None:
    model = LangChainChat(GenericFakeChatModel(messages=iter(["Jane Austen", "Jane again"])))
    assert isinstance(model, ChatModel)
    assert model.name == "generic-fake-chat-model"
    reply = model.chat(ASK)
    assert (reply.text, reply.tool_calls, reply.finish_reason) == ("Jane Austen", (), "stop")
    assert reply.usage == Usage()
    assert (await model.achat(ASK)).text == "Jane again"


def test_usage_model_and_reason_are_read() -> None:
    def answer(**said: Any) -> AIMessage:
        usage: Any = {"input_tokens": 7, "output_tokens": 5, "total_tokens": 12}
        return AIMessage(
            [{"type": "text", "text": "Ja"}, {"type": "text", "text": "ne"}],
            usage_metadata=usage,
            response_metadata=said,
        )

    reasons = [
        ({"finish_reason": "length"}, "length"),
        ({"stop_reason": "end_turn"}, "stop"),
        ({"stop_reason": "max_tokens"}, "length"),
        ({"finish_reason": "STOP"}, "stop"),
        ({"finish_reason": "SAFETY"}, "content_filter"),
        ({"object": "response", "status": "completed"}, "stop"),
        (
            {"object": "response", "status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}},
            "length",
        ),
        ({}, "stop"),
    ]
    model = LangChainChat(Scripted(*(answer(model_name="m-1", **said) for said, _ in reasons)))
    for _, reason in reasons:
        reply = model.chat(ASK)
        assert (reply.text, reply.usage, reply.model) == ("Jane", Usage(7, 5), "m-1")
        assert reply.finish_reason == reason


def _ends(model: Any, ends: list[dict[str, Any]], **options: Any) -> list[str]:
    """How replies whose metadata is this ended."""
    calls = [{"type": "tool_call", "name": "search", "args": {}, "id": "1"}]
    spent: Any = {"input_tokens": 7, "output_tokens": 5, "total_tokens": 12}
    made = [AIMessage("", tool_calls=calls, response_metadata=said, usage_metadata=spent) for said in ends]
    inner = [getattr(model, name, None) for name in ("bound", "runnable", "default")]
    next((one for one in inner if isinstance(one, Scripted)), model).answers[:] = made
    chat, found = LangChainChat(model, **options), []
    for _ in ends:
        try:
            found.append(chat.chat(ASK, tools=[SEARCH]).finish_reason)
        except ChatError as error:
            found.append(f"{error} {error.usage.total_tokens}")
    return found


BROKEN_OFF = "scripted: connection: the stream broke off before its end: the reply has no finish_reason 12"


def test_a_reply_of_openai_s_protocol_without_the_reason_of_its_end_was_cut() -> None:
    """What langchain-openai leaves of a stream that ended without ``finish_reason`` and ``[DONE]``."""
    cut, silent = {"model_provider": "openai"}, {"finish_reason": None, "model_provider": "openai"}
    whole = {"finish_reason": "tool_calls", "model_provider": "openai"}
    responses = {"object": "response", "status": "completed", "model_provider": "openai"}
    ends = [whole, cut, silent, responses]
    expected = ["tool_calls", BROKEN_OFF, "tool_calls", "tool_calls"]
    assert _ends(Scripted(), ends) == expected
    assert _ends(Scripted().with_fallbacks([Scripted()]), ends) == expected
    assert _ends(Scripted(), [cut, whole]) == [BROKEN_OFF, "tool_calls"]  # the first reply too


def test_a_server_that_never_says_why_replies_end_can_be_told_of() -> None:
    silent, whole = {"model_provider": "openai"}, {"finish_reason": "stop", "model_provider": "openai"}
    ends = _ends(Scripted(), [silent, whole, silent], says_why_ended=False)
    assert ends == ["tool_calls", "stop", "tool_calls"]


def test_a_reply_of_another_provider_was_cut_where_it_gave_a_reason_before() -> None:
    cut, whole = {"model_provider": "other"}, {"stop_reason": "tool_use", "model_provider": "other"}
    assert _ends(Scripted(), [cut, {}, whole, cut, {}]) == [*["tool_calls"] * 3, BROKEN_OFF, "tool_calls"]


def test_what_is_built_on_langchain_s_model_of_openai_speaks_its_protocol(monkeypatch: pytest.MonkeyPatch) -> None:
    class Built(Scripted):
        pass

    package = SimpleNamespace(BaseChatOpenAI=Built)
    monkeypatch.setitem(sys.modules, "langchain_openai.chat_models.base", package)
    cut, whole = {"model_provider": "built"}, {"finish_reason": "stop", "model_provider": "built"}
    fields = Built().configurable_fields(temperature=ConfigurableField("warm"))
    for model in (Built(), Built().with_retry(), Built().with_fallbacks([Built()]), fields):
        assert _ends(model, [cut, whole]) == [BROKEN_OFF, "stop"]
    mixed = Built().with_fallbacks([Scripted()])  # who has answered is not known
    assert _ends(mixed, [cut, whole]) == ["tool_calls", "stop"]


async def test_tools_are_offered_and_calls_come_back() -> None:
    broken: Any = {"type": "invalid_tool_call", "name": "search", "args": "{broken", "id": None, "error": "?"}
    called = AIMessage(
        "",
        tool_calls=[{"name": "search", "args": {"query": "Émma"}, "id": "c1"}],
        invalid_tool_calls=[broken],
    )
    inner = Scripted(called, called)
    model = LangChainChat(inner)
    for reply in (model.chat(ASK, tools=[SEARCH]), await model.achat(ASK, tools=[SEARCH])):
        first, second = reply.tool_calls
        assert first == ToolCall("c1", "search", '{"query": "Émma"}')
        assert (second.id, second.parsed) == ("call_1", None)
        assert reply.finish_reason == "tool_calls"
    assert inner.heard[0][2]["tools"] == [SEARCH.to_dict()]


class Parsed(Scripted):
    """Makes its message of calls as providers write them, as LangChain's packages do: it may be none."""

    def _generate(self, messages: Any, *given: Any, **kwargs: Any) -> ChatResult:
        raw = [
            {"id": f"c{i}", "type": "function", "function": {"name": "search", "arguments": arguments}}
            for i, arguments in enumerate(self.answers.pop(0))
        ]
        message = AIMessage("", tool_calls=parse_tool_calls(raw))
        return ChatResult(generations=[ChatGeneration(message=message)])


async def test_arguments_that_are_no_object_come_back_as_a_call_that_says_so() -> None:
    """LangChain cannot make a message of them, and tells no more than what they were."""
    replies = ['{"query": "x"}', "[1]", "{}", '"ionic"'], ["5"], ["true"]
    model = LangChainChat(Parsed(*replies, *replies).with_config(tags=["t"]))
    for awaited in (False, True):
        for broken in (["[1]", '"ionic"'], ["5"], ["true"]):
            reply = await model.achat(ASK, tools=[SEARCH]) if awaited else model.chat(ASK, tools=[SEARCH])
            assert [call.arguments for call in reply.tool_calls] == broken
            assert all("not a JSON object" in str(call.error) for call in reply.tool_calls)
            assert reply.finish_reason == "tool_calls"
    with pytest.raises(ChatError, match="server: ValidationError"):  # what else is no message stays an error
        LangChainChat(Scripted(wrong_name())).chat(ASK, tools=[SEARCH])


def wrong_name() -> ValidationError:
    with pytest.raises(ValidationError) as raised:
        AIMessage("", tool_calls=[{"name": 1, "args": [1], "id": "c"}])  # type: ignore[list-item]
    return raised.value


def test_an_answer_of_a_schema_that_is_no_object_is_repaired() -> None:
    class Author(TypedDict):
        author: str

    model = LangChainChat(Parsed(['["Jane"]'], ['{"author": "Jane"}']))
    assert ask_json(model, ASK, Author) == ({"author": "Jane"}, Usage(), 2)


def test_arguments_nested_too_deeply_to_be_written_come_back_as_a_call_that_says_so() -> None:
    """What could be read may be too deep to be written where the stack is deeper."""
    value: Any = "x"
    for _ in range(5000):
        value = [value]
    message = AIMessage("", tool_calls=[])
    message.tool_calls = [{"type": "tool_call", "name": "search", "args": {"query": value}, "id": "c"}]
    [found] = from_message(message).tool_calls
    assert (found.id, found.name) == ("c", "search")
    assert "nested more than 64 levels deep" in str(found.error)


def test_a_whole_conversation_is_handed_over() -> None:
    good, broken = ToolCall("c1", "search", '{"query": "x"}'), ToolCall("c2", "search", "{broken")
    conversation = [
        Message.system("Be brief."),
        Message.user("Who wrote Emma?"),
        Message.assistant("Let me see.", [good, broken]),
        Message.tool(good, "Jane Austen"),
        Message.tool(broken, str(broken.error)),
    ]
    inner = Scripted(AIMessage("Jane Austen"))
    LangChainChat(inner).chat(conversation)
    sent = inner.heard[0][0]
    assert [message.type for message in sent] == ["system", "human", "ai", "tool", "tool"]
    assert [message.content for message in sent[:4]] == ["Be brief.", "Who wrote Emma?", "Let me see.", "Jane Austen"]
    assert [call["args"] for call in sent[2].tool_calls] == [{"query": "x"}, {"malformed": "{broken"}]
    assert [message.tool_call_id for message in sent[3:]] == ["c1", "c2"]


def test_a_model_without_tools_is_refused_by_name() -> None:
    model = LangChainChat(GenericFakeChatModel(messages=iter(["x"])), name="fake")
    with pytest.raises(ChatError, match="fake: bad_request: the model takes no tools"):
        model.chat(ASK, tools=[SEARCH])


async def test_structured_output_is_asked_for_where_the_model_can() -> None:
    called = AIMessage("", tool_calls=[{"name": "answer", "args": {"author": "Jane Austen"}, "id": "c1"}])
    inner = Scripted(called, called, AIMessage('{"author": "Jane Austen"}'))
    model = LangChainChat(inner)
    schema = {"type": "object", "properties": {"author": {"type": "string"}}}
    for reply in (model.chat(ASK, json_schema=schema), await model.achat(ASK, json_schema=schema)):
        assert (reply.text, reply.tool_calls, reply.finish_reason) == ('{"author": "Jane Austen"}', (), "stop")
    assert "tools" in inner.heard[0][2]
    plain = LangChainChat(inner, structured=False)
    assert plain.chat(ASK, json_schema=schema).text == '{"author": "Jane Austen"}'
    assert "tools" not in inner.heard[2][2]


async def test_json_is_asked_for_in_words_where_the_model_cannot() -> None:
    from dataclasses import dataclass

    @dataclass
    class Person:
        name: str

    model = LangChainChat(GenericFakeChatModel(messages=iter(["no JSON", '{"name": "Jane"}', '{"name": "Jane"}'])))
    assert ask_json(model, ASK, Person) == (Person("Jane"), Usage(), 2)
    assert (await aask_json(model, ASK, Person)).value == Person("Jane")


def test_sampling_is_set_for_one_call() -> None:
    inner = Scripted(AIMessage("x"), AIMessage("y"))
    model = LangChainChat(inner)
    model.chat(ASK, temperature=0.0, max_tokens=9)
    model.chat(ASK)
    assert [(temperature, kwargs) for _, temperature, kwargs in inner.heard] == [(0.0, {"max_tokens": 9}), (0.7, {})]


class RefusedError(Exception):
    status_code = 429


@pytest.mark.parametrize(
    ("error", "reason", "status"),
    [
        (RefusedError("slow down, key sk-abcdef123456"), "rate_limit", 429),
        (ConnectionResetError("cut"), "connection", None),
        (TimeoutError(), "timeout", None),
        (RuntimeError("out of memory"), "server", None),
    ],
)
async def test_failures_are_chat_errors(error: Exception, reason: str, status: int | None) -> None:
    model = LangChainChat(Scripted(error, error), name="m")
    for awaited in (False, True):
        with pytest.raises(ChatError) as caught:
            await model.achat(ASK) if awaited else model.chat(ASK)
        assert (caught.value.model, caught.value.reason, caught.value.status) == ("m", reason, status)
        assert "sk-abcdef" not in str(caught.value)


def test_connections_of_an_event_loop_that_has_ended_are_named() -> None:
    """LangChain's model of OpenAI keeps them from one ``asyncio.run`` to the next, and fails over them."""
    with OpenAIServer(default="hello") as server:
        model = LangChainChat(langchain_openai(server.base_url, retries=0))
        assert asyncio.run(model.achat(ASK)).text == "hello"
        with pytest.raises(ChatError, match=r"connection: .* \(its connections are of an event loop that has ended"):
            asyncio.run(model.achat(ASK))
        assert model.chat(ASK).text == "hello"


def test_an_exhausted_model_is_a_chat_error() -> None:
    with pytest.raises(ChatError, match="StopIteration"):
        LangChainChat(GenericFakeChatModel(messages=iter([]))).chat(ASK)


class Waiting(Scripted):
    """Answers when it is let go."""

    def _generate(self, *args: Any, **kwargs: Any) -> ChatResult:
        self.heard[0].wait()
        return ChatResult(generations=[ChatGeneration(message=AIMessage("late"))])

    async def _agenerate(self, *args: Any, **kwargs: Any) -> ChatResult:
        self.heard[1].set()
        await asyncio.Event().wait()
        raise AssertionError("never")


async def test_time_outs_and_cancellation_are_kept() -> None:
    inner = Waiting()
    release, begun = threading.Event(), asyncio.Event()
    inner.heard.extend([release, begun])
    model = LangChainChat(inner, name="m")
    with pytest.raises(ChatError, match=r"m: timeout: no answer within 0\.01 s"):
        model.chat(ASK, timeout=0.01)
    release.set()
    assert model.chat(ASK, timeout=30).text == "late"
    with pytest.raises(ChatError, match="timeout"):
        await model.achat(ASK, timeout=0.01)
    begun.clear()
    task = asyncio.create_task(model.achat(ASK))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_calls_within_a_chain_are_traced_there() -> None:
    class Starts(BaseCallbackHandler):
        def __init__(self) -> None:
            self.parents: list[Any] = []

        def on_chat_model_start(self, *args: Any, parent_run_id: Any, **_: Any) -> None:
            self.parents.append(parent_run_id)

    model = LangChainChat(FakeListChatModel(responses=["x"]))
    for timeout in (None, 30.0):
        starts = Starts()
        RunnableLambda(lambda _, t=timeout: model.chat(ASK, timeout=t).text).invoke("", config={"callbacks": [starts]})
        assert len(starts.parents) == 1
        assert starts.parents[0] is not None


def test_what_is_no_chat_model_is_refused() -> None:
    with pytest.raises(InvalidInput, match="chat model"):
        LangChainChat("gpt")  # type: ignore[arg-type]


def calls_search() -> AIMessage:
    return AIMessage("", tool_calls=[{"name": "search", "args": {"query": "x"}, "id": "1", "type": "tool_call"}])


@pytest.mark.parametrize("awaited", [False, True])
@pytest.mark.parametrize("tools", [None, [SEARCH]])
async def test_models_with_fallbacks_and_bindings_are_models(awaited: bool, tools: list[Tool] | None) -> None:
    first, second = Scripted(*[RuntimeError("down")] * 3), Scripted(*[calls_search() for _ in range(4)])
    for made in (
        first.with_fallbacks([second]),
        second.with_config(tags=["mine"]),
        second.bind(stop=["\n"]),
        second.with_retry(),
    ):
        model = LangChainChat(made)
        reply = await model.achat(ASK, tools=tools, temperature=0.5) if awaited else model.chat(ASK, tools=tools)
        assert [call.name for call in reply.tool_calls] == ["search"]
        assert model.name == "scripted"
    assert len(first.heard) == 1
    assert all(("tools" in options) == bool(tools) for _, _, options in second.heard)
    assert [options.get("temperature") for _, _, options in second.heard] == [0.5 if awaited else None] * 4


def test_what_a_binding_binds_stays_bound() -> None:
    """But for tools, which are those of the call."""
    inner = Scripted(calls_search())
    tags: list[Any] = []

    class Hears(BaseCallbackHandler):
        def on_chat_model_start(self, *given: Any, **said: Any) -> None:
            tags.append(said["tags"])

    bound = inner.bind(top_p=0.1, tools=["mine"], tool_choice="mine").with_config(tags=["t"], callbacks=[Hears()])
    LangChainChat(bound).chat(ASK, tools=[SEARCH])
    [(_, _, options)] = inner.heard
    assert options == {"top_p": 0.1, "tools": [SEARCH.to_dict()]}
    assert tags == [["t"]]


def test_what_calls_no_tools_is_no_model() -> None:
    with pytest.raises(InvalidInput, match="a LangChain chat model is expected, not RunnableLambda"):
        LangChainChat(RunnableLambda(str))  # type: ignore[arg-type]


@pytest.mark.parametrize("error", [NotImplementedError("none"), ValueError("no tools here"), AttributeError("tools")])
async def test_a_model_whose_tools_cannot_be_bound_takes_none(error: Exception) -> None:
    class Toolless(Scripted):
        def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Runnable[Any, AIMessage]:
            raise error

    class Late(Scripted):
        def _generate(self, messages: list[BaseMessage], *given: Any, **kwargs: Any) -> ChatResult:
            raise error if kwargs.get("tools") else ValueError("no tools were given")

    for model in (LangChainChat(Toolless()), LangChainChat(Late())):
        for awaited in (False, True):
            with pytest.raises(ChatError) as raised:
                await model.achat(ASK, tools=[SEARCH]) if awaited else model.chat(ASK, tools=[SEARCH])
            if not isinstance(error, NotImplementedError) and isinstance(model.model, Late):
                assert raised.value.reason == "server"  # it may be anything
            else:
                assert raised.value.reason == "bad_request"
                assert "takes no tools" in str(raised.value)


def test_usage_is_read_where_providers_put_it() -> None:
    said: list[dict[str, Any]] = [
        {"token_usage": {"prompt_tokens": 7, "completion_tokens": 5}},
        {"usage": {"input_tokens": 7, "output_tokens": 5}},
        {"usage": "much", "token_usage": {"prompt_tokens": None}},
    ]
    model = LangChainChat(Scripted(*(AIMessage("x", response_metadata=one) for one in said)))
    assert [model.chat(ASK).usage for _ in said] == [Usage(7, 5), Usage(7, 5), Usage()]


def test_what_was_parsed_counts_more_than_the_words_around_it() -> None:
    class Parses(Scripted):
        def with_structured_output(self, schema: Any, **kwargs: Any) -> Runnable[Any, Any]:
            return RunnableLambda(
                lambda _: {"raw": AIMessage("Here: ok"), "parsed": {"ok": True}, "parsing_error": None}
            )

    assert LangChainChat(Parses()).chat(ASK, json_schema={"type": "object"}).text == '{"ok": true}'


def test_a_model_that_is_configured_when_it_is_called_needs_no_name() -> None:
    """Like `init_chat_model(temperature=0)`, which makes a model to be asked for an attribute, and cannot."""

    class Configurable(RunnableLambda[Any, Any]):
        def bind_tools(self, tools: Any, **options: Any) -> Any:
            return self

        def __getattr__(self, name: str) -> Any:
            if name in ("model_name", "model", "model_id", "_llm_type"):
                raise TypeError("no model is configured")
            raise AttributeError(name)

    model = LangChainChat(Configurable(lambda _: AIMessage("yes")))
    assert model.name == "Configurable"
    assert model.chat([Message.user("?")]).text == "yes"
