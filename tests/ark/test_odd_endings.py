"""Whatever a model or a watcher raises ends its own run or its own agent, and is recorded as what it is."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from typing import Any

import pytest
from ark_support import Follows, call, films, index_of, selecting, turns

from graphret.ark import Ark, ArkSession, ArkSettings, Run
from graphret.errors import RetrievalFailed
from graphret.llm.chat import Message, Reply

STORE = films()
INDEX = index_of(STORE)
QUESTION = "films by Bob Bell"


class Raises(Follows):
    """Searches and selects, and then raises."""

    def __init__(self, error: BaseException, before: threading.Event | None = None) -> None:
        super().__init__(turns([call("global_search", query="Bob Bell")], [call("select", nodes=["p1"])]), "m")
        self.error, self.before = error, before

    def chat(self, messages: Sequence[Message], **options: Any) -> Reply:  # type: ignore[override]
        if sum(message.role == "assistant" for message in messages) == 2:
            if self.before is not None:
                self.before.wait(10)
            raise self.error
        return super().chat(messages, **options)


def ark(model: Any, **options: Any) -> Ark:
    settings = ArkSettings(**{"early_stop": False, "n_agents": 1, **options.pop("limits", {})})
    return Ark(model, STORE, INDEX, settings=settings, **options)


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt()], ids=repr)
def test_an_exit_ends_its_own_run_alone(error: BaseException) -> None:
    """All that is synchronous shares an event loop, which would end by it."""
    runs: list[Run] = []
    other = Follows(selecting("f1"))
    waiting, go = threading.Event(), threading.Event()
    policy = other.policy

    def waits(messages: Sequence[Message]) -> Any:
        waiting.set()
        go.wait(10)
        return policy(messages)

    other.policy = waits
    found: list[Run] = []
    thread = threading.Thread(target=lambda: found.append(ark(other).explore(QUESTION)))
    thread.start()
    try:
        with pytest.raises(type(error)) as caught:
            ark(Raises(error, before=waiting), on_run=runs.append).retrieve(QUESTION, 3)
    finally:
        go.set()
        thread.join()
    assert caught.value is error
    assert [one.stop for run in found for one in run.sessions] == ["finished"]
    [session] = runs[0].sessions
    assert (session.stop, session.selection, len(session.steps)) == ("cancelled", ["p1"], 3)
    assert session.steps[-1].error.startswith(type(error).__name__)


@pytest.mark.parametrize("form", ["blocking", "awaited"])
@pytest.mark.parametrize("error", [asyncio.CancelledError(), TimeoutError("its own")], ids=repr)
async def test_what_is_no_end_of_the_run_is_the_model_s_failure(error: BaseException, form: str) -> None:
    """A request that someone else cancelled, and a time-out while there is time."""
    limits = {"max_seconds": 60.0, "n_agents": 2}
    two = [Raises(error), Follows(selecting("f1"))]
    explored = ark(two, limits=limits)
    run = await (explored.aexplore(QUESTION) if form == "awaited" else asyncio.to_thread(explored.explore, QUESTION))
    assert [one.stop for one in run.sessions] == ["failed", "finished"]
    with pytest.raises(RetrievalFailed, match=r"cancelled|in time"):
        await ark(Raises(error), limits={"max_seconds": 60.0}, on_failure="raise").aexplore(QUESTION)


async def test_a_watcher_hears_of_every_agent_that_stops() -> None:
    """Also of those that another one's end, or the budget, stops."""
    heard: list[tuple[int, str | None]] = []

    def watch(session: ArkSession) -> None:
        heard.append((session.agent, session.stop))

    stuck = Follows(selecting("f4"), wait=20)
    models = [Follows(selecting("f1")), Follows(selecting("f1", "f4")), stuck]
    run = await ark(models, limits={"early_stop": True, "n_agents": 3}, on_step=watch).aexplore(QUESTION)
    assert [one.stop for one in run.sessions] == ["finished", "finished", "settled"]
    assert heard[-1] == (2, "settled")
    assert stuck.running == 0


async def test_several_runs_of_one_retriever_do_not_meet() -> None:
    runs: list[Run] = []
    one = ark(Follows(selecting("f1"), wait=0.001), limits={"n_agents": 3}, on_run=runs.append)
    questions = [f"films by Bob Bell {i}" for i in range(8)]
    stopped = asyncio.create_task(one.aexplore("never"))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    stopped.cancel()
    found = await asyncio.gather(*map(one.aexplore, questions))
    assert [run.question for run in found] == questions
    assert sorted(run.question for run in runs) == sorted([*questions, "never"])
    assert all([len(session.steps) for session in run.sessions] == [3, 3, 3] for run in found)
    with pytest.raises(asyncio.CancelledError):
        await stopped
