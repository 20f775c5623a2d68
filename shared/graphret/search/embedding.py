"""Embed many texts, block by block."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from graphret.executors.blocks import Executor, batched
from graphret.search.encoder import Encoder, each_once
from graphret.search.vectors import Floats, check_vectors


def embed(
    encoder: Encoder,
    texts: Sequence[str],
    executor: Executor,
    progress: Callable[[int, int], None] | None = None,
) -> Floats:
    """Embed texts in blocks, each distinct one once, ``(n, d)``.

    `progress` is called with the number done and the total.
    """

    def embed_distinct(distinct: list[str]) -> Floats:
        blocks = list(batched(distinct))
        vectors: list[Floats] = []
        done = 0
        results = executor.map(encoder.encode_documents, blocks, gpu=True)
        for block, result in zip(blocks, results, strict=True):
            vectors.append(check_vectors(result, len(block), what="embedding"))
            done += len(block)
            if progress is not None:
                progress(done, len(distinct))
        return np.concatenate(vectors)

    return each_once(texts, embed_distinct)
