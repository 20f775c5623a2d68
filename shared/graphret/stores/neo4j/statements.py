"""What the synchronous and the asynchronous store run: generators that give statements and are sent the answers."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeAlias, TypeVar

from graphret.stores.changes import Written

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Statement:
    """A query, its parameters, and how many rows of its answer are read at most."""

    text: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    cap: int | None = None


class Answer(list[list[Any]]):
    """The rows of a statement, the names of its columns, and what kind of query the server took it for."""

    columns: list[str]
    kind: str | None = None


#: Statements that run in one transaction, and what comes of them.
Plan: TypeAlias = Generator[Statement, Answer, T]


@dataclass(frozen=True, slots=True)
class Work(Generic[T]):
    """A plan that can be begun anew when a transaction fails for a passing reason.

    Parameters
    ----------
    plan
        Begins it.
    writes
        Whether it does more than read.
    timeout
        Seconds after which the server gives up, `None` for what the store was told.
    rows
        How many rows are fetched at a time.
    computes
        Whether the plan itself may take long between its statements, as one that embeds does: an event loop then runs
        it in a thread.
    written
        What it writes at most, `None` where that is not known.
    """

    plan: Callable[[], Plan[T]]
    writes: bool = False
    timeout: float | None = None
    rows: int = 1000
    computes: bool = False
    written: Written | None = None
