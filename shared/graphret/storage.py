"""Versioned, checksummed and memory-mapped arrays and texts, in one folder.

``folder/CURRENT`` names the generation in force, ``folder/gen-<16 hex>/``, and the
sha256 of every file of it: ``.npy`` for each array, and two for an array of texts, its
bytes and where each begins. A save writes a new generation beside the old one and swaps
`CURRENT` in one rename, so that a reader sees the one or the other, whatever happens to
the writer. Nothing is pickled.

A save may also lay a part beside what is there (`save_beside`): `CURRENT` then names
files of two generations, the whole one and the one that holds the part.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache, partial
from importlib.metadata import version as installed_version
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from filelock import FileLock, Timeout
from numpy.typing import NDArray

from graphret.columns import TextArray
from graphret.errors import (
    CorruptIndex,
    IndexChanged,
    IndexLocked,
    NewerVersion,
    NotAnIndex,
    StorageError,
)

Folder: TypeAlias = "str | os.PathLike[str]"

#: Of the layout of folders, and of what the arrays of every kind of index mean.
FORMAT_VERSION = 15
#: How much a quick check reads: the checksums of the smallest files are compared, as
#: far as this goes.
QUICK_BYTES = 1 << 27

CURRENT, FRESH, LOCK = "CURRENT", "CURRENT.new", "LOCK"
GENERATION = re.compile(r"gen-[0-9a-f]{16}")
_PLACE = re.compile(r"[a-z0-9][A-Za-z0-9._-]*")
_WRITERS = 16  # threads, which mostly wait for the disk
_WHERE = "generation", "file"  # what of an entry in CURRENT says where its file is


@dataclass
class Parts:
    """What a component hands over to be saved; `meta` is a JSON object."""

    arrays: dict[str, NDArray[Any]] = field(default_factory=dict)
    meta: dict[str, Any] = field(default_factory=dict)

    def add(self, prefix: str, other: Parts) -> None:
        """Nest another component's parts under `prefix`.

        They become ``prefix/name``, its meta ``meta[prefix]``; `Bundle.sub` reads them.
        """
        self.arrays.update(
            {f"{prefix}/{name}": array for name, array in other.arrays.items()}
        )
        self.meta[prefix] = other.meta

    def add_texts(self, name: str, texts: TextArray) -> None:
        """Add an array of texts; `texts` has it again."""
        data, offsets = texts.pack()
        self.arrays[f"{name}/bytes"] = data
        self.arrays[f"{name}/offsets"] = offsets

    def texts(self, name: str) -> TextArray:
        """Return an array of texts that was added under a name."""
        data, offsets = (self.arrays[f"{name}/{of}"] for of in ("bytes", "offsets"))
        return TextArray.packed(data, offsets)


@dataclass(kw_only=True)
class Bundle(Parts):
    """An opened index, whose arrays are mostly read-only memory maps.

    They stay valid after a later save. `about` is what CURRENT says: kind, generation,
    files.
    """

    about: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, parts: Parts) -> Bundle:
        """Return parts as if they had been saved and opened; they stay in memory."""
        return cls(parts.arrays, parts.meta)

    def sub(self, prefix: str) -> Bundle:
        """Return what ``Parts.add(prefix, ...)`` nested, named without the prefix."""
        head = f"{prefix}/"
        arrays = {
            n.removeprefix(head): one
            for n, one in self.arrays.items()
            if n.startswith(head)
        }
        return Bundle(arrays, self.meta[prefix])


def save(
    folder: Folder, parts: Parts, *, kind: str, replaces: str | None = None
) -> str:
    """Write `parts` as the index in `folder`, in place of what it held.

    On any failure nothing is written. `kind` is what the parts are, checked by `load`;
    `replaces` the generation that they were made from: if another is in force, nothing
    is written. The folder is made if need be; other files in it are left alone. Returns
    the new generation.

    Raises `IndexChanged` if another generation than `replaces` is in force,
    `NotAnIndex` if the folder holds other files and no index, or one of another kind,
    `NewerVersion` if a newer graphret wrote it, `IndexLocked` if another process is
    writing there, and `StorageError` if a file, which is named, cannot be written (disk
    full).
    """
    folder = Path(folder)
    with writing(folder):
        if (held := _held(folder)) and held["kind"] != kind:
            raise NotAnIndex(
                f"{folder}: holds a {held['kind']!r} index, which a {kind!r} index does"
                " not replace"
            )
        if replaces is not None and held:
            _require_generation(folder, held, replaces)
        return _swapped(folder, kind, parts, [])


def save_beside(folder: Folder, name: str, part: Parts, *, replaces: str) -> str:
    """Write one part of the index in `folder`; its other files stay as they are.

    `load` has it as what ``parts.add(name, part)`` would have added; a part of that
    name that was there before is replaced. Returns the new generation; the rest, and
    what is raised, is as for `save`. `IndexChanged` also says that there is no index in
    the folder.
    """
    folder = Path(folder)
    with writing(folder):
        held = _held(folder)
        _require_generation(folder, held, replaces)
        parts = Parts(meta={k: v for k, v in held["meta"].items() if k != name})
        parts.add(name, part)
        stay = [
            entry for entry in held["files"] if not entry["name"].startswith(f"{name}/")
        ]
        return _swapped(folder, held["kind"], parts, stay)


def in_force(folder: Folder) -> str | None:
    """Return the generation in force in a folder.

    It is `None` if there is no index, or one that lacks a file or a part of one.
    """
    held = _held(Path(folder))
    for entry in held.get("files", ()):
        path = Path(folder, entry["generation"], entry["file"])
        if not path.is_file() or path.stat().st_size != entry["size"]:
            return None
    return held.get("generation")


def _require_generation(folder: Path, held: dict[str, Any], expected: str) -> None:
    if held.get("generation") != expected:
        raise IndexChanged(
            f"{folder}: another has saved it since; load it again, or hold"
            " `storage.writing(folder)` meanwhile"
        )


def _swapped(
    folder: Path, kind: str, parts: Parts, stay: Sequence[dict[str, Any]]
) -> str:
    """Write a generation, put it in force with files that stay, and return its name."""
    generation = folder / f"gen-{secrets.token_hex(8)}"
    try:
        with storing(generation):
            generation.mkdir()
        written = _write_arrays(generation, parts)
        _sync_folder(generation)
        current = {
            "generation": generation.name,
            "kind": kind,
            "meta": parts.meta,
            "files": [*stay, *written],
        }
        about = {"version": FORMAT_VERSION, "graphret": _release()}
        line = json.dumps({**about, **current}, allow_nan=False)
        content = f"{line}\n{hashlib.sha256(line.encode()).hexdigest()}\n".encode()
        _write_file(folder / FRESH, lambda out: out.write(content))
        with storing(folder / CURRENT):
            os.replace(
                folder / FRESH, folder / CURRENT
            )  # from here on, readers open the new generation
        _sync_folder(folder)
    except BaseException:
        if _held(folder).get("generation") != generation.name:
            shutil.rmtree(generation, ignore_errors=True)
        raise
    named = {generation.name, *(entry["generation"] for entry in stay)}
    for path in folder.iterdir():  # older generations, and what a dead writer left
        if GENERATION.fullmatch(path.name) and path.name not in named:
            shutil.rmtree(path, ignore_errors=True)
    return generation.name


@contextmanager
def writing(folder: Folder, *, timeout: float = 30.0) -> Iterator[None]:
    """Hold the write lock of `folder`, for a change that reads the folder first.

    Readers need no lock. The folder is made if need be. The lock excludes other
    processes and other threads; a thread that holds it may take it again, as `save`
    does. Raises `IndexLocked` if it is not free within `timeout` seconds, `NotAnIndex`
    if `folder` holds other files and no index.
    """
    folder = Path(folder)
    with storing(folder):
        if not folder.exists():
            folder.mkdir(parents=True, exist_ok=True)
            _sync_folder(folder.parent)
        if not folder.is_dir():
            raise NotAnIndex(f"{folder}: a file, not a folder")
        names = {path.name for path in folder.iterdir()} - {LOCK, FRESH}
    if (
        names and not any(map(GENERATION.fullmatch, names)) and not _held(folder)
    ):  # a damaged index is written anew
        raise NotAnIndex(
            f"{folder}: holds other files and no graphret index, so nothing is written"
            " there"
        )
    lock = FileLock(
        folder.resolve() / LOCK, is_singleton=True
    )  # one for a path: a thread that holds it takes it again
    try:
        lock.acquire(timeout=timeout)
    except Timeout as error:
        raise IndexLocked(
            f"{folder}: still being written by another after {timeout:g} s"
        ) from error
    except OSError as error:
        raise StorageError(
            f"{folder / LOCK}: cannot be written: {error.strerror or error}"
        ) from error
    try:
        yield
    finally:
        lock.release()


@cache
def _release() -> str:
    return installed_version("graphret")


def _write_arrays(generation: Path, parts: Parts) -> list[dict[str, Any]]:
    """Write arrays, and return their entries in CURRENT, in the order of their names.

    A disk that is told of several files at once puts them in place together.
    """
    names = sorted(parts.arrays)
    with ThreadPoolExecutor(_WRITERS) as pool:
        return [
            *pool.map(
                partial(_write_array, generation),
                range(len(names)),
                names,
                (parts.arrays[name] for name in names),
            )
        ]


def _write_array(
    generation: Path, number: int, name: str, array: NDArray[Any]
) -> dict[str, Any]:
    """Write an array, and return its entry in CURRENT."""
    plain = f"{number:03d}-{re.sub(r'[^A-Za-z0-9._-]+', '-', name)[:80]}.npy"
    written = _write_file(generation / plain, lambda out: np.save(out, array, False))
    return {"name": name, "generation": generation.name, **written}


def _write_file(path: Path, write: Callable[[Any], object]) -> dict[str, Any]:
    """Write a file and put it on the disk; return its name, size and sha256."""
    with storing(path), open(path, "w+b") as out:
        write(out)
        out.flush()
        os.fsync(out.fileno())
        size = out.tell()
        out.seek(0)
        return {
            "file": path.name,
            "size": size,
            "sha256": hashlib.file_digest(out, "sha256").hexdigest(),
        }


def _sync_folder(folder: Path) -> None:
    """Put the names in `folder` on the disk."""
    if os.name == "nt":  # Windows opens no folders
        return
    with storing(folder):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        except OSError as error:
            if error.errno not in (
                errno.EINVAL,
                errno.ENOTSUP,
            ):  # some network file systems sync no folders
                raise
        finally:
            os.close(handle)


@contextmanager
def storing(path: Path, what: str = "written") -> Iterator[None]:
    """Turn an OSError into a StorageError that names `path`."""
    try:
        yield
    except FileNotFoundError as error:
        raise CorruptIndex(f"{path}: missing") from error
    except OSError as error:
        raise StorageError(
            f"{path}: cannot be {what}: {error.strerror or error}"
        ) from error


def load(folder: Folder, *, kind: str, verify: bool = True) -> Bundle:
    """Open the index in `folder`, which must be of the given kind.

    The arrays are mapped, not read into memory. It compares the sha256 of every file,
    which reads each once (about 1 GB/s); without `verify` all sizes, and the sha256 of
    the smallest files up to `QUICK_BYTES` in all. Raises `NotAnIndex` if there is no
    such folder, no index in it, one of another kind or one of an older graphret,
    `NewerVersion` if a newer one wrote it, and `CorruptIndex` if a file, which is
    named, is missing, truncated or altered.
    """
    current = read_current(Path(folder))
    if current["kind"] != kind:
        raise NotAnIndex(
            f"{folder}: holds a {current['kind']!r} index, not a {kind!r} index"
        )
    return _open(Path(folder), current, verify)


def verify(folder: Folder) -> dict[str, Any]:
    """Check every checksum of the index in `folder`, whatever its kind.

    Raises what `load` raises. Returns ``kind``, ``version``, ``graphret`` (the release
    that wrote it), ``generation``, ``files`` and ``bytes``.
    """
    current = _open(Path(folder), read_current(Path(folder)), True).about
    about = {key: current[key] for key in ("kind", "version", "graphret", "generation")}
    return about | {
        "files": len(current["files"]),
        "bytes": sum(entry["size"] for entry in current["files"]),
    }


def read_current(folder: Path) -> dict[str, Any]:
    """Return what CURRENT says, once its checksum and layout version are checked."""
    path = folder / CURRENT
    if not path.is_file():
        holds = (
            f"holds no graphret index (no file {CURRENT})"
            if folder.is_dir()
            else "a file, not a folder"
        )
        raise NotAnIndex(f"{folder}: {holds if folder.exists() else 'no such folder'}")
    try:
        with storing(path, "read"):
            line, check, rest = path.read_bytes().decode().split("\n")
        if rest or check != hashlib.sha256(line.encode()).hexdigest():
            raise ValueError("its checksum does not match")
        current: dict[str, Any] = json.loads(line)
        theirs = current["version"]
        ours = theirs == FORMAT_VERSION
        if ours and not all(
            map(
                _PLACE.fullmatch,
                [
                    current["generation"],
                    *(entry[key] for entry in current["files"] for key in _WHERE),
                ],
            )
        ):
            raise ValueError("it names files elsewhere")
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptIndex(
            f"{path}: altered, or not written by graphret: {error}"
        ) from error
    if not ours:
        kind = NewerVersion if theirs > FORMAT_VERSION else NotAnIndex
        raise kind(
            f"{folder}: its layout has version {theirs}, this graphret's"
            f" {FORMAT_VERSION}; build it again"
        )
    return current


def _held(folder: Path) -> dict[str, Any]:
    """What CURRENT says, nothing where there is none that can be read."""
    with suppress(CorruptIndex, NotAnIndex):
        return read_current(folder)
    return {}


def _open(folder: Path, current: dict[str, Any], verify: bool) -> Bundle:
    """Map every file of the generation in force.

    It starts again where a writer has swapped in another one and removed this one.
    """
    while True:
        bundle = Bundle(meta=current["meta"], about=current)
        unread = QUICK_BYTES
        try:
            for entry in sorted(current["files"], key=lambda entry: entry["size"]):
                unread -= entry["size"]
                path = folder / entry["generation"] / entry["file"]
                array = _mapped(path, entry, check=verify or unread >= 0)
                bundle.arrays[entry["name"]] = array
            return bundle
        except CorruptIndex:
            before, current = current, read_current(folder)
            if current == before:
                raise


def _mapped(path: Path, entry: dict[str, Any], *, check: bool) -> NDArray[Any]:
    """Map a file, read-only; the map outlives the file's name."""
    with storing(path, "read"), open(path, "rb") as file:
        there = os.fstat(file.fileno()).st_size
        if there != entry["size"]:
            raise CorruptIndex(
                f"{path}: truncated or altered: {there} bytes in place of"
                f" {entry['size']}"
            )
        if check and hashlib.file_digest(file, "sha256").hexdigest() != entry["sha256"]:
            raise CorruptIndex(
                f"{path}: altered (its sha256 is not the one in CURRENT)"
            )
    try:
        mapped = np.load(path, mmap_mode="r", allow_pickle=False)
        return np.asarray(mapped)
    except (ValueError, TypeError, OSError) as error:
        raise CorruptIndex(f"{path}: altered, or removed meanwhile: {error}") from error
