"""What running agents costs beside their models: agents at once, and a step without its model."""

from __future__ import annotations

import asyncio
import json
import statistics
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from benchmarks.figures import Report
from graphret.ark import Ark, ArkSettings
from graphret.llm.chat import Message, Reply, ToolCall, Usage
from graphret.search import BM25Index
from graphret.stores import MemoryStore
from graphret.types import Edge, Node
from langchain_graphret import create_ark_graph

STEPS, ROUNDS = 8, 5
QUESTION = "which is it"
_NODES = [Node(f"n{i}", ("Thing",), f"thing {i}") for i in range(200)]
_EDGES = [Edge(f"n{i}", "joins", f"n{(7 * i + j) % 200}") for i in range(200) for j in range(1, 6)]

#: Puts the question to agents of these models.
System = Callable[[Sequence[Any]], Awaitable[Any]]


class Simulated:
    """A model that explores a node a step, each reply after `wait` seconds, and then selects one."""

    name = "simulated"

    def __init__(self, wait: float) -> None:
        self.wait = wait

    def chat(self, messages: Sequence[Message], **options: Any) -> Reply:
        """Wait and answer."""
        time.sleep(self.wait)
        return self._reply(sum(message.role == "assistant" for message in messages))

    async def achat(self, messages: Sequence[Message], **options: Any) -> Reply:
        """Do what `chat` does."""
        await asyncio.sleep(self.wait)
        return self._reply(sum(message.role == "assistant" for message in messages))

    def _reply(self, step: int) -> Reply:
        calls: list[tuple[str, Any]] = [("explore_neighborhood", {"node": f"n{step}"})]
        if step == STEPS - 1:
            calls = [("select", {"nodes": [f"n{7 * (step - 1) % 200 + 1}"]}), ("finish", {})]
        made = tuple(ToolCall(f"c{step}{i}", name, json.dumps(given)) for i, (name, given) in enumerate(calls))
        return Reply("", made, Usage(100, 10))


def systems() -> dict[str, System]:
    """The ways to run agents."""
    store = MemoryStore.of(_NODES, _EDGES)
    index = BM25Index.of_store(store)

    def settings(models: Sequence[Any]) -> ArkSettings:
        return ArkSettings(n_agents=len(models), early_stop=False)

    def core(models: Sequence[Any]) -> Awaitable[Any]:
        return Ark(list(models), store, index, settings=settings(models)).aretrieve(QUESTION, 3)

    def compiled(models: Sequence[Any]) -> Any:
        return create_ark_graph(list(models), store, index, settings=settings(models), k=3)

    asked: Any = {"question": QUESTION}
    return {
        "core": core,
        "LangGraph, ainvoke": lambda models: compiled(models).ainvoke(asked),
        "LangGraph, invoke": lambda models: asyncio.to_thread(compiled(models).invoke, asked),
    }


async def seconds(system: System, waits: Sequence[float]) -> float:
    """Return the median seconds of a question to agents whose models wait so long."""
    taken = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        await system([Simulated(wait) for wait in waits])
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)


def latency(report: Report) -> None:
    """The part of the speed benchmark."""
    for name, system in systems().items():
        slowest = asyncio.run(seconds(system, [0.05]))
        together = asyncio.run(seconds(system, [0.02, 0.05, 0.03]))
        step = asyncio.run(seconds(system, [0.0])) / STEPS
        what = f"ARK ({name}): 3 agents against the slowest of them alone"
        report.add(f"ark latency {name}", what, together / slowest, target=1.15)
        what = f"ARK ({name}): a step, without its model"
        report.add(f"ark step {name}", what, 1000 * step, unit="ms", target=10.0)
