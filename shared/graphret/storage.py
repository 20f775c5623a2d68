"""Arrays, strings and records in one folder: versioned, checksummed, swapped in whole, memory-mapped.

``folder/CURRENT`` names the generation in force, ``folder/gen-<16 hex>/``, and the sha256 of its ``manifest.json``,
which names the sha256 of every other file. A save writes a new generation beside the old one and swaps `CURRENT` in one
rename, so that a reader sees the one or the other, whatever happens to the writer. Nothing is pickled.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import re
import secrets
import shutil
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed_version
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import numpy as np
from numpy.typing import NDArray

from graphret import _current
from graphret._current import CURRENT, FORMAT_VERSION, read_current, refuse_foreign, require_format, swap
from graphret._files import (
    Folder,
    HashedFile,
    compare,
    fsync_folder,
    map_array,
    open_file,
    reading,
    storing,
    write_array,
)
from graphret._lock import writing
from graphret.errors import CorruptIndex, InvalidInput, NewerVersion, NotAnIndex, StorageError
from graphret.strings import Column, Records, Strings, to_json

__all__ = ["Bundle", "Parts", "Records", "Strings", "load", "save", "verify", "writing"]

C = TypeVar("C", bound="Column[Any]")

QUICK_BYTES = 1 << 27
"""How much a quick check reads: the checksums of the smallest files are compared, as far as this goes."""

_MANIFEST = "manifest.json"
_ATTEMPTS = 100


@dataclass
class Parts:
    """What a component hands over to be saved; `meta` is a JSON object."""

    arrays: dict[str, NDArray[Any]] = field(default_factory=dict)
    strings: dict[str, Strings] = field(default_factory=dict)
    records: dict[str, Records] = field(default_factory=dict)
    meta: dict[str, Any] = field(default_factory=dict)

    def add(self, prefix: str, other: Parts) -> None:
        """Nest another component's parts as ``prefix/name``, its meta as ``meta[prefix]``; `Bundle.sub` reads them."""
        if not prefix or "/" in prefix:
            raise InvalidInput(f"prefix: a non-empty name without '/' expected, not {prefix!r}")
        taken = [name for group in self._groups() for name in group if name.startswith(f"{prefix}/")]
        if taken or prefix in self.meta:
            raise InvalidInput(f"prefix: {prefix!r} is taken already")
        for mine, theirs in zip(self._groups(), other._groups(), strict=True):
            mine.update({f"{prefix}/{name}": part for name, part in theirs.items()})
        self.meta[prefix] = other.meta

    def _groups(self) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
        return self.arrays, self.strings, self.records


@dataclass(frozen=True, eq=False)
class Bundle:
    """An opened index; its arrays are read-only memory maps and stay valid after a later save."""

    folder: Path
    kind: str
    version: int
    meta: dict[str, Any]
    parts: Parts = field(repr=False)

    def names(self) -> list[str]:
        """Return the names of all arrays, strings and records, sorted."""
        return sorted({name for group in self.parts._groups() for name in group})

    def array(self, name: str) -> NDArray[Any]:
        """Return an array; CorruptIndex if there is none of that name, as for the two below."""
        return self.parts.arrays[name] if name in self.parts.arrays else self._absent("array", name)

    def strings(self, name: str) -> Strings:
        """Return a column of strings."""
        return self.parts.strings[name] if name in self.parts.strings else self._absent("strings", name)

    def records(self, name: str) -> Records:
        """Return a column of JSON records."""
        return self.parts.records[name] if name in self.parts.records else self._absent("records", name)

    def sub(self, prefix: str) -> Bundle:
        """Return what was nested by ``Parts.add(prefix, ...)``, names and meta without the prefix."""
        head = f"{prefix}/"
        groups = [{n.removeprefix(head): p for n, p in g.items() if n.startswith(head)} for g in self.parts._groups()]
        meta = self.meta.get(prefix)
        if not isinstance(meta, dict):
            if not any(groups):
                self._absent("component", prefix)
            meta = {}
        return Bundle(self.folder, self.kind, self.version, meta, Parts(groups[0], groups[1], groups[2], meta))

    def _absent(self, what: str, name: str) -> NoReturn:
        raise CorruptIndex(f"{self.folder}: this {self.kind!r} index (version {self.version}) has no {what} {name!r}")


# Writing


