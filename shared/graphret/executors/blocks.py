"""A build cut into blocks, and what runs a function over them: the contract, and this
process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol, TypeVar

from numpy.typing import NDArray

B = TypeVar("B")
R = TypeVar("R")
S = TypeVar("S", bound="Sequence[Any] | NDArray[Any]")

#: Items of a block: texts, nodes, rows. What is computed is the same for any executor,
#: as the blocks are.
BLOCK = 512


class Executor(Protocol):
    """Runs a function over blocks.

    A function that needs more than its block is an object with a method `__call__`, or
    a bound method: it goes to a worker once, whatever it holds, and what it makes of
    that when it is first called stays with the worker.
    """

    def map(
        self, function: Callable[[B], R], blocks: Iterable[B], *, gpu: bool = False
    ) -> Iterator[R]:
        """Yield what a function returns for each block, in the order of the blocks;
        `gpu` says that one would help.
        """
        ...


class LocalExecutor:
    """Runs one block after another, in this process."""

    def map(
        self, function: Callable[[B], R], blocks: Iterable[B], *, gpu: bool = False
    ) -> Iterator[R]:
        return map(function, blocks)


#: What every build runs on unless told otherwise.
LOCAL = LocalExecutor()


def batched(items: S, size: int | None = None) -> Iterator[S]:
    """Yield a sequence, or the rows of an array, in blocks of `size`, by default
    `BLOCK`.
    """
    step = size or BLOCK
    for start in range(0, len(items), step):
        yield items[start : start + step]  # type: ignore[misc]
