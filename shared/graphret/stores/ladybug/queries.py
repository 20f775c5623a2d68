"""Cypher queries, in this process or in one that can be killed, and their results.

The database stops a query between batches of rows. It cannot stop one that it is still
planning, holding the interpreter's lock, or a function that computes one huge value;
and some queries crash it.
"""

from __future__ import annotations

import faulthandler
import os
import pickle
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import chain, islice
from typing import Any

from graphret.errors import (
    GraphretError,
    InvalidInput,
    QueryRefused,
    QueryTimeout,
    StoreUnavailable,
)
from graphret.stores.base import Rows, within
from graphret.stores.ladybug.database import Database, Session, refused
from graphret.stores.ladybug.tables import (
    NODE_COLUMNS,
    PROPERTIES,
    Catalog,
    edge,
    node,
    quoted,
)
from graphret.validation import json_value

#: The driver's errors on a query.
DRIVER_ERRORS = (RuntimeError, TypeError, ValueError, OverflowError)
#: Types of columns whose values are returned as they are.
_PLAIN = {"STRING", "INT64", "BOOL", "STRING[]"}
#: What the database says when its memory is full.
_NO_MEMORY = "Buffer manager exception"
#: Seconds beyond its time-out that the database has to stop a query by itself, and
#: seconds for a process to start.
_GRACE, _START = 1.0, 60.0


def run(
    session: Session,
    catalog: Catalog,
    cypher: str,
    parameters: Any,
    timeout: float | None,
    **caps: int | None,
) -> Rows:
    """Run a query in this process; see `LadybugStore.query`.

    Where memory is full, the plans of earlier queries may hold it.
    """
    try:
        return _run(session, catalog, cypher, parameters, timeout, **caps)
    except QueryRefused as error:
        if _NO_MEMORY not in str(error):
            raise
    session.forget_plans()
    return _run(session, catalog, cypher, parameters, timeout, **caps)


def _run(
    session: Session,
    catalog: Catalog,
    cypher: str,
    parameters: Any,
    timeout: float | None,
    **caps: int | None,
) -> Rows:
    max_rows, max_bytes = caps["max_rows"], caps["max_bytes"]
    try:
        session.set_timeout(timeout)
        # a statement that once ran in a read transaction is known to only read
        guarded = cypher not in session.reading
        if guarded:
            session.do("BEGIN TRANSACTION READ ONLY")
        result = session.run(cypher, parameters)
        columns, types = result.get_column_names(), result.get_column_data_types()
        if max_bytes is None:
            rows = result.get_all() if max_rows is None else result.get_n(max_rows)
        else:
            rows = list(within(islice(iter(result), max_rows), max_bytes))
        truncated = result.has_next()
        result.close()
        if guarded:
            session.do("COMMIT")
            session.reading.add(cypher)
        if not _PLAIN.issuperset(types):
            rows = _shown(session, catalog, rows)
    except DRIVER_ERRORS as error:
        raise refused(error, timeout) from error
    return Rows(columns, [*map(tuple, rows)], truncated)


def _shown(session: Session, catalog: Catalog, rows: Any) -> Any:
    """Return values as nodes, edges and JSON values.

    The ends of edges are looked up, because an edge only has their internal places.
    """
    tables = {table.number: table.name for table in catalog.nodes.values()}
    places = {
        (end["table"], end["offset"])
        for edge in _edges(rows)
        for end in (edge["_SRC"], edge["_DST"])
    }
    ids: dict[tuple[int, int], str] = {}
    for number in {number for number, _ in places}:
        match = (
            f"UNWIND $offsets AS i MATCH (n:{quoted(tables[number])}) WHERE"
            " offset(id(n)) = i RETURN i, n.id"
        )
        offsets = [offset for table_number, offset in places if table_number == number]
        ids |= {
            (number, offset): node_id
            for offset, node_id in session.rows(match, {"offsets": offsets})
        }

    def shown(value: Any) -> Any:
        if isinstance(value, list):
            return [shown(item) for item in value]
        if not isinstance(value, dict):
            return json_value(value)
        if "_SRC" in value:
            source, target = (
                ids[end["table"], end["offset"]]
                for end in (value["_SRC"], value["_DST"])
            )
            return edge(
                catalog.relations[value["_LABEL"]],
                source,
                target,
                value["weight"],
                value[PROPERTIES],
            )
        if "_ID" in value:
            return node([value[column] for column in NODE_COLUMNS])
        if value.keys() == {"_NODES", "_RELS"}:
            nodes, edges = shown(value["_NODES"]), shown(value["_RELS"])
            if (
                len(nodes) != len(edges) + 1
            ):  # a variable-length relationship does not include its ends
                return edges
            return [*chain.from_iterable(zip(nodes, edges, strict=False)), nodes[-1]]
        return {str(key): shown(item) for key, item in value.items()}

    return shown(rows)


