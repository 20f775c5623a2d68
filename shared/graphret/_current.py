"""The file CURRENT: which generation of an index is in force, changed in one rename."""

from __future__ import annotations

import hashlib
import json
import os
import re
from pathlib import Path
from typing import Any

from graphret._files import HashedFile, fsync_folder, reason, storing
from graphret.errors import CorruptIndex, NewerVersion, NotAnIndex, StorageError

FORMAT_VERSION = 1
"""The layout of folders and manifests; what the arrays mean is versioned by each kind."""

CURRENT, FRESH, LOCK = "CURRENT", "CURRENT.new", "LOCK"
GENERATION = re.compile(r"gen-[0-9a-f]{16}")


def _line_check(line: str) -> str:
    return hashlib.sha256(line.encode()).hexdigest()


def read_current(folder: Path) -> dict[str, Any]:
    """The fields of CURRENT, checked."""
    path = folder / CURRENT
    try:
        content = path.read_bytes()
    except FileNotFoundError as error:
        if not folder.exists():
            raise NotAnIndex(f"{folder}: no such folder") from error
        raise NotAnIndex(f"{folder}: holds no graphret index (no file {CURRENT})") from error
    except NotADirectoryError as error:
        raise NotAnIndex(f"{folder}: a file, not a folder") from error
    except OSError as error:
        raise StorageError(f"{path}: cannot be read: {reason(error)}") from error
    try:
        line, check, rest = content.decode().split("\n")
        if rest or check != _line_check(line):
            raise ValueError("its checksum does not match")
        current = json.loads(line)
        require_format(folder, current)
        if not GENERATION.fullmatch(current["generation"]):
            raise ValueError("the name of its generation is none")
        current["kind"], current["manifest"]
    except (ValueError, TypeError, KeyError) as error:
        raise CorruptIndex(f"{path}: altered, or not written by graphret: {error}") from error
    return dict(current)


def require_format(folder: Path, fields: dict[str, Any]) -> None:
    if fields["format"] != "graphret":
        raise ValueError(f"format {fields['format']!r}")
    if (theirs := int(fields["format_version"])) > FORMAT_VERSION:
        raise NewerVersion(f"{folder}: its layout has version {theirs}, this graphret reads up to {FORMAT_VERSION}")


def swap(folder: Path, fields: dict[str, str]) -> None:
    """Put a generation in force: from the rename on, readers open it."""
    line = json.dumps({"format": "graphret", "format_version": FORMAT_VERSION, **fields})
    path, fresh = folder / CURRENT, folder / FRESH
    with storing(fresh):
        fresh.unlink(missing_ok=True)
        with HashedFile(fresh) as out:
            out.write(f"{line}\n{_line_check(line)}\n".encode())
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
        raise StorageError(f"{folder}: cannot be read: {reason(error)}") from error
    generations = {name for name in names if GENERATION.fullmatch(name)}
    # A damaged index may be written anew: its CURRENT lies beside nothing but generations.
    if names == generations or (generations and names == generations | {CURRENT}):
        return
    try:
        read_current(folder)
    except (CorruptIndex, NotAnIndex) as error:
        raise NotAnIndex(f"{folder}: holds other files and no graphret index, so nothing is written there") from error
