"""Arrays and tables in one folder: versioned, checksummed, swapped in whole, memory-mapped.

``folder/CURRENT`` names the generation in force, ``folder/gen-<16 hex>/``, and the sha256 of every file of it: ``.npy``
for arrays, ``.arrow`` (Arrow IPC, which pandas, polars and DuckDB open too) for tables. A save writes a new generation
beside the old one and swaps `CURRENT` in one rename, so that a reader sees the one or the other, whatever happens to
the writer. Nothing is pickled.
"""

from __future__ import annotations

import hashlib
import io
import itertools
import logging
import mmap
import os
import re
import secrets
import shutil
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.metadata import version as installed_version
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from graphret.columns import to_numpy
from graphret.errors import CorruptIndex, IndexChanged, NewerVersion, NotAnIndex, StorageError
from graphret.folder import (
    FRESH,
    GENERATION,
    Folder,
    fsync_folder,
    read_current,
    reading,
    storing,
    swap,
    write_file,
    writing,
)

__all__ = ["Bundle", "Parts", "coded", "load", "save", "verify", "writing"]

_log = logging.getLogger(__name__)

QUICK_BYTES = 1 << 27
"""How much a quick check reads: the checksums of the smallest files are compared, as far as this goes."""


@dataclass
class Parts:
    """What a component hands over to be saved; `meta` is a JSON object."""

    arrays: dict[str, NDArray[Any]] = field(default_factory=dict)
    tables: dict[str, pa.Table] = field(default_factory=dict)
    meta: dict[str, Any] = field(default_factory=dict)

    def add(self, prefix: str, other: Parts) -> None:
        """Nest another component's parts as ``prefix/name``, its meta as ``meta[prefix]``; `Bundle.sub` reads them."""
        self.arrays.update({f"{prefix}/{name}": array for name, array in other.arrays.items()})
        self.tables.update({f"{prefix}/{name}": table for name, table in other.tables.items()})
        self.meta[prefix] = other.meta


@dataclass(kw_only=True)
class Bundle(Parts):
    """An opened index; its arrays and tables are read-only memory maps and stay valid after a later save."""

    folder: Path
    generation: str = ""

    def columns(self, name: str) -> dict[str, pa.Array]:
        """Return the columns of a table, each in one piece."""
        table = self.tables[name]
        columns = zip(table.column_names, table.columns, strict=True)
        return {name: c.chunk(0) if c.num_chunks == 1 else c.combine_chunks() for name, c in columns}

    def sub(self, prefix: str) -> Bundle:
        """Return what was nested by ``Parts.add(prefix, ...)``, names and meta without the prefix."""
        head = f"{prefix}/"
        arrays = {n.removeprefix(head): one for n, one in self.arrays.items() if n.startswith(head)}
        tables = {n.removeprefix(head): one for n, one in self.tables.items() if n.startswith(head)}
        return Bundle(arrays, tables, self.meta[prefix], folder=self.folder)


def coded(column: pa.DictionaryArray) -> tuple[NDArray[Any], list[Any]]:
    """Return the codes of a dictionary column, not copied, and what they stand for."""
    return to_numpy(column.indices), column.dictionary.to_pylist()


