"""Embeddings remembered on disk."""

from __future__ import annotations

import hashlib
import os
import sqlite3
import threading
import warnings
import zlib
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from graphret.search.vectors import Floats, check_texts, check_vectors, unique

if TYPE_CHECKING:
    from graphret.search.encoder import Encoder, Progress

_BLOCK = 4096  # texts encoded between two commits: what an interrupted run may lose


class CachedEncoder:
    """An encoder that remembers documents on disk, by the encoder's name and the text's hash.

    Vectors lie in a SQLite file a model, which several threads and processes may share. It is a cache: a damaged file
    is made anew, and one that cannot be used is done without, with a warning each.

    Parameters
    ----------
    encoder
        Encodes what is not remembered.
    folder
        By default `$GRAPHRET_CACHE`, or else `graphret` under the user's cache directory.
    persist_queries
        Whether queries are remembered too.
    """

    def __init__(self, encoder: Encoder, folder: str | Path | None = None, *, persist_queries: bool = False) -> None:
        self.encoder = encoder
        self.folder = Path(folder) if folder is not None else default_cache()
        self.persist_queries = persist_queries
        self._encoding = threading.RLock()  # so that two threads never encode the same text

    @property
    def name(self) -> str:
        return self.encoder.name

    @property
    def dimension(self) -> int:
        return self.encoder.dimension

    def encode_documents(self, texts: Sequence[str], *, progress: Progress | None = None) -> Floats:
        with self._encoding:
            return self._encode(check_texts(texts, "documents"), "document", self.encoder.encode_documents, progress)

    def encode_queries(self, texts: Sequence[str]) -> Floats:
        if not self.persist_queries:
            return self.encoder.encode_queries(texts)
        with self._encoding:
            return self._encode(check_texts(texts, "queries"), "query", self.encoder.encode_queries, None)

    def _encode(
        self, texts: list[str], kind: str, encode: Callable[[Sequence[str]], Floats], progress: Progress | None
    ) -> Floats:
        distinct, inverse = unique(texts)
        if not distinct:
            return np.zeros((0, self.dimension), np.float32)
        keys = [hashlib.sha256(f"{kind}\n{text}".encode("utf-8", "surrogatepass")).digest()[:20] for text in distinct]
        known = self._read(keys)
        missing = [row for row, key in enumerate(keys) if key not in known]
        for start in range(0, max(len(missing), 1), _BLOCK):
            block = missing[start : start + _BLOCK]
            if block:
                made = encode([distinct[row] for row in block])
                vectors = check_vectors(made, len(block), what=f"vectors of {self.name}")
                fresh = {keys[row]: vector for row, vector in zip(block, vectors, strict=True)}
                self._write(fresh)
                known |= fresh
            if progress is not None:
                progress(len(known) * len(texts) // len(distinct), len(texts))
        return check_vectors([known[key] for key in keys], len(keys), what=f"vectors of {self.name}")[inverse]

    # -- the file

    @property
    def _path(self) -> Path:
        return self.folder / f"vectors-{hashlib.sha256(self.name.encode()).hexdigest()[:24]}.sqlite"

    def _read(self, keys: Sequence[bytes]) -> dict[bytes, Floats]:
        found: dict[bytes, Floats] = {}

        def read(database: sqlite3.Connection) -> None:
            for key in keys:
                row = database.execute("SELECT data FROM vectors WHERE key = ?", (key,)).fetchone()
                if row and isinstance(row[0], bytes) and zlib.crc32(row[0][4:]) == int.from_bytes(row[0][:4], "little"):
                    found[key] = np.frombuffer(row[0], "<f4", offset=4).astype(np.float32)

        self._with_database(read)
        return found

    def _write(self, vectors: dict[bytes, Floats]) -> None:
        data = {key: vector.astype("<f4").tobytes() for key, vector in vectors.items()}
        rows = [(key, zlib.crc32(one).to_bytes(4, "little") + one) for key, one in data.items()]
        self._with_database(lambda database: database.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?)", rows))

    def _with_database(self, work: Callable[[sqlite3.Connection], object]) -> None:
        """Do something with the file; what is wrong with it costs a warning and some recomputation."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with closing(sqlite3.connect(self._path, timeout=60)) as database, database:
                database.execute("CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, data BLOB NOT NULL)")
                work(database)
        except (sqlite3.OperationalError, OSError) as error:  # locked, full, read-only
            warnings.warn(f"the vector cache {self._path} is not used: {error}", stacklevel=4)
        except sqlite3.DatabaseError as error:
            warnings.warn(f"the vector cache {self._path} is damaged and made anew: {error}", stacklevel=4)
            self._path.unlink(missing_ok=True)


def default_cache() -> Path:
    """`$GRAPHRET_CACHE`, or else `graphret` under `$XDG_CACHE_HOME` or `~/.cache`."""
    if chosen := os.environ.get("GRAPHRET_CACHE"):
        return Path(chosen).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "graphret"
