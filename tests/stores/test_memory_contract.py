"""`MemoryStore` keeps the contract."""

from __future__ import annotations

import pytest

from graphret.stores import MemoryStore
from graphret.testing.stores import GraphStoreSuite


class TestMemoryStore(GraphStoreSuite):
    @pytest.fixture
    def store(self) -> MemoryStore:
        return MemoryStore()
