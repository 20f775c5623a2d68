"""An agent's session, and trajectories: what is done, remembered and recorded comes
back as it was.
"""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.json as pa_json
import pytest
from ark_support import Follows, call, films, index_of, small, turns
from hypothesis import given, settings
from hypothesis import strategies as st

from graphret.ark import (
    Ark,
    ArkRun,
    ArkSettings,
    CallRecord,
    Recorder,
    make_tools,
    read_runs,
)
from graphret.ark.observation import Observation
from graphret.ark.session import ArkSession
from graphret.ark.tools import CallOutcome, Toolbox
from graphret.errors import InvalidInput, NewerVersion, StorageError
from graphret.llm.chat import Message, Reply, ToolCall, Usage
from graphret.schema.text import estimate_tokens
from graphret.search import BM25Index
from graphret.stores import MemoryStore
from graphret.types import Node

FOUND = Observation('{"found": 2}\n{"id": "a"}\n{"id": "b"}', ("a", "b"), total=2)
DOWN = Observation('{"error": "down"}', failed=True)


def turn(
    session: ArkSession, *calls: ToolCall, observation: Observation = FOUND
) -> list[ToolCall]:
    """One step: a reply with these calls, each run with the same result."""
    to_run = session.receive(Reply("", calls, Usage(10, 1)))
    session.observe([CallOutcome(tool_call, observation, 0.01) for tool_call in to_run])
    return to_run


def started(**settings: int | bool) -> ArkSession:
    return ArkSession("who?", "explore", settings=ArkSettings(**settings))


def test_an_agent_searches_selects_in_order_and_finishes() -> None:
    session = started()
    assert [
        tool_call.name for tool_call in turn(session, call("global_search", query="x"))
    ] == ["global_search"]
    assert turn(session, call("select", nodes=["b", "a", "b"]), call("finish")) == []
    assert (session.selection, session.stop, session.error, session.tokens) == (
        ["b", "a"],
        "finished",
        None,
        22,
    )
    roles = [message.role for message in session.messages]
    assert roles == ["system", "user", "assistant", "tool", "assistant", "tool", "tool"]
    with pytest.raises(InvalidInput, match="no reply awaits"):
        session.observe([])


def test_of_a_selection_what_was_never_shown_is_named_and_the_rest_is_taken() -> None:
    session = started()
    turn(
        session,
        call("select", nodes=["a", "bb", "zzz"]),
        call("global_search", query="x"),
    )  # shown in the same reply
    answer = json.loads(session.messages[3].content)
    assert (session.selection, answer["selected"]) == (["a"], 1)
    assert all(part in answer["error"] for part in ('"bb". Closest: "b"', '"zzz"'))


def test_a_repeated_call_is_answered_from_memory_and_a_failed_one_is_tried_again() -> (
    None
):
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
    nodes = [
        Node(f"node {i:03d} {'long ' * 18}", ("t",), f"node {i:03d}", "word " * 200)
        for i in range(60)
    ]
    within = ArkSettings(observation_tokens=500, max_steps=4)
    toolbox = Toolbox(MemoryStore.of(nodes), BM25Index.build(nodes), within)
    session = ArkSession("who?", "explore", settings=within)
    search = call("global_search", query="word", k=k)
    turn(
        session,
        search,
        observation=toolbox.run("global_search", {"query": "word", "k": k}),
    )
    turn(session, search)
    turn(
        session,
        call("select", nodes=[f"nodes {i:03d} {'long ' * 18}" for i in range(k)]),
    )
    answers = [
        message.content for message in session.messages if message.role == "tool"
    ]
    for answer, problem in zip(
        answers[1:], ["in step 1", "No tool has shown"], strict=True
    ):
        assert problem in answer
    assert "steps_left" in answers[1]
    assert max(map(estimate_tokens, answers)) <= 500


