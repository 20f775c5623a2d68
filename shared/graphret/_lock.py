"""The write lock of a folder: one writer at a time, of all threads and processes."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from weakref import WeakValueDictionary

from filelock import FileLock, Timeout

from graphret._current import LOCK, refuse_foreign
from graphret._files import Folder, fsync_folder, storing
from graphret.errors import IndexLocked

# One object for a path: a thread that holds it takes it again, as two objects of one process would not let it.
_locks: WeakValueDictionary[str, FileLock] = WeakValueDictionary()
_locks_guard = threading.Lock()


@contextmanager
def writing(folder: Folder, *, timeout: float = 30.0) -> Iterator[None]:
    """Hold the write lock of `folder` (made if need be), for a change that reads it first; readers need no lock.

    It excludes other processes and other threads. A thread that holds it may take it again, as `save` does.

    Raises
    ------
    IndexLocked
        If it is not free within `timeout` seconds.
    NotAnIndex
        If `folder` holds other files and no index.
    """
    folder = Path(folder)
    refuse_foreign(folder)
    with storing(folder):
        if not folder.exists():
            folder.mkdir(parents=True, exist_ok=True)
            with suppress(PermissionError):  # a parent that may be written and not listed
                fsync_folder(folder.parent)
        path = folder.resolve() / LOCK
    with _locks_guard:
        lock = _locks.get(str(path)) or FileLock(str(path))
        _locks[str(path)] = lock
    try:
        with storing(path):
            lock.acquire(timeout=timeout)
    except Timeout as error:
        raise IndexLocked(f"{folder}: still being written by another after {timeout:g} s") from error
    try:
        yield
    finally:
        lock.release()
