"""A real Neo4j for tests: ``with Neo4jServer(folder) as server``, or ``python -m``.

A suite of tests loads the fixtures with ``pytest_plugins =
["graphret.testing.neo4j_server.fixtures"]``.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from typing import Self

from filelock import FileLock

from graphret.errors import GraphretError

_HERE = Path(__file__).parent
# For a server that lives for minutes: compiled soon rather than well, and nothing twice
# for want of room.
_JAVA = (
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:ReservedCodeCacheSize=256m",
)


class CannotStart(GraphretError):
    """No Neo4j server can be started here; the message says why."""


class Neo4jServer:
    """A Neo4j 5 community server on the loopback address, with APOC.

    Java runs it from jars that Maven fetches.

    Parameters
    ----------
    home
        Its data folder, made if need be; another process finds a running server by it.
    owner
        The id of a process with which the server ends; 0 for none.
    lasting
        Whether Java is left to compile as for a server in production: slow for minutes,
        then twice as fast.
    """

    def __init__(
        self, home: str | Path, *, owner: int = 0, lasting: bool = False
    ) -> None:
        self.home = Path(home).resolve()
        self._owner, self._lasting = owner, lasting
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def uri(self) -> str:
        """Where it listens, or did when it last ran."""
        return f"bolt://127.0.0.1:{self._state()['port']}"

    @property
    def running(self) -> bool:
        """Whether its process is there."""
        if self._process is not None:
            return self._process.poll() is None
        pid = str(self._state().get("pid", 0))
        listed = subprocess.run(
            ["ps", "-p", pid, "-o", "command="],
            capture_output=True,
            text=True,
            check=False,
        )
        return str(self.home) in listed.stdout and "<defunct>" not in listed.stdout

    def start(self, seconds: float = 100.0) -> Self:
        """Start it if it does not run, and wait until it answers.

        Raises `CannotStart` when there is no Java with the jars of Neo4j, or the server
        does not answer in time.
        """
        if not self.running:
            java, jars = shutil.which("java"), fetch()
            if java is None:
                raise CannotStart("Java is not installed")
            self.home.mkdir(parents=True, exist_ok=True)
            with socket.create_server(("127.0.0.1", 0)) as probe:
                port = probe.getsockname()[1]
            options = [
                "-Xmx1g",
                *(() if self._lasting else _JAVA),
                "-cp",
                str(jars / "lib" / "*"),
            ]
            arguments = [
                str(self.home),
                str(port),
                str(jars / "plugins"),
                str(self._owner),
            ]
            command = [java, *options, str(_HERE / "Neo4jServer.java"), *arguments]
            with (self.home / "server.log").open("wb") as log:
                self._process = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )
            (self.home / "server.json").write_text(
                json.dumps({"pid": self._process.pid, "port": port})
            )
        _until(lambda: "ready on bolt://" in self._log() or not self.running, seconds)
        if "ready on bolt://" not in self._log():
            self.stop()
            raise CannotStart(
                f"Neo4j did not start within {seconds:.0f} s:"
                f" {self._log().strip()[-500:]}"
            )
        return self

    def stop(self, seconds: float = 30.0) -> None:
        """Stop it, and wait until it has ended; it can be started again."""
        for how, patience in ((signal.SIGTERM, seconds), (signal.SIGKILL, 5.0)):
            if self.running:
                os.kill(self._state()["pid"], how)
                _until(lambda: not self.running, patience)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _state(self) -> dict[str, int]:
        file = self.home / "server.json"
        return dict(json.loads(file.read_text())) if file.exists() else {}

    def _log(self) -> str:
        return (self.home / "server.log").read_text(encoding="utf-8", errors="replace")


def fetch() -> Path:
    """Return the folder of the jars and plugins in the user's cache.

    Maven fetches them (120 MB) if they are missing.

    Raises `CannotStart` when they are not there and Maven is missing or fails.
    """
    version = ET.parse(_HERE / "pom.xml").findtext(".//{*}neo4j.version")
    folder = (
        Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        / "graphret"
        / f"neo4j-{version}"
    )
    if (folder / "plugins").is_dir():
        return folder
    if (maven := shutil.which("mvn")) is None:
        raise CannotStart(
            f"Maven (mvn) is not installed, and {folder} holds no jars of Neo4j"
        )
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (
        FileLock(f"{folder}.lock"),
        tempfile.TemporaryDirectory(dir=folder.parent) as scratch,
    ):
        if not folder.is_dir():
            shutil.copy(_HERE / "pom.xml", scratch)
            command = [
                maven,
                "-q",
                "-B",
                "dependency:copy-dependencies",
                "-DoutputDirectory=made/lib",
            ]
            done = subprocess.run(
                command, cwd=scratch, capture_output=True, text=True, check=False
            )
            if done.returncode:
                raise CannotStart(
                    "Maven could not fetch Neo4j:"
                    f" {(done.stdout + done.stderr).strip()[-500:]}"
                )
            download = Path(scratch) / "made"
            (download / "plugins").mkdir()
            for jar in (download / "lib").glob("apoc-*.jar"):
                shutil.copy(jar, download / "plugins")
            download.rename(folder)
    return folder


def _until(done: Callable[[], bool], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not done() and time.monotonic() < deadline:
        time.sleep(0.1)
