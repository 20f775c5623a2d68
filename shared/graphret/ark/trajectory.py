"""Trajectories: runs as JSON Lines in the chat format that models are fine-tuned on, and read back.

A line is one agent: ``messages`` and ``tools`` as OpenAI has them (the assistant's turns and tool calls are the
targets, what tools returned is context; ARK, section 3.3), and beside them all that the run knew, so that `read_runs`
returns what was recorded. Every field has one type throughout a file, for readers that infer columns: no error is an
empty one, and the arguments of a call are JSON text, which is to be parsed for chat templates that want objects.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphret.ark.definitions import SELECT
from graphret.ark.records import StepRecord
from graphret.ark.run import Run
from graphret.ark.session import ArkSession
from graphret.columns import to_json
from graphret.errors import InvalidInput, NewerVersion, StorageError
from graphret.graphs.tabular import numbered_lines
from graphret.llm.chat import Message

if TYPE_CHECKING:
    from pydantic import TypeAdapter

VERSION = 1
_SCHEMA = "graphret.trajectory/"


class Recorder:
    """Appends runs to a file; give one to `Ark` as ``on_run``.

    A run is one write to the end of the file, so that threads and processes may record into the same file at once.

    Parameters
    ----------
    path
        The file; it is made, with its folder, when the first run is recorded.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    def __call__(self, run: Run) -> None:
        """Append a run; see `record`."""
        self.record(run)

    def record(self, run: Run) -> str:
        """Append a run, a line an agent, and return the id that it has there.

        Raises
        ------
        StorageError
            When the file cannot be written.
        """
        id_ = uuid.uuid4().hex[:16]
        lines = "".join(_text(_line(run, session, id_)) + "\n" for session in run.sessions).encode()
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            _append(self.path, lines)
        except OSError as error:
            raise StorageError(f"{self.path}: cannot be written: {error.strerror or error}") from error
        return id_


def recorded_runs(path: str | os.PathLike[str]) -> dict[str, Run]:
    """Return the runs of a file by their ids, in the order in which they were recorded.

    Raises
    ------
    InvalidInput
        When there is no such file, or a line is damaged; the message names its number.
    NewerVersion
        When a line was written by a newer graphret.
    """
    path = Path(path)
    runs: dict[str, Run] = {}
    firsts: dict[str, _Line] = {}
    for number, text in numbered_lines(path):
        where = f"{path}, line {number}"
        line = _parsed(text, where)
        first = firsts.setdefault(line.run, line)
        if _of_run(first) != _of_run(line):
            raise InvalidInput(f"{where}: run {line.run} is not the one of its earlier lines")
        run = runs.setdefault(line.run, Run(line.question, [], line.seconds, line.how, line.created))
        if any(session.agent == line.agent - 1 for session in run.sessions):
            raise InvalidInput(f"{where}: run {line.run} has an agent {line.agent} already")
        run.sessions.append(_session(line, where))
    for run in runs.values():
        run.sessions.sort(key=lambda session: session.agent)
    return runs


def read_runs(path: str | os.PathLike[str]) -> list[Run]:
    """Return the runs of a file, in the order in which they were recorded; see `recorded_runs`.

    A session is as it was recorded, but for its memory of earlier calls, which no stopped agent needs.
    """
    return list(recorded_runs(path).values())


@dataclass(slots=True)
class _Line:
    schema: str
    run: str
    agent: int
    agents: int
    question: str
    model: str
    tools: list[dict[str, Any]]
    messages: list[dict[str, Any]]
    selection: list[str]
    stop: str
    error: str
    usage: dict[str, int]
    steps: list[StepRecord]
    settings: dict[str, Any]
    how: str
    created: str
    seconds: float


