"""What the tests of stores share."""

from __future__ import annotations

from typing import Any

import pytest

from graphret.stores.ladybug.database import Session


@pytest.fixture
def rows_read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of rows that each statement of a Ladybug returned."""
    counts: list[int] = []
    rows = Session.rows

    def counting(self: Session, *arguments: Any) -> list[list[Any]]:
        found = rows(self, *arguments)
        counts.append(len(found))
        return found

    monkeypatch.setattr(Session, "rows", counting)
    return counts
