"""What the retriever and the compressor have in common at a call: arguments, callbacks, and what is reported."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, TypeVar

from langchain_core.callbacks import (
    AsyncCallbackManager,
    CallbackManager,
    adispatch_custom_event,
    dispatch_custom_event,
)
from langchain_core.runnables.config import patch_config, set_config_context

from graphret.errors import InvalidInput
from graphret.types import Retrieval
from langchain_graphret.documents import plain

#: The custom event that carries a retrieval's trace to callback handlers.
TRACE_EVENT = "graphret_trace"

T = TypeVar("T")
log = logging.getLogger("langchain_graphret")


def refuse_unknown(owner: object, arguments: Mapping[str, Any]) -> None:
    """Raise an `InvalidInput` that names the arguments of a call which nobody takes."""
    unknown = sorted(set(arguments) - {"verbose"})  # LangChain reads `verbose` itself, and passes it on
    if unknown:
        names = ", ".join(map(repr, unknown))
        raise InvalidInput(f"{type(owner).__name__}: a call takes 'k' and 'where', not {names}")


def run_below(callbacks: CallbackManager, work: Callable[[], T]) -> T:
    """Run `work` so that what it calls of LangChain is traced as its child."""
    with set_config_context(patch_config(None, callbacks=callbacks)) as context:
        return context.run(work)


async def arun_below(callbacks: AsyncCallbackManager, work: Coroutine[Any, Any, T]) -> T:
    """Await `work` so that what it calls of LangChain is traced as its child."""
    with set_config_context(patch_config(None, callbacks=callbacks)) as context:
        return await asyncio.create_task(work, context=context)


def report(retrieval: Retrieval, callbacks: CallbackManager) -> None:
    """Hand the trace to callback handlers, and log fallbacks."""
    _log_fallbacks(retrieval)
    if callbacks.handlers:
        dispatch_custom_event(TRACE_EVENT, plain(retrieval.trace.to_dict()), config={"callbacks": callbacks})


async def areport(retrieval: Retrieval, callbacks: AsyncCallbackManager) -> None:
    """Do what `report` does, awaiting the handlers."""
    _log_fallbacks(retrieval)
    if callbacks.handlers:
        data = plain(retrieval.trace.to_dict())
        await adispatch_custom_event(TRACE_EVENT, data, config={"callbacks": callbacks})


def _log_fallbacks(retrieval: Retrieval) -> None:
    for stage in retrieval.trace.fallbacks:
        log.warning("fallback: %s", ", ".join(f"{key}: {value}" for key, value in stage.details.items()))
