"""Vectors: checked, made unit length, and remembered between runs."""

from __future__ import annotations

import hashlib
import os
import sqlite3
import sys
import threading
import warnings
import zlib
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from filelock import FileLock
from numpy.typing import ArrayLike, NDArray

from graphret.errors import InvalidInput

if TYPE_CHECKING:
    from graphret.search.encoder import Encoder, Progress

Floats = NDArray[np.float32]


def check_vectors(vectors: ArrayLike, rows: int, dimension: int | None = None, what: str = "vectors") -> Floats:
    """The vectors as a float32 array of shape (rows, dimension).

    Parameters
    ----------
    vectors
        What an encoder or a user gave; a row of zeros is allowed. No rows at all take any shape.
    rows, dimension
        The shape to hold; None accepts any width.
    what
        How an error calls them.

    Raises
    ------
    InvalidInput
        A wrong number of rows, a wrong width, something that is no number, NaN or infinity; names the item.
    """
    try:
        array = np.asarray(vectors, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise InvalidInput(_not_numeric(vectors, dimension, what) or f"{what}: not numbers ({error})") from error
    if rows == 0 and array.size == 0:
        width = array.shape[1] if array.ndim == 2 else 0
        return np.zeros((0, width if dimension is None else dimension), np.float32)
    if array.ndim != 2:
        raise InvalidInput(f"{what}: expected one row an item, got an array of shape {array.shape}")
    if array.shape[0] != rows:
        raise InvalidInput(f"{what}: {array.shape[0]} rows for {rows} items")
    if dimension is not None and array.shape[1] != dimension:
        raise InvalidInput(f"{what}: item 0 has {array.shape[1]} numbers, expected {dimension}")
    finite = np.isfinite(array).all(axis=1)
    if not finite.all():
        raise InvalidInput(f"{what}: item {int(np.argmin(finite))} has a NaN or an infinite number")
    return array


def _not_numeric(vectors: ArrayLike, dimension: int | None, what: str) -> str | None:
    """The first item that is no row of numbers, or None where the fault lies elsewhere."""
    if not isinstance(vectors, Sequence) or isinstance(vectors, str):
        return None
    for index, row in enumerate(vectors):
        try:
            shape = np.asarray(row, dtype=np.float32).shape
        except (TypeError, ValueError):
            return f"{what}: item {index} is not a row of numbers"
        if len(shape) != 1:
            return f"{what}: item {index} is not a row of numbers"
        dimension = shape[0] if dimension is None else dimension
        if shape[0] != dimension:
            return f"{what}: item {index} has {shape[0]} numbers, expected {dimension}"
    return None


def normalize(vectors: Floats) -> Floats:
    """Each row of (n, d) at length 1, in a new array; a row of zeros stays zero."""
    scale = np.abs(vectors).max(axis=1, keepdims=True, initial=0)  # a square may under- or overflow
    safe = vectors / np.where(scale > 0, scale, 1)
    length = np.linalg.norm(safe, axis=1, keepdims=True)
    return np.asarray(safe / np.where(length > 0, length, 1), dtype=np.float32)


def check_texts(texts: Sequence[str], what: str = "texts") -> list[str]:
    """The texts as a list; InvalidInput names the first item that is no str."""
    if isinstance(texts, str):
        raise InvalidInput(f"{what}: expected a sequence of texts, got one str")
    items = list(texts)
    for index, text in enumerate(items):
        if not isinstance(text, str):
            raise InvalidInput(f"{what}: item {index} is {type(text).__name__}, expected str")
    return items


def unique(texts: Sequence[str]) -> tuple[list[str], NDArray[np.intp]]:
    """The distinct texts in order of appearance, and for each text its position among them."""
    position: dict[str, int] = {}
    inverse = np.fromiter((position.setdefault(text, len(position)) for text in texts), np.intp, len(texts))
    return list(position), inverse


class VectorFile:
    """Vectors by key in one SQLite file, which several threads and processes may read and write at once.

    A cache: whatever is wrong with the file costs a warning and some recomputation, never a wrong vector (each
    carries a checksum) and never an exception.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def get(self, keys: Sequence[bytes]) -> dict[bytes, Floats]:
        """The vectors of those keys that are held."""
        found: dict[bytes, Floats] = {}
        damaged = 0
        with self._guard(), closing(self._connect()) as database:
            for start in range(0, len(keys), 500):  # SQLite's limit on parameters was once 999
                block = keys[start : start + 500]
                marks = ",".join("?" * len(block))
                for key, data in database.execute(f"SELECT key, data FROM vectors WHERE key IN ({marks})", block):
                    vector = _unpack(data)
                    if vector is None:
                        damaged += 1
                    else:
                        found[key] = vector
        if damaged:
            warnings.warn(f"{damaged} damaged vectors in {self.path} are made anew", stacklevel=3)
        return found

    def put(self, vectors: Mapping[bytes, Floats]) -> None:
        """Hold these vectors from now on."""
        rows = [(key, _pack(vector)) for key, vector in vectors.items()]
        with self._guard(), closing(self._connect()) as database, database:
            database.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?)", rows)

    def _connect(self) -> sqlite3.Connection:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        database = sqlite3.connect(self.path, timeout=60)
        try:
            database.execute("CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, data BLOB NOT NULL)")
        except sqlite3.Error:
            database.close()
            raise
        return database

    @contextmanager
    def _guard(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.OperationalError, OSError) as error:  # locked, full, read-only
            warnings.warn(f"the vector cache {self.path} is not used: {error}", stacklevel=4)
        except sqlite3.DatabaseError as error:
            warnings.warn(f"the vector cache {self.path} is damaged and made anew: {error}", stacklevel=4)
            self._discard()

    def _discard(self) -> None:
        with FileLock(f"{self.path}.lock"):
            try:  # another process may have replaced it meanwhile
                with closing(self._connect()) as database:
                    if database.execute("PRAGMA quick_check").fetchone() == ("ok",):
                        return
            except sqlite3.OperationalError:
                return
            except sqlite3.DatabaseError:
                pass
            for suffix in ("", "-journal"):
                Path(f"{self.path}{suffix}").unlink(missing_ok=True)


def _pack(vector: Floats) -> bytes:
    data = vector.astype("<f4").tobytes()
    return zlib.crc32(data).to_bytes(4, "little") + data


def _unpack(data: object) -> Floats | None:
    if not isinstance(data, bytes) or len(data) % 4 or zlib.crc32(data[4:]).to_bytes(4, "little") != data[:4]:
        return None
    return np.frombuffer(data, "<f4", offset=4).astype(np.float32)


class CachedEncoder:
    """An encoder that remembers documents on disk, by the encoder's name and the text's hash.

    Several threads and processes may share a folder. A damaged cache is made anew, with a warning.

    Parameters
    ----------
    encoder
        Encodes what is not remembered.
    folder
        By default `$GRAPHRET_CACHE`, or else `graphret` under the user's cache directory.
    persist_queries
        Whether queries go to disk too; otherwise the last `recent_queries` stay in memory.
    """

    _BLOCK = 4096  # texts encoded between two commits: what an interrupted run may lose

    def __init__(
        self,
        encoder: Encoder,
        folder: str | Path | None = None,
        *,
        persist_queries: bool = False,
        recent_queries: int = 1024,
    ) -> None:
        self.encoder = encoder
        self.folder = Path(folder) if folder is not None else default_cache()
        self.persist_queries = persist_queries
        self.recent_queries = recent_queries
        self._recent: OrderedDict[str, Floats] = OrderedDict()
        self._encoding = threading.RLock()  # so that two threads never encode the same text

    @property
    def name(self) -> str:
        return self.encoder.name

    @property
    def dimension(self) -> int:
        return self.encoder.dimension

    def encode_documents(self, texts: Sequence[str], *, progress: Progress | None = None) -> Floats:
        items = check_texts(texts, "documents")
        with self._encoding:
            return self._through_disk(items, "document", self.encoder.encode_documents, progress)

    def encode_queries(self, texts: Sequence[str]) -> Floats:
        items = check_texts(texts, "queries")
        with self._encoding:
            if self.persist_queries:
                return self._through_disk(items, "query", self.encoder.encode_queries, None)
            return self._through_memory(items)

    def _through_memory(self, texts: list[str]) -> Floats:
        distinct, inverse = unique(texts)
        known = {text: self._recent[text] for text in distinct if text in self._recent}
        missing = [text for text in distinct if text not in known]
        if missing or not distinct:
            known.update(zip(missing, self.encoder.encode_queries(missing), strict=True))
        for text in distinct:
            self._recent[text] = known[text]
            self._recent.move_to_end(text)
        while len(self._recent) > self.recent_queries:
            self._recent.popitem(last=False)
        if not distinct:
            return np.zeros((0, self.dimension), np.float32)
        return np.stack([known[text] for text in distinct])[inverse]

    def _through_disk(
        self, texts: list[str], kind: str, encode: Callable[[Sequence[str]], Floats], progress: Progress | None
    ) -> Floats:
        distinct, inverse = unique(texts)
        if not distinct:
            return np.zeros((0, self.dimension), np.float32)
        name = hashlib.sha256(self.name.encode()).hexdigest()[:24]
        store = VectorFile(self.folder / f"vectors-{name}.sqlite")
        keys = [hashlib.sha256(f"{kind}\n{text}".encode("utf-8", "surrogatepass")).digest()[:20] for text in distinct]
        known = store.get(keys)
        missing = [row for row, key in enumerate(keys) if key not in known]
        done = len(distinct) - len(missing)
        for start in range(0, len(missing), self._BLOCK):
            block = missing[start : start + self._BLOCK]
            made = check_vectors(encode([distinct[row] for row in block]), len(block), what=f"vectors of {self.name}")
            fresh = {keys[row]: vector for row, vector in zip(block, made, strict=True)}
            store.put(fresh)
            known.update(fresh)
            done += len(block)
            if progress is not None:
                progress(done * len(texts) // len(distinct), len(texts))
        if progress is not None and not missing:
            progress(len(texts), len(texts))
        return check_vectors([known[key] for key in keys], len(keys), what=f"vectors of {self.name}")[inverse]


def default_cache() -> Path:
    """`$GRAPHRET_CACHE`, or else `graphret` under `$XDG_CACHE_HOME` or the platform's place for caches."""
    if chosen := os.environ.get("GRAPHRET_CACHE"):
        return Path(chosen).expanduser()
    if base := os.environ.get("XDG_CACHE_HOME"):
        return Path(base) / "graphret"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "graphret"
    if local := os.environ.get("LOCALAPPDATA"):
        return Path(local) / "graphret" / "cache"
    return Path.home() / ".cache" / "graphret"


def sha256_of(path: Path) -> str:
    """The checksum of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sha256_of_folder(folder: Path) -> str:
    """A checksum over the names and contents of all that bears on a model's vectors."""
    kinds = (".safetensors", ".bin", ".json", ".txt", ".model", ".onnx", ".py")
    files = sorted(path for path in folder.rglob("*") if path.suffix in kinds and path.is_file())
    told = [(path.relative_to(folder).as_posix(), sha256_of(path)) for path in files]
    return hashlib.sha256(repr(told).encode()).hexdigest()
