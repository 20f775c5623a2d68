"""A `SageGraph` lives in an embedded database."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from living_suite import LivingSuite

from graphret.stores.ladybug import LadybugStore


class TestInLadybug(LivingSuite):
    @pytest.fixture
    def store(self) -> Iterator[LadybugStore]:
        with LadybugStore(":memory:") as store:
            yield store