def _edges(value: Any) -> Iterator[dict[str, Any]]:
    """Yield every edge in a value."""
    if isinstance(value, dict) and "_SRC" in value:
        yield value
    elif isinstance(value, (dict, list)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _edges(item)


class QueryProcess:
    """Another process that reads a database, started on first use and after each write.

    What is sent in either direction is pickled, and comes from graphret alone. `memory`
    is the store's `buffer_pool_size` in that process.
    """

    def __init__(self, database: Database, memory: int) -> None:
        self._database, self._memory = database, memory
        self._child: subprocess.Popen[bytes] | None = None
        self._writes = -1

    def run(
        self, cypher: str, parameters: Any, *, timeout: float, **caps: int | None
    ) -> Rows:
        """Run one query; see `LadybugStore.query_in_subprocess`."""
        try:
            question = pickle.dumps((cypher, parameters, {"timeout": timeout, **caps}))
        except Exception as error:
            raise InvalidInput(
                f"parameters: they cannot be passed to another process: {error}"
            ) from error
        with self._database.file_lock:
            self._start()
            started = time.monotonic()
            try:
                return self._ask(question, timeout + _GRACE)  # type: ignore[no-any-return]
            except EOFError:
                if time.monotonic() - started < timeout:
                    raise QueryRefused(
                        "Ladybug crashed on the query, and its process was ended"
                    ) from None
                raise QueryTimeout(
                    f"the query took longer than {timeout:.3g} s, and its process was"
                    " killed"
                ) from None

    def _start(self) -> None:
        with self._database.session():  # raises if the database was closed
            path, writes = os.path.abspath(self._database.path), self._database.writes
        if (
            self._child is not None
            and self._child.poll() is None
            and self._writes == writes
        ):
            return
        self.close()
        self._writes = writes
        self._child = subprocess.Popen(
            [
                sys.executable,
                "-P",
                "-c",
                f"from {__name__} import serve; serve({path!r}, {self._memory})",
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            # the terminal's interrupt is meant for the parent process
            start_new_session=True,
        )
        try:
            self._ask(b"", _START)
        except EOFError:
            raise StoreUnavailable(
                f"{path}: the process that runs its queries did not start"
            ) from None

    def _ask(self, question: bytes, seconds: float) -> Any:
        """Return its answer or raise its error, or `EOFError` if it has ended."""
        child: Any = self._child
        clock = threading.Timer(seconds, child.kill)
        clock.start()
        try:
            child.stdin.write(question)
            child.stdin.flush()
            answer = pickle.load(child.stdout)
        except BaseException as error:
            self.close()
            if isinstance(error, (pickle.UnpicklingError, OSError)):
                raise EOFError from error
            raise
        finally:
            clock.cancel()
        if isinstance(answer, GraphretError):
            raise answer
        return answer

    def close(self) -> None:
        """End the process, even while another thread waits for an answer."""
        child, self._child = self._child, None
        if child is not None:
            child.kill()
            child.communicate()


def serve(path: str, memory: int) -> None:
    """Report that the database is open, then answer a `QueryProcess` on stdin."""
    from graphret.stores.ladybug.store import LadybugStore

    with suppress(OSError), open("/proc/self/oom_score_adj", "w") as mark:
        mark.write(
            "1000"
        )  # if memory runs out, this process is killed before its parent
    questions, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    store: LadybugStore | None = None
    while True:
        answer: Any = None
        try:
            if store is None:
                store = LadybugStore(path, read_only=True, buffer_pool_size=memory)
            else:
                cypher, parameters, caps = pickle.load(questions)
                # if no parent is left to kill it: a timer that needs neither the
                # interpreter nor the database
                faulthandler.dump_traceback_later(
                    caps["timeout"] + 2 * _GRACE, exit=True
                )
                answer = store.query(cypher, parameters, **caps)
        except EOFError:
            return
        except GraphretError as error:
            answer = error
        except Exception as error:
            answer = QueryRefused(f"Ladybug's answer cannot be read: {error!r}")
        answers.write(pickle.dumps(answer))
        answers.flush()
        faulthandler.cancel_dump_traceback_later()
