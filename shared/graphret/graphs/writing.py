"""What the writers of files share."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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
        fresh.unlink(missing_ok=True)
