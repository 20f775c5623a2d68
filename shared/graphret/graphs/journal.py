"""`Journal`: how far a load has come, on disk, so that one that was interrupted goes on where it was."""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from graphret.search.cache import default_cache


class Journal:
    """Keeps how many nodes and edges of one source are in one store.

    It is written after a batch is in the store, so it never says more than was there: an interrupted load repeats at
    most one batch, which replaces what it wrote, and what has been taken away since. Where it cannot be written, a load
    works as without one.

    Parameters
    ----------
    key
        What is loaded and where to, as JSON values: another source or another store has another journal.
    folder
        Where journals are kept; ``imports`` in the cache of graphret by default.
    """

    def __init__(self, key: Any, folder: Path | None = None) -> None:
        digest = hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()
        self.path = (folder or default_cache() / "imports") / f"{digest[:32]}.json"

    def read(self) -> tuple[int, int]:
        """Return how many nodes and edges are in the store; zeros where nothing is known."""
        try:
            said = json.loads(self.path.read_text(encoding="utf-8"))
            return max(0, int(said["nodes"])), max(0, int(said["edges"]))
        except (OSError, ValueError, KeyError, TypeError):
            return 0, 0

    def write(self, nodes: int, edges: int) -> None:
        """Remember how many nodes and edges are in the store."""
        fresh = self.path.with_suffix(f".{os.getpid()}.new")
        with suppress(OSError):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            fresh.write_text(json.dumps({"nodes": nodes, "edges": edges}), encoding="utf-8")
            os.replace(fresh, self.path)

    def close(self) -> None:
        """Forget it: the load is done."""
        with suppress(OSError):
            self.path.unlink(missing_ok=True)


def fingerprint(paths: list[Path]) -> list[list[Any]]:
    """Return what tells a changed file from the one before: the paths with their sizes and times."""
    found = []
    for path in paths:
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if file.is_file():
                about = file.stat()
                found.append([str(file.resolve()), about.st_size, about.st_mtime_ns])
    return found