def save(folder: Folder, parts: Parts, *, kind: str, version: int) -> None:
    """Write `parts` as the index in `folder`, in place of what it held; all of it or, on any failure, nothing.

    Parameters
    ----------
    folder
        Made if need be. Other files in it are left alone, once it holds an index.
    kind, version
        What the parts are and the version of their meaning, both checked by `load`.

    Raises
    ------
    InvalidInput
        If a part cannot be stored (Python objects in an array, meta that is not JSON); the message names it.
    NotAnIndex
        If the folder holds other files and no index, or an index of another kind.
    NewerVersion
        If the folder was written by a graphret with a newer layout.
    IndexLocked
        If another process is writing there.
    StorageError
        If a file cannot be written (disk full); the message names it and the cause is the OSError.
    """
    folder = Path(folder)
    _check(parts, kind, version)
    with writing(folder):
        refuse_foreign(folder)
        if (held := _kind_held(folder)) not in (None, kind):
            raise NotAnIndex(f"{folder}: holds a {held!r} index, which a {kind!r} index does not replace")
        _sweep(folder)
        generation = folder / f"gen-{secrets.token_hex(8)}"
        try:
            with storing(generation):
                generation.mkdir()
            digest = _write_generation(generation, parts, kind, version)
            swap(folder, {"generation": generation.name, "kind": kind, "manifest": digest})
        except BaseException:
            if _in_force(folder) not in (None, generation.name):
                shutil.rmtree(generation, ignore_errors=True)
            raise
        _sweep(folder)


def _kind_held(folder: Path) -> str | None:
    try:
        return str(read_current(folder)["kind"])
    except (CorruptIndex, NotAnIndex):
        return None


def _check(parts: Parts, kind: str, version: int) -> None:
    if not isinstance(kind, str) or not kind or type(version) is not int:
        raise InvalidInput(f"kind and version: a name and an int expected, not {kind!r} and {version!r}")
    for name, array in parts.arrays.items():
        if not isinstance(array, np.ndarray) or array.dtype.hasobject:
            raise InvalidInput(f"array {name!r}: a numpy array of numbers or fixed-size items expected")
    for cls, group in ((Strings, parts.strings), (Records, parts.records)):
        for name, column in group.items():
            if not isinstance(column, cls):
                raise InvalidInput(f"{name!r}: {cls.__name__} expected, not {type(column).__name__}")
    for what, value in (("kind", kind), ("meta", parts.meta), *(("names", dict.fromkeys(g)) for g in parts._groups())):
        try:
            to_json(value).encode()
        except (TypeError, ValueError, RecursionError) as error:
            raise InvalidInput(f"{what}: not JSON: {error}") from error


def _write_generation(generation: Path, parts: Parts, kind: str, version: int) -> str:
    """Write every file and the manifest; return the manifest's sha256."""
    files: dict[str, dict[str, Any]] = {}

    def put(name: str, array: NDArray[Any]) -> str:
        file = f"{len(files):03d}-{re.sub(r'[^A-Za-z0-9._-]+', '-', name)[:80]}.npy"
        files[file] = write_array(generation / file, name, array)
        return file

    def put_column(name: str, column: Column[Any]) -> list[str]:
        return [put(f"{name}.blob", column.blob), put(f"{name}.offsets", column.offsets)]

    manifest = {
        "format": "graphret",
        "format_version": FORMAT_VERSION,
        "kind": kind,
        "version": version,
        "graphret": _own_version(),
        "meta": parts.meta,
        "arrays": {name: put(name, parts.arrays[name]) for name in sorted(parts.arrays)},
        "strings": {name: put_column(name, parts.strings[name]) for name in sorted(parts.strings)},
        "records": {name: put_column(name, parts.records[name]) for name in sorted(parts.records)},
        "files": files,
    }
    path = generation / _MANIFEST
    with storing(path), HashedFile(path) as out:
        out.write(to_json(manifest).encode())
    with storing(generation):
        fsync_folder(generation)
    return out.hexdigest()


def _in_force(folder: Path) -> str | None:
    """The name of the generation in force, "" where there is none, None where that cannot be told."""
    try:
        return str(read_current(folder)["generation"])
    except NotAnIndex:
        return ""
    except StorageError:
        return None


def _sweep(folder: Path) -> None:
    """Remove all that is not in force: older generations, and what a writer that died left. The lock is held."""
    if (keep := _in_force(folder)) is None:
        return
    with suppress(OSError):
        (folder / _current.FRESH).unlink(missing_ok=True)
        for path in folder.iterdir():
            if _current.GENERATION.fullmatch(path.name) and path.name != keep:
                shutil.rmtree(path, ignore_errors=True)


def _own_version() -> str:
    try:
        return installed_version("graphret")
    except PackageNotFoundError:
        return "unknown"


# Reading


def load(folder: Folder, *, kind: str, version: int, verify: bool | None = True) -> Bundle:
    """Open the index in `folder`; the arrays are mapped, not read into memory.

    Parameters
    ----------
    kind, version
        What is expected, and the newest version the caller understands; an older one is in `Bundle.version`.
    verify
        Compare the sha256 of every file, which reads each once (about 1 GB/s); if false, sizes only. `None` is a
        quick check: sizes, and the sha256 of the smallest files up to `QUICK_BYTES` in all. The manifest's sha256 is
        compared always.

    Raises
    ------
    NotAnIndex
        If there is no such folder, no index in it, or one of another kind.
    NewerVersion
        If a newer graphret wrote it.
    CorruptIndex
        If a file is missing, truncated or altered; the message names it.
    """
    return _settled(Path(folder), lambda path, current: _open(path, current, kind, version, verify)[0])


