"""What a database did to answer a query, operator by operator (``PROFILE``)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Protocol, runtime_checkable

from graphret.errors import InvalidInput
from graphret.stores.base import CypherStore, require_cypher


@dataclass(frozen=True, slots=True)
class Operator:
    """A step of a plan that ran; `None` where the database does not say.

    Parameters
    ----------
    name, details
        What it does, and to what.
    rows, estimated_rows
        How many rows it made, and how many the planner expected.
    db_hits
        How often it asked the storage engine for something (Neo4j).
    milliseconds
        How long it took (Ladybug).
    """

    name: str
    details: str
    rows: int
    estimated_rows: float | None = None
    db_hits: int | None = None
    milliseconds: float | None = None


@dataclass(frozen=True, slots=True)
class Profile:
    """A query that ran, and how.

    Parameters
    ----------
    query
        It, as the database had it.
    operators
        The steps of its plan, executed from the last to the first.
    rows
        How many rows came back.
    seconds
        How long it took: with the way to a server and back (Neo4j), or without that to
        the process that runs queries (Ladybug).
    memory
        The bytes that it allocated, where the database says so.
    """

    query: str
    operators: list[Operator]
    rows: int
    seconds: float
    memory: int | None = None

    @property
    def db_hits(self) -> int | None:
        """The hits of all operators; `None` where the database counts none."""
        counted = [one.db_hits for one in self.operators if one.db_hits is not None]
        return sum(counted) if counted else None

    def to_dict(self) -> dict[str, Any]:
        """The profile as JSON values."""
        return {**asdict(self), "db_hits": self.db_hits}


@runtime_checkable
class ProfilingStore(CypherStore, Protocol):
    """A `CypherStore` that says how it answers a query; those of graphret do."""

    def profile(
        self,
        cypher: str,
        parameters: Mapping[str, Any] | None = None,
        *,
        timeout: float,
    ) -> Profile:
        """Run a reading query to its end, and return how it ran, without its results.

        The text is run as it is, as by `CypherStore.query`, and raises what that does.
        """


def require_profiling(store: Any) -> ProfilingStore:
    """Return the store, or raise an `InvalidInput` if it cannot profile Cypher."""
    database = require_cypher(store, whole=True)
    if not isinstance(database, ProfilingStore):
        raise InvalidInput(
            "store: expected one that says how it answers a query, such as"
            f" LadybugStore or Neo4jStore, got {type(store).__name__}"
        )
    return database