def test_calls_get_ids_of_their_own_and_arguments_that_are_json() -> None:
    session = started()
    turn(
        session,
        *(
            ToolCall(id, "global_search", f'{{"query": "{i}"}}')
            for i, id in enumerate(["", "x", "x", ""])
        ),
    )
    ids = [tool_call.id for tool_call in session.messages[2].tool_calls]
    assert len({*ids} - {""}) == 4
    assert "x" in ids
    assert [message.tool_call_id for message in session.messages[3:]] == ids
    argument_texts = ["", " ", "null", "{}", '{"k": 2}', "no JSON"]
    session.receive(
        Reply(
            "",
            tuple(
                ToolCall(f"c{i}", "finish", arguments)
                for i, arguments in enumerate(argument_texts)
            ),
        )
    )
    sent = [tool_call.arguments for tool_call in session.messages[-1].tool_calls]
    assert sent == ["{}", "{}", "{}", "{}", '{"k": 2}', "no JSON"]


def test_calls_beyond_the_most_of_a_turn_are_answered_and_not_run() -> None:
    session = started(max_calls=2)
    calls = [call("global_search", id, query=id) for id in "abc"] + [
        call("select", "d", nodes=["a"]),
        call("finish", "e"),
    ]
    assert [tool_call.id for tool_call in turn(session, *calls)] == ["a", "b"]
    answers = [message.content for message in session.messages[3:]]
    assert (
        answers
        == [FOUND.text] * 2 + ['{"error":"not run: at most 2 calls a turn"}'] * 3
    )
    assert (session.selection, session.stop) == ([], None)


_CALLS = st.lists(
    st.one_of(
        st.builds(lambda q: call("global_search", query=q), st.sampled_from("xyz")),
        st.builds(
            lambda ids: call("select", nodes=ids),
            st.lists(st.sampled_from("abc"), max_size=3),
        ),
        st.builds(
            ToolCall, st.text(max_size=3), st.text(max_size=12), st.text(max_size=20)
        ),
        st.just(call("finish")),
    ),
    max_size=5,
)


@settings(max_examples=25)
@given(st.lists(_CALLS, max_size=8))
def test_json_keeps_a_session_wherever_it_is_cut(turns: list[list[ToolCall]]) -> None:
    uncut, cut = started(max_steps=6), started(max_steps=6)
    for calls in turns:
        if uncut.stop:
            break
        reply = Reply("", tuple(calls), Usage(1, 1))
        pending = uncut.receive(reply)
        assert [tool_call.id for tool_call in cut.receive(reply)] == [
            tool_call.id for tool_call in pending
        ]
        cut = ArkSession.from_dict(json.loads(json.dumps(cut.to_dict())))
        assert cut.pending == pending
        for session in (uncut, cut):
            session.observe([CallOutcome(tool_call, FOUND) for tool_call in pending])
        cut = ArkSession.from_dict(json.loads(json.dumps(cut.to_dict())))
    assert cut.to_dict() == uncut.to_dict()
    answered = [
        message.tool_call_id for message in uncut.messages if message.role == "tool"
    ]
    assert answered == [
        tool_call.id for message in uncut.messages for tool_call in message.tool_calls
    ]
    assert len(set(uncut.selection)) == len(uncut.selection)
    assert set(uncut.selection) <= {"a", "b"}


def test_malformed_settings_and_models_are_refused_by_name() -> None:
    for name, wrong in (
        ("max_seconds", "1"),
        ("max_seconds", float("nan")),
        ("max_calls", True),
    ):
        with pytest.raises(InvalidInput, match=f"{name}: expected "):
            ArkSettings(**{name: wrong})  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="model: expected a chat model, got str"):
        Ark("gpt", films(), index_of(films()))  # type: ignore[arg-type]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "new" / "runs.jsonl"


def odd() -> ArkRun:
    """A run with all that may go wrong in one."""
    replies = [
        ToolCall("", "global_search", '["no object"]'),
        ToolCall("x", "no such tool", "no JSON"),
    ]
    model = Follows(
        turns(
            [
                call("global_search", query="Bob Bell"),
                call("explore_neighborhood", node="p1"),
                *replies,
            ],
            [
                call("global_search", query="Bob Bell"),
                call("select", nodes=["f1", "nobody"]),
            ],
            Reply("half a \ud83d pair"),
        )
    )
    store, runs = films(), list[ArkRun]()
    options = {
        "settings": ArkSettings(n_agents=2, max_steps=3, max_seconds=99.5),
        "on_run": runs.append,
    }
    Ark([model, Follows(turns(Reply("")))], store, index_of(store), **options).retrieve(
        "who \ud83d?", 2
    )  # type: ignore[arg-type]
    return runs[0]


