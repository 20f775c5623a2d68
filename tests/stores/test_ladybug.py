from __future__ import annotations

from collections.abc import Iterator

import pytest

from graphret.stores.ladybug import LadybugStore
from graphret.testing.stores import CypherStoreSuite


class TestLadybugStore(CypherStoreSuite):
    @pytest.fixture
    def store(self) -> Iterator[LadybugStore]:
        with LadybugStore(":memory:") as store:
            yield store
