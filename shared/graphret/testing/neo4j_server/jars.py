"""The jars of a Neo4j community server, fetched once with Maven into a folder of the user."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import xml.etree.ElementTree as ET
from pathlib import Path

from filelock import FileLock

from graphret.testing.neo4j_server.errors import CannotStart

HERE = Path(__file__).parent
POM = HERE / "pom.xml"
_LIB = "lib"
_PLUGINS = "plugins"


def version() -> str:
    """Return the version of Neo4j that ``pom.xml`` names."""
    found = ET.parse(POM).find(".//{*}neo4j.version")
    assert found is not None
    return str(found.text)


def cache() -> Path:
    """Return the folder that keeps the jars: ``GRAPHRET_NEO4J_JARS``, or one in the user's cache."""
    given = os.environ.get("GRAPHRET_NEO4J_JARS")
    if given:
        return Path(given).expanduser()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "graphret" / f"neo4j-{version()}"


def fetch(folder: Path | None = None) -> tuple[Path, Path]:
    """Return the folders of the jars and of the plugins, with 120 MB fetched if they are not there.

    Raises
    ------
    CannotStart
        When they are not there and Maven is missing or fails.
    """
    folder = folder or cache()
    found = folder / _LIB, folder / _PLUGINS
    if all(part.is_dir() for part in found):
        return found
    maven = shutil.which("mvn")
    if maven is None:
        raise CannotStart(f"Maven (mvn) is not installed, and {folder} holds no jars of Neo4j")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(folder.with_name(folder.name + ".lock")):
        if not all(part.is_dir() for part in found):
            with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
                _fetch_into(Path(scratch), maven)
                shutil.rmtree(folder, ignore_errors=True)
                folder.mkdir()
                for part in found:
                    (Path(scratch) / part.name).rename(part)
    return found


def _fetch_into(scratch: Path, maven: str) -> None:
    shutil.copy(POM, scratch / POM.name)
    command = [maven, "-q", "-B", "dependency:copy-dependencies", f"-DoutputDirectory={scratch / _LIB}"]
    done = subprocess.run(command, cwd=scratch, capture_output=True, text=True, check=False)
    if done.returncode or not (scratch / _LIB).is_dir():
        said = (done.stdout + done.stderr).strip().splitlines()
        reason = next((line for line in said if "ERROR" in line), said[-1] if said else f"status {done.returncode}")
        raise CannotStart(f"Maven could not fetch Neo4j: {reason}")
    (scratch / _PLUGINS).mkdir()
    for jar in (scratch / _LIB).glob("apoc-*.jar"):
        shutil.copy(jar, scratch / _PLUGINS)
