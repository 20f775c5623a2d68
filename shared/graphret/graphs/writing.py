"""What the writers of files share."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TypeAlias

from graphret.errors import InvalidInput

#: Is told how far a stage has come: its name, how many are done and how many there are.
Progress: TypeAlias = Callable[[str, int, int], None]


def no_progress(stage: str, done: int, total: int) -> None:
    """Tell nobody."""


@dataclass(frozen=True, slots=True)
class Exported:
    """What was written.

    Parameters
    ----------
    files
        The files.
    nodes, edges
        How many are in them.
    replaced
        In how many values characters were replaced that the format cannot hold.
    """

    files: list[Path]
    nodes: int
    edges: int
    replaced: int = 0


@contextmanager
def replacing(path: Path) -> Iterator[IO[str]]:
    """Write a text file beside what is there, and put it in its place when it is whole; on a failure nothing stays."""
    fresh = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with fresh.open("w", encoding="utf-8", newline="") as file:
            yield file
        os.replace(fresh, path)
    except UnicodeEncodeError as error:
        raise InvalidInput(f"{path}: a text holds what UTF-8 cannot write ({error.reason})") from error
    except OSError as error:
        raise InvalidInput(f"{path}: cannot be written: {error.strerror or error}") from error
    finally:
        with suppress(OSError):
            fresh.unlink(missing_ok=True)


@contextmanager
def replacing_folder(folder: Path, mark: str) -> Iterator[Path]:
    """Write files into a fresh folder, and put it in the place of `folder` when all is written.

    Parameters
    ----------
    folder
        Where the files go. What is there is replaced if it is empty or holds the file `mark`.

    Raises
    ------
    InvalidInput
        If other files are there, or a file cannot be written; nothing is changed then.
    """
    fresh = folder.with_name(f".{folder.name}.{os.getpid()}.new")
    old = folder.with_name(f".{folder.name}.{os.getpid()}.old")
    try:
        if folder.exists() and (not folder.is_dir() or (any(folder.iterdir()) and not (folder / mark).is_file())):
            raise InvalidInput(f"{folder}: holds other files, and no earlier export with a {mark}")
        fresh.mkdir(parents=True)
        yield fresh
        if folder.exists():
            os.replace(folder, old)
        try:
            os.replace(fresh, folder)
        except OSError:
            if old.exists():
                os.replace(old, folder)
            raise
    except UnicodeEncodeError as error:
        raise InvalidInput(f"{folder}: a text holds what UTF-8 cannot write ({error.reason})") from error
    except OSError as error:
        raise InvalidInput(f"{folder}: cannot be written: {error.strerror or error}") from error
    finally:
        for path in (fresh, old):
            shutil.rmtree(path, ignore_errors=True)
