"""Embedding many texts, block by block."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from graphret.executors.blocks import BLOCK, Executor, batched
from graphret.search.encoder import Encoder, each_once
from graphret.search.vectors import Floats, check_vectors


def embed(
    encoder: Encoder,
    texts: Sequence[str],
    executor: Executor,
    progress: Callable[[int, int], None] | None = None,
) -> Floats:
    """Embed texts in blocks, each different one once, ``(n, d)``; `progress` is told
    how many are done of how many.
    """

    def made(distinct: list[str]) -> Floats:
        parts, done = [], 0
        for part in executor.map(encoder.encode_documents, batched(distinct), gpu=True):
            rows = min(BLOCK, len(distinct) - done)
            parts.append(check_vectors(part, rows, what="embedding"))
            done += rows
            if progress is not None:
                progress(done, len(distinct))
        return np.concatenate(parts)

    return each_once(texts, made)
