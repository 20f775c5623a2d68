"""Trajectories: what is recorded is read back, in the chat format, and damage is named by its line."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.json as pa_json
import pytest
from ark_runs import small
from ark_support import Follows, call, films, index_of, turns

from graphret.ark import Ark, ArkSettings, CallRecord, Recorder, Run, make_tools, read_runs
from graphret.ark.trajectory import recorded_runs
from graphret.errors import InvalidInput, NewerVersion, StorageError
from graphret.llm.chat import Message, Reply, ToolCall


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "new" / "runs.jsonl"


def odd() -> Run:
    """A run with all that may go wrong in one."""
    said = [ToolCall("", "global_search", '["no object"]'), ToolCall("x", "no such tool", "no JSON")]
    model = Follows(
        turns(
            [call("global_search", query="Bob Bell"), call("explore_neighborhood", node="p1"), *said],
            [call("global_search", query="Bob Bell"), call("select", nodes=["f1", "nobody"])],
            Reply("half a \ud83d pair"),
        )
    )
    store, runs = films(), list[Run]()
    given = {"settings": ArkSettings(n_agents=2, max_steps=3, max_seconds=99.5, vote="ordered"), "on_run": runs.append}
    Ark([model, Follows(turns(Reply("")))], store, index_of(store), **given).retrieve("who \ud83d?", 2)  # type: ignore[arg-type]
    return runs[0]


def test_what_is_recorded_is_read_back(path: Path) -> None:
    recorded = [odd(), small(), odd()]
    for run in recorded:
        Recorder(path)(run)
    back = recorded_runs(path)
    assert len(read_runs(path)) == 3
    for run, again in zip(recorded, back.values(), strict=True):
        for name in ("question", "seconds", "how", "created"):
            assert getattr(again, name) == getattr(run, name)
        assert [one.to_dict() for one in again.sessions] == [one.to_dict() for one in run.sessions]
        assert again.votes == run.votes


def test_a_line_is_one_agent_in_the_chat_format_and_loads_as_a_data_set(path: Path) -> None:
    failed = small("why?")
    failed.sessions[0].error = "the model is gone"
    failed.sessions[0].steps[0].calls.append(CallRecord("global_search", "no JSON", failed=True))
    for run in (small(), small(agents=1), failed):
        Recorder(path)(run)
    lines = [pa_json.read_json(io.BytesIO(line)) for line in path.read_bytes().splitlines(keepends=True)]
    loaded = pa.concat_tables(lines, promote_options="default").to_pylist()  # as `datasets` does with its chunks
    assert [(line["schema"], line["agent"], line["agents"]) for line in loaded[:2]] == [
        ("graphret.trajectory/1", 1, 2),
        ("graphret.trajectory/1", 2, 2),
    ]
    first = json.loads(path.read_text().splitlines()[0])
    assert first["messages"] == [message.to_dict() for message in small().sessions[0].messages]
    assert first["tools"] == [tool.to_dict() for tool in make_tools()]
    assert (first["selection"], first["stop"], first["error"]) == (["a"], "finished", "")
    assert first["usage"] == {"input_tokens": 0, "output_tokens": 0}
    assert [line["error"] for line in loaded] == ["", "", "", "the model is gone", ""]
    assert Message.from_dict(first["messages"][2]).tool_calls[0].parsed == {"query": "who"}


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
