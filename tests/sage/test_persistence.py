"""A `SageGraph` lives in memory."""

from __future__ import annotations

import pytest
from persistence_suite import PersistenceSuite

from graphret.stores import MemoryStore


class TestInMemory(PersistenceSuite):
    @pytest.fixture
    def store(self) -> MemoryStore:
        return MemoryStore()
