"""A timeline is read from a trace, a retrieval or a run, and printed."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from explain_helpers import EVIL, asked
from rich.console import Console
from timeline_helpers import QUESTION, explored

from graphret.ark import CallRecord, StepRecord
from graphret.ark.trajectory import Recorder, read_runs
from graphret.errors import InvalidInput
from graphret.explain import render_timeline, store_lookup, timeline
from graphret.explain.pictures import MOST_NODES, run_picture
from graphret.explain.runs import Lane, Timeline
from graphret.fusion import Vote
from graphret.types import Trace


def printed(value: Any, width: int = 120) -> str:
    out = io.StringIO()
    Console(file=out, width=width, color_system=None).print(value)
    return out.getvalue()


def searched(*nodes: str, started: float = 0.0) -> StepRecord:
    call = CallRecord("global_search", {"query": "x"}, 0.5, nodes=list(nodes))
    return StepRecord(1, started, 1.0, calls=[call])


def walked(node: str, *nodes: str, number: int = 2, started: float = 2.0) -> StepRecord:
    found = [[node, "r", other] for other in nodes]
    call = CallRecord("explore_neighborhood", {"node": node}, 0.5, nodes=list(nodes), edges=found)
    return StepRecord(number, started, 1.0, calls=[call])


def test_a_trace_a_retrieval_a_run_and_their_json_tell_the_same(tmp_path: Any) -> None:
    _, retrieval, run = explored()
    Recorder(tmp_path / "r.jsonl")(run)
    read, written = read_runs(tmp_path / "r.jsonl")[0], json.loads(json.dumps(retrieval.to_dict()["trace"]))
    lines = [timeline(one) for one in (retrieval, run, read, retrieval.trace, Trace.from_dict(written))]
    assert [line.question for line in lines] == [QUESTION, QUESTION, QUESTION, "", ""]
    for other in lines[1:]:
        assert (other.lanes, other.ranking, other.how) == (lines[0].lanes, lines[0].ranking, lines[0].how)
    assert lines[0].ranking == [Vote("ann", (0, 1), 1), Vote(EVIL, (0,), 2)]
    assert [lane.stop for lane in lines[0].lanes] == ["finished", "finished", "failed"]
    assert [note for note in lines[0].notes if note.startswith("agent 3")]
    for no_trace in (None, [], {"stages": "vote"}, {"stages": [5]}, {"stages": [{"seconds": 0}]}):
        with pytest.raises(InvalidInput, match="trace: an object with a list of stages is expected"):
            Trace.from_dict(no_trace)


def test_a_large_picture_is_cut_and_says_how_much() -> None:
    leaves = [f"n{i:03}" for i in range(200)]
    lane = Lane(1, steps=[searched("a"), walked("a", *leaves)], selection=leaves)
    ranking = [Vote(id_, (0,), at) for at, id_ in enumerate(leaves, start=1)]
    drawn = run_picture(Timeline(lanes=[lane], ranking=ranking), {})
    assert len(drawn.cards) == MOST_NODES
    assert drawn.others == 201 - MOST_NODES
    assert [card.node.id for card in drawn.cards][:3] == ["a", "n000", "n001"]


def test_the_terminal_shows_lanes_steps_and_votes() -> None:
    store, retrieval, _ = explored()
    shown = printed(render_timeline(retrieval, store_lookup(store)))
    _, sage, _ = asked()
    assert sage.trace.stages[0].name in printed(render_timeline(sage))
    for said in ("agent 1", "failed: ", "Ann <b>Ames</b>", "from memory", "2 of 3"):
        assert said in shown
    assert 'explore_neighborhood(node="dawn") → 2 shown: ' in shown
    assert 'explore_neighborhood(node="nobody <u>") → refused, and the model told why' in shown
    assert not {"\x1b", "\x07"} & set(shown)
    assert "select" not in printed(render_timeline(retrieval, steps=False))
