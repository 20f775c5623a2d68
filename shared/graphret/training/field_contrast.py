"""What `train_fields` learns by: the right node of a question against those of others,
scored over fields as `AdaptiveFieldIndex` does.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphret.search.dense import DenseIndex
from graphret.search.fields import NodeText
from graphret.search.hybrid import FieldIndex
from graphret.training.objectives import Row

#: A scorer whose scores differ less than this in training says nothing.
_LEAST_VARIANCE = 1e-5


def field_model(n_scorers: int, dimension: int, encoder: Any = None) -> Any:
    """Return what is trained, as torch has it: ``directions``, which the embedding of a
    query is held against, at first for equal shares; ``normalized``, which makes the
    scores of all scorers alike; and ``encoder``, where one is given.
    """
    from torch import nn

    directions = nn.Linear(dimension, n_scorers, bias=False)
    nn.init.zeros_(directions.weight)
    # the mean over all batches, of which a short training has few
    normalized = nn.BatchNorm1d(n_scorers, momentum=None)
    model = nn.ModuleDict({"directions": directions, "normalized": normalized})
    if encoder is not None:
        model["encoder"] = encoder
        model.to(encoder.device)
    return model


def learned_directions(model: Any) -> NDArray[np.float32]:
    """Return what the embedding of a query is held against for each scorer."""
    weights = model["directions"].weight.detach().cpu().numpy()
    return np.asarray(weights, dtype=np.float32)


def learned_scales(model: Any) -> NDArray[np.float32]:
    """Return what each scorer's score is multiplied by; of one that says nothing,
    nothing.
    """
    normalized = model["normalized"]
    variance = normalized.running_var
    scales = normalized.weight / (variance + normalized.eps).sqrt()
    told = variance > _LEAST_VARIANCE
    return np.asarray((scales * told).detach().cpu().numpy(), dtype=np.float32)


class InBatchContrast:
    """The cross-entropy of the right node against those of the other questions of the
    batch, and wrong ones of its own (mFAR, Li et al. 2025).

    What answers a question is never held against it. For each step one right node and
    `negatives` wrong ones of a question are drawn anew.

    Parameters
    ----------
    index
        The fields, indexed; of an encoder that is trained, only the words count.
    fields
        What each field reads.
    negatives
        Wrong nodes of its own that each question gets.
    temperature
        What scores are divided by.
    encoder
        The `SentenceTransformer` that is trained; `None` where none is.
    """

    sampling = "random"

    def __init__(
        self,
        index: FieldIndex,
        fields: Mapping[str, NodeText],
        negatives: int,
        temperature: float,
        encoder: Any = None,
    ) -> None:
        self.index, self.fields = index, fields
        self.negatives, self.temperature = negatives, temperature
        self.encoder = encoder

    def validation_rows(self, rows: Sequence[Row]) -> list[Row]:
        """Return rows from which nothing is left to draw: the first of each kind."""
        return [
            {
                **row,
                "positives": row["positives"][:1],
                "negatives": row["negatives"][: self.negatives],
            }
            for row in rows
        ]

    def batch(self, rows: Sequence[Row]) -> dict[str, Any]:
        """Return the right nodes of all rows, then the wrong ones, as scores or, where
        an encoder is trained, as texts.
        """
        import torch

        candidates = [random.choice(row["positives"]) for row in rows]
        for row in rows:
            n = min(self.negatives, len(row["negatives"]))
            candidates += random.sample(row["negatives"], n)
        right_too = [
            [one in row["answers"] and at != i for at, one in enumerate(candidates)]
            for i, row in enumerate(rows)
        ]
        told = {
            "right_too": torch.tensor(right_too),
            "labels": torch.arange(len(rows)),
        }
        questions = [row["question"] for row in rows]
        if self.encoder is None:
            return told | self._given(questions, candidates)
        return told | self._to_embed(questions, candidates)

    def loss(self, model: Any, batch: Mapping[str, Any]) -> Any:
        from torch.nn.functional import cross_entropy

        scores = self.scores(model, batch) / self.temperature
        scores = scores.masked_fill(batch["right_too"], float("-inf"))
        return cross_entropy(scores, batch["labels"])

    def scores(self, model: Any, batch: Mapping[str, Any]) -> Any:
        """Return the scores of candidates, ``(questions, candidates)``."""
        import torch

        if self.encoder is None:
            queries, scores = batch["queries"], batch["scores"]
        else:
            queries = _embedded(model["encoder"], batch["questions"])
            scores = _scores_of_texts(model["encoder"], queries, batch)
        shares = model["directions"](queries).softmax(-1)
        alike = model["normalized"](scores.flatten(0, 1)).view_as(scores)
        return torch.einsum("bs,bks->bk", shares, alike)

    def _given(self, questions: Sequence[str], nodes: Sequence[int]) -> dict[str, Any]:
        """Return embeddings and scores as the index has them."""
        import torch

        members = self.index.members
        dense = next(one for one in members.values() if isinstance(one, DenseIndex))
        vectors = np.stack([dense.query_vector(one) for one in questions])
        scores = self._scores_of(list(members), questions, nodes)
        return {"queries": torch.from_numpy(vectors), "scores": scores}

    def _to_embed(
        self, questions: Sequence[str], nodes: Sequence[int]
    ) -> dict[str, Any]:
        """Return each different text once, and which is in which field of which node:
        0 for none.
        """
        import torch

        lexical = [f"{name}/bm25" for name in self.fields]
        candidates = self.index.table.at(np.asarray(nodes))
        place = {"": 0}
        places = [
            [place.setdefault(text, len(place)) for text in read.all_texts(candidates)]
            for read in self.fields.values()
        ]
        documents = "document", "passage", "corpus"  # as the encoder may call them
        return {
            "lexical": self._scores_of(lexical, questions, nodes),
            "places": torch.tensor(places).T,
            "questions": _features(self.encoder, questions, ("query",)),
            "texts": _features(self.encoder, list(place)[1:], documents),
        }

    def _scores_of(
        self, scorers: Sequence[str], questions: Sequence[str], nodes: Sequence[int]
    ) -> Any:
        """Return the scores of some scorers, ``(questions, nodes, scorers)``."""
        import torch

        positions = np.asarray(nodes, dtype=np.int64)
        scores = [
            [self.index.members[name].score_at(one, positions) for name in scorers]
            for one in questions
        ]
        return torch.from_numpy(np.asarray(scores)).transpose(1, 2)


def _scores_of_texts(encoder: Any, queries: Any, batch: Mapping[str, Any]) -> Any:
    """Return the scores of both scorers of each field, ``(questions, nodes, 2f)``."""
    import torch

    texts = _embedded(encoder, batch["texts"])
    nothing = torch.zeros_like(texts[:1])  # of a field in which a node has no text
    vectors = torch.cat([nothing, texts])[batch["places"]]
    dense = torch.einsum("bd,kfd->bkf", queries, vectors)
    return torch.stack([batch["lexical"], dense], dim=-1).flatten(2)


def _embedded(encoder: Any, features: Mapping[str, Any]) -> Any:
    from torch.nn.functional import normalize

    return normalize(encoder(dict(features))["sentence_embedding"].float(), dim=-1)


def _features(
    encoder: Any, texts: Sequence[str], prompts: Sequence[str]
) -> Mapping[str, Any]:
    """Return texts as tokens, after the first of the prompts that the encoder has, as
    it encodes them.
    """
    import torch

    known = encoder.prompts
    prompt = next((known[name] for name in prompts if known.get(name)), "")
    # sentence-transformers 5 calls it tokenize
    read = getattr(encoder, "preprocess", None) or encoder.tokenize
    features = read([prompt + text for text in texts])
    return {key: one for key, one in features.items() if torch.is_tensor(one)}
