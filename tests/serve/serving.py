"""Services on real sockets: in a thread of the test, or as the command in a process of
its own.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import uvicorn

from graphret.methods import MethodOptions
from graphret.serve.app import create_app
from graphret.serve.graph import Limits, ServedGraph


@contextmanager
def serving(
    where: object, *, loopback: bool = False, **given: Any
) -> Iterator[httpx.Client]:
    """Serve a graph from a thread, and yield a client of it; `model` and others go to
    the methods.
    """
    limits = Limits(
        **{
            name: given.pop(name)
            for name in Limits.__dataclass_fields__
            if name in given
        }
    )
    options = MethodOptions(
        **{
            name: given.pop(name)
            for name in MethodOptions.__dataclass_fields__
            if name in given
        }
    )
    app = create_app(
        ServedGraph(str(where), options=options, limits=limits, **given),
        loopback=loopback,
    )
    server = uvicorn.Server(
        uvicorn.Config(app, port=0, log_config=None, timeout_graceful_shutdown=1)
    )
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    until(lambda: server.started or not thread.is_alive())
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=20) as client:
            yield client
    finally:
        server.should_exit = True
        thread.join(10)


@contextmanager
def command(
    *arguments: object, **environment: str
) -> Iterator[tuple[subprocess.Popen[str], httpx.Client]]:
    """Run ``graphret serve`` at a free port, and yield the process and a client."""
    line = [sys.executable, "-m", "graphret.cli", "serve", "--port", 0, *arguments]
    process = subprocess.Popen(
        [*map(str, line)],
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | environment,
    )
    assert process.stderr is not None
    try:
        found = next(
            at
            for said in process.stderr
            if (at := re.search(r"running on (http://\S+)", said))
        )
        with httpx.Client(base_url=found[1], timeout=20) as client:
            yield process, client
    finally:
        process.terminate()
        process.wait(20)
        process.stderr.close()


def until(done: Callable[[], object], seconds: float = 20) -> None:
    """Wait until something is so."""
    end = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < end, "it has not come about"
        time.sleep(0.01)


def events(text: str) -> list[tuple[str, Any]]:
    """Return the server-sent events of a stream: the name and the value of each."""
    parts = [
        part.split("\n") for part in text.split("\n\n") if part.startswith("event: ")
    ]
    return [
        (name.removeprefix("event: "), json.loads(data.removeprefix("data: ")))
        for name, data in parts
    ]


def answer_of(found: dict[str, Any]) -> dict[str, Any]:
    """Return what is the same each time: the stages without their times."""
    stages = [
        {
            name: value
            for name, value in stage.items()
            if name not in ("seconds", "model_seconds", "started", "calls")
        }
        for stage in found["trace"]["stages"]
    ]
    return found | {"trace": stages}


def key_file(folder: Path, **tenants: tuple[str, str]) -> Path:
    """Write the file of tenants: by name, the sha256 of a key and the condition as
    YAML.
    """
    lines = [
        f"{name}: {{sha256: {key}, where: {where}}}"
        for name, (key, where) in tenants.items()
    ]
    (folder / "keys.yaml").write_text("\n".join(lines))
    return folder / "keys.yaml"
