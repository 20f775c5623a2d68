"""A cross-encoder reads question and node together and says how well they fit."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np

from graphret.errors import InvalidInput, MissingDependency, ModelError
from graphret.search.fields import NodeText
from graphret.types import Hit


@runtime_checkable
class PairModel(Protocol):
    """As much of sentence-transformers' `CrossEncoder` as reranking needs."""

    def predict(self, pairs: Any) -> Any:
        """Return a score for each ``(question, text)``, higher for better."""
        ...


class CrossEncoderReranker:
    """Score hits by a cross-encoder of sentence-transformers, or by any object with ``predict(pairs)``.

    Parameters
    ----------
    model
        A name on the Hugging Face hub or a folder, loaded when first used; or a loaded model.
    text
        How nodes become text.
    batch_size, max_length, device
        As `CrossEncoder` takes them; for a model given by name or folder only.
    name
        What traces call it; the model's name by default.

    Raises
    ------
    InvalidInput
        When `model` is neither.
    MissingDependency
        On first use, without the extra `encoder`.
    ModelError
        On use, when the model cannot be loaded, fails, or does not answer with one finite score a pair.
    """

    def __init__(
        self,
        model: Any,
        *,
        text: NodeText | None = None,
        batch_size: int = 32,
        max_length: int = 512,
        device: str | None = None,
        name: str = "",
    ) -> None:
        by_name = isinstance(model, str | Path)
        if not by_name and not callable(getattr(model, "predict", None)):
            raise InvalidInput(
                f"model: the name or folder of a cross-encoder, or an object with predict(pairs), is expected, "
                f"not {type(model).__name__}"
            )
        self.name = name or (Path(model).name if by_name else type(model).__name__)
        self.text = text or NodeText()
        self._source = model if by_name else None
        self._options: dict[str, Any] = {"max_length": max_length, "device": device}
        self._batch_size = batch_size
        self._model: Any = None if by_name else model
        self._lock = threading.Lock()

    def scores(self, query: str, hits: Sequence[Hit]) -> list[float]:
        """Return a score for each hit, higher for better."""
        return self.score_texts(query, [self.text.text(hit.node) for hit in hits])

    def score_texts(self, query: str, texts: Sequence[str]) -> list[float]:
        """Return a score for each text, higher for better."""
        if not texts:
            return []
        model = self._load()
        options = {} if self._source is None else {"batch_size": self._batch_size, "show_progress_bar": False}
        try:
            found = np.asarray(model.predict([(query, text) for text in texts], **options), dtype=np.float64)
        except Exception as error:
            raise ModelError(f"{self.name}: {type(error).__name__}: {error}") from error
        if found.shape == (len(texts), 1):
            found = found[:, 0]
        if found.shape != (len(texts),):
            raise ModelError(f"{self.name}: {len(texts)} scores are expected, not an array of shape {found.shape}")
        if not np.isfinite(found).all():
            raise ModelError(f"{self.name}: the score of text {int(np.argmin(np.isfinite(found)))} is not finite")
        return [float(score) for score in found]

    def _load(self) -> Any:
        with self._lock:
            if self._model is None:
                folder = Path(str(self._source))
                if folder.is_dir() and not (folder / "config.json").is_file():
                    raise ModelError(f"the reranker {self.name} cannot be loaded: {folder} has no config.json")
                try:
                    from sentence_transformers import CrossEncoder
                except ImportError as error:
                    raise MissingDependency("sentence-transformers", "encoder", f"the reranker {self.name}") from error
                try:
                    self._model = CrossEncoder(str(self._source), **self._options)
                except Exception as error:
                    raise ModelError(f"the reranker {self.name} cannot be loaded: {error}") from error
            return self._model
