"""Free Cypher in this process, run in read transactions; `graphret.stores.ladybug.apart` runs it in another one."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from graphret.errors import QueryTimeout
from graphret.stores.base import Rows
from graphret.stores.ladybug.catalog import Catalog
from graphret.stores.ladybug.engine import Engine, refused
from graphret.stores.ladybug.results import Values, has_entities, is_plain
from graphret.stores.ladybug.values import json_value

_DRIVER_ERRORS = (RuntimeError, TypeError, ValueError, OverflowError)


class FreeQueries:
    """Runs and plans the Cypher of others.

    Parameters
    ----------
    catalog
        Returns the tables that there are; asked while the database is read, when no write can change them.
    """

    def __init__(self, engine: Engine, catalog: Callable[[], Catalog]) -> None:
        self._engine = engine
        self._catalog = catalog

    def run(
        self, cypher: str, parameters: Mapping[str, Any] | None, *, timeout: float | None, max_rows: int | None
    ) -> Rows:
        """Run a query; see `LadybugStore.query`."""
        with self._engine.reading() as session:
            try:
                session.set_timeout(timeout)
                # A statement that the database let run in a read transaction is one itself from then on.
                opened = not self._engine.read_only and cypher not in session.reading
                if opened:
                    session.connection.execute(session.begin_reading)
                result = session.run(cypher, dict(parameters) if parameters else None)
                columns = result.get_column_names()
                rows = result.get_all() if max_rows is None else result.get_n(max_rows)
                truncated = max_rows is not None and result.has_next()
                types = result.get_column_data_types()
                entities = Values(session, self._catalog(), rows) if has_entities(types) else None
                result.close()
                if opened:
                    session.connection.execute(session.commit)
                    if entities is None:
                        session.reading.add(cypher)
            except _DRIVER_ERRORS as error:
                raise refused(error, timeout) from error
        if is_plain(types):
            return Rows(columns, [*map(tuple, rows)], truncated)
        return Rows(columns, [tuple(map(entities or json_value, row)) for row in rows], truncated)

    def plan(self, cypher: str, *, timeout: float | None) -> None:
        """Have a query planned; see `LadybugStore.explain`."""
        with self._engine.reading() as session:
            started = time.monotonic()
            try:
                session.prepared(cypher)
            except _DRIVER_ERRORS as error:
                raise refused(error, timeout) from error
            if timeout is not None and time.monotonic() - started > timeout:
                raise QueryTimeout(f"the plan of the query took longer than {timeout:g} s")
