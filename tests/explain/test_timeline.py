"""A timeline is read from a trace, a retrieval or a run, and printed."""

from __future__ import annotations

import io
from typing import Any

import pytest
from explain_helpers import EVIL, asked
from rich.console import Console
from timeline_helpers import QUESTION, RELATION, explored, one_agent

from graphret.ark import ArkSession, CallRecord, StepRecord
from graphret.ark.trajectory import Recorder, read_runs
from graphret.explain import reasons, render_timeline, step_text, store_lookup, timeline
from graphret.explain.pictures import MOST_NODES, run_picture
from graphret.explain.runs import (
    Choice,
    Lane,
    Timeline,
    call_text,
    duration,
    edges,
    names_text,
    outcome_text,
    reached,
    same_steps,
    shown_nodes,
    spans,
    stop_text,
)
from graphret.llm.chat import Message, ToolCall
from graphret.types import Evidence, Hit, Node, Trace


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


def test_a_trace_a_retrieval_and_a_run_tell_the_same(tmp_path: Any) -> None:
    _, retrieval, run = explored()
    Recorder(tmp_path / "r.jsonl")(run)
    lines = [
        timeline(retrieval),
        timeline(run),
        timeline(retrieval.trace),
        timeline(read_runs(tmp_path / "r.jsonl")[0]),
    ]
    assert lines[0].question == lines[1].question == lines[3].question == QUESTION
    for other in lines[1:]:
        assert [(lane.agent, lane.model, lane.stop, lane.selection) for lane in other.lanes] == [
            (lane.agent, lane.model, lane.stop, lane.selection) for lane in lines[0].lanes
        ]
        assert [[step.calls for step in lane.steps] for lane in other.lanes] == [
            [step.calls for step in lane.steps] for lane in lines[0].lanes
        ]
        assert (other.ranking, other.how) == (lines[0].ranking, lines[0].how)
    assert lines[0].ranking == (Choice("ann", (1, 2), 1), Choice(EVIL, (1,), 2))
    assert [lane.stop for lane in lines[0].lanes] == ["finished", "finished", "failed"]
    assert [note for note in lines[0].notes if note.startswith("agent 3")]


def test_what_a_combinator_ran_is_found_behind_its_prefix() -> None:
    _, retrieval, _ = explored()
    trace = Trace()
    trace.extend(retrieval.trace, "ark/")
    trace.extend(retrieval.trace, "other/")
    assert timeline(trace).ranking == timeline(retrieval).ranking
    assert [len(lane.steps) for lane in timeline(trace).lanes] == [
        len(lane.steps) for lane in timeline(retrieval).lanes
    ]


def test_a_trace_without_agents_has_no_lanes() -> None:
    _, sage, _ = asked()
    assert timeline(sage).lanes == ()
    shown = printed(sage.trace)
    assert shown == printed(render_timeline(sage))
    assert sage.trace.stages[0].name in shown


def test_depths_are_counted_from_what_a_search_found() -> None:
    lane = Lane(1, steps=(searched("a"), walked("a", "b"), walked("b", "a", "c", number=3)), selection=("c",))
    other = Lane(2, steps=(searched("c", started=9.0),))
    alone, both = reached(Timeline(lanes=(lane,))), reached(Timeline(lanes=(lane, other)))
    assert {id_: node.depth for id_, node in alone.items()} == {"a": 0, "b": 1, "c": 2}
    assert {id_: node.depth for id_, node in both.items()} == {"a": 0, "b": 1, "c": 0}
    assert (both["c"].agents, both["c"].selected, both["b"].explored) == ({1, 2}, {1}, {1})
    assert edges(Timeline(lanes=(lane,))) == [("a", "r", "b"), ("b", "r", "a"), ("b", "r", "c")]


def test_the_picture_has_what_was_explored_or_selected_and_what_led_there() -> None:
    _, retrieval, _ = explored()
    drawn = run_picture(timeline(retrieval), {})
    ids = [card.node.id for card in drawn.cards]
    assert ids == ["dawn", "ann", EVIL]
    assert [(card.column, card.slot, card.rank) for card in drawn.cards] == [(0, 0, None), (1, 0, 1), (1, 1, 2)]
    assert {(line.source, line.target, line.text) for line in drawn.lines} == {(0, 1, RELATION), (0, 2, RELATION)}
    assert drawn.others == 1  # dusk, which the walk from ann showed


def test_a_large_picture_is_cut_and_says_how_much() -> None:
    leaves = [f"n{i:03}" for i in range(200)]
    lane = Lane(1, steps=(searched("a"), walked("a", *leaves)), selection=tuple(leaves))
    ranking = tuple(Choice(id_, (1,), at) for at, id_ in enumerate(leaves, start=1))
    drawn = run_picture(Timeline(lanes=(lane,), ranking=ranking), {})
    assert len(drawn.cards) == MOST_NODES
    assert drawn.others == 201 - MOST_NODES
    assert [card.node.id for card in drawn.cards][:3] == ["a", "n000", "n001"]


