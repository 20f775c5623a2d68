"""Trajectories: runs as JSON Lines in the chat format of fine-tuning, and back.

A line is one agent: ``messages`` and ``tools`` as OpenAI has them (the assistant's
turns and tool calls are the targets, what tools returned is context; ARK, section 3.3),
and beside them all that the run knew, so that `read_runs` returns what was recorded.
Every field has one type throughout a file, for readers that infer columns: no error is
an empty one, and the arguments of a call are JSON text, which is to be parsed for chat
templates that want objects.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from graphret.ark.prompt import make_tools
from graphret.ark.run import ArkRun
from graphret.ark.session import ArkSession
from graphret.errors import GraphretError, InvalidInput, NewerVersion, StorageError

_SCHEMA = "graphret.trajectory/1"


class Recorder:
    """Appends runs to a file; give one to `Ark` as ``on_run``.

    The file is made, with its folder, when the first run is recorded. A run is one
    write to the end of it, so that threads and processes may record into the same file
    at once.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    def __call__(self, run: ArkRun) -> None:
        """Append a run, one line for each agent; raises `StorageError` if it cannot."""
        lines = "".join(_text(_line(run, session)) + "\n" for session in run.sessions)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("ab", buffering=0) as file:
                file.write(
                    lines.encode("utf-8", "backslashreplace")
                )  # half a character as its escape
        except OSError as error:
            raise StorageError(
                f"{self.path}: cannot be written: {error.strerror or error}"
            ) from error


def read_runs(path: str | os.PathLike[str]) -> list[ArkRun]:
    """Return the runs of a file, in the order in which they were recorded.

    Raises
    ------
    InvalidInput
        When the file cannot be read, or a line is damaged; the message names its
        number.
    NewerVersion
        When a line was written by another version of graphret.
    """
    try:
        lines = Path(path).read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(
            f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}"
        ) from error
    runs: dict[str, ArkRun] = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            data = json.loads(line)
            if data["schema"] == _SCHEMA:
                run = ArkRun(
                    data["question"],
                    [],
                    float(data["seconds"]),
                    str(data["created"]),
                    id=str(data["run"]),
                )
                for call in (call for step in data["steps"] for call in step["calls"]):
                    call["arguments"] = json.loads(call["arguments"])
                session = ArkSession.from_dict(data | {"agent": data["agent"] - 1})
                runs.setdefault(run.id, run).sessions.append(session)
                continue
        except (
            GraphretError,
            LookupError,
            ValueError,
            TypeError,
            AttributeError,
            RecursionError,
        ) as error:
            raise InvalidInput(
                f"{path}, line {number}: damaged, {type(error).__name__}: {error}"
            ) from error
        raise NewerVersion(
            f"{path}, line {number}: {data['schema']!r}, where this graphret reads"
            f" {_SCHEMA!r}"
        )
    return list(runs.values())


def _line(run: ArkRun, session: ArkSession) -> dict[str, Any]:
    fields = session.to_dict()
    for step in fields["steps"]:
        step["calls"] = [
            call | {"arguments": _text(call["arguments"])} for call in step["calls"]
        ]
    return {
        "schema": _SCHEMA,
        "run": run.id,
        **fields,
        "agent": session.agent + 1,
        "agents": len(run.sessions),
        "tools": [tool.to_dict() for tool in make_tools(session.settings)],
        "messages": [message.to_dict() for message in session.messages],
        "stop": session.stop or "",
        "error": session.error or "",
        "usage": {
            name: sum(step[name] for step in fields["steps"])
            for name in ("input_tokens", "output_tokens")
        },
        **{name: getattr(run, name) for name in ("created", "seconds")},
    }


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
