"""A timeline is read from a trace, a retrieval or a run, and printed."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from explain_helpers import EVIL, asked
from rich.console import Console
from timeline_helpers import QUESTION, RELATION, explored

from graphret.ark import CallRecord, StepRecord
from graphret.ark.trajectory import Recorder, read_runs
from graphret.errors import InvalidInput
from graphret.explain import render_timeline, store_lookup, timeline
from graphret.explain.pictures import MOST_NODES, run_picture
from graphret.explain.runs import Lane, Timeline, call_text, outcome_text
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


def test_what_a_combinator_ran_is_found_behind_its_prefix() -> None:
    _, retrieval, _ = explored()
    trace = Trace()
    trace.extend(retrieval.trace, "ark/")
    trace.extend(retrieval.trace, "other/")
    assert timeline(trace).ranking == timeline(retrieval).ranking
    assert [len(lane.steps) for lane in timeline(trace).lanes] == [
        len(lane.steps) for lane in timeline(retrieval).lanes
    ]


def test_depths_are_counted_from_what_a_search_found() -> None:
    lane = Lane(1, steps=[searched("a"), walked("a", "b"), walked("b", "a", "c", number=3)], selection=["c"])
    other = Lane(2, steps=[searched("c", started=9.0)])
    alone, both = Timeline(lanes=[lane]).reached(), Timeline(lanes=[lane, other]).reached()
    assert {id_: node.depth for id_, node in alone.items()} == {"a": 0, "b": 1, "c": 2}
    assert {id_: node.depth for id_, node in both.items()} == {"a": 0, "b": 1, "c": 0}
    assert (both["c"].agents, both["c"].selected, both["b"].explored) == ({1, 2}, {1}, {1})
    assert Timeline(lanes=[lane]).edges == [("a", "r", "b"), ("b", "r", "a"), ("b", "r", "c")]


def test_the_picture_has_what_was_explored_or_selected_and_what_led_there() -> None:
    _, retrieval, _ = explored()
    drawn = run_picture(timeline(retrieval), {})
    ids = [card.node.id for card in drawn.cards]
    assert ids == ["dawn", "ann", EVIL]
    assert [(card.column, card.top, card.rank) for card in drawn.cards] == [(0, 28, None), (1, 28, 1), (1, 96, 2)]
    assert {(line.source, line.target, line.text) for line in drawn.lines} == {(0, 1, RELATION), (0, 2, RELATION)}
    assert drawn.others == 1  # dusk, which the walk from ann showed


def test_a_large_picture_is_cut_and_says_how_much() -> None:
    leaves = [f"n{i:03}" for i in range(200)]
    lane = Lane(1, steps=[searched("a"), walked("a", *leaves)], selection=leaves)
    ranking = [Vote(id_, (0,), at) for at, id_ in enumerate(leaves, start=1)]
    drawn = run_picture(Timeline(lanes=[lane], ranking=ranking), {})
    assert len(drawn.cards) == MOST_NODES
    assert drawn.others == 201 - MOST_NODES
    assert [card.node.id for card in drawn.cards][:3] == ["a", "n000", "n001"]


@pytest.mark.parametrize(
    ("given", "came", "line"),
    [
        (
            ("global_search", {"query": "x", "k": 3}),
            {"shown": 2, "total": 2},
            'global_search(query="x", k=3) → 2 shown',
        ),
        (("global_search", {"query": None}), {}, "global_search() → 0 shown"),
        (
            ("explore_neighborhood", {"node": 3}),
            {"shown": 3, "total": 9},
            "explore_neighborhood(node=3) → 3 of 9 shown",
        ),
        (("select", {"nodes": ["a"]}), {"shown": 1}, 'select(nodes=["a"]) → 1 selected'),
        (("explore_neighborhood", {}), {"remembered": True}, "explore_neighborhood() → from memory"),
        (("finish", {}), {}, "finish() → "),
        (("odd", "{no\nJSON"), {"failed": True}, "odd {no JSON → refused, and the model told why"),
        (("odd", "x" * 99), {"failed": True, "error": "e"}, f"odd {'x' * 59}… → not answered, the agent was stopped"),
    ],
)
def test_a_call_is_a_line(given: tuple[str, object], came: dict[str, Any], line: str) -> None:
    call = CallRecord(*given, **came)
    assert f"{call_text(call)} → {outcome_text(call)}" == line


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