def test_spans_do_not_run_into_the_next_step() -> None:
    lane = Lane(1, steps=(searched("a"), walked("a", "b", started=1.2)))
    assert [span[1:] for span in spans(lane)] == [(0.0, 1.0, 1.2), (1.2, 2.2, 2.7)]


@pytest.mark.parametrize(
    ("given", "came", "text", "outcome"),
    [
        (("global_search", {"query": "x", "k": 3}), {"shown": 2, "total": 2}, 'global_search("x", k=3)', "2 shown"),
        (("global_search", {"query": None}), {}, "global_search()", "0 shown"),
        (("select", {"nodes": list("abcde")}), {"shown": 5}, 'select(["a", "b", "c", … 2 more])', "5 selected"),
        (
            ("explore_neighborhood", {"node": "a"}),
            {"shown": 3, "total": 9},
            'explore_neighborhood("a")',
            "3 of 9 shown",
        ),
        (("explore_neighborhood", {"node": 3}), {"remembered": True}, "explore_neighborhood(3)", "from memory"),
        (("finish", {}), {}, "finish()", ""),
        (("odd", "{no\nJSON"), {"failed": True}, "odd {no JSON", "refused, and the model told why"),
        (("odd", "x" * 99), {"failed": True}, f"odd {'x' * 59}…", "refused, and the model told why"),
    ],
)
def test_a_call_is_a_line(given: tuple[str, object], came: dict[str, Any], text: str, outcome: str) -> None:
    call = CallRecord(*given, **came)
    assert call_text(call) == text
    assert outcome_text(call) == outcome


def test_words_for_numbers_names_and_ends() -> None:
    assert [duration(seconds) for seconds in (0.0, 0.0004, 0.05, 61.0)] == ["0 ms", "0.40 ms", "50 ms", "61.00 s"]
    assert names_text(["a", "c", "d"], {"a": "a\nb"}, 2) == "a b; c + 1 more"
    assert stop_text("failed", "gone") == "failed: gone"
    assert stop_text("") == "did not stop"
    votes = Evidence("votes", rank=2, properties={"votes": 2, "of": 3, "agents": [1, 3]})
    assert reasons(Hit(Node("a"), 1.0, (votes,)))[0].text == "selected by 2 of 3 agents (1, 3), at place 2 at best"


def test_nodes_are_known_from_what_tools_said_of_them() -> None:
    session = ArkSession("q", "p")
    lines = ['{"found": 2}', '{"id": "a", "type": ["X", "Y"], "name": "A", "text": "t"}', '{"id": 3}', '{"id": "b", no']
    session.messages.append(Message.tool(ToolCall("1", "global_search"), "\n".join(lines)))
    session.messages.append(Message.tool(ToolCall("2", "global_search"), '{"id": "a", "name": "other"}\n{"id": "c"}'))
    assert shown_nodes([session]) == {"a": Node("a", ("X", "Y"), "A", "t"), "c": Node("c", ())}


def test_agents_that_did_the_same_are_told_once() -> None:
    step = searched("a")
    lanes = (Lane(1, steps=(step,)), Lane(2), Lane(3, steps=(step,)), Lane(4, steps=(searched("b"),)))
    assert same_steps(Timeline(lanes=lanes)) == {3: 1}
    assert "agent 3 did what agent 1 did" in printed(render_timeline_of(lanes))


def render_timeline_of(lanes: tuple[Lane, ...]) -> Any:
    """Print lanes by way of a trace, as they come from a run."""
    trace = Trace()
    for lane in lanes:
        for step in lane.steps:
            name = f"explore/agent {lane.agent}/step {step.number}"
            trace.note(name, started=step.started, model_seconds=step.seconds, calls=step.calls, selected=[])
        trace.note(f"explore/agent {lane.agent}", stop="finished", selected=[])
    return render_timeline(trace)


def test_the_terminal_shows_lanes_steps_and_votes() -> None:
    store, retrieval, _ = explored()
    shown = printed(render_timeline(retrieval, store_lookup(store)))
    assert "agent 1" in shown
    assert "failed: " in shown
    assert 'explore_neighborhood("dawn") → 2 shown: ' in shown
    assert "Ann <b>Ames</b>" in shown
    assert 'explore_neighborhood("nobody <u>") → refused, and the model told why' in shown
    assert "from memory" in shown
    assert "2 of 3" in shown
    assert "\x1b" not in shown
    assert "\x07" not in shown
    assert "select" not in printed(render_timeline(retrieval, steps=False))


def test_steps_are_shown_as_they_happen_each_once() -> None:
    session: ArkSession = one_agent("dawn", "dusk").sessions[0]
    assert [line for line in printed(step_text(session)).splitlines() if line.startswith("agent")] == [
        line for line in printed(step_text(session, 0)).splitlines() if line.startswith("agent")
    ]
    assert printed(step_text(session)).count("agent 1 step") == 2
    assert printed(step_text(session, 1)).count("agent 1 step") == 1
    assert printed(step_text(session, 2)) == "agent 1 finished\n"
