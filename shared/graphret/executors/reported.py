"""A task of a Ray cluster whose progress and log messages are told where it was begun.

The task puts them into a queue of the cluster, and `awaited` empties it meanwhile.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from logging.handlers import QueueHandler
from typing import Any

from graphret.executors.blocks import Progress

# How many seconds to wait before the queue is emptied again.
_INTERVAL = 0.2
_LOGGER = logging.getLogger("graphret")


@contextmanager
def reporting(queue: Any) -> Iterator[Progress]:
    """Put log messages into a queue, and yield what puts progress there: in a task."""
    handler = QueueHandler(queue)
    _LOGGER.addHandler(handler)
    try:
        yield lambda *figures: queue.put(figures)
    finally:
        _LOGGER.removeHandler(handler)


def awaited(task: Any, queue: Any, progress: Progress) -> Any:
    """Return the result of a task, and tell meanwhile what it puts into a queue."""
    import ray

    done: list[Any] = []
    while not done:
        done, _ = ray.wait([task], timeout=_INTERVAL)
        for message in queue.get_nowait_batch(queue.qsize()):
            if isinstance(message, logging.LogRecord):
                logging.getLogger(message.name).handle(message)
            else:
                progress(*message)
    return ray.get(task)
