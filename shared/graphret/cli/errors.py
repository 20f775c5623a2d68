"""Errors of commands: each becomes one line on stderr and an exit code for scripts."""

from __future__ import annotations

import io
import logging
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperGroup

from graphret.errors import (
    ClusterError,
    InvalidInput,
    MissingDependency,
    ModelError,
    StorageError,
    StoreError,
)

#: The exit codes, which docs/cli.md explains.
OK, UNEXPECTED, USAGE, STORAGE, MISSING, MODEL, STORE, CLUSTER, INTERRUPTED = (
    0,
    1,
    2,
    3,
    4,
    5,
    6,
    7,
    130,
)
_KINDS = {
    InvalidInput: USAGE,
    StorageError: STORAGE,
    MissingDependency: MISSING,
    ModelError: MODEL,
    StoreError: STORE,
}
_KINDS[ClusterError] = CLUSTER
DEBUG = "--debug"

logging.getLogger("neo4j").addHandler(
    logging.NullHandler()
)  # what the driver would log is reported once, as the error


class Commands(TyperGroup):
    """The commands; ``--debug`` may stand anywhere on the command line."""

    def main(self, args: Sequence[str] | None = None, **extra: Any) -> Any:  # type: ignore[override]
        arguments = sys.argv[1:] if args is None else args
        debug, arguments = (
            DEBUG in arguments,
            [argument for argument in arguments if argument != DEBUG],
        )
        if isinstance(
            sys.stdout, io.TextIOWrapper
        ):  # a character that the encoding lacks must not lose the result
            sys.stdout.reconfigure(errors="backslashreplace")
        try:
            code = super().main(args=arguments, **extra | {"standalone_mode": False})
        except (KeyboardInterrupt, typer.Abort):
            code = INTERRUPTED
        except Exception as error:
            code = exit_code(error)
            if debug:
                traceback.print_exception(error, file=sys.stderr)
            print(f"graphret: {_message(error, code)}", file=sys.stderr)
        sys.exit(code if isinstance(code, int) else OK)


def exit_code(error: BaseException | None) -> int:
    """Return the exit code of an error, or of the cause that it was raised from."""
    if hasattr(error, "format_message"):  # raised by the command line's parser
        return USAGE
    while error is not None:
        for kind, code in _KINDS.items():
            if isinstance(error, kind):
                return code
        error = error.__cause__
    return UNEXPECTED


def _message(error: Exception, code: int) -> str:
    text = str(error)
    if usage := getattr(error, "format_message", None):
        context = getattr(error, "ctx", None)
        text = f"{usage()} ({context.command_path if context else 'graphret'} --help)"
    elif code == UNEXPECTED:
        text = (
            f"unexpected error: {type(error).__name__}: {error} ({DEBUG} shows where)"
        )
    printable = "".join(
        character if character.isprintable() else " " for character in text
    )
    return " ".join(printable.split())


@contextmanager
def writing_to(path: Path) -> Iterator[None]:
    """Create the folder of an output file, and name the file if writing it fails."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield
    except OSError as error:
        raise InvalidInput(
            f"{path}: cannot be written: {error.strerror or error}"
        ) from error
