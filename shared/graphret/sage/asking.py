"""The embedding of a question, found before anything is searched, so that it can be awaited, and can fail."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from typing import Any

from graphret.errors import InvalidInput, RetrievalFailed
from graphret.retriever import Call
from graphret.search.encoder import Encoder
from graphret.search.hybrid import HybridIndex
from graphret.types import Trace


def embedded(index: HybridIndex, query: str, trace: Trace, on_failure: str) -> Generator[Any, Any, HybridIndex]:
    """Return an index that knows the embedding of `query`, or that of the words alone where none can be had.

    Raises
    ------
    RetrievalFailed
        When the encoder fails and `on_failure` is ``"raise"``.
    InvalidInput
        When the encoder is not the one that the index was built with.
    """
    dense = index.dense
    if dense is None or dense.encoder is None or dense.remembers(query):
        return index
    with trace.stage("embed", encoder=dense.encoder.name):
        vector = yield _embedding(dense.encoder, query)
        if not isinstance(vector, Exception):
            try:
                dense.remember(query, vector)
            except InvalidInput as error:  # what the encoder answered, and no mistake of the caller
                vector = RetrievalFailed(str(error))
    if isinstance(vector, InvalidInput):
        raise vector
    if isinstance(vector, Exception):
        if on_failure == "raise":
            raise RetrievalFailed(f"{dense.encoder.name} failed: {vector}") from vector
        trace.note("fallback", failed=dense.encoder.name, error=f"{type(vector).__name__}: {vector}")
        return HybridIndex(index.lexical)
    return index


def _embedding(encoder: Encoder, query: str) -> Call[Any]:
    """Return the call that embeds a question; a failure comes back as a value."""

    def work() -> Any:
        try:
            return encoder.encode_queries([query])[0]
        except Exception as error:
            return error

    async def awaited() -> Any:
        ask = getattr(encoder, "aencode_queries", None)
        if ask is None:
            return await asyncio.to_thread(work)
        try:
            return (await ask([query]))[0]
        except Exception as error:
            return error

    return Call(work, awaited)
