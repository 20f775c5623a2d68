"""The end of a wait for an answer that the server never sends.

The server's own time-out ends a query while it plans and runs it, but not where the server loses the answer: Neo4j 5
sends none at all after its stack overflowed, over values nested thousands deep or an expression of thousands of terms.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING

from graphret.errors import QueryTimeout

if TYPE_CHECKING:
    import neo4j

#: Seconds that the server has beyond its time-out to say that it gave up.
GRACE = 1.0


class Deadline:
    """Whether the time of a call is over; it is `passed` for good once it is."""

    def __init__(self, timeout: float | None) -> None:
        self.timeout = timeout
        self.passed = False

    def require(self, error: Exception | None = None) -> None:
        """Raise a `QueryTimeout` if it is over."""
        if self.passed:
            message = f"the query took longer than {self.timeout:.3g} s, and the server said nothing"
            raise QueryTimeout(message) from error


@contextmanager
def deadline(session: neo4j.Session, timeout: float | None) -> Iterator[Deadline]:
    """Close the connection of a session, which wakes who waits for it, when the time of what runs inside is over."""
    end = Deadline(timeout or None)
    if end.timeout is None:
        yield end
        return

    def cut() -> None:
        end.passed = True
        connection = getattr(session, "_connection", None)  # the synchronous driver has no way of its own to stop
        if connection is not None:
            connection.socket.close()  # which shuts it down first; `kill` would leave who waits waiting

    timer = threading.Timer(end.timeout + GRACE, cut)
    timer.daemon = True
    timer.start()
    try:
        yield end
    except Exception as error:
        end.require(error)
        raise
    finally:
        timer.cancel()


@asynccontextmanager
async def adeadline(timeout: float | None) -> AsyncIterator[None]:  # noqa: ASYNC109
    """Cancel what runs inside when its time is over, for which the asynchronous driver closes the connection."""
    end = Deadline(timeout or None)
    try:
        async with asyncio.timeout(None if end.timeout is None else end.timeout + GRACE) as scope:
            yield
    except TimeoutError as error:
        end.passed = scope.expired()
        end.require(error)
        raise
