"""An agent's session: what it answers itself, what it remembers, when it stops; and that JSON keeps it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
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


def call(name: str, id: str = "", **arguments: object) -> ToolCall:
    return ToolCall(id or f"{name}-{len(arguments)}", name, json.dumps(arguments))


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
    assert session.selection == ["b", "a"]
    assert (session.stop, session.error) == ("finished", None)
    assert session.tokens == 22
    roles = [message.role for message in session.messages]
    assert roles == ["system", "user", "assistant", "tool", "assistant", "tool", "tool"]


def test_what_a_search_of_the_same_reply_shows_can_be_selected() -> None:
    session = started()
    turn(session, call("select", nodes=["a"]), call("global_search", query="x"))
    assert session.selection == ["a"]


def test_a_selection_of_nodes_never_seen_is_refused_by_name_and_the_others_are_taken() -> None:
    session = started()
    turn(session, call("global_search", query="x"))
    turn(session, call("select", nodes=["a", "bb", "zzz"]))
    answer = json.loads(session.messages[-1].content)
    assert session.selection == ["a"]
    assert answer["selected"] == 1
    assert '"bb"' in answer["error"]
    assert 'Closest: "b"' in answer["error"]
    assert '"zzz"' in answer["error"]


@pytest.mark.parametrize("arguments", [{}, {"nodes": 3}, {"ids": ["a"]}])
def test_a_malformed_selection_is_answered_with_what_is_expected(arguments: dict[str, object]) -> None:
    session = started()
    turn(session, ToolCall("1", "select", json.dumps(arguments)))
    assert "nodes" in json.loads(session.messages[-1].content)["error"]
    assert session.selection == []


def test_arguments_that_are_no_json_are_answered_and_not_run() -> None:
    session = started()
    assert turn(session, ToolCall("1", "global_search", '{"query": ')) == []
    assert "not valid JSON" in session.messages[-1].content
    assert session.steps[0].calls[0].failed


def test_a_repeated_call_is_answered_from_memory_and_says_so() -> None:
    session = started(max_steps=3)
    turn(session, call("global_search", query="x"))
    assert turn(session, call("global_search", query="x")) == []
    assert session.messages[-1].content.startswith('{"answered": "from memory, as in step 1"}\n{"found": 2}')
    assert session.steps[1].calls[0].remembered
    assert session.messages[-1].content.endswith('{"steps_left": 1}')


@pytest.mark.parametrize("budget", [200, 500])
def test_what_a_session_adds_stays_within_the_budget_of_a_call(budget: int) -> None:
    nodes = [Node(f"node {i:03d} {'long ' * 18}", ("t",), f"node {i:03d}", "word " * 200) for i in range(60)]
    settings = ArkSettings(observation_tokens=budget, max_steps=4)
    toolbox = Toolbox(MemoryStore.of(nodes), BM25Index.build(nodes), settings)
    for k in range(1, 61):
        session = ArkSession("who?", "explore", settings=settings)
        search = call("global_search", query="word", k=k)
        turn(session, search, observation=toolbox.run("global_search", {"query": "word", "k": k}))
        turn(session, search)
        turn(session, call("select", nodes=[f"nodes {i:03d} {'long ' * 18}" for i in range(k)]))
        answers = [message.content for message in session.messages if message.role == "tool"]
        assert ["from memory" in answers[1], "steps_left" in answers[1], "No tool has shown" in answers[2]] == [
            True
        ] * 3
        assert max(map(estimate_tokens, answers)) <= budget


def test_a_failed_call_is_tried_again() -> None:
    session = started()
    turn(session, call("global_search", query="x"), observation=Observation('{"error": "down"}', failed=True))
    assert len(turn(session, call("global_search", query="x"))) == 1


def test_of_too_many_calls_the_last_are_answered_with_an_instruction() -> None:
    session = started(max_calls=3)
    to_run = turn(session, *(call("global_search", str(i), query=str(i)) for i in range(50)))
    assert [one.id for one in to_run] == ["0", "1", "2"]
    answers = [message for message in session.messages if message.role == "tool"]
    assert len(answers) == 50
    says = "of one reply only the first 3 calls are run. If you still need it, make it again in a later reply"
    assert all(says in message.content for message in answers[3:])
    again = turn(session, *(call("global_search", str(i), query=str(i)) for i in range(3, 6)))
    assert [one.id for one in again] == ["3", "4", "5"]


def test_calls_without_an_id_of_their_own_get_one() -> None:
    session = started()
    turn(session, *(ToolCall(id, "global_search", f'{{"query": "{i}"}}') for i, id in enumerate(["", "x", "x", ""])))
    ids = [one.id for one in session.messages[2].tool_calls]
    assert len(set(ids)) == 4
    assert "x" in ids
    assert "" not in ids
    assert [message.tool_call_id for message in session.messages[3:]] == ids


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
    assert session.stop == "silent"
    assert "3 replies" in (session.error or "")


def test_an_agent_that_never_finishes_ends_at_its_last_step_and_was_told() -> None:
    session = started(max_steps=5)
    for number in range(5):
        turn(session, call("global_search", query=str(number)))
    assert session.stop == "steps"
    assert len(session.steps) == 5
    told = [message.content.rsplit("\n", 1)[-1] for message in session.messages if message.role == "tool"]
    assert told[1:4] == ['{"steps_left": 3}', '{"steps_left": 2}', '{"steps_left": 1}']


def test_turns_come_in_order() -> None:
    session = started()
    with pytest.raises(InvalidInput, match="no reply awaits"):
        session.observe([])
    calls = session.receive(Reply("", (call("global_search", query="x"),)))
    with pytest.raises(InvalidInput, match="not answered"):
        session.receive(Reply("hm"))
    with pytest.raises(InvalidInput, match="has no outcome"):
        session.observe([])
    session.observe([Outcome(calls[0], FOUND)])
    session.end("tokens")
    with pytest.raises(InvalidInput, match="it has stopped"):
        session.receive(Reply("hm"))


_CALLS = st.lists(
    st.one_of(
        st.builds(lambda q: call("global_search", query=q), st.sampled_from("xyz")),
        st.builds(lambda ids: call("select", nodes=ids), st.lists(st.sampled_from("abc"), max_size=3)),
        st.builds(ToolCall, st.text(max_size=3), st.text(max_size=12), st.text(max_size=20)),
        st.just(call("finish")),
    ),
    max_size=5,
)


@given(st.lists(_CALLS, max_size=8), st.data())
def test_json_keeps_a_session_wherever_it_is_cut(turns: list[list[ToolCall]], data: st.DataObject) -> None:
    whole, cut = started(max_steps=6), started(max_steps=6)
    for calls in turns:
        if whole.stop:
            break
        reply = Reply("", tuple(calls), Usage(1, 1))
        pending = whole.receive(reply)
        assert [one.id for one in cut.receive(reply)] == [one.id for one in pending]
        cut = ArkSession.from_dict(json.loads(json.dumps(cut.to_dict())))
        assert cut.pending == pending
        outcomes = [Outcome(one, FOUND) for one in pending]
        whole.observe(outcomes)
        cut.observe(outcomes)
        cut = ArkSession.from_dict(json.loads(json.dumps(cut.to_dict())))
    assert cut.to_dict() == whole.to_dict()
    answered = [message.tool_call_id for message in whole.messages if message.role == "tool"]
    assert answered == [one.id for message in whole.messages for one in message.tool_calls]
    assert len(set(whole.selection)) == len(whole.selection)
    assert set(whole.selection) <= {"a", "b"}


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("max_seconds", "1"),
        ("max_seconds", float("nan")),
        ("max_seconds", 0),
        ("max_calls", True),
    ],
)
def test_malformed_settings_are_refused_by_name(name: str, wrong: object) -> None:
    with pytest.raises(InvalidInput, match=f"{name}: .* is expected"):
        ArkSettings(**{name: wrong})  # type: ignore[arg-type]
