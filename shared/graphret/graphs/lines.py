"""Text files read a line at a time, every undecodable byte named by its line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from graphret.errors import InvalidInput


@contextmanager
def opened(path: Path) -> Iterator[IO[str]]:
    """Open a UTF-8 file, with or without a byte order mark, line ends as they are.

    Raises
    ------
    InvalidInput
        If there is no such file, it cannot be read, or a byte in it is not UTF-8; the last names the line.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="\n") as file:
            yield file
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{path}, line {_undecodable(path)}: not UTF-8 ({error.reason})") from error
    except FileNotFoundError as error:
        raise InvalidInput(f"{path}: no such file") from error
    except OSError as error:
        raise InvalidInput(f"{path}: cannot be read: {error.strerror or error}") from error


def _undecodable(path: Path) -> int:
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError:
                return number
    return number


def numbered(file: IO[str]) -> Iterator[tuple[int, str]]:
    """Go through the lines with their numbers from 1, without their ends (a line feed, with a return before it or not).

    Nothing else ends a line: U+0085 and U+2028 may stand in a name.
    """
    for number, line in enumerate(file, 1):
        yield number, line.removesuffix("\n").removesuffix("\r")
