"""How fast texts are embedded, next to what sentence-transformers does by itself."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any

import numpy as np

from graphret.search.encoder import SentenceTransformerEncoder, default_encoder
from graphret.search.vectors import normalize


def measure(texts: Sequence[str], rounds: int = 3, encoder: SentenceTransformerEncoder | None = None) -> dict[str, Any]:
    """Embed the same texts with `SentenceTransformer.encode(texts)` and with ours, in turn, on a CPU.

    Both see every text once, on a model that is loaded and warm; the order within a round alternates.

    Parameters
    ----------
    texts
        What to embed; repeats are dropped first, since ours would encode them once.
    rounds
        Timed rounds of both.
    encoder
        By default `default_encoder()`.

    Returns
    -------
    dict
        `texts`, `rounds`; texts a second `plain_rate` and `our_rate` (medians); `ratio`, the median of `ratios`, a
        round's plain seconds over ours; `minimum_cosine` between the two vectors of one text.
    """
    from sentence_transformers import SentenceTransformer

    chosen = list(dict.fromkeys(texts))
    ours = encoder or default_encoder()
    plain = SentenceTransformer(str(ours.source), device="cpu")
    sides: tuple[Callable[[], Any], ...] = (
        lambda: plain.encode(chosen, show_progress_bar=False),
        lambda: ours.encode_documents(chosen),
    )
    expected, vectors = (np.asarray(side(), np.float32) for side in sides)
    cosines = (normalize(expected) * normalize(vectors)).sum(axis=1)
    seconds: tuple[list[float], list[float]] = ([], [])
    for number in range(rounds):
        for side in (0, 1) if number % 2 == 0 else (1, 0):
            start = time.perf_counter()
            sides[side]()
            seconds[side].append(time.perf_counter() - start)
    ratios = [theirs / own for theirs, own in zip(*seconds, strict=True)]
    return {
        "texts": len(chosen),
        "rounds": rounds,
        "plain_rate": len(chosen) / median(seconds[0]),
        "our_rate": len(chosen) / median(seconds[1]),
        "ratio": median(ratios),
        "ratios": ratios,
        "minimum_cosine": float(cosines.min()),
    }