def _line(run: Run, session: ArkSession, id_: str) -> dict[str, Any]:
    from graphret.ark.tools import make_tools

    highest = max(session.agent for session in run.sessions)  # a run need not know of all that came before
    steps = [asdict(step) for step in session.steps]
    for step in steps:
        for call in step["calls"]:
            call["arguments"] = _text(call["arguments"])
    usage = {name: sum(step[name] for step in steps) for name in ("input_tokens", "output_tokens")}
    return {
        "schema": f"{_SCHEMA}{VERSION}",
        "run": id_,
        "agent": session.agent + 1,
        "agents": highest + 1,
        "question": run.question,
        "model": session.model,
        "tools": [tool.to_dict() for tool in make_tools(session.settings)],
        "messages": list(map(_said, session.messages)),
        "selection": session.selection,
        "stop": session.stop or "",
        "error": session.error or "",
        "usage": usage,
        "steps": steps,
        "settings": session.settings.to_dict(),
        "how": run.how,
        "created": run.created,
        "seconds": run.seconds,
    }


def _said(message: Message) -> dict[str, Any]:
    out = message.to_dict()
    for call, written in zip(message.tool_calls, out.get("tool_calls", ()), strict=True):
        if call.parsed == {}:  # as which nothing, and `null`, were taken
            written["function"]["arguments"] = "{}"
    return out


def _text(value: Any) -> str:
    text = to_json(value)
    try:
        text.encode()
    except UnicodeEncodeError:  # half of a pair of surrogates, which an escape can hold
        return json.dumps(value, allow_nan=False, separators=(",", ":"))
    return text


def _append(path: Path, data: bytes) -> None:
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0)
    handle = os.open(path, flags, 0o666)
    try:
        if os.fstat(handle).st_size:
            os.lseek(handle, -1, os.SEEK_END)
            if os.read(handle, 1) != b"\n":  # a line that was cut off stays the only damaged one
                data = b"\n" + data
        if os.write(handle, data) < len(data):
            raise OSError(None, "the disk is full; the last line there is cut off")
    finally:
        os.close(handle)


def _parsed(text: str, where: str) -> _Line:
    from pydantic import ValidationError

    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"{where}: damaged, it is no JSON: {error}") from error
    _require_version(data, where)
    try:
        line = _adapter().validate_python(data)
    except ValidationError as error:
        one = error.errors()[0]
        field = ".".join(map(str, one["loc"]))
        raise InvalidInput(f"{where}: damaged, {field}: {one['msg']}") from error
    if not 1 <= line.agent <= line.agents:
        raise InvalidInput(f"{where}: damaged, agent: {line.agent} of {line.agents}")
    return line


@cache
def _adapter() -> TypeAdapter[_Line]:
    from pydantic import TypeAdapter

    return TypeAdapter(_Line)


def _require_version(data: Any, where: str) -> None:
    schema = data.get("schema") if isinstance(data, Mapping) else None
    if not isinstance(schema, str) or not schema.startswith(_SCHEMA):
        raise InvalidInput(f"{where}: no trajectory of graphret's")
    version = schema.removeprefix(_SCHEMA)
    if not version.isdecimal():
        raise InvalidInput(f"{where}: damaged, schema: {schema!r}")
    if int(version) > VERSION:
        raise NewerVersion(f"{where}: a trajectory of version {version}, this graphret reads up to {VERSION}")


def _of_run(line: _Line) -> tuple[object, ...]:
    return line.question, line.agents, line.how, line.created, line.seconds


def _session(line: _Line, where: str) -> ArkSession:
    try:
        for step in line.steps:
            for call in step.calls:
                call.arguments = json.loads(call.arguments)
        shown = (node for step in line.steps for call in step.calls if call.tool != SELECT for node in call.nodes)
        return ArkSession.from_dict(
            {
                "question": line.question,
                "agent": line.agent - 1,
                "model": line.model,
                "settings": line.settings,
                "messages": line.messages,
                "selection": line.selection,
                "steps": [asdict(step) for step in line.steps],
                "seen": list(dict.fromkeys(shown)),
                "stop": line.stop or None,
                "error": line.error or None,
                "known": {},
                "failures": 0,
            }
        )
    except (ValueError, TypeError, RecursionError) as error:
        raise InvalidInput(f"{where}: damaged, {error}") from error
