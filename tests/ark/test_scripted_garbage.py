"""`ScriptedExplorer` on conversations that make no sense: it never raises, and never calls what was not offered."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from scripted_parts import films

from graphret.ark import TOOLS, ArkSession
from graphret.ark.scripted import ScriptedExplorer
from graphret.llm.chat import Message, ToolCall

BOX = films()
NAMES = [tool.name for tool in TOOLS]
WORDS = ["who", "which", "films", "directed", "by", "the", "Dawn", "Cy Cole", "same", "actors", "of", "when", "[", "]"]
QUESTIONS = st.lists(st.sampled_from(WORDS), min_size=1, max_size=12).map(" ".join)
TEXTS = st.one_of(st.text(max_size=40), QUESTIONS)
ARROWS = st.one_of(st.text(max_size=8), st.sampled_from(["-[directed_by]->", "<-[directed_by]-", "-[]->", "<-[]->"]))
JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), TEXTS, ARROWS),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(
            st.sampled_from(
                ["id", "name", "type", "via", "explored", "relations", "of", "shown", "found", "error", "steps_left"]
            ),
            inner,
            max_size=6,
        ),
    ),
    max_leaves=12,
)
HEADERS = st.fixed_dictionaries(
    {
        "explored": TEXTS,
        "type": JSON,
        "relations": st.lists(st.tuples(ARROWS, TEXTS, st.integers(-2, 10**30)).map(list), max_size=4),
    }
)
LINES = st.fixed_dictionaries({"id": TEXTS, "type": JSON, "via": st.lists(ARROWS, max_size=3)})
CONTENTS = st.one_of(
    st.text(max_size=60), st.lists(st.one_of(JSON, HEADERS, LINES).map(json.dumps), max_size=5).map("\n".join)
)
CALLS = st.builds(
    ToolCall,
    st.sampled_from(["a", "b", "c"]),
    st.one_of(st.sampled_from(NAMES), st.text(max_size=8)),
    st.one_of(
        st.text(max_size=20),
        JSON.map(json.dumps),
        st.fixed_dictionaries({"query": JSON, "node": TEXTS, "nodes": JSON, "relation_types": JSON}).map(json.dumps),
    ),
)


@st.composite
def conversations(draw: Any) -> list[Message]:
    messages = [Message.system(draw(TEXTS))] if draw(st.booleans()) else []
    messages += [Message.user(draw(TEXTS))] if draw(st.integers(0, 5)) else []
    for _ in range(draw(st.integers(0, 4))):
        calls = draw(st.lists(CALLS, max_size=3))
        messages.append(Message.assistant(draw(TEXTS), calls))
        messages += [Message.tool(call, draw(CONTENTS)) for call in calls]
        if draw(st.integers(0, 9)) == 0:
            messages.append(Message.user(draw(TEXTS)))
    return messages


@settings(max_examples=150, deadline=None)
@given(conversations(), st.lists(st.sampled_from(TOOLS), unique_by=lambda tool: tool.name))
def test_any_conversation_gets_a_reply_with_calls_that_were_offered(messages: list[Message], tools: list[Any]) -> None:
    model = ScriptedExplorer()
    reply = model.chat(messages, tools=tools)
    assert {call.name for call in reply.tool_calls} <= {tool.name for tool in tools}
    assert all(call.parsed is not None for call in reply.tool_calls)
    assert len({call.id for call in reply.tool_calls}) == len(reply.tool_calls) <= 64
    assert reply.tool_calls or reply.text
    assert model.chat(messages, tools=tools) == reply
    assert {call.name for call in model.chat(messages).tool_calls} <= set(NAMES)


@settings(max_examples=100, deadline=None)
@given(QUESTIONS)
def test_every_question_ends_within_the_steps_without_a_failed_call(question: str) -> None:
    session = ArkSession(question, "You explore.")
    model = ScriptedExplorer()
    while session.stop is None:
        calls = session.receive(model.chat(session.messages, tools=BOX.tools))
        session.observe([(call, BOX.run(call.name, call.parsed or {}), 0.0) for call in calls])
    assert session.stop == "finished"


@settings(max_examples=100, deadline=None)
@given(QUESTIONS, st.data())
def test_garbage_in_the_place_of_observations_ends_too(question: str, data: st.DataObject) -> None:
    messages, model = [Message.user(question)], ScriptedExplorer()
    for _ in range(25):
        reply = model.chat(messages, tools=TOOLS)
        if not reply.tool_calls:
            break
        messages.append(reply.message)
        messages += [Message.tool(call, data.draw(CONTENTS)) for call in reply.tool_calls[:3]]
    else:
        raise AssertionError("it does not end")
