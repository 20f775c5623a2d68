"""A Neo4j server of one's own: a process with a data folder."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

from graphret.testing.neo4j_server.errors import CannotStart
from graphret.testing.neo4j_server.jars import HERE, fetch, version

USER = "neo4j"
PASSWORD = "graphret-tests"
_STATE = "server.json"
_LOG = "server.log"
_READY = ("ready on bolt://", "Started.")  # our launcher's line, and that of the Docker image

# For a server that lives for minutes: compiled soon rather than well, and nothing twice for want of room.
_JAVA = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:ReservedCodeCacheSize=256m")
#: For our launcher, which makes a certificate.
_KEYTOOL = ("--add-exports", "java.base/sun.security.tools.keytool=ALL-UNNAMED")


class Neo4jServer:
    """A Neo4j 5 community server on the loopback address, with APOC, run by Java or else by Docker.

    Run by Java it speaks TLS too, to who asks for it, with a certificate that it makes when it is first started.
    Another process can take up a running one with the same `home`: ``Neo4jServer(home).running``.

    Parameters
    ----------
    home
        Its data folder, made if need be.
    password
        Whether it asks for a password; `auth` then has the user and the password.
    heap
        Of the Java process.
    owner
        The id of a process with which the server ends; 0 for none.
    lasting
        Whether Java is left to compile as for a server in production: slow for minutes, then twice as fast.
    """

    def __init__(
        self, home: str | Path, *, password: bool = False, heap: str = "1g", owner: int = 0, lasting: bool = False
    ) -> None:
        self.home = Path(home).resolve()
        self.password = password
        self.heap = heap
        self.owner = owner
        self.lasting = lasting
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def auth(self) -> tuple[str, str] | None:
        """The user and the password, `None` where it asks for none."""
        return (USER, PASSWORD) if self.password else None

    @property
    def uri(self) -> str:
        """Where it listens, or did when it last ran."""
        return f"bolt://127.0.0.1:{self._state()['port']}"

    @property
    def certificate(self) -> Path | None:
        """The file of the certificate with which it speaks TLS, self-signed; `None` where it does not, as by Docker."""
        file = self.home / "certificates" / "public.crt"
        return file if file.exists() else None

    @property
    def running(self) -> bool:
        """Whether its process is there."""
        if self._process is not None:
            return self._process.poll() is None
        pid = self._state().get("pid")
        return pid is not None and str(self.home) in _command_of(pid)

    def start(self, *, wait: bool = True) -> Self:
        """Start it if it does not run, on the port that it had before if it is free.

        Raises
        ------
        CannotStart
            When there is neither Java with the jars of Neo4j, nor Docker, or the server ends before it is ready.
        """
        if not self.running:
            self.home.mkdir(parents=True, exist_ok=True)
            port = _free_port(self._state().get("port", 0))
            with (self.home / _LOG).open("wb") as log:
                begun = subprocess.Popen(
                    self._command(port),
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
            # Others know it by its command line, which it has a moment after it began.
            _until(lambda: begun.poll() is not None or _command_of(begun.pid) != "", 5.0)
            self._process = begun
            (self.home / _STATE).write_text(json.dumps({"pid": begun.pid, "port": port}), encoding="utf-8")
        return self.wait() if wait else self

    def wait(self, seconds: float = 100.0) -> Self:
        """Wait until it answers; raises `CannotStart` when it does not."""
        _until(lambda: self._is_ready() or not self.running, seconds)
        if not self._is_ready():
            self.stop()
            said = self._log().strip().splitlines()[-3:]
            raise CannotStart(f"Neo4j did not start within {seconds:.0f} s: {' / '.join(said) or 'it said nothing'}")
        if self.password:
            self._set_password()
        return self

    def stop(self, seconds: float = 30.0) -> None:
        """Stop it, and wait until it has ended; it can be started again."""
        self._end(signal.SIGTERM, seconds)
        self._end(signal.SIGKILL, 5.0)

    def kill(self) -> None:
        """End it at once, as a crash would."""
        self._end(signal.SIGKILL, 5.0)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _end(self, how: signal.Signals, seconds: float) -> None:
        if self.running:
            os.kill(self._state()["pid"], how)
            _until(lambda: not self.running, seconds)

    def _state(self) -> dict[str, int]:
        try:
            return dict(json.loads((self.home / _STATE).read_text(encoding="utf-8")))
        except FileNotFoundError:
            return {}

    def _log(self) -> str:
        return (self.home / _LOG).read_text(encoding="utf-8", errors="replace")

    def _is_ready(self) -> bool:
        return any(mark in self._log() for mark in _READY) and _listens(self._state()["port"])

    def _command(self, port: int) -> list[str]:
        reasons = []
        if java := shutil.which("java"):
            try:
                jars, plugins = fetch()
            except CannotStart as error:
                reasons.append(str(error))
            else:
                options = [f"-Xmx{self.heap}", *(() if self.lasting else _JAVA), *_KEYTOOL, "-cp", str(jars / "*")]
                wanted = [str(self.home), str(port), str(plugins), str(self.password).lower(), str(self.owner)]
                return [java, *options, str(HERE / "Neo4jServer.java"), *wanted]
        else:
            reasons.append("Java is not installed")
        docker = shutil.which("docker")
        if docker and not subprocess.run([docker, "info"], capture_output=True, check=False).returncode:
            return self._docker(docker, port)
        reasons.append("Docker is not running")
        raise CannotStart("; ".join(reasons))

    def _docker(self, docker: str, port: int) -> list[str]:
        data = self.home / "data"
        data.mkdir(exist_ok=True)
        settings = {
            "NEO4J_AUTH": f"{USER}/{PASSWORD}" if self.password else "none",
            "NEO4J_PLUGINS": '["apoc"]',
            "NEO4J_server_bolt_advertised__address": f"127.0.0.1:{port}",
            "NEO4J_server_memory_heap_max__size": self.heap,
            "NEO4J_server_memory_pagecache_size": "256m",
            "NEO4J_dbms_usage__report_enabled": "false",
        }
        given = [part for name, value in settings.items() for part in ("--env", f"{name}={value}")]
        return [
            *(docker, "run", "--rm", "--publish", f"127.0.0.1:{port}:7687", "--volume", f"{data}:/data"),
            *(*given, f"neo4j:{version()}-community"),
        ]

    def _set_password(self) -> None:
        """Make `PASSWORD` the user's; a new server has another and lets nobody in before it is changed."""
        import neo4j
        from neo4j.exceptions import AuthError

        with neo4j.GraphDatabase.driver(self.uri, auth=self.auth) as driver:
            try:
                driver.verify_connectivity()
                return
            except AuthError:
                pass
        with neo4j.GraphDatabase.driver(self.uri, auth=(USER, "neo4j")) as driver:
            change = "ALTER CURRENT USER SET PASSWORD FROM 'neo4j' TO $new"
            driver.execute_query(change, {"new": PASSWORD}, database_="system")


def _free_port(wanted: int) -> int:
    for port in (wanted, 0):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return int(probe.getsockname()[1])
    raise CannotStart("no port is free")


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1.0)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _command_of(pid: int) -> str:
    """The command line of a process, empty for one that has ended."""
    proc = Path("/proc")
    if proc.is_dir():
        try:
            return (proc / str(pid) / "cmdline").read_bytes().decode(errors="replace")
        except OSError:
            return ""
    listed = subprocess.run(["ps", "-p", str(pid), "-o", "command="], capture_output=True, text=True, check=False)
    return "" if "<defunct>" in listed.stdout else listed.stdout


def _until(done: Callable[[], bool], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not done() and time.monotonic() < deadline:
        time.sleep(0.1)
