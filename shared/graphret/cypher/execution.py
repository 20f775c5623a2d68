"""Running Cypher of a model or a person: checked first, then in a read transaction."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping
from time import monotonic
from typing import Any

from typing_extensions import TypedDict, Unpack

from graphret.cypher.check import check
from graphret.cypher.report import CypherReport
from graphret.cypher.translation import label_tables_of, translate, with_all_tables
from graphret.errors import InvalidInput, QueryRefused, QueryTimeout
from graphret.schema import GraphSchema
from graphret.stores.base import CypherStore, Rows, require_cypher, require_limit
from graphret.stores.profile import Profile, require_profiling

TIMEOUT = 30.0
MAX_ROWS = 1000
MAX_BYTES = 16 << 20
_READS = "r"
_log = logging.getLogger(__name__)


class Allowed(TypedDict, total=False):
    """What may run that does not by default; see `check`."""

    functions: Collection[str]
    procedures: Collection[str]
    most_iterations: int
    unbounded_paths: bool


def run_checked(
    store: CypherStore,
    query: str | CypherReport,
    parameters: Mapping[str, Any] | None = None,
    *,
    schema: GraphSchema | None = None,
    timeout: float = TIMEOUT,
    max_rows: int = MAX_ROWS,
    max_bytes: int = MAX_BYTES,
    **allowed: Unpack[Allowed],
) -> Rows:
    """Run a query if the guard finds no error and the database agrees that it reads.

    A text is put in the words of the database first (`graphret.cypher.translation`),
    and logged as it runs where that changes it.

    Parameters
    ----------
    store
        The graph; a view refuses every query.
    query, parameters
        The query, or what `check` said of it in the store's dialect, which is then not
        checked again; and the values of its ``$names``.
    schema
        What its labels, relations and properties are held against; without one only its
        form is checked.
    timeout
        Seconds for checking the query, planning it and running it together; the
        database gives up after what is left, and a second later its connection is
        closed (Neo4j) or its process killed (`LadybugStore.query_in_subprocess`).
    max_rows, max_bytes
        At most so many rows are read, and none after so many bytes; `Rows.truncated`
        says whether there were more.
    **allowed
        What may run besides, as `check` has it: `functions`, `procedures`,
        `most_iterations`, `unbounded_paths`.

    Raises
    ------
    QueryRefused
        When the guard finds an error (`report` has the findings), when the database
        refuses the query or takes it for one that does not only read, or when the store
        is a view.
    QueryTimeout
        When it took longer than `timeout`.
    InvalidInput
        When the store answers no Cypher, or an option is out of its range.
    """
    started = monotonic()
    report = _check(store, query, schema, timeout, max_rows, allowed)
    _require_ok(report)
    query = report.query
    # Of a database in this process, which cannot always be stopped: see
    # `LadybugStore.query_in_subprocess`.
    apart: Callable[..., Rows] | None = getattr(store, "query_in_subprocess", None)
    if apart is not None:
        return apart(
            query,
            parameters,
            timeout=_seconds_left(timeout, started),
            max_rows=max_rows,
            max_bytes=max_bytes,
        )
    kind = store.explain(query, timeout=_seconds_left(timeout, started))
    _require_reading(kind, report)
    return store.query(
        query,
        parameters,
        timeout=_seconds_left(timeout, started),
        max_rows=max_rows,
        max_bytes=max_bytes,
    )


def profile_checked(
    store: CypherStore,
    query: str,
    parameters: Mapping[str, Any] | None = None,
    *,
    schema: GraphSchema | None = None,
    timeout: float = TIMEOUT,
) -> Profile:
    """Run a query to its end as `run_checked` does, and return how it ran.

    Raises
    ------
    QueryRefused, QueryTimeout
        As `run_checked` does.
    InvalidInput
        When the store answers no Cypher, or does not say how.
    """
    started = monotonic()
    report = _check(store, query, schema, timeout, MAX_ROWS, {})
    _require_ok(report)
    profiling = require_profiling(store)
    if not hasattr(store, "query_in_subprocess"):  # whose other process only reads
        kind = store.explain(report.query, timeout=_seconds_left(timeout, started))
        _require_reading(kind, report)
    seconds = _seconds_left(timeout, started)
    return profiling.profile(report.query, parameters, timeout=seconds)


async def arun_checked(
    store: CypherStore,
    query: str | CypherReport,
    parameters: Mapping[str, Any] | None = None,
    *,
    schema: GraphSchema | None = None,
    timeout: float = TIMEOUT,  # noqa: ASYNC109 -- the database's own limit
    max_rows: int = MAX_ROWS,
    max_bytes: int = MAX_BYTES,
    **allowed: Unpack[Allowed],
) -> Rows:
    """Do what `run_checked` does in a thread, so that the event loop goes on."""
    return await asyncio.to_thread(
        run_checked,
        store,
        query,
        parameters,
        schema=schema,
        timeout=timeout,
        max_rows=max_rows,
        max_bytes=max_bytes,
        **allowed,
    )


def _check(
    store: CypherStore,
    query: str | CypherReport,
    schema: GraphSchema | None,
    timeout: float,
    max_rows: int,
    allowed: Allowed,
) -> CypherReport:
    dialect = require_cypher(store).dialect
    if (
        not isinstance(query, str | CypherReport)
        or getattr(query, "dialect", dialect) != dialect
    ):
        raise InvalidInput(
            f"query: expected text, or a report in the dialect of {dialect}, got"
            f" {query!r}"
        )
    if (
        isinstance(timeout, bool)
        or not isinstance(timeout, int | float)
        or not 0 < timeout < float("inf")
    ):
        raise InvalidInput(
            f"timeout: expected a number of seconds above 0, got {timeout!r}"
        )
    if require_limit(max_rows) is None:
        raise InvalidInput(
            "max_rows: expected a number; a query that nobody wrote by hand needs a cap"
        )
    if isinstance(query, CypherReport):
        return query

    def checked(text: str) -> CypherReport:
        return check(text, schema, dialect=dialect, **allowed)

    translated = translate(checked(query), checked, schema)
    spread = with_all_tables(translated.report, label_tables_of(store), checked)
    if notes := (*translated.notes, *spread.notes):
        _log.info("the query runs as %s: %s", spread.report.query, "; ".join(notes))
    return spread.report


def _require_ok(report: CypherReport) -> None:
    if not report.ok:
        raise QueryRefused(
            f"the query was refused: {'; '.join(map(str, report.errors))}", report
        )


def _require_reading(kind: str | None, report: CypherReport) -> None:
    """Raise if the database takes a query for one that does not only read.

    Ladybug names no kind.
    """
    if kind is not None and kind != _READS:
        raise QueryRefused(
            f"the query was refused: the database takes it for one of type {kind!r}",
            report,
        )


def _seconds_left(timeout: float, started: float) -> float:
    """The seconds of a time-out that checking and planning left."""
    seconds = timeout - (monotonic() - started)
    if seconds <= 0:
        raise QueryTimeout(
            f"the query took longer than {timeout:g} s to check and plan"
        )
    return seconds