def save(folder: Folder, parts: Parts, *, kind: str, version: int, replaces: str | None = None) -> str:
    """Write `parts` as the index in `folder`, in place of what it held; all of it or, on any failure, nothing.

    Parameters
    ----------
    folder
        Made if need be. Other files in it are left alone, once it holds an index.
    kind, version
        What the parts are and the version of their meaning, both checked by `load`.
    replaces
        The generation that the parts were made from: if another is in force, nothing is written.

    Returns
    -------
    str
        The new generation.

    Raises
    ------
    IndexChanged
        If another generation than `replaces` is in force.
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
    files = _file_names(parts)
    with writing(folder):
        if (held := _held(folder)) and held["kind"] != kind:
            raise NotAnIndex(f"{folder}: holds a {held['kind']!r} index, which a {kind!r} index does not replace")
        if replaces is not None and held and held["generation"] != replaces:
            raise IndexChanged(
                f"{folder}: it was saved by another since this was loaded, whose changes would be lost; load it again, "
                "or hold `graphret.storage.writing(folder)` from loading to saving"
            )
        generation = folder / f"gen-{secrets.token_hex(8)}"
        try:
            with storing(generation):
                generation.mkdir()
            written = {file: {"name": name, **_write(generation / file, parts, name)} for file, name in files.items()}
            with storing(generation):
                fsync_folder(generation)
            about = {"generation": generation.name, "kind": kind, "version": version, "meta": parts.meta}
            swap(folder, {**about, "graphret": installed_version("graphret"), "files": written})
        except BaseException:
            with suppress(StorageError):
                if _held(folder).get("generation") != generation.name:
                    shutil.rmtree(generation, ignore_errors=True)
            raise
        _sweep(folder, generation.name)
    return generation.name


def _file_names(parts: Parts) -> dict[str, str]:
    """The name of a file for each part."""
    names = sorted([*parts.arrays, *parts.tables])
    plain = (re.sub(r"[^A-Za-z0-9._-]+", "-", name)[:80] for name in names)
    suffix = (".npy" if name in parts.arrays else ".arrow" for name in names)
    return {f"{i:03d}-{one}{end}": name for i, (one, end, name) in enumerate(zip(plain, suffix, names, strict=True))}


def _write(path: Path, parts: Parts, name: str) -> dict[str, Any]:
    def write(out: Any) -> None:
        if name in parts.arrays:
            np.lib.format.write_array(out, parts.arrays[name], version=(1, 0), allow_pickle=False)
        else:
            table = parts.tables[name]
            with pa.ipc.new_file(out, table.schema) as writer:
                writer.write_table(table.combine_chunks())

    return write_file(path, write)


def _held(folder: Path) -> dict[str, Any]:
    """What CURRENT says, nothing where there is none that can be read."""
    try:
        return read_current(folder)
    except (CorruptIndex, NotAnIndex):
        return {}


def _sweep(folder: Path, keep: str) -> None:
    """Remove all that is not in force: older generations, and what a writer that died left. The lock is held."""
    with suppress(OSError):
        (folder / FRESH).unlink(missing_ok=True)
        for path in folder.iterdir():
            if GENERATION.fullmatch(path.name) and path.name != keep:
                shutil.rmtree(path, ignore_errors=True)


def load(folder: Folder, *, kind: str, version: int, verify: bool | None = True) -> Bundle:
    """Open the index in `folder`; the arrays are mapped, not read into memory.

    Parameters
    ----------
    kind, version
        What is expected.
    verify
        Compare the sha256 of every file, which reads each once (about 1 GB/s); if false, sizes only. `None` is a
        quick check: sizes, and the sha256 of the smallest files up to `QUICK_BYTES` in all.

    Raises
    ------
    NotAnIndex
        If there is no such folder, no index in it, one of another kind or of an older version.
    NewerVersion
        If a newer graphret wrote it.
    CorruptIndex
        If a file is missing, truncated or altered; the message names it.
    """
    return _settled(Path(folder), verify, kind, version)[0]


def verify(folder: Folder) -> dict[str, Any]:
    """Check every checksum of the index in `folder`, whatever its kind; raises what `load` raises.

    Returns
    -------
    dict
        ``kind``, ``version``, ``graphret`` (the version that wrote it), ``generation``, ``files`` and ``bytes``.
    """
    _, current = _settled(Path(folder), True)
    sizes = [entry["size"] for entry in current["files"].values()]
    about = {key: current[key] for key in ("kind", "version", "graphret", "generation")}
    return about | {"files": len(sizes), "bytes": sum(sizes)}


def _settled(
    folder: Path, check: bool | None, kind: str | None = None, version: int | None = None
) -> tuple[Bundle, dict[str, Any]]:
    """Open the generation in force; again where a writer swapped and removed it meanwhile."""
    current = read_current(folder)
    while True:
        if kind is not None and current["kind"] != kind:
            raise NotAnIndex(f"{folder}: holds a {current['kind']!r} index, not a {kind!r} index")
        if version is not None and current["version"] != version:
            theirs = f"{folder}: this {kind!r} index has version {current['version']}, not {version}"
            raise (NewerVersion if current["version"] > version else NotAnIndex)(f"{theirs}; build it again")
        try:
            return _open(folder, current, check), current
        except CorruptIndex:
            before, current = current, read_current(folder)
            if current == before:
                raise


def _open(folder: Path, current: dict[str, Any], check: bool | None) -> Bundle:
    """Map every file of a generation and compare checksums if told to."""
    generation, entries = folder / current["generation"], current["files"]
    # All are mapped before the first is hashed, so that a writer's sweep cannot overtake a long check.
    maps = {file: _mapped(generation / file, entries[file]["size"]) for file in entries}
    checked = list(entries) if check else _smallest(entries) if check is None else []
    if check is None and len(checked) < len(entries):
        left = len(entries) - len(checked)
        _log.info("%s: the %d largest files were not held against their checksums; verify=True does", folder, left)
    for file in checked:
        if hashlib.sha256(maps[file]).hexdigest() != entries[file]["sha256"]:
            raise CorruptIndex(f"{generation / file}: altered (its sha256 is not the one in CURRENT)")
    bundle = Bundle(meta=current["meta"], folder=folder, generation=current["generation"])
    for file, entry in entries.items():
        try:
            if file.endswith(".arrow"):
                bundle.tables[entry["name"]] = pa.ipc.open_file(pa.py_buffer(maps[file])).read_all()
            else:
                bundle.arrays[entry["name"]] = _array(maps[file])
        except (ValueError, TypeError, OSError) as error:  # Arrow's errors are such
            raise CorruptIndex(f"{generation / file}: altered: {error}") from error
    return bundle


def _mapped(path: Path, size: int) -> mmap.mmap:
    """Map a file, read-only; the map outlives the file's name."""
    with reading(path), open(path, "rb") as handle:
        there = os.fstat(handle.fileno()).st_size
        if there != size or not size:
            raise CorruptIndex(f"{path}: truncated or altered: {there} bytes in place of {size}")
        return mmap.mmap(handle.fileno(), 0, access=mmap.ACCESS_READ)


def _array(mapped: mmap.mmap) -> NDArray[Any]:
    """The array of a mapped .npy file."""
    head = io.BytesIO(mapped[:4096])
    if np.lib.format.read_magic(head) != (1, 0):
        raise ValueError("an unknown version of .npy")
    shape, fortran, dtype = np.lib.format.read_array_header_1_0(head)
    return np.ndarray(shape, dtype, mapped, head.tell(), order="F" if fortran else "C")


def _smallest(entries: dict[str, dict[str, Any]]) -> list[str]:
    """The smallest files, as many as have `QUICK_BYTES` in all."""
    names = sorted(entries, key=lambda name: (entries[name]["size"], name))
    sizes = itertools.accumulate(entries[name]["size"] for name in names)
    return [name for name, total in zip(names, sizes, strict=True) if total <= QUICK_BYTES]
