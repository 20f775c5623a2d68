"""Answers of a model on disk, so that work that was paid for is never paid for twice."""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from pathlib import Path
from typing import Any

from graphret.errors import StorageError


def cache_key(*parts: Any) -> str:
    """A key that is the same for the same JSON values, and for no others."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


class AnswerCache:
    """A folder of answers, one SQLite file inside it; use it as a context manager, in one thread.

    Every `put` is durable when it returns. Several processes may share a folder, which is made if it is not there. A
    file in it that cannot be read or written is a `StorageError`.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.path = Path(folder) / "answers.sqlite"
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(self.path, timeout=30, isolation_level=None)
        except (OSError, sqlite3.Error) as error:
            raise StorageError(f"the cache {self.path} cannot be opened: {error}") from error
        self._done("CREATE TABLE IF NOT EXISTS answers (key TEXT PRIMARY KEY, answer TEXT) WITHOUT ROWID")

    def get(self, key: str) -> str | None:
        """The answer that was put under `key`, or `None`."""
        row = self._done("SELECT answer FROM answers WHERE key = ?", key).fetchone()
        return row[0] if row else None

    def put(self, key: str, answer: str) -> None:
        """Keep an answer."""
        self._done("INSERT OR REPLACE INTO answers VALUES (?, ?)", key, answer)

    def _done(self, statement: str, *values: str) -> sqlite3.Cursor:
        try:
            return self._connection.execute(statement, values)
        except sqlite3.Error as error:
            raise StorageError(f"the cache {self.path} cannot be used: {error}") from error

    def __enter__(self) -> AnswerCache:
        return self

    def __exit__(self, *raised: object) -> None:
        self._connection.close()
