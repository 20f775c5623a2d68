"""A request that brought no reply is a step: with what was spent, why, and without a turn that nobody said."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from ark_support import Follows, call, films, index_of, selecting, turns
from rich.console import Console

from graphret.ark import Ark, ArkSession, ArkSettings, Run, ToolCaller
from graphret.ark.trajectory import Recorder, read_runs
from graphret.errors import InvalidInput, ModelError
from graphret.explain import render_timeline, step_text, timeline_page
from graphret.llm.chat import ChatError, Message, Reply, Usage
from graphret.types import Trace

STORE = films()
INDEX = index_of(STORE)
GONE = ChatError("no JSON <b>", model="m", reason="invalid_reply", usage=Usage(700, 70))


def then(error: Exception, after: int = 1) -> Callable[[Sequence[Message]], Any]:
    """Search, and select, and then fail."""
    said = turns([call("global_search", query="Bob Bell"), call("select", nodes=["p1"])])

    def policy(messages: Sequence[Message]) -> Any:
        if sum(message.role == "assistant" for message in messages) >= after:
            raise error
        return said(messages)

    return policy


def ran(*policies: Any, **settings: Any) -> Run:
    models = [Follows(policy) for policy in policies]
    chosen = ArkSettings(n_agents=len(models), **{"early_stop": False, **settings})
    return Ark(models, STORE, INDEX, settings=chosen, temperature=None).explore("films by Bob Bell")


def summary(trace: Trace) -> dict[str, Any]:
    return next(stage.details for stage in trace.stages if stage.name == "explore")


def printed(value: Any) -> str:
    out = io.StringIO()
    Console(file=out, width=120, color_system=None).print(value)
    return out.getvalue()


def test_a_failed_request_is_a_step_with_its_tokens_and_seconds() -> None:
    session = (run := ran(then(GONE))).sessions[0]
    assert (session.stop, session.error, session.selection) == ("failed", str(GONE), ["p1"])
    last = session.steps[-1]
    assert (last.number, last.error, last.calls, last.text) == (2, str(GONE), [], "")
    assert (last.input_tokens, last.output_tokens) == (700, 70)
    assert last.seconds > 0
    assert last.started >= session.steps[0].started + session.steps[0].seconds
    assert session.tokens == 110 + 770
    assert session.messages[-1].role == "tool"  # no turn was said
    assert (summary(run.trace)["input_tokens"], summary(run.trace)["steps"]) == (800, 2)
    [stage] = [stage for stage in run.trace.stages if stage.name == "explore/agent 1/step 2"]
    assert stage.details["error"] == str(GONE)
    json.dumps(run.trace.to_dict())


def test_tokens_of_a_failed_request_count_in_the_budget() -> None:
    endless = turns(*([call("global_search", query=f"film {i}")] for i in range(30)))
    run = ran(then(GONE, after=0), endless, max_tokens=900)
    assert [session.stop for session in run.sessions] == ["failed", "tokens"]
    assert len(run.sessions[1].steps) in (2, 3)  # 770 of 900 were gone, and each reply takes 110


@pytest.mark.parametrize("raised", [GONE, ModelError("ours")])
def test_tokens_are_known_through_what_an_error_was_raised_from(raised: ModelError) -> None:
    session = ArkSession("who?", "explore")
    try:
        raise TimeoutError from raised
    except TimeoutError as error:
        session.fail(error, started=1.0, seconds=2.0)
    spent = 770 if raised is GONE else 0
    assert (session.stop, session.error, session.tokens) == ("seconds", None, spent)
    assert session.steps[0].error == "no reply in the time that was left"
    assert (session.steps[0].started, session.steps[0].seconds) == (1.0, 2.0)


def test_a_request_that_a_time_out_ended_says_so() -> None:
    model = Follows(then(GONE, after=9), wait=30)
    ark = Ark(model, STORE, INDEX, settings=ArkSettings(n_agents=1, max_seconds=0.02))

    async def explored() -> Run:
        return await ark.aexplore("films by Bob Bell")

    import asyncio

    [session] = asyncio.run(explored()).sessions
    assert (session.stop, len(session.steps)) in (("seconds", 0), ("seconds", 1))
    for step in session.steps:  # none where the time was up before the first request
        assert "no reply in the time" in step.error or "nobody waited" in step.error


async def test_a_request_that_nobody_waits_for_any_more_is_a_step() -> None:
    models = [Follows(selecting("f1")), Follows(selecting("f1", "f4")), Follows(selecting("f4"), wait=20)]
    ark = Ark(models, STORE, INDEX, settings=ArkSettings(early_stop=True))
    run = await ark.aexplore("films by Bob Bell")
    assert [session.stop for session in run.sessions] == ["finished", "finished", "settled"]
    [step] = run.sessions[2].steps
    assert step.error == "nobody waited for the reply: the agent was stopped"
    assert step.seconds > 0


def test_calls_that_an_end_cut_off_are_in_the_trace() -> None:
    session = ArkSession("who?", "explore")
    session.receive(Reply("", (call("global_search", "a", query="x"), call("finish", "b"))))
    session.end("seconds")
    assert [(one.tool, one.failed, one.error) for one in session.steps[0].calls] == [
        ("global_search", True, "the agent was stopped before it was answered"),
        ("finish", True, "the agent was stopped before it was answered"),
    ]
    assert "not answered" in printed(render_timeline(Run("who?", [session])))
    with pytest.raises(InvalidInput, match="not answered yet"):
        session.fail("late")


def test_it_is_recorded_read_back_and_shown(tmp_path: Path) -> None:
    run = ran(then(GONE))
    Recorder(tmp_path / "r.jsonl")(run)
    line = json.loads((tmp_path / "r.jsonl").read_text())
    assert sum(message["role"] == "assistant" for message in line["messages"]) == 1
    assert line["usage"] == {"input_tokens": 800, "output_tokens": 80}
    [back] = read_runs(tmp_path / "r.jsonl")
    assert back.sessions[0].to_dict()["steps"] == run.sessions[0].to_dict()["steps"]
    for shown in (run, back, run.trace):
        assert f"no reply: {GONE}"[:60] in printed(render_timeline(shown))
        assert "no reply: m: invalid_reply: no JSON &lt;b&gt;" in timeline_page(shown)
    assert "no reply" in printed(step_text(run.sessions[0]))


def test_what_was_saved_before_there_were_failed_steps_still_loads() -> None:
    session = ran(then(GONE, after=9)).sessions[0]
    saved = json.loads(json.dumps(session.to_dict()))
    for step in saved["steps"]:
        del step["error"]
    assert ArkSession.from_dict(saved).to_dict() == session.to_dict()


def test_all_that_was_asked_of_a_model_that_neither_calls_tools_nor_answers_in_json_counts() -> None:
    """It is asked with tools, answers in words, is asked for JSON, and the endpoint breaks."""

    class Breaks(Follows):
        def chat(self, messages: Sequence[Message], *, tools: Any = None, **options: Any) -> Reply:
            if tools:
                return Reply("I would search.", usage=Usage(5, 5))
            raise ChatError("broken", model="m", reason="server", usage=Usage(7, 1))

    with pytest.raises(ChatError, match="broken") as caught:
        ToolCaller(Breaks(turns())).chat([Message.user("q")], tools=Ark(Follows(turns()), STORE, INDEX).toolbox.tools)
    assert caught.value.usage == Usage(12, 6)
