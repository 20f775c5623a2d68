"""Answers of a model on disk, so that work is never paid for twice."""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from graphret.storage import storing


def cache_key(*parts: Any) -> str:
    """A key that is the same for the same JSON values, and for no others."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


class AnswerCache:
    """A folder of answers, one file each, which several processes may share.

    It is made with the first answer.

    What cannot be read or written is a `StorageError`.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)

    def get(self, key: str) -> str | None:
        """The answer that was put under `key`, or `None`."""
        with storing(self.folder, "read"), suppress(FileNotFoundError):
            return (self.folder / f"{key}.json").read_text("utf-8", "replace")
        return None

    def put(self, key: str, answer: str) -> None:
        """Keep an answer, whole or not at all."""
        fresh = self.folder / f"{key}.{os.getpid()}"
        with storing(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            fresh.write_text(answer, "utf-8")
            fresh.replace(self.folder / f"{key}.json")
