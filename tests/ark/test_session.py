"""An agent's session: what it answers itself, what it remembers, when it stops; and that JSON keeps it."""

from __future__ import annotations

import json

import pytest
from ark_support import call
from hypothesis import given, settings
from hypothesis import strategies as st

from graphret.ark.observation import Observation
from graphret.ark.session import ArkSession
from graphret.ark.settings import ArkSettings
from graphret.ark.tools import Outcome, Toolbox
from graphret.errors import InvalidInput
from graphret.llm.chat import Reply, ToolCall, Usage
from graphret.schema.text import estimate_tokens
from graphret.search import BM25Index
from graphret.stores import MemoryStore
from graphret.types import Node

FOUND = Observation('{"found": 2}\n{"id": "a"}\n{"id": "b"}', ("a", "b"), total=2)
DOWN = Observation('{"error": "down"}', failed=True)


def turn(session: ArkSession, *calls: ToolCall, observation: Observation = FOUND) -> list[ToolCall]:
    """One step: a reply with these calls, each run with the same result."""
    to_run = session.receive(Reply("", calls, Usage(10, 1)))
    session.observe([Outcome(one, observation, 0.01) for one in to_run])
    return to_run


def started(**settings: int | bool) -> ArkSession:
    return ArkSession("who?", "explore", settings=ArkSettings(**settings))


def test_an_agent_searches_selects_in_order_and_finishes() -> None:
    session = started()
    assert [one.name for one in turn(session, call("global_search", query="x"))] == ["global_search"]
    assert turn(session, call("select", nodes=["b", "a", "b"]), call("finish")) == []
    assert (session.selection, session.stop, session.error, session.tokens) == (["b", "a"], "finished", None, 22)
    roles = [message.role for message in session.messages]
    assert roles == ["system", "user", "assistant", "tool", "assistant", "tool", "tool"]
    with pytest.raises(InvalidInput, match="no reply awaits"):
        session.observe([])


def test_of_a_selection_what_was_never_shown_is_named_and_the_rest_is_taken() -> None:
    session = started()
    turn(session, call("select", nodes=["a", "bb", "zzz"]), call("global_search", query="x"))  # shown in the same reply
    answer = json.loads(session.messages[3].content)
    assert (session.selection, answer["selected"]) == (["a"], 1)
    assert all(part in answer["error"] for part in ('"bb". Closest: "b"', '"zzz"'))


def test_a_repeated_call_is_answered_from_memory_and_a_failed_one_is_tried_again() -> None:
    session = started(max_steps=4)
    search = call("global_search", query="x")
    assert len(turn(session, search, observation=DOWN)) == 1
    assert len(turn(session, search)) == 1
    assert turn(session, search) == []
    assert session.messages[-1].content.startswith('{"answered": "in step 2, and')
    assert session.messages[-1].content.endswith('{"steps_left": 1}')
    assert [step.calls[0].remembered for step in session.steps] == [False, False, True]


@pytest.mark.parametrize("k", [1, 30])
def test_what_a_session_adds_stays_within_the_budget_of_a_call(k: int) -> None:
    nodes = [Node(f"node {i:03d} {'long ' * 18}", ("t",), f"node {i:03d}", "word " * 200) for i in range(60)]
    within = ArkSettings(observation_tokens=500, max_steps=4)
    toolbox = Toolbox(MemoryStore.of(nodes), BM25Index.build(nodes), within)
    session = ArkSession("who?", "explore", settings=within)
    search = call("global_search", query="word", k=k)
    turn(session, search, observation=toolbox.run("global_search", {"query": "word", "k": k}))
    turn(session, search)
    turn(session, call("select", nodes=[f"nodes {i:03d} {'long ' * 18}" for i in range(k)]))
    answers = [message.content for message in session.messages if message.role == "tool"]
    for answer, said in zip(answers[1:], ["in step 1", "No tool has shown"], strict=True):
        assert said in answer
    assert "steps_left" in answers[1]
    assert max(map(estimate_tokens, answers)) <= 500


