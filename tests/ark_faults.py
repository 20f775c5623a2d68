"""A graph of films, models that fail or talk nonsense over HTTP, and what must come of them, for tests of faults."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from graphret import BM25Index, MemoryStore
from graphret.ark import Ark, ArkSettings, Run
from graphret.errors import RetrievalFailed
from graphret.testing.openai_server import (
    Behaviour,
    OpenAIServer,
    Request,
    tool_call,
    tool_calls,
)
from graphret.types import Edge, Node, Retrieval, Stage

QUESTION = "Which films did Tom Hanks star in?"
NODES = [
    Node("Tom Hanks", ("person",), "Tom Hanks"),
    Node("Penny Marshall", ("person",), "Penny Marshall"),
    Node("Big", ("movie",), "Big", "A boy wakes up as a man."),
    Node("Cast Away", ("movie",), "Cast Away", "A man alone on an island."),
    Node("Awakenings", ("movie",), "Awakenings", "A doctor and his patients."),
    Node("1988", ("year",), "1988"),
    *(Node(f"Film {i}", ("movie",), f"Film {i}", "Another film, which some other people star in.") for i in range(6)),
]
EDGES = [
    Edge("Big", "starred_actors", "Tom Hanks"),
    Edge("Cast Away", "starred_actors", "Tom Hanks"),
    Edge("Big", "directed_by", "Penny Marshall"),
    Edge("Awakenings", "directed_by", "Penny Marshall"),
    Edge("Big", "release_year", "1988"),
]
STORE = MemoryStore.of(NODES, EDGES)
INDEX = BM25Index.build(NODES)

LOOK = tool_calls(
    ("global_search", {"query": "Tom Hanks"}),
    ("explore_neighborhood", {"node": "Tom Hanks", "relation_types": ["starred_actors"]}),
)
CHOOSE = tool_calls(("select", {"nodes": ["Cast Away", "Big"]}))
END = tool_call("finish")

Play = Callable[[Request], Behaviour]


def turn(request: Request) -> int:
    """How often the agent has been answered."""
    return sum(message["role"] == "assistant" for message in request.messages)


def playing(*turns: Behaviour) -> Play:
    """A model that answers an agent's turns in this order, and the last one for ever."""
    return lambda request: turns[min(turn(request), len(turns) - 1)]


def stumbling(fault: Behaviour, *turns: Behaviour) -> Play:
    """A model that plays a fault once at each turn before it answers."""
    stumbled: set[int] = set()

    def play(request: Request) -> Behaviour:
        stumbled.symmetric_difference_update({turn(request)})
        return fault if turn(request) in stumbled else playing(*turns)(request)

    return play


def ark_of(model: Any, *, n_agents: int = 1, on_failure: str = "fallback", on_run: Any = None, **options: Any) -> Ark:
    settings = ArkSettings(n_agents=n_agents, **{"max_steps": 6, **options})
    return Ark(model, STORE, INDEX, settings=settings, on_failure=on_failure, on_run=on_run)


def agent(found: Retrieval, number: int = 1) -> dict[str, Any]:
    """How an agent ended, by the trace."""
    [stage] = [stage for stage in found.trace.stages if stage.name == f"explore/agent {number}"]
    return stage.details


def steps(found: Retrieval, number: int = 1) -> list[Stage]:
    return [stage for stage in found.trace.stages if stage.name.startswith(f"explore/agent {number}/step")]


def calls(found: Retrieval, number: int = 1) -> list[dict[str, Any]]:
    return [call for stage in steps(found, number) for call in stage.details["calls"]]


def told(server: OpenAIServer) -> str:
    """All that the model was told by tools in the last conversation."""
    return "\n".join(str(m["content"]) for m in server.requests[-1].messages if m["role"] == "tool")


def require_ranked(found: Retrieval, k: int = 5) -> None:
    assert len(found.hits) == k == len(set(found.ids))
    assert all(hit.evidence for hit in found.hits)
    scores = [hit.score for hit in found.hits]
    assert scores == sorted(scores, reverse=True)


def require_raised(message: str, model: Any, **options: Any) -> None:
    """With `on_failure="raise"` the retriever raises an error that says this, and tells of the run."""
    runs: list[Run] = []
    strict = ark_of(model, on_failure="raise", on_run=runs.append, **options)
    with pytest.raises(RetrievalFailed) as raised:
        asyncio.run(strict.aretrieve(QUESTION, 5))
    assert re.fullmatch(message, str(raised.value)), str(raised.value)
    assert [session.stop is not None for session in runs[0].sessions] == [True]


def require_protocol(server: OpenAIServer) -> None:
    """Whatever the model wrote, what goes back to it is well-formed."""
    for request in server.requests:
        for message in request.messages:
            for call in message.get("tool_calls") or ():
                assert isinstance(json.loads(call["function"]["arguments"]), dict)
    json.dumps([dict(request.body) for request in server.requests], ensure_ascii=False).encode()