def verify(folder: Folder) -> dict[str, Any]:
    """Check every checksum of the index in `folder`, whatever its kind; raises what `load` raises.

    Returns
    -------
    dict
        ``kind``, ``version``, ``graphret`` (the version that wrote it), ``generation``, ``files`` and ``bytes``, and
        ``arrays``, ``strings`` and ``records``: the shape or the length of each, by name.
    """

    def check(path: Path, current: dict[str, Any]) -> dict[str, Any]:
        bundle, manifest = _open(path, current, None, None, True)
        return {
            "kind": bundle.kind,
            "version": bundle.version,
            "graphret": manifest["graphret"],
            "generation": current["generation"],
            "files": len(manifest["files"]),
            "bytes": sum(entry["size"] for entry in manifest["files"].values()),
            "arrays": {name: list(array.shape) for name, array in bundle.parts.arrays.items()},
            "strings": {name: len(column) for name, column in bundle.parts.strings.items()},
            "records": {name: len(column) for name, column in bundle.parts.records.items()},
        }

    return _settled(Path(folder), check)


R = TypeVar("R")


def _settled(folder: Path, read: Callable[[Path, dict[str, Any]], R]) -> R:
    """Read the generation in force; again where a writer swapped and removed it meanwhile."""
    current = read_current(folder)
    for _ in range(_ATTEMPTS):
        try:
            return read(folder, current)
        except CorruptIndex:
            before, current = current, read_current(folder)
            if current == before:
                raise
    return read(folder, current)


def _open(
    folder: Path, current: dict[str, Any], kind: str | None, version: int | None, verify: bool | None
) -> tuple[Bundle, dict[str, Any]]:
    """Map every file of a generation, then compare checksums if told to; where `kind` is None, any is taken."""
    generation = folder / current["generation"]
    manifest = _read_manifest(generation / _MANIFEST, current["manifest"])
    if kind is not None and manifest["kind"] != kind:
        raise NotAnIndex(f"{folder}: holds a {manifest['kind']!r} index, not a {kind!r} index")
    if version is not None and manifest["version"] > version:
        raise NewerVersion(
            f"{folder}: this {kind!r} index has version {manifest['version']}, this graphret reads up to {version}"
        )
    entries: dict[str, dict[str, Any]] = manifest["files"]
    with ExitStack() as stack:
        # All are opened before the first is hashed, so that a writer's sweep cannot overtake a long check.
        handles = {name: open_file(generation / name, entries[name], stack) for name in entries}
        for name in entries if verify else _smallest(entries) if verify is None else ():
            compare(generation / name, handles[name], entries[name])
        arrays = {name: map_array(generation / name, handle, entries[name]) for name, handle in handles.items()}

    def column(cls: type[C], blob: str, offsets: str) -> C:
        try:
            return cls(arrays[blob], arrays[offsets])
        except InvalidInput as error:
            raise CorruptIndex(f"{generation / offsets}: altered: {error}") from error

    parts = Parts(
        {name: arrays[file] for name, file in manifest["arrays"].items()},
        {name: column(Strings, *files) for name, files in manifest["strings"].items()},
        {name: column(Records, *files) for name, files in manifest["records"].items()},
        manifest["meta"],
    )
    return Bundle(folder, manifest["kind"], manifest["version"], manifest["meta"], parts), manifest


def _smallest(entries: dict[str, dict[str, Any]]) -> list[str]:
    """The smallest files, as many as have `QUICK_BYTES` in all."""
    names = sorted(entries, key=lambda name: (entries[name]["size"], name))
    sizes = itertools.accumulate(entries[name]["size"] for name in names)
    return [name for name, total in zip(names, sizes, strict=True) if total <= QUICK_BYTES]


def _read_manifest(path: Path, digest: str) -> dict[str, Any]:
    with reading(path):
        content = path.read_bytes()
    if hashlib.sha256(content).hexdigest() != digest:
        raise CorruptIndex(f"{path}: altered (its sha256 is not the one in {CURRENT})")
    try:
        manifest = json.loads(content)
        require_format(path.parent.parent, manifest)
        columns = [*manifest["strings"].values(), *manifest["records"].values()]
        named = [*manifest["arrays"].values(), *(file for pair in columns for file in pair)]
        if sorted(named) != sorted(manifest["files"]) or any(len(pair) != 2 for pair in columns):
            raise ValueError("its lists of files do not agree")
        if any(Path(file).name != file for file in named):
            raise ValueError("a file lies outside of its folder")
        manifest["kind"], manifest["version"], manifest["graphret"], manifest["meta"]
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise CorruptIndex(f"{path}: unreadable: {error}") from error
    return dict(manifest)
