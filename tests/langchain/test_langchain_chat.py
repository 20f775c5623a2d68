"""LangChain chat models as graphret's `ChatModel`."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel, GenericFakeChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from langchain_parts import INDEX, STORE

from graphret.errors import InvalidInput
from graphret.llm import ChatError, Message, Tool
from graphret.llm.chat import ToolCall, Usage
from langchain_graphret import LangChainChat, create_ark_graph
from langchain_graphret.chat import to_message

SEARCH = Tool(
    "search", "Search.", {"type": "object", "properties": {"query": {"type": "string"}}}
)
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

    def bind_tools(
        self, tools: Sequence[Any], **kwargs: Any
    ) -> Runnable[Any, AIMessage]:
        return self.bind(tools=tools, **kwargs)

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: Any = None,
        run_manager: Any = None,
        **kwargs: Any,
    ) -> ChatResult:
        self.heard.append((messages, self.temperature, kwargs))
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return ChatResult(generations=[ChatGeneration(message=answer)])


def test_usage_model_and_reason_are_read() -> None:
    def answer(**said: Any) -> AIMessage:
        usage: Any = {"input_tokens": 7, "output_tokens": 5, "total_tokens": 12}
        return AIMessage(
            [{"type": "text", "text": "Ja"}, {"type": "text", "text": "ne"}],
            usage_metadata=usage,
            response_metadata=said,
        )

    reasons = [
        ({"stop_reason": "max_tokens"}, "length"),
        ({"finish_reason": "SAFETY"}, "content_filter"),
        ({}, "stop"),
    ]
    model = LangChainChat(
        Scripted(*(answer(model_name="m-1", **said) for said, _ in reasons))
    )
    for _, reason in reasons:
        reply = model.chat(ASK)
        assert (reply.text, reply.usage, reply.model) == ("Jane", Usage(7, 5), "m-1")
        assert reply.finish_reason == reason


async def test_tools_are_offered_and_calls_come_back() -> None:
    broken: Any = {
        "type": "invalid_tool_call",
        "name": "search",
        "args": "{broken",
        "id": None,
        "error": "?",
    }
    read = [{"name": "search", "args": {"query": "Émma"}, "id": "c1"}]
    called = AIMessage("", tool_calls=read, invalid_tool_calls=[broken])
    inner = Scripted(called, called)
    model = LangChainChat(inner)
    for reply in (
        model.chat(ASK, tools=[SEARCH]),
        await model.achat(ASK, tools=[SEARCH]),
    ):
        first, second = reply.tool_calls
        assert first == ToolCall("c1", "search", '{"query": "Émma"}')
        assert (second.id, second.parsed) == ("call_1", None)
        assert reply.finish_reason == "tool_calls"
    assert inner.heard[0][2]["tools"] == [SEARCH.to_dict()]


async def test_structured_output_is_asked_for_where_the_model_can() -> None:
    called = AIMessage(
        "",
        tool_calls=[{"name": "answer", "args": {"author": "Jane Austen"}, "id": "c1"}],
    )
    inner = Scripted(called, called)
    model = LangChainChat(inner)
    schema = {"type": "object", "properties": {"author": {"type": "string"}}}
    for reply in (
        model.chat(ASK, json_schema=schema),
        await model.achat(ASK, json_schema=schema),
    ):
        assert (reply.text, reply.tool_calls, reply.finish_reason) == (
            '{"author": "Jane Austen"}',
            (),
            "stop",
        )
    assert "tools" in inner.heard[0][2]


class Waiting(Scripted):
    """Never answers where it is awaited."""

    async def _agenerate(self, *args: Any, **kwargs: Any) -> ChatResult:
        await asyncio.Event().wait()
        raise AssertionError("never")


async def test_failures_are_chat_errors() -> None:
    model = LangChainChat(
        Scripted(*[ConnectionResetError("cut, key sk-abcdef123456")] * 2)
    )
    for awaited in (False, True):
        with pytest.raises(ChatError, match=r"scripted: connection: .*cut") as caught:
            await model.achat(ASK) if awaited else model.chat(ASK)
        assert "sk-abcdef" not in str(caught.value)
    with pytest.raises(ChatError, match=r"scripted: timeout: no answer within 0\.01 s"):
        await LangChainChat(Waiting()).achat(ASK, timeout=0.01)
    with pytest.raises(
        ChatError,
        match="generic-fake-chat-model: bad_request: the model takes no tools",
    ):
        LangChainChat(GenericFakeChatModel(messages=iter(["x"]))).chat(
            ASK, tools=[SEARCH]
        )
    with pytest.raises(InvalidInput, match="chat model"):
        LangChainChat("gpt")  # type: ignore[arg-type]


def test_sampling_is_set_for_one_call() -> None:
    inner = Scripted(AIMessage("x"), AIMessage("y"))
    model = LangChainChat(inner)
    model.chat(ASK, temperature=0.0, max_tokens=9)
    model.chat(ASK)
    assert [(temperature, kwargs) for _, temperature, kwargs in inner.heard] == [
        (0.0, {"max_tokens": 9}),
        (0.7, {}),
    ]


@pytest.mark.parametrize(
    ("awaited", "tools"), [(False, [SEARCH]), (True, [SEARCH]), (True, None)]
)
async def test_models_with_fallbacks_and_bindings_are_models(
    awaited: bool, tools: list[Tool] | None
) -> None:
    called = AIMessage(
        "",
        tool_calls=[
            {"name": "search", "args": {"query": "x"}, "id": "1", "type": "tool_call"}
        ],
    )
    first, second = Scripted(RuntimeError("down")), Scripted(*[called] * 4)
    bindings = (
        second.with_config(tags=["mine"]),
        second.bind(stop=["x"]),
        second.with_retry(),
    )
    for made in (first.with_fallbacks([second]), *bindings):
        model = LangChainChat(made)
        reply = (
            await model.achat(ASK, tools=tools, temperature=0.5)
            if awaited
            else model.chat(ASK, tools=tools)
        )
        assert [call.name for call in reply.tool_calls] == ["search"]
        assert model.name == "scripted"
    assert all(("tools" in options) == bool(tools) for _, _, options in second.heard)
    assert [options.get("temperature") for _, _, options in second.heard] == [
        0.5 if awaited else None
    ] * 4


# -- models that think: their reasoning and its signatures are handed back as they came

CALLS = (
    ("global_search", {"query": "Bob Bell"}),
    ("select", {"nodes": ["p1"]}),
    ("finish", {}),
)
ARK: Any = {"question": "films by Bob Bell"}


def signed(turn: int, signs_in: str) -> AIMessage:
    name, arguments = CALLS[turn]
    call: Any = {"name": name, "args": arguments, "id": f"c{turn}", "type": "tool_call"}
    if signs_in == "additional":
        return AIMessage(
            "", tool_calls=[call], additional_kwargs={"signature": f"s{turn}"}
        )
    thought = {"type": "thinking", "thinking": "hm", "signature": f"s{turn}"}
    return AIMessage(
        [
            thought,
            {"type": "tool_use", "id": f"c{turn}", "name": name, "input": arguments},
        ],
        tool_calls=[call],
    )


class Thinker(Scripted):
    """Refuses a conversation that lost a turn's signature, as real models do."""

    def _generate(
        self, messages: list[BaseMessage], *args: Any, **kwargs: Any
    ) -> ChatResult:
        for turn, message in enumerate(
            one for one in messages if isinstance(one, AIMessage)
        ):
            held = {
                **message.additional_kwargs,
                **(message.content[0] if message.content else {}),
            }  # type: ignore[dict-item]
            if held.get("signature") != f"s{turn}":
                raise ValueError(
                    "400: a thinking block, with its signature, is expected before"
                    " tool_use"
                )
        return super()._generate(messages, *args, **kwargs)


@pytest.mark.parametrize("signs_in", ["content", "additional"])
async def test_agents_of_thinking_models_come_to_their_ends(signs_in: str) -> None:
    model = Thinker(*[signed(turn, signs_in) for turn in (0, 1, 2, 0, 1, 2)])
    graph = create_ark_graph(model, STORE, INDEX, n_agents=1)
    for answer in (graph.invoke(ARK), await graph.ainvoke(ARK)):
        assert [agent["stop"] for agent in answer["agents"]] == ["finished"]
        assert answer["hits"][0]["id"] == "p1"


def test_a_call_whose_arguments_are_no_json_is_sent_as_json() -> None:
    broken = to_message(Message.assistant("", [ToolCall("c2", "search", "{broken")]))
    assert [one["args"] for one in broken.tool_calls] == [{"malformed": "{broken"}]  # type: ignore[attr-defined]
