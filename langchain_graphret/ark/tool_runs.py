"""The calls of an agent as runs of tools, for LangChain's callbacks: traces and event streams show them as such."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any, TypeVar

from langchain_core.callbacks import AsyncCallbackManager, CallbackManager
from langchain_core.messages import ToolMessage
from langgraph.config import get_config

from graphret.ark.session import Outcome
from graphret.llm.chat import ToolCall

M = TypeVar("M", CallbackManager, AsyncCallbackManager)


@contextmanager
def tool_runs(calls: Sequence[ToolCall]) -> Iterator[list[Outcome]]:
    """Tell callbacks that calls are run, and of what came of them, which the list is to be given.

    Where nobody listens nothing is done.
    """
    outcomes: list[Outcome] = []
    manager = _listening(CallbackManager)
    if manager is None:
        yield outcomes
        return
    runs = [manager.on_tool_start({"name": call.name}, str(call.parsed), **_given(call)) for call in calls]
    try:
        yield outcomes
    except BaseException as error:
        for run, call in zip(runs, calls, strict=True):
            run.on_tool_error(error, tool_call_id=call.id)
        raise
    for run, answer in zip(runs, _answers(calls, outcomes), strict=True):
        run.on_tool_end(answer, name=answer.name)


@asynccontextmanager
async def atool_runs(calls: Sequence[ToolCall]) -> AsyncIterator[list[Outcome]]:
    """Do what `tool_runs` does for handlers that are awaited."""
    outcomes: list[Outcome] = []
    manager = _listening(AsyncCallbackManager)
    if manager is None:
        yield outcomes
        return
    runs = [await manager.on_tool_start({"name": call.name}, str(call.parsed), **_given(call)) for call in calls]
    try:
        yield outcomes
    except BaseException as error:
        for run, call in zip(runs, calls, strict=True):
            await run.on_tool_error(error, tool_call_id=call.id)
        raise
    for run, answer in zip(runs, _answers(calls, outcomes), strict=True):
        await run.on_tool_end(answer, name=answer.name)


def _listening(kind: type[M]) -> M | None:
    """The callbacks of the node that runs, unless there are none."""
    found = get_config().get("callbacks")
    return found if isinstance(found, kind) and found.handlers else None


def _given(call: ToolCall) -> dict[str, Any]:
    return {"inputs": dict(call.parsed or {}), "tool_call_id": call.id}


def _answers(calls: Sequence[ToolCall], outcomes: Sequence[Outcome]) -> list[ToolMessage]:
    found = {call.id: observation for call, observation, _ in outcomes}
    return [
        ToolMessage(
            found[call.id].text,
            tool_call_id=call.id,
            name=call.name,
            status="error" if found[call.id].failed else "success",
        )
        for call in calls
    ]
