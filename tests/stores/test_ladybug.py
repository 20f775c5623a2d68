from __future__ import annotations

from collections.abc import Iterator

import pytest

from graphret.stores.ladybug import LadybugStore
from graphret.testing.store_values import StoreValues
from graphret.testing.stores import CypherStoreSuite


class TestLadybugStore(CypherStoreSuite):
    @pytest.fixture
    def store(self) -> Iterator[LadybugStore]:
        with LadybugStore(":memory:") as store:
            yield store


class TestValuesAsJson(StoreValues):
    @pytest.fixture
    def store(self) -> Iterator[LadybugStore]:
        with LadybugStore(":memory:", nested="json") as store:
            yield store
