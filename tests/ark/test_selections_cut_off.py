"""What an agent selects counts whatever becomes of the calls beside it: time that is up, cancellation, interrupts."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from ark_cut_off import POLICY, SELECTED, Clock, interrupted_at, stuck
from ark_support import Follows, call, index_of

from graphret.ark import Ark, ArkSession, ArkSettings, Recorder, Run, read_runs
from graphret.llm.chat import Message, Reply

QUESTION = "films by Bob Bell"


def asked(session: ArkSession, *calls: Any) -> ArkSession:
    session.receive(Reply("", calls))
    return session


def session(*seen: str) -> ArkSession:
    made = ArkSession("who?", "explore")
    made.seen = dict.fromkeys(seen)
    return made


SEARCH = call("global_search", "s", query="x")


def test_an_end_applies_the_selections_of_a_reply_in_their_order() -> None:
    one = asked(
        session("a", "b", "c"),
        call("select", "1", nodes=["c", "never shown"]),
        SEARCH,
        call("select", "2", nodes=["a", "c"]),
        call("select", "3", nodes=3),
        call("finish", "4"),
    )
    before = one.to_dict()
    one.end("seconds")
    assert (one.stop, one.selection, one.steps[0].selected) == ("seconds", ["c", "a"], ["c", "a"])
    late = "the agent was stopped before it was answered"
    assert [(record.tool, record.nodes, record.failed, record.error) for record in one.steps[0].calls] == [
        ("select", ["c"], False, None),
        ("global_search", [], True, late),
        ("select", ["a"], False, None),
        ("select", [], True, one.steps[0].calls[3].error),
        ("finish", [], True, late),
    ]
    assert "select takes" in str(one.steps[0].calls[3].error)
    one.end("cancelled")
    assert one.selection == ["c", "a"]
    assert ArkSession.from_dict(json.loads(json.dumps(one.to_dict()))).to_dict() == one.to_dict()
    again = ArkSession.from_dict(before)  # as a checkpoint has it: the calls are still to be answered
    assert (again.selection, [one.id for one in again.pending]) == ([], ["s"])


class Finishes(Follows):
    """Finishes when the other agent is stuck, and lets the time run out with it."""

    def __init__(self, store: Any, clock: Clock) -> None:
        super().__init__(lambda _: [call("finish")])
        self.store, self.clock = store, clock

    def chat(self, messages: Sequence[Message], **options: Any) -> Reply:  # type: ignore[override]
        assert self.store.reached.wait(20)
        self.clock.now = 99.0
        return super().chat(messages, **options)

    async def achat(self, messages: Sequence[Message], **options: Any) -> Reply:  # type: ignore[override]
        await self.store.is_stuck()
        self.clock.now = 99.0
        return await super().achat(messages, **options)


@pytest.mark.parametrize("form", ["blocking", "awaited"])
async def test_they_count_when_the_time_is_up(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    with stuck() as store:
        settings = ArkSettings(n_agents=2, early_stop=False, max_seconds=60.0)
        ark = Ark([Follows(POLICY), Finishes(store, clock)], store, index_of(store), settings=settings)
        run = await (ark.aexplore(QUESTION) if form == "awaited" else asyncio.to_thread(ark.explore, QUESTION))
    assert [one.stop for one in run.sessions] == ["seconds", "finished"]
    assert run.sessions[0].selection == SELECTED
    assert [vote.id for vote in run.votes] == SELECTED
    assert run.evidence()["p1"][0].properties["votes"] == 1


async def test_they_count_when_the_run_is_cancelled(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    with stuck() as store:
        ark = Ark(Follows(POLICY), store, index_of(store), settings=ArkSettings(n_agents=1), on_run=Recorder(path))
        task = asyncio.create_task(ark.aretrieve(QUESTION, 3))
        await store.is_stuck()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    [run] = read_runs(path)
    assert (run.sessions[0].stop, run.sessions[0].selection) == ("cancelled", SELECTED)
    assert run.sessions[0].steps[1].selected == SELECTED


def test_they_count_when_the_synchronous_form_is_interrupted() -> None:
    runs: list[Run] = []
    with stuck() as store, interrupted_at(store.reached):
        ark = Ark(Follows(POLICY), store, index_of(store), settings=ArkSettings(n_agents=1), on_run=runs.append)
        ark.retrieve(QUESTION, 3)
    assert (runs[0].sessions[0].stop, runs[0].sessions[0].selection) == ("cancelled", SELECTED)
