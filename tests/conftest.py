"""What every test can use."""

from __future__ import annotations

import hashlib
import os

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from numpy.typing import NDArray

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

settings.register_profile("graphret", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
settings.load_profile("graphret")


class HashingEncoder:
    """Embeds a text as the sum of a fixed random vector for each of its words: real cosines, no model."""

    name = "hashing-48"
    dimension = 48

    def __init__(self) -> None:
        self.encoded: list[str] = []

    def encode_queries(self, texts: list[str]) -> NDArray[np.float32]:
        return np.stack([self._embed(text) for text in texts]) if texts else np.zeros((0, self.dimension), np.float32)

    def encode_documents(self, texts: list[str], *, progress: object = None) -> NDArray[np.float32]:
        self.encoded.extend(texts)
        return self.encode_queries(texts)

    def _embed(self, text: str) -> NDArray[np.float32]:
        total = np.zeros(self.dimension)
        for word in text.lower().split():
            seed = int.from_bytes(hashlib.blake2b(word.encode(), digest_size=8).digest(), "big")
            total += np.random.default_rng(seed).standard_normal(self.dimension)
        norm = np.linalg.norm(total)
        return (total / norm if norm else total).astype(np.float32)


@pytest.fixture
def encoder() -> HashingEncoder:
    return HashingEncoder()
