"""Nodes and branches of LangGraph graphs, written twice where they wait, blocking and awaited, and once otherwise."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from langchain_core.runnables import Runnable, RunnableConfig


class Node(Runnable[Any, Any]):
    """A node or a branch of a graph.

    Unlike a `RunnableLambda` it is no run of its own in traces, below the node's; unlike a plain function it costs an
    asynchronous graph no thread.

    Parameters
    ----------
    work, awaited
        From state to update, or to where to go. Without `awaited`, `work` must not block.
    """

    def __init__(self, work: Callable[[Any], Any], awaited: Callable[[Any], Awaitable[Any]] | None = None) -> None:
        self.name = work.__name__.strip("_")
        self._work = work
        self._awaited = awaited

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Run the blocking form."""
        return self._work(input)

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Run the awaited form."""
        return self._work(input) if self._awaited is None else await self._awaited(input)


class Branch(Runnable[Any, Any]):
    """A branch of a graph that needs to know of the call which it is part of: `get_config` tells nodes, not branches.

    Parameters
    ----------
    work
        From state and configuration to where to go; it must not block.
    """

    def __init__(self, work: Callable[[Any, RunnableConfig], Any]) -> None:
        self.name = work.__name__.strip("_")
        self._work = work

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Say where to go."""
        return self._work(input, config or {})

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Say where to go."""
        return self._work(input, config or {})
