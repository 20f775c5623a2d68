"""A Neo4j server of one's own: a process with a data folder, run by Java from jars that Maven fetches, or by Docker."""

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

USER = "neo4j"
PASSWORD = "graphret-tests"
_HERE = Path(__file__).parent
_READY = ("ready on bolt://", "Started.")  # our launcher's line, and that of the Docker image
# For a server that lives for minutes: compiled soon rather than well, and nothing twice for want of room.
_JAVA = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:ReservedCodeCacheSize=256m")


class CannotStart(GraphretError):
    """No Neo4j server can be started here; the message says why."""


class Neo4jServer:
    """A Neo4j 5 community server on the loopback address, with APOC.

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
    def running(self) -> bool:
        """Whether its process is there."""
        if self._process is not None:
            return self._process.poll() is None
        pid = self._state().get("pid")
        return pid is not None and str(self.home) in _command_of(pid)

    def start(self, *, seconds: float = 100.0) -> Self:
        """Start it if it does not run, on the port that it had before if it is free, and wait until it answers.

        Raises
        ------
        CannotStart
            When there is neither Java with the jars of Neo4j, nor Docker, or the server does not answer in time.
        """
        if not self.running:
            self.home.mkdir(parents=True, exist_ok=True)
            port = _free_port(self._state().get("port", 0))
            with (self.home / "server.log").open("wb") as log:
                self._process = subprocess.Popen(
                    self._command(port), stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
                )
            (self.home / "server.json").write_text(json.dumps({"pid": self._process.pid, "port": port}))
        _until(lambda: self._is_ready() or not self.running, seconds)
        if not self._is_ready():
            self.stop()
            said = " / ".join(self._log().strip().splitlines()[-3:])
            raise CannotStart(f"Neo4j did not start within {seconds:.0f} s: {said or 'it said nothing'}")
        if self.password:
            self._set_password()
        return self

    def stop(self, seconds: float = 30.0) -> None:
        """Stop it, and wait until it has ended; it can be started again."""
        self._end(signal.SIGTERM, seconds)
        self.kill()

    def kill(self) -> None:
        """End it at once, as a crash would."""
        self._end(signal.SIGKILL, 5.0)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _end(self, how: signal.Signals, seconds: float) -> None:
        if self.running:
            os.kill(self._state()["pid"], how)
            _until(lambda: not self.running, seconds)

    def _state(self) -> dict[str, int]:
        try:
            return dict(json.loads((self.home / "server.json").read_text()))
        except FileNotFoundError:
            return {}

    def _log(self) -> str:
        return (self.home / "server.log").read_text(encoding="utf-8", errors="replace")

    def _is_ready(self) -> bool:
        if not any(mark in self._log() for mark in _READY):
            return False
        with socket.socket() as probe:
            probe.settimeout(1.0)
            return probe.connect_ex(("127.0.0.1", self._state()["port"])) == 0

    def _command(self, port: int) -> list[str]:
        """Return what runs the server."""
        java, docker = shutil.which("java"), shutil.which("docker")
        reason = "Java is not installed"
        if java:
            try:
                jars = fetch()
            except CannotStart as error:
                reason = str(error)
            else:
                options = [f"-Xmx{self.heap}", *(() if self.lasting else _JAVA), "-cp", str(jars / "lib" / "*")]
                wanted = [str(self.home), str(port), str(jars / "plugins"), str(self.password).lower(), str(self.owner)]
                return [java, *options, str(_HERE / "Neo4jServer.java"), *wanted]
        if docker is None or subprocess.run([docker, "info"], capture_output=True, check=False).returncode:
            raise CannotStart(f"{reason}; Docker is not running")
        settings = {
            "NEO4J_AUTH": f"{USER}/{PASSWORD}" if self.password else "none",
            "NEO4J_PLUGINS": '["apoc"]',
            "NEO4J_server_bolt_advertised__address": f"127.0.0.1:{port}",
            "NEO4J_server_memory_heap_max__size": self.heap,
        }
        given = [part for name, value in settings.items() for part in ("--env", f"{name}={value}")]
        volume = ["--volume", f"{self.home / 'data'}:/data"]
        return [docker, "run", "--rm", "--publish", f"127.0.0.1:{port}:7687", *volume, *given, f"neo4j:{_version()}"]

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


def fetch() -> Path:
    """Return the folder of the jars and plugins, with 120 MB fetched by Maven if they are not there.

    It is ``GRAPHRET_NEO4J_JARS``, or one in the user's cache.

    Raises
    ------
    CannotStart
        When they are not there and Maven is missing or fails.
    """
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "graphret" / f"neo4j-{_version()}"
    folder = Path(os.environ.get("GRAPHRET_NEO4J_JARS") or cache).expanduser()
    if (folder / "plugins").is_dir():
        return folder
    maven = shutil.which("mvn")
    if maven is None:
        raise CannotStart(f"Maven (mvn) is not installed, and {folder} holds no jars of Neo4j")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{folder}.lock"), tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        if (folder / "plugins").is_dir():
            return folder
        shutil.copy(_HERE / "pom.xml", scratch)
        command = [maven, "-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory=lib"]
        done = subprocess.run(command, cwd=scratch, capture_output=True, text=True, check=False)
        if done.returncode:
            said = (done.stdout + done.stderr).strip().splitlines()
            raise CannotStart(f"Maven could not fetch Neo4j: {next((x for x in said if 'ERROR' in x), said[-1:])}")
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(Path(scratch) / "lib", folder / "lib")
        (folder / "fresh").mkdir()
        for jar in (folder / "lib").glob("apoc-*.jar"):
            shutil.copy(jar, folder / "fresh")
        (folder / "fresh").rename(folder / "plugins")  # which says that all is there
    return folder


def _version() -> str:
    """Return the version of Neo4j that ``pom.xml`` names."""
    return str(ET.parse(_HERE / "pom.xml").findtext(".//{*}neo4j.version"))


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


def _command_of(pid: int) -> str:
    """The command line of a process, empty for one that has ended."""
    listed = subprocess.run(["ps", "-p", str(pid), "-o", "command="], capture_output=True, text=True, check=False)
    return "" if "<defunct>" in listed.stdout else listed.stdout


def _until(done: Callable[[], bool], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not done() and time.monotonic() < deadline:
        time.sleep(0.1)
