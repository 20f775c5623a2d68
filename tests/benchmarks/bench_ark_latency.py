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


class Simulated:
    """A model that explores a node a step, each reply after `wait` seconds, and then selects one."""

    name = "simulated"

    def __init__(self, wait: float) -> None:
        self.wait = wait

    def chat(self, messages: Sequence[Message], **options: Any) -> Reply:
        time.sleep(self.wait)
        return self._reply(messages)

    async def achat(self, messages: Sequence[Message], **options: Any) -> Reply:
        await asyncio.sleep(self.wait)
        return self._reply(messages)

    def _reply(self, messages: Sequence[Message]) -> Reply:
        step = sum(message.role == "assistant" for message in messages)
        calls: list[tuple[str, Any]] = [("explore_neighborhood", {"node": f"n{step}"})]
        if step == STEPS - 1:
            calls = [("select", {"nodes": [f"n{7 * (step - 1) % 200 + 1}"]}), ("finish", {})]
        made = tuple(ToolCall(f"c{step}{i}", name, json.dumps(given)) for i, (name, given) in enumerate(calls))
        return Reply("", made, Usage(100, 10))


def systems() -> dict[str, Callable[[list[Any]], Awaitable[Any]]]:
    """The ways to put the question to agents of some models."""
    nodes = [Node(f"n{i}", ("Thing",), f"thing {i}") for i in range(200)]
    store = MemoryStore.of(
        nodes, [Edge(f"n{i}", "joins", f"n{(7 * i + j) % 200}") for i in range(200) for j in range(1, 6)]
    )
    index = BM25Index.of_store(store)

    def core(models: list[Any]) -> Awaitable[Any]:
        settings = ArkSettings(n_agents=len(models), early_stop=False)
        return Ark(models, store, index, settings=settings).aretrieve(QUESTION, 3)

    def compiled(models: list[Any]) -> Any:
        settings = ArkSettings(n_agents=len(models), early_stop=False)
        return create_ark_graph(models, store, index, settings=settings, k=3)

    asked: Any = {"question": QUESTION}
    return {
        "core": core,
        "LangGraph, ainvoke": lambda models: compiled(models).ainvoke(asked),
        "LangGraph, invoke": lambda models: asyncio.to_thread(compiled(models).invoke, asked),
    }


def latency(report: Report) -> None:
    """The part of the speed benchmark."""
    for name, system in systems().items():

        async def seconds(*waits: float, ask: Any = system) -> float:
            taken = []
            for _ in range(ROUNDS):
                start = time.perf_counter()
                await ask([Simulated(wait) for wait in waits])
                taken.append(time.perf_counter() - start)
            return statistics.median(taken)

        slowest, together, step = (asyncio.run(seconds(*waits)) for waits in ([0.05], [0.02, 0.05, 0.03], [0.0]))
        what = f"ARK ({name}): 3 agents against the slowest of them alone"
        report.add(f"ark latency {name}", what, together / slowest, target=1.15)
        what = f"ARK ({name}): a step, without its model"
        report.add(f"ark step {name}", what, 1000 * step / STEPS, unit="ms", target=10.0)
