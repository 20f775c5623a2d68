"""A small graph of films, and chat models that follow a function, for tests of exploring agents."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import Any

from graphret.llm.chat import Message, Reply, Tool, ToolCall, Usage
from graphret.search import BM25Index, NodeText
from graphret.stores import MemoryStore
from graphret.types import Edge, Node


def films() -> MemoryStore:
    """Six films, three people, two genres."""
    people = [Node(f"p{i}", ("person",), name) for i, name in enumerate(["Ann Archer", "Bob Bell", "Cy Cole"])]
    titles = ["Red Dawn", "Blue Dusk", "Green Noon", "Grey Night", "Dark Red", "Light Blue"]
    movies = [
        Node(f"f{i}", ("movie",), title, f"{title} is film number {i}.", {"year": 1990 + i})
        for i, title in enumerate(titles)
    ]
    genres = [Node("drama", ("genre",), "Drama"), Node("comedy", ("genre",), "Comedy")]
    edges = [Edge(f"f{i}", "directed_by", f"p{i % 3}") for i in range(6)]
    edges += [Edge(f"f{i}", "has_genre", "drama" if i < 4 else "comedy") for i in range(6)]
    store = MemoryStore()
    store.upsert([*people, *movies, *genres], edges)
    return store


def index_of(store: MemoryStore) -> BM25Index:
    return BM25Index.of_store(store, text=NodeText())


def call(name: str, id: str = "", **arguments: Any) -> ToolCall:
    return ToolCall(id, name, json.dumps(arguments))


class Follows:
    """A `ChatModel` whose reply is a function of the conversation, after a while; it counts and remembers its calls."""

    def __init__(
        self, policy: Callable[[Sequence[Message]], Reply | Sequence[ToolCall]], name: str = "policy", wait: float = 0.0
    ) -> None:
        self.policy = policy
        self.name = name
        self.wait = wait
        self.asked = 0
        self.running = 0
        self.temperatures: list[float | None] = []
        self.tools: list[str] = []

    def chat(self, messages: Sequence[Message], *, tools: Sequence[Tool] | None = None, **options: Any) -> Reply:
        self.asked += 1
        self.temperatures.append(options.get("temperature"))
        self.tools = [tool.name for tool in tools or ()]
        answer = self.policy(messages)
        return answer if isinstance(answer, Reply) else Reply("", tuple(answer), Usage(100, 10), "tool_calls")

    async def achat(self, messages: Sequence[Message], *, tools: Sequence[Tool] | None = None, **options: Any) -> Reply:
        self.running += 1
        try:
            await asyncio.sleep(self.wait)
        finally:
            self.running -= 1
        return self.chat(messages, tools=tools, **options)


def turns(*replies: Reply | Sequence[ToolCall]) -> Callable[[Sequence[Message]], Reply | Sequence[ToolCall]]:
    """A policy that gives these replies in turn, and then finishes."""

    def policy(messages: Sequence[Message]) -> Reply | Sequence[ToolCall]:
        done = sum(message.role == "assistant" for message in messages)
        return replies[done] if done < len(replies) else [call("finish")]

    return policy


def selecting(*nodes: str) -> Callable[[Sequence[Message]], Reply | Sequence[ToolCall]]:
    """Find the films by Bob Bell, and select these nodes."""
    return turns(
        [call("global_search", query="Bob Bell")],
        [call("explore_neighborhood", node="p1"), call("explore_neighborhood", node="drama")],
        [call("select", nodes=list(nodes)), call("finish")],
    )