def test_calls_get_ids_of_their_own_and_arguments_that_are_json() -> None:
    session = started()
    turn(session, *(ToolCall(id, "global_search", f'{{"query": "{i}"}}') for i, id in enumerate(["", "x", "x", ""])))
    ids = [one.id for one in session.messages[2].tool_calls]
    assert len({*ids} - {""}) == 4
    assert "x" in ids
    assert [message.tool_call_id for message in session.messages[3:]] == ids
    said = ["", " ", "null", "{}", '{"k": 2}', "no JSON"]
    session.receive(Reply("", tuple(ToolCall(f"c{i}", "finish", arguments) for i, arguments in enumerate(said))))
    sent = [one.arguments for one in session.messages[-1].tool_calls]
    assert sent == ["{}", "{}", "{}", "{}", '{"k": 2}', "no JSON"]


def test_calls_beyond_the_most_of_a_turn_are_answered_and_not_run() -> None:
    session = started(max_calls=2)
    calls = [call("global_search", id, query=id) for id in "abc"] + [
        call("select", "d", nodes=["a"]),
        call("finish", "e"),
    ]
    assert [one.id for one in turn(session, *calls)] == ["a", "b"]
    answers = [message.content for message in session.messages[3:]]
    assert answers == [FOUND.text] * 2 + ['{"error": "not run: at most 2 calls a turn"}'] * 3
    assert (session.selection, session.stop) == ([], None)


def test_replies_without_calls_are_nudged_and_then_the_agent_is_given_up() -> None:
    session = started()
    turn(session)
    assert session.messages[-1].role == "user"
    assert "select" in session.messages[-1].content
    turn(session, call("global_search", query="x"))
    turn(session)
    turn(session)
    assert session.stop is None
    turn(session)
    assert (session.stop, "3 replies" in (session.error or "")) == ("silent", True)


def test_an_agent_that_never_finishes_ends_at_its_last_step_and_was_told() -> None:
    session = started(max_steps=5)
    for number in range(5):
        turn(session, call("global_search", query=str(number)))
    assert (session.stop, len(session.steps)) == ("steps", 5)
    told = [message.content.rsplit("\n", 1)[-1] for message in session.messages if message.role == "tool"]
    assert told[1:4] == ['{"steps_left": 3}', '{"steps_left": 2}', '{"steps_left": 1}']


_CALLS = st.lists(
    st.one_of(
        st.builds(lambda q: call("global_search", query=q), st.sampled_from("xyz")),
        st.builds(lambda ids: call("select", nodes=ids), st.lists(st.sampled_from("abc"), max_size=3)),
        st.builds(ToolCall, st.text(max_size=3), st.text(max_size=12), st.text(max_size=20)),
        st.just(call("finish")),
    ),
    max_size=5,
)


@settings(max_examples=25)
@given(st.lists(_CALLS, max_size=8))
def test_json_keeps_a_session_wherever_it_is_cut(turns: list[list[ToolCall]]) -> None:
    whole, cut = started(max_steps=6), started(max_steps=6)
    for calls in turns:
        if whole.stop:
            break
        reply = Reply("", tuple(calls), Usage(1, 1))
        pending = whole.receive(reply)
        assert [one.id for one in cut.receive(reply)] == [one.id for one in pending]
        cut = ArkSession.from_dict(json.loads(json.dumps(cut.to_dict())))
        assert cut.pending == pending
        for session in (whole, cut):
            session.observe([Outcome(one, FOUND) for one in pending])
        cut = ArkSession.from_dict(json.loads(json.dumps(cut.to_dict())))
    assert cut.to_dict() == whole.to_dict()
    answered = [message.tool_call_id for message in whole.messages if message.role == "tool"]
    assert answered == [one.id for message in whole.messages for one in message.tool_calls]
    assert len(set(whole.selection)) == len(whole.selection)
    assert set(whole.selection) <= {"a", "b"}


def test_malformed_settings_are_refused_by_name() -> None:
    for name, wrong in (("max_seconds", "1"), ("max_seconds", float("nan")), ("max_calls", True), ("vote", "random")):
        with pytest.raises(InvalidInput, match=f"{name}: .* is expected"):
            ArkSettings(**{name: wrong})  # type: ignore[arg-type]
