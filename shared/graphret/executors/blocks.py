"""Blocks of a build, the protocol of executors, and the executor in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol, TypeAlias, TypeVar

from numpy.typing import NDArray

B = TypeVar("B")
R = TypeVar("R")
S = TypeVar("S", bound="Sequence[Any] | NDArray[Any]")

#: Called with the name of a stage, how much of it is done, and how much there is.
Progress: TypeAlias = Callable[[str, int, int], None]

#: The number of items in a block: texts, nodes, rows. No result depends on it.
BLOCK = 512
#: That of items of which this process makes many objects. The garbage collector goes
#: through all that lasts, large tables too, once there is a quarter more of it: the
#: objects of so few items are gone before it takes them for lasting.
SMALL_BLOCK = 64


class Executor(Protocol):
    """Runs a function over blocks.

    A function that needs more than its block is an object with a method `__call__`, or
    a bound method: it is sent to a worker once, with all it holds, and what it caches
    on its first call stays with the worker.
    """

    def map(
        self, function: Callable[[B], R], blocks: Iterable[B], *, gpu: bool = False
    ) -> Iterator[R]:
        """Yield a function's result for each block; `gpu` says that one would help."""
        ...


class LocalExecutor:
    """Runs one block after another, in this process."""

    def map(
        self, function: Callable[[B], R], blocks: Iterable[B], *, gpu: bool = False
    ) -> Iterator[R]:
        return map(function, blocks)


#: The default executor of every build.
LOCAL = LocalExecutor()


def batched(items: S, size: int | None = None) -> Iterator[S]:
    """Yield a sequence, or the rows of an array, in blocks of `size` or `BLOCK`."""
    step = size or BLOCK
    for start in range(0, len(items), step):
        yield items[start : start + step]  # type: ignore[misc]
