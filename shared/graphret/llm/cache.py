"""Answers of a model on disk, so that work that was paid for is never paid for twice."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import sqlite3
from pathlib import Path
from typing import Any

from graphret.errors import StorageError

_FILE = "answers.sqlite"
_log = logging.getLogger(__name__)


def cache_key(*parts: Any) -> str:
    """A key that is the same for the same JSON values, and for no others."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


class AnswerCache:
    """A folder of answers, one SQLite file inside it; use it as a context manager, in one thread.

    Every `put` is durable when it returns: a process that is killed loses nothing but what it had not been told yet.
    Several processes may share a folder. A file that SQLite cannot read is renamed to ``answers.sqlite.corrupt`` with
    a warning in the log, and a new one is begun; what a caller cannot use it treats as absent and puts again.

    Parameters
    ----------
    folder
        Made if it is not there.

    Raises
    ------
    StorageError
        If the folder cannot be written.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.path = Path(folder) / _FILE
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = self._opened()
        except (OSError, sqlite3.OperationalError) as error:
            raise StorageError(f"the cache {self.path} cannot be opened: {error}") from error
        except sqlite3.DatabaseError:
            _log.warning("the cache %s is corrupt; it is set aside and begun anew", self.path)
            os.replace(self.path, f"{self.path}.corrupt")
            self._connection = self._opened()

    def _opened(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path, timeout=30, isolation_level=None)
        try:
            connection.execute("CREATE TABLE IF NOT EXISTS answers (key TEXT PRIMARY KEY, answer TEXT) WITHOUT ROWID")
        except sqlite3.Error:
            connection.close()
            raise
        return connection

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

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def __enter__(self) -> AnswerCache:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()
