"""The folder of an index: which generation is in force (the file CURRENT), who may write, files put on the disk."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from io import BufferedWriter
from pathlib import Path
from typing import Any, TypeAlias

from filelock import FileLock, Timeout

from graphret.columns import to_json
from graphret.errors import CorruptIndex, IndexLocked, NewerVersion, NotAnIndex, StorageError

Folder: TypeAlias = "str | os.PathLike[str]"

FORMAT_VERSION = 3
"""The layout of folders; what the arrays mean is versioned by each kind."""

CURRENT, FRESH, LOCK = "CURRENT", "CURRENT.new", "LOCK"
GENERATION = re.compile(r"gen-[0-9a-f]{16}")
_FILE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def read_current(folder: Path) -> dict[str, Any]:
    """The fields of CURRENT, checked."""
    path = folder / CURRENT
    try:
        content = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError) as error:
        holds = f"holds no graphret index (no file {CURRENT})" if folder.is_dir() else "a file, not a folder"
        raise NotAnIndex(f"{folder}: {holds if folder.exists() else 'no such folder'}") from error
    except OSError as error:
        raise StorageError(f"{path}: cannot be read: {_reason(error)}") from error
    try:
        line, check, rest = content.decode().split("\n")
        if rest or check != hashlib.sha256(line.encode()).hexdigest():
            raise ValueError("its checksum does not match")
        current: dict[str, Any] = json.loads(line)
        theirs = current["format_version"]
        if theirs == FORMAT_VERSION:
            _require_places(current)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CorruptIndex(f"{path}: altered, or not written by graphret: {error}") from error
    if theirs != FORMAT_VERSION:
        kind = NewerVersion if theirs > FORMAT_VERSION else NotAnIndex
        raise kind(f"{folder}: its layout has version {theirs}, this graphret's {FORMAT_VERSION}; build it again")
    return current


def _require_places(current: dict[str, Any]) -> None:
    """Raise a `ValueError` or the like where CURRENT names files elsewhere, or is no manifest."""
    about = current["generation"], current["kind"], current["version"], current["meta"]
    if not GENERATION.fullmatch(about[0]) or [type(one) for one in about[1:]] != [str, int, dict]:
        raise ValueError("it names no generation, kind or version")
    for file, entry in current["files"].items():
        if not _FILE.fullmatch(file) or [type(entry[key]) for key in ("name", "size", "sha256")] != [str, int, str]:
            raise ValueError(f"{file!r} is no file of a generation")


def swap(folder: Path, fields: dict[str, Any]) -> None:
    """Put a generation in force: from the rename on, readers open it."""
    line = to_json({"format": "graphret", "format_version": FORMAT_VERSION, **fields})
    content = f"{line}\n{hashlib.sha256(line.encode()).hexdigest()}\n".encode()
    path, fresh = folder / CURRENT, folder / FRESH
    with storing(fresh):
        fresh.unlink(missing_ok=True)
    write_file(fresh, lambda out: out.write(content))
    with storing(path):
        os.replace(fresh, path)
        fsync_folder(folder)


def refuse_foreign(folder: Path) -> None:
    """Raise NotAnIndex if `folder` is a file, or holds files of others and no index."""
    try:
        if not folder.exists():
            return
        if not folder.is_dir():
            raise NotAnIndex(f"{folder}: a file, not a folder")
        names = {path.name for path in folder.iterdir()} - {LOCK, FRESH}
    except OSError as error:
        raise StorageError(f"{folder}: cannot be read: {_reason(error)}") from error
    generations = {name for name in names if GENERATION.fullmatch(name)}
    # A damaged index may be written anew: its CURRENT lies beside nothing but generations.
    if names == generations or (generations and names == generations | {CURRENT}):
        return
    try:
        read_current(folder)
    except (CorruptIndex, NotAnIndex) as error:
        raise NotAnIndex(f"{folder}: holds other files and no graphret index, so nothing is written there") from error


# The write lock


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
    lock = FileLock(str(path), is_singleton=True)  # one object for a path: a thread that holds it takes it again
    try:
        with storing(path):
            lock.acquire(timeout=timeout)
    except Timeout as error:
        raise IndexLocked(f"{folder}: still being written by another after {timeout:g} s") from error
    try:
        yield
    finally:
        lock.release()


# Files


def write_file(path: Path, write: Callable[[BufferedWriter], object]) -> dict[str, Any]:
    """Write a new file and put it on the disk; return its size and its sha256."""
    with storing(path), open(path, "x+b") as out:
        write(out)  # type: ignore[arg-type]
        out.flush()
        os.fsync(out.fileno())
        size = out.tell()
        out.seek(0)
        return {"size": size, "sha256": hashlib.file_digest(out, "sha256").hexdigest()}


def fsync_folder(folder: Path) -> None:
    """Put the names in `folder` on the disk."""
    if os.name == "nt":  # Windows opens no folders
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # some network file systems sync no folders
            raise
    finally:
        os.close(handle)


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn an OSError from reading `path` into a CorruptIndex (missing) or a StorageError that names it."""
    try:
        yield
    except (FileNotFoundError, NotADirectoryError) as error:
        raise CorruptIndex(f"{path}: missing") from error
    except OSError as error:
        raise StorageError(f"{path}: cannot be read: {_reason(error)}") from error


@contextmanager
def storing(path: Path) -> Iterator[None]:
    """Turn an OSError from writing `path` into a StorageError that names it."""
    try:
        yield
    except Timeout:
        raise
    except OSError as error:
        raise StorageError(f"{path}: cannot be written: {_reason(error)}") from error


def _reason(error: OSError) -> str:
    """Say what happened, without the path."""
    return error.strerror or str(error) or type(error).__name__
