"""Trajectories: what is recorded is read back, whoever records at once, and damage is named by its line."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.json as pa_json
import pytest
from ark_runs import small
from hypothesis import given, settings
from hypothesis import strategies as st

from graphret.ark.prompt import TOOLS
from graphret.ark.records import CallRecord, StepRecord
from graphret.ark.run import Run
from graphret.ark.session import STOPS, ArkSession
from graphret.ark.settings import ArkSettings
from graphret.ark.trajectory import Recorder, read_runs, recorded_runs
from graphret.errors import InvalidInput, NewerVersion, StorageError
from graphret.llm.chat import Message, ToolCall

TEXT = st.text(max_size=12)
COUNT = st.integers(0, 10**6)
SECONDS = st.floats(0, 1e6)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=5,
)
CALLS = st.builds(
    CallRecord,
    tool=TEXT,
    arguments=TEXT | st.dictionaries(TEXT, JSON, max_size=3),
    seconds=SECONDS,
    tokens=COUNT,
    shown=COUNT,
    total=COUNT,
    failed=st.booleans(),
    remembered=st.booleans(),
    nodes=st.lists(TEXT, max_size=3),
    edges=st.lists(st.lists(TEXT, min_size=3, max_size=3), max_size=2),
)
STEPS = st.builds(
    StepRecord,
    number=COUNT,
    started=SECONDS,
    seconds=SECONDS,
    input_tokens=COUNT,
    output_tokens=COUNT,
    text=TEXT,
    calls=st.lists(CALLS, max_size=3),
    selected=st.lists(TEXT, max_size=3),
    error=TEXT,
)
ARGUMENTS = TEXT.filter(lambda text: text.strip() not in ("", "null"))  # which are written as {}
TOOL_CALLS = st.builds(ToolCall, TEXT, TEXT, ARGUMENTS | st.just("{}"))
MESSAGES = (
    st.builds(Message.user, TEXT)
    | st.builds(Message.assistant, TEXT, st.lists(TOOL_CALLS, max_size=2))
    | st.builds(Message.tool, TOOL_CALLS, TEXT)
)


@st.composite
def sessions(draw: st.DrawFn, agent: int, question: str) -> ArkSession:
    session = ArkSession(
        question,
        draw(TEXT),
        agent=agent,
        settings=ArkSettings(max_steps=draw(st.integers(1, 9)), max_seconds=draw(st.none() | st.just(1.5))),
        model=draw(TEXT),
    )
    session.messages += draw(st.lists(MESSAGES, max_size=4))
    session.selection = draw(st.lists(TEXT, max_size=3, unique=True))
    session.steps = draw(st.lists(STEPS, max_size=2))
    shown = (node for step in session.steps for call in step.calls if call.tool != "select" for node in call.nodes)
    session.seen = dict.fromkeys(shown)
    session.stop = draw(st.none() | st.sampled_from(STOPS))
    session.error = draw(st.none() | st.text(min_size=1, max_size=12))
    return session


@st.composite
def runs(draw: st.DrawFn) -> Run:
    question = draw(st.text(min_size=1, max_size=20).filter(str.strip))
    agents = [draw(sessions(number, question)) for number in range(draw(st.integers(1, 3)))]
    how = draw(st.sampled_from(["votes", "ordered", "reciprocal"]))
    return Run(question, agents, draw(SECONDS), how, draw(TEXT))


def as_dict(run: Run) -> dict[str, Any]:
    """All of a run that can be seen from outside."""
    state = [session.to_dict() | {"known": {}, "failures": 0} for session in run.sessions]
    votes = [vote.to_dict() for vote in run.votes]
    return {"all": (run.question, run.seconds, run.how, run.created), "sessions": state, "votes": votes}


@settings(max_examples=60, deadline=None)
@given(st.lists(runs(), min_size=1, max_size=2))
def test_what_is_recorded_is_read_back(tmp_path_factory: pytest.TempPathFactory, recorded: list[Run]) -> None:
    path = tmp_path_factory.mktemp("runs") / "runs.jsonl"
    ids = [Recorder(path).record(run) for run in recorded]
    assert list(recorded_runs(path)) == ids
    back = read_runs(path)
    assert [as_dict(run) for run in back] == [as_dict(run) for run in recorded]


def test_a_line_is_one_agent_in_the_chat_format(tmp_path: Path) -> None:
    path = tmp_path / "new" / "runs.jsonl"
    Recorder(path)(small())
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [(line["schema"], line["agent"], line["agents"]) for line in lines] == [
        ("graphret.trajectory/1", 1, 2),
        ("graphret.trajectory/1", 2, 2),
    ]
    assert lines[0]["messages"] == [message.to_dict() for message in small().sessions[0].messages]
    assert lines[0]["tools"] == [tool.to_dict() for tool in TOOLS]
    assert lines[0]["selection"] == ["a"]
    assert (lines[0]["stop"], lines[0]["error"], lines[0]["usage"]) == (
        "finished",
        "",
        {"input_tokens": 0, "output_tokens": 0},
    )


def test_arguments_are_json_where_the_model_wrote_none(tmp_path: Path) -> None:
    path, run = tmp_path / "runs.jsonl", small(agents=1)
    said = ["", " ", "null", "{}", '{"k": 2}', "no JSON"]
    calls = [ToolCall(f"c{number}", "finish", arguments) for number, arguments in enumerate(said)]
    run.sessions[0].messages.append(Message.assistant(tool_calls=calls))
    Recorder(path)(run)
    message = json.loads(path.read_text())["messages"][-1]
    recorded = [one["function"]["arguments"] for one in message["tool_calls"]]
    assert recorded == ["{}", "{}", "{}", "{}", '{"k": 2}', "no JSON"]


def test_a_file_loads_as_a_data_set_as_it_is(tmp_path: Path) -> None:
    path, failed = tmp_path / "runs.jsonl", small("why?")
    failed.sessions[0].error = "the model is gone"
    failed.sessions[0].steps[0].calls.append(CallRecord("global_search", "no JSON", failed=True))
    for run in (small(), small(agents=1), failed):
        Recorder(path)(run)
    lines = [pa_json.read_json(io.BytesIO(line)) for line in path.read_bytes().splitlines(keepends=True)]
    loaded = pa.concat_tables(lines, promote_options="default").to_pylist()  # as `datasets` does with its chunks
    assert len(loaded) == 5
    kept = [{k: v for k, v in message.items() if v is not None} for message in loaded[0]["messages"]]
    assert kept == [message.to_dict() for message in small().sessions[0].messages]
    assert [tool["function"]["name"] for tool in loaded[0]["tools"]] == [tool.name for tool in TOOLS]
    assert loaded[3]["error"] == "the model is gone"


def test_a_newer_line_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    Recorder(path)(small())
    path.write_text(path.read_text().replace("trajectory/1", "trajectory/2"))
    with pytest.raises(NewerVersion, match=r"line 1: a trajectory of version 2"):
        read_runs(path)


def test_half_a_pair_of_surrogates_is_read_back(tmp_path: Path) -> None:
    path, run = tmp_path / "runs.jsonl", small("who \ud83d?")
    Recorder(path)(run)
    assert read_runs(path)[0].question == "who \ud83d?"


@pytest.mark.parametrize(
    "change",
    [
        lambda line: line[: len(line) // 2],
        lambda line: "[]",
        lambda line: line.replace('"graphret.trajectory/1"', '"graphret.trajectory/x"'),
        lambda line: line.replace('"selection":["a"]', '"selection":3'),
        lambda line: line.replace('"role":"system"', '"role":"judge"'),
        lambda line: line.replace('"arguments":"{\\"query\\":', '"arguments":"{\\"query\\"'),
        lambda line: line.replace('"max_steps":20', '"max_steps":0'),
        lambda line: line.replace('"how":', '"who":'),
    ],
)
def test_a_damaged_line_is_named(tmp_path: Path, change: Any) -> None:
    path = tmp_path / "runs.jsonl"
    Recorder(path)(small())
    lines = path.read_text().splitlines()
    assert change(lines[1]) != lines[1]
    path.write_text("\n".join([lines[0], "", change(lines[1]), ""]))
    with pytest.raises(InvalidInput, match=r"runs\.jsonl, line 3: damaged, "):
        read_runs(path)


def test_what_is_no_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="no such file"):
        read_runs(tmp_path / "missing.jsonl")
    with pytest.raises(StorageError, match="cannot be written"):
        Recorder(tmp_path)(small())
