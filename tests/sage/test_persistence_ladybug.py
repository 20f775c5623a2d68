"""A `SageGraph` lives in an embedded database."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from persistence_suite import PersistenceSuite

from graphret.stores.ladybug import LadybugStore


class TestInLadybug(PersistenceSuite):
    @pytest.fixture
    def store(self) -> Iterator[LadybugStore]:
        with LadybugStore(":memory:") as store:
            yield store
