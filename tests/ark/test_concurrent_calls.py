"""Calls of one turn run at once, wherever the graph is, and beside whatever else the process does."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest
from ark_graphs import OnlyContract
from ark_support import Follows, call, films, index_of, turns

from graphret.ark import Ark, ArkSettings, Toolbox
from graphret.ark.running import run_calls
from graphret.errors import StoreError
from graphret.llm.chat import ToolCall
from graphret.llm.running import Threads
from graphret.stores import MemoryStore
from graphret.types import Node

N = 12


class Meeting(MemoryStore):
    """A graph in memory whose reads wait for as many others as there are calls in a turn."""

    def __init__(self, calls: int) -> None:
        super().__init__()
        self.all_here = threading.Barrier(calls)

    def get(self, ids: Sequence[str]) -> list[Node | None]:
        self.all_here.wait(20)
        return super().get(ids)


def meeting(calls: int = N) -> Meeting:
    store, filled = Meeting(calls), films()
    for nodes in filled.nodes():
        store.upsert(nodes)
    return store


def searches(n: int = N) -> list[ToolCall]:
    return [call("global_search", f"c{i}", query=f"Bell {'x' * i}") for i in range(n)]


@pytest.mark.parametrize("where", ["memory", "elsewhere"])
async def test_all_calls_of_a_turn_are_under_way_at_once(where: str) -> None:
    store = meeting()
    toolbox = Toolbox(store if where == "memory" else OnlyContract(store), index_of(films()))
    outcomes, problem = await run_calls(toolbox, searches())
    assert problem is None
    assert [answered.id for answered, _, _ in outcomes] == [f"c{i}" for i in range(N)]
    assert [observation.nodes for _, observation, _ in outcomes] == [("p1",)] * N


async def test_they_do_not_wait_for_the_threads_of_others() -> None:
    """asyncio's own few threads may all be busy, with what other parts of the process do."""
    go = threading.Event()
    loop = asyncio.get_running_loop()
    with ThreadPoolExecutor(2) as few:
        loop.set_default_executor(few)
        busy = [asyncio.create_task(asyncio.to_thread(go.wait, 20)) for _ in range(4)]
        await asyncio.sleep(0)
        try:
            outcomes, _ = await run_calls(Toolbox(meeting(), index_of(films())), searches())
        finally:
            go.set()
        await asyncio.gather(*busy)
    assert len(outcomes) == N


async def test_calls_that_a_framework_runs_itself_are_under_way_at_once_too() -> None:
    toolbox = Toolbox(meeting(), index_of(films()))
    found = await asyncio.gather(*(toolbox.arun(one.name, one.parsed or {}) for one in searches()))
    assert [observation.nodes for observation in found] == [("p1",)] * N


def test_an_agent_s_calls_meet() -> None:
    ark = Ark(
        Follows(turns(searches())),
        meeting(),
        index_of(films()),
        settings=ArkSettings(n_agents=1),
        on_failure="raise",
    )
    run = ark.explore("films by Bob Bell")
    assert [record.nodes for record in run.sessions[0].steps[0].calls] == [["p1"]] * N
    assert run.sessions[0].stop == "finished"


async def test_one_that_fails_leaves_the_others() -> None:
    class Breaks(MemoryStore):
        def get(self, ids: Sequence[str]) -> list[Node | None]:
            if "drama" in ids:
                raise OSError("gone")
            return super().get(ids)

    store = Breaks()
    for nodes in films().nodes():
        store.upsert(nodes)
    asked = [call("explore_neighborhood", "a", node="drama"), call("explore_neighborhood", "b", node="p1")]
    outcomes, problem = await run_calls(Toolbox(store, index_of(films())), asked)
    assert [observation.failed for _, observation, _ in outcomes] == [True, False]
    assert isinstance(problem, StoreError)
    assert "gone" in str(problem)


async def test_threads_are_kept_and_no_more_than_the_most() -> None:
    threads = Threads(most=3)
    one = await threads.do(threading.get_ident)
    assert {await threads.do(threading.get_ident) for _ in range(5)} == {one}
    running, most, lock = 0, 0, threading.Lock()

    def work() -> int:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        threading.Event().wait(0.001)
        with lock:
            running -= 1
        return threading.get_ident()

    used = await asyncio.gather(*(threads.do(work) for _ in range(20)))
    assert len(set(used)) <= 3
    assert most <= 3


async def test_work_that_nobody_waits_for_any_more_is_not_begun() -> None:
    threads, go, done = Threads(most=1), threading.Event(), list[int]()
    first = asyncio.create_task(threads.do(lambda: go.wait(20)))
    second = asyncio.create_task(threads.do(lambda: done.append(2)))
    await asyncio.sleep(0)
    second.cancel()
    await asyncio.sleep(0)
    go.set()
    assert await first
    await threads.do(lambda: done.append(3))
    assert done == [3]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_forked_process_makes_threads_of_its_own() -> None:
    threads, begun = Threads(), threading.Event()
    threads._start(lambda: begun.set)
    assert begun.wait(10)
    child = os.fork()
    if not child:  # pragma: no cover -- another process
        started = threading.Event()
        threads._start(lambda: started.set)
        os._exit(0 if started.wait(10) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
