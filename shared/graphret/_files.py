"""Single files of an index: written and hashed in one pass, opened as memory maps, every failure named by its file."""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from io import BufferedReader
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from filelock import Timeout
from numpy.typing import NDArray

from graphret.errors import CorruptIndex, InvalidInput, StorageError

Folder: TypeAlias = "str | os.PathLike[str]"


def write_array(path: Path, name: str, array: NDArray[Any]) -> dict[str, Any]:
    """Write a new .npy file; return its entry in the manifest. InvalidInput if it would need pickle."""
    with storing(path), HashedFile(path) as out:
        try:
            np.lib.format.write_array(out, np.asarray(array), version=(1, 0), allow_pickle=False)
        except ValueError as error:
            raise InvalidInput(f"array {name!r}: cannot be stored: {error}") from error
    return {"dtype": array.dtype.str, "shape": list(array.shape), "size": out.size, "sha256": out.hexdigest()}


class HashedFile:
    """A new file that hashes what is written to it, and is on the disk once closed."""

    def __init__(self, path: Path) -> None:
        self._file = open(path, "xb")  # noqa: SIM115 (closed by __exit__)
        self._hash = hashlib.sha256()
        self.size = 0

    def __enter__(self) -> HashedFile:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        with self._file:
            if kind is None:
                self._file.flush()
                os.fsync(self._file.fileno())

    def write(self, data: bytes | memoryview) -> int:
        self._hash.update(data)
        written = self._file.write(data)
        self.size += written
        return written

    def hexdigest(self) -> str:
        return self._hash.hexdigest()


def open_file(path: Path, entry: dict[str, Any], stack: ExitStack) -> BufferedReader:
    """Open a file and compare its size with its entry."""
    with reading(path):
        handle = stack.enter_context(open(path, "rb"))  # noqa: SIM115
        size = os.fstat(handle.fileno()).st_size
    if size != entry["size"]:
        raise CorruptIndex(f"{path}: truncated or altered: {size} bytes in place of {entry['size']}")
    return handle


def compare(path: Path, handle: BufferedReader, entry: dict[str, Any]) -> None:
    """Compare the sha256 of a whole file with its entry; leaves the handle at the start."""
    with reading(path):
        digest = hashlib.file_digest(handle, "sha256").hexdigest()
        handle.seek(0)
    if digest != entry["sha256"]:
        raise CorruptIndex(f"{path}: altered (its sha256 is not the one in the manifest)")


def map_array(path: Path, handle: BufferedReader, entry: dict[str, Any]) -> NDArray[Any]:
    """Map the .npy file behind `handle`, read-only; the map outlives the handle and the file's name."""
    with reading(path):
        try:
            if np.lib.format.read_magic(handle) != (1, 0):
                raise ValueError("an unknown version of .npy")
            shape, fortran, dtype = np.lib.format.read_array_header_1_0(handle)
            if dtype.str != entry["dtype"] or list(shape) != entry["shape"]:
                raise ValueError(f"{dtype.str} {shape} in place of {entry['dtype']} {entry['shape']}")
            if 0 in shape:  # nothing to map
                empty = np.empty(shape, dtype, order="F" if fortran else "C")
                empty.flags.writeable = False
                return empty
            offset, order = handle.tell(), "F" if fortran else "C"
            mapped = np.memmap(handle, dtype, "r", offset, shape, order)  # type: ignore[call-overload]
        except (ValueError, TypeError) as error:
            raise CorruptIndex(f"{path}: altered: {error}") from error
    return np.asarray(mapped)  # a plain view of the map: slices of an np.memmap object cost microseconds each


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn an OSError from reading `path` into a CorruptIndex (missing) or a StorageError that names it."""
    try:
        yield
    except (FileNotFoundError, NotADirectoryError) as error:
        raise CorruptIndex(f"{path}: missing") from error
    except OSError as error:
        raise StorageError(f"{path}: cannot be read: {reason(error)}") from error


@contextmanager
def storing(path: Path) -> Iterator[None]:
    """Turn an OSError from writing `path` into a StorageError that names it."""
    try:
        yield
    except Timeout:
        raise
    except OSError as error:
        raise StorageError(f"{path}: cannot be written: {reason(error)}") from error


def reason(error: OSError) -> str:
    """Say what happened, without the path."""
    return error.strerror or str(error) or type(error).__name__


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
