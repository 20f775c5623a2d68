"""A cross-encoder scores how well a question and a node fit together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from graphret.contracts import Lock
from graphret.errors import InvalidInput, MissingDependency, ModelError
from graphret.rerank.hit_text import HitText, HitTexts
from graphret.search.vectors import check_vectors
from graphret.types import Hit

#: Gives a score to each pair of question and text.
Predict: TypeAlias = Callable[[Sequence[tuple[str, str]]], Any]


class CrossEncoderReranker:
    """Score hits by a cross-encoder, or any object with ``predict(pairs)``.

    A hit is scored alone, and together with the node it was found by; its score is the
    mean of both.

    Parameters
    ----------
    model
        A name on the Hugging Face hub or a folder, loaded on first use by
        sentence-transformers, or by onnxruntime if the folder has ``model.onnx`` and
        ``tokenizer.json``; or a loaded model.
    text
        How hits become text; with ``evidence_words=0`` they are read alone.
    max_length, device
        As `CrossEncoder` takes them; for a model given by name or folder only.

    Raises
    ------
    InvalidInput, MissingDependency, ModelError
        When `model` is none of these; on use, without the extra `encoder` or `onnx`, or
        without a finite score for each pair.
    """

    def __init__(
        self,
        model: Any,
        *,
        text: HitText | None = None,
        max_length: int = 512,
        device: str | None = None,
    ) -> None:
        self._model_predict: Predict | None = getattr(model, "predict", None)
        if not callable(self._model_predict) and not isinstance(model, str | Path):
            raise InvalidInput(
                "model: expected a name, a folder or an object with predict(pairs), got"
                f" {type(model).__name__}"
            )
        self.name = (
            Path(model).name if self._model_predict is None else type(model).__name__
        )
        with_evidence = text or HitText()
        self.text: HitTexts = with_evidence
        self._readings: list[HitTexts] = [
            with_evidence,
            replace(with_evidence, evidence_words=0),
        ]
        self._load = partial(_predictor, model, max_length, device)
        self._predict, self._lock = self._model_predict, Lock()

    def __getstate__(self) -> dict[str, Any]:
        # A model loaded by name is loaded again after unpickling.
        return self.__dict__ | {"_predict": self._model_predict}

    def scores(self, query: str, hits: Sequence[Hit]) -> list[float]:
        """Return a score for each hit, higher for better."""
        readings = [reading.texts(hits) for reading in self._readings]
        distinct = list(dict.fromkeys(text for texts in readings for text in texts))
        score_by_text = dict(zip(distinct, self.judge(query, distinct), strict=True))
        return [
            sum(score_by_text[text] for text in texts) / len(texts)
            for texts in zip(*readings, strict=True)
        ]

    def judge(self, query: str, texts: Sequence[str]) -> list[float]:
        """Return a score for each text, higher for better."""
        pairs = [(query, text) for text in texts]
        try:
            with self._lock:
                self._predict = self._predict or self._load()
                predicted = np.reshape(self._predict(pairs), (len(pairs), 1))
            scores: list[float] = check_vectors(predicted, len(pairs))[:, 0].tolist()
        except (MissingDependency, ModelError):
            raise
        except ImportError as error:
            extra = "onnx" if error.name in ("onnxruntime", "tokenizers") else "encoder"
            raise MissingDependency(
                error.name or "sentence-transformers", extra, self.name
            ) from error
        except Exception as error:
            raise ModelError(f"{self.name}: {type(error).__name__}: {error}") from error
        return scores


def _predictor(source: str | Path, max_length: int, device: str | None) -> Predict:
    if (Path(source) / "model.onnx").exists():
        return _onnx_predictor(Path(source), max_length)
    from sentence_transformers import CrossEncoder

    return partial(
        CrossEncoder(str(source), max_length=max_length, device=device).predict,
        show_progress_bar=False,
    )


def _onnx_predictor(folder: Path, max_length: int) -> Predict:
    from onnxruntime import InferenceSession
    from tokenizers import Tokenizer

    session = InferenceSession(
        folder / "model.onnx", providers=["CPUExecutionProvider"]
    )
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(max_length)
    columns = {
        "input_ids": "ids",
        "attention_mask": "attention_mask",
        "token_type_ids": "type_ids",
    }
    inputs = [node.name for node in session.get_inputs()]

    def predict(pairs: Sequence[tuple[str, str]]) -> list[float]:
        encodings = tokenizer.encode_batch(list(pairs))
        feeds = [
            {
                name: np.asarray([getattr(encoding, columns[name])], np.int64)
                for name in inputs
            }
            for encoding in encodings
        ]
        # One by one, so that nothing is padded.
        return [float(session.run(None, feed)[0][0, 0]) for feed in feeds]

    return predict
