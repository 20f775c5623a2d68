"""A run that is stopped, or fails, while the graph's schema is read for the prompt is a run: it reaches `on_run`."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from ark_cut_off import interrupted_at, stuck
from ark_support import Follows, films, index_of, selecting

from graphret.ark import Ark, ArkSettings, Recorder, Run, read_runs
from graphret.errors import RetrievalFailed, StoreError
from graphret.schema import GraphSchema
from graphret.stores import MemoryStore

QUESTION = "films by Bob Bell"


class Broken(MemoryStore):
    """A graph whose schema cannot be read."""

    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.error = error

    def schema(self) -> GraphSchema:
        raise self.error


def ark(store: MemoryStore, on_run: Any, n_agents: int = 2, **options: Any) -> Ark:
    settings = ArkSettings(n_agents=n_agents, **options.pop("limits", {}))
    return Ark(Follows(selecting("f1"), "m"), store, index_of(films()), settings=settings, on_run=on_run, **options)


def seen(run: Run) -> Any:
    return run.question, [(one.stop, one.model, len(one.steps), one.selection) for one in run.sessions]


async def test_one_that_is_cancelled_is_recorded_and_read_back(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    with stuck(schema=True) as store:
        task = asyncio.create_task(ark(store, Recorder(path)).aretrieve(QUESTION, 3))
        await store.is_stuck()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not store.go.is_set()  # nobody waited for the schema
    [run] = read_runs(path)
    assert seen(run) == (QUESTION, [("cancelled", "m", 0, [])] * 2)
    assert run.cut_short
    assert run.seconds > 0


def test_one_that_is_interrupted_is_recorded() -> None:
    runs: list[Run] = []
    with stuck(schema=True) as store, interrupted_at(store.reached):
        ark(store, runs.append).retrieve(QUESTION, 3)
    assert [seen(run) for run in runs] == [(QUESTION, [("cancelled", "m", 0, [])] * 2)]


@pytest.mark.parametrize("on_failure", ["fallback", "raise"])
def test_one_whose_store_is_down_is_recorded(on_failure: str) -> None:
    runs: list[Run] = []
    asked = ark(Broken(StoreError("the database is down")), runs.append, on_failure=on_failure)
    if on_failure == "raise":
        with pytest.raises(RetrievalFailed, match="the database is down"):
            asked.retrieve(QUESTION, 3)
    else:
        assert asked.retrieve(QUESTION, 3).trace.fallbacks
    [run] = runs
    assert [(one.stop, one.error, one.steps) for one in run.sessions] == [("failed", "the database is down", [])] * 2
    assert not run.cut_short


def test_what_else_is_raised_there_is_raised_and_recorded() -> None:
    runs: list[Run] = []
    with pytest.raises(SystemExit):
        ark(Broken(SystemExit(3)), runs.append).retrieve(QUESTION, 3)
    assert [(one.stop, one.error) for one in runs[0].sessions] == [("cancelled", "SystemExit: 3")] * 2
    assert ark(films(), runs.append).retrieve(QUESTION, 1).hits  # all that is synchronous goes on


@pytest.mark.parametrize("form", ["blocking", "awaited"])
async def test_the_time_of_a_run_begins_before_the_schema_is_read(form: str) -> None:
    runs: list[Run] = []
    with stuck(schema=True) as store:
        asked = ark(store, runs.append, limits={"max_seconds": 0.01})
        run = await (asked.aexplore(QUESTION) if form == "awaited" else asyncio.to_thread(asked.explore, QUESTION))
    assert seen(run) == (QUESTION, [("seconds", "m", 0, [])] * 2)
    assert runs == [run]


def test_a_time_out_of_the_store_itself_is_its_failure() -> None:
    run = ark(Broken(TimeoutError("no route")), None, limits={"max_seconds": 60.0}).explore(QUESTION)
    assert [(one.stop, one.error) for one in run.sessions] == [("failed", "TimeoutError: no route")] * 2
