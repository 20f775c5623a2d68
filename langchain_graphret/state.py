"""What graphs of LangGraph share: a state of plain JSON, and nodes that are written once for both ways to run them."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, TypeAlias

from langchain_core.runnables import RunnableLambda

from graphret.retriever import Call, Retriever, adrive, drive
from graphret.types import Retrieval
from graphret.where import Where

#: An object of JSON types.
Json: TypeAlias = dict[str, Any]

#: What a node does: it yields calls of what is outside, is sent what came of them, and returns the node's update.
NodeSteps: TypeAlias = Generator[Call[Any], Any, Any]


def node(steps: Callable[[Any], NodeSteps]) -> RunnableLambda[Any, Any]:
    """Return a node of what yields its calls; `ainvoke` awaits them."""

    def work(state: Any) -> Any:
        return drive(steps(state))

    async def awaited(state: Any) -> Any:
        return await adrive(steps(state))

    return RunnableLambda(work, awaited)


def retrieved(retriever: Retriever, query: str, k: int, where: Where | None) -> Generator[Call[Any], Any, Retrieval]:
    """Ask a retriever in a node."""
    retrieval: Retrieval = yield Call(
        lambda: retriever.retrieve(query, k, where), lambda: retriever.aretrieve(query, k, where)
    )
    return retrieval
