"""A cross-encoder reads question and node together and says how well they fit."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from graphret.contracts import Lock
from graphret.errors import InvalidInput, MissingDependency, ModelError
from graphret.rerank.hit_text import HitText
from graphret.search.vectors import check_vectors
from graphret.types import Hit


class CrossEncoderReranker:
    """Score hits by a cross-encoder of sentence-transformers, or by any object with ``predict(pairs)``.

    Parameters
    ----------
    model
        A name on the Hugging Face hub or a folder, loaded when first used; or a loaded model.
    text
        How hits become text.
    batch_size, max_length, device
        As `CrossEncoder` takes them; for a model given by name or folder only.

    Raises
    ------
    InvalidInput, MissingDependency, ModelError
        When `model` is neither; on use, without the extra `encoder`, or when it gives no finite score a pair.
    """

    def __init__(
        self,
        model: Any,
        *,
        text: HitText | None = None,
        batch_size: int = 32,
        max_length: int = 512,
        device: str | None = None,
    ) -> None:
        by_name = isinstance(model, str | Path)
        if not by_name and not callable(getattr(model, "predict", None)):
            wanted = "the name or folder of a cross-encoder, or an object with predict(pairs)"
            raise InvalidInput(f"model: {wanted} is expected, not {type(model).__name__}")
        self.name = Path(model).name if by_name else type(model).__name__
        self.text = text or HitText()
        self._source = model if by_name else None
        self._model = None if by_name else model
        self._options: dict[str, Any] = {"max_length": max_length, "device": device}
        self._predicting = {"batch_size": batch_size, "show_progress_bar": False} if by_name else {}
        self._lock = Lock()

    def scores(self, query: str, hits: Sequence[Hit]) -> list[float]:
        """Return a score for each hit, higher for better."""
        try:
            found = self._loaded().predict([(query, text) for text in self.text.texts(hits)], **self._predicting)
            return [float(score) for score in check_vectors(np.reshape(found, (len(hits), 1)), len(hits))[:, 0]]
        except MissingDependency:
            raise
        except Exception as error:
            raise ModelError(f"{self.name}: {type(error).__name__}: {error}") from error

    def _loaded(self) -> Any:
        with self._lock:
            if self._model is None:
                try:
                    from sentence_transformers import CrossEncoder
                except ImportError as error:
                    raise MissingDependency("sentence-transformers", "encoder", f"the reranker {self.name}") from error
                self._model = CrossEncoder(str(self._source), **self._options)
            return self._model