def test_what_is_recorded_is_read_back(path: Path) -> None:
    recorded = [odd(), small(), odd()]
    for run in recorded:
        Recorder(path)(run)
    for run, again in zip(recorded, read_runs(path), strict=True):
        for name in ("id", "question", "seconds", "created"):
            assert getattr(again, name) == getattr(run, name)
        assert [agent_session.to_dict() for agent_session in again.sessions] == [
            agent_session.to_dict() for agent_session in run.sessions
        ]
        assert again.votes == run.votes


def test_a_line_is_one_agent_in_the_chat_format_and_loads_as_a_data_set(
    path: Path,
) -> None:
    failed = small("why?")
    failed.sessions[0].error = "the model is gone"
    failed.sessions[0].steps[0].calls.append(
        CallRecord("global_search", "no JSON", failed=True)
    )
    for run in (small(), small(agents=1), failed):
        Recorder(path)(run)
    lines = [
        pa_json.read_json(io.BytesIO(line))
        for line in path.read_bytes().splitlines(keepends=True)
    ]
    loaded = pa.concat_tables(
        lines, promote_options="default"
    ).to_pylist()  # as `datasets` does with its chunks
    assert [(line["schema"], line["agent"], line["agents"]) for line in loaded[:2]] == [
        ("graphret.trajectory/1", 1, 2),
        ("graphret.trajectory/1", 2, 2),
    ]
    first = json.loads(path.read_text().splitlines()[0])
    assert first["messages"] == [
        message.to_dict() for message in small().sessions[0].messages
    ]
    assert first["tools"] == [tool.to_dict() for tool in make_tools()]
    assert (first["selection"], first["stop"], first["error"]) == (
        ["a"],
        "finished",
        "",
    )
    assert first["usage"] == {"input_tokens": 0, "output_tokens": 0}
    assert [line["error"] for line in loaded] == ["", "", "", "the model is gone", ""]
    assert Message.from_dict(first["messages"][2]).tool_calls[0].parsed == {
        "query": "who"
    }


def test_what_cannot_be_read_or_written_is_named(path: Path) -> None:
    with pytest.raises(InvalidInput, match="No such file"):
        read_runs(path)
    with pytest.raises(StorageError, match="cannot be written"):
        Recorder(path.parent.parent)(small())
    Recorder(path)(small())
    first, second = path.read_text().splitlines()
    for old, new in (
        (second[200:], ""),
        (second, "[]"),
        ('"selection":["a"]', '"selection":3'),
        ('"role":"system"', '"role":"judge"'),
        ('"arguments":"{\\"query\\":', '"arguments":"{\\"query\\"'),
        ('"max_steps":20', '"max_steps":0'),
        ('"created":', '"made":'),
    ):
        assert old in second
        path.write_text("\n".join([first, "", second.replace(old, new), ""]))
        with pytest.raises(InvalidInput, match=r"runs\.jsonl, line 3: damaged, "):
            read_runs(path)
    path.write_text(f"{first}\n{second}")
    path.write_text(path.read_text().replace("trajectory/1", "trajectory/2"))
    with pytest.raises(NewerVersion, match=r"line 1: .*trajectory/2"):
        read_runs(path)


async def test_a_run_that_is_stopped_midway_is_kept_as_far_as_it_came(
    path: Path,
) -> None:
    def hangs(messages: Sequence[Message]) -> Any:
        model.wait = 30.0  # from now on
        return [call("global_search", query="Bob Bell")]

    store, model = films(), Follows(hangs)
    ark = Ark(
        model,
        store,
        index_of(store),
        settings=ArkSettings(n_agents=1),
        on_run=Recorder(path),
    )
    task = asyncio.create_task(ark.aretrieve("films by Bob Bell"))
    while not (model.asked and model.running):  # noqa: ASYNC110 -- it is about to be asked again
        await asyncio.sleep(0.001)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    (run,) = read_runs(path)
    assert (run.cut_short, len(run.sessions[0].steps), small().cut_short) == (
        True,
        1,
        False,
    )
