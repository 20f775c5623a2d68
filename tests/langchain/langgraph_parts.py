"""Models, and graphs of agents that they drive, for tests of ARK in LangGraph."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ark_support import Follows, films, index_of, selecting

from graphret.ark import ArkSettings
from graphret.llm.chat import Message, Reply, Tool
from langchain_graphret import create_ark_graph
from langchain_graphret.ark.graph import ArkGraph

STORE = films()
INDEX = index_of(STORE)
QUESTION = "films by Bob Bell"
ASK: Any = {"question": QUESTION, "k": 4}
SELECTIONS = (("f1", "f4"), ("f4", "f1"), ("f4", "p1"))
RANKED = ["f4", "f1", "p1"]
FULL = ArkSettings(early_stop=False)


def models(*selections: Sequence[str], waits: Sequence[float] = ()) -> list[Follows]:
    """One model an agent: it searches, explores, selects these nodes and finishes, in three replies."""
    chosen = selections or SELECTIONS
    pauses = [*waits, *([0.0] * len(chosen))]
    return [Follows(selecting(*nodes), f"m{i}", pauses[i]) for i, nodes in enumerate(chosen)]


def graph(model: Any = None, **options: Any) -> ArkGraph:
    options.setdefault("settings", FULL)
    return create_ark_graph(models() if model is None else model, STORE, INDEX, **options)


def ids(answer: Any) -> list[str]:
    return [hit["id"] for hit in answer["hits"]]


def stops(answer: Any) -> list[str]:
    return [agent["stop"] for agent in answer["agents"]]


def asked(given: Sequence[Follows]) -> list[int]:
    return [model.asked for model in given]


def thread(name: str = "1", **more: Any) -> Any:
    return {"configurable": {"thread_id": name}, **more}


class Gate:
    """Opens when `n` callers have come to it, threads or tasks; those that came wait until then, for a while."""

    def __init__(self, n: int) -> None:
        self.barrier = threading.Barrier(n, timeout=10)
        self.n = n
        self.came = 0
        self.waiting = 0
        self.open = asyncio.Event()

    async def arrive(self) -> None:
        self.came += 1
        self.waiting += 1
        if self.came >= self.n:
            self.open.set()
        try:
            await asyncio.wait_for(self.open.wait(), 10)
        finally:
            self.waiting -= 1


class Meeting(Follows):
    """Comes to a gate before it gives the reply of that number, from 0."""

    def __init__(self, policy: Callable[[Sequence[Message]], Any], gates: Mapping[int, Gate], name: str) -> None:
        super().__init__(policy, name)
        self.gates = gates

    def _gate(self, messages: Sequence[Message]) -> Gate | None:
        return self.gates.get(sum(message.role == "assistant" for message in messages))

    def chat(self, messages: Sequence[Message], *, tools: Sequence[Tool] | None = None, **options: Any) -> Reply:
        if gate := self._gate(messages):
            gate.barrier.wait()
        return super().chat(messages, tools=tools, **options)

    async def achat(self, messages: Sequence[Message], *, tools: Sequence[Tool] | None = None, **options: Any) -> Reply:
        if gate := self._gate(messages):
            await gate.arrive()
        return super().chat(messages, tools=tools, **options)
