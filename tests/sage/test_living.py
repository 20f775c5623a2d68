"""A `SageGraph` lives in memory."""

from __future__ import annotations

import pytest
from living_suite import LivingSuite

from graphret.stores import MemoryStore


class TestInMemory(LivingSuite):
    @pytest.fixture
    def store(self) -> MemoryStore:
        return MemoryStore()
