"""The loss of `train_fields`, over the scores of an `AdaptiveFieldIndex`."""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from graphret.search.dense import DenseIndex
from graphret.search.hybrid import FieldIndex
from graphret.training.objectives import Row

#: A scorer whose scores differ less than this in training says nothing.
_LEAST_VARIANCE = 1e-5


def field_model(n_scorers: int, dimension: int, encoder: Any = None) -> Any:
    """Return the torch module to train.

    It has ``directions``, which the embedding of a query is multiplied by and which
    start with equal shares; ``normalized``, which puts the scores of all scorers on one
    scale; and ``encoder``, if one is given.
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
    """Return each scorer's factor; 0 for a scorer whose scores are all alike."""
    normalized = model["normalized"]
    variance = normalized.running_var
    scales = normalized.weight / (variance + normalized.eps).sqrt()
    informative = variance > _LEAST_VARIANCE
    return np.asarray((scales * informative).detach().cpu().numpy(), dtype=np.float32)


class InBatchContrast:
    """Cross-entropy of a question's right node against a batch's others (mFAR).

    The others are the right nodes of the other questions, and wrong ones of its own
    (Li et al. 2025).

    What answers a question is never held against it. For each step one right node and
    `negatives` wrong ones of a question are drawn anew.

    Parameters
    ----------
    index
        The fields, indexed; of an encoder that is trained, only the words count.
    fields
        Their names.
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
        fields: Collection[str],
        negatives: int,
        temperature: float,
        encoder: Any = None,
    ) -> None:
        self.index, self.fields = index, list(fields)
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
        """Return the right nodes of all rows, then the wrong ones.

        They come as scores by words, and embeddings or, to train an encoder, texts.
        """
        import torch

        candidates = [random.choice(row["positives"]) for row in rows]
        for row in rows:
            n = min(self.negatives, len(row["negatives"]))
            candidates += random.sample(row["negatives"], n)
        other_answers = [
            [
                candidate in row["answers"] and column != label
                for column, candidate in enumerate(candidates)
            ]
            for label, row in enumerate(rows)
        ]
        questions = [row["question"] for row in rows]
        embeddings = (
            self._embeddings(questions, candidates)
            if self.encoder is None
            else self._texts(questions, candidates)
        )
        return {
            "other_answers": torch.tensor(other_answers),
            "labels": torch.arange(len(rows)),
            "lexical": self._lexical_scores(questions, candidates),
            **embeddings,
        }

    def loss(self, model: Any, batch: Mapping[str, Any]) -> Any:
        from torch.nn.functional import cross_entropy

        scores = self.scores(model, batch) / self.temperature
        scores = scores.masked_fill(batch["other_answers"], float("-inf"))
        return cross_entropy(scores, batch["labels"])

    def scores(self, model: Any, batch: Mapping[str, Any]) -> Any:
        """Return the scores of candidates, ``(questions, candidates)``."""
        import torch

        if self.encoder is None:
            queries, vectors = batch["queries"], batch["vectors"]
        else:
            queries = _embedded(model["encoder"], batch["questions"])
            vectors = _vectors_of_texts(model["encoder"], batch)
        dense = torch.einsum("bd,kfd->bkf", queries, vectors)
        # of each field by its words, then by its meaning, as they are named
        scores = torch.stack([batch["lexical"], dense], dim=-1).flatten(2)
        shares = model["directions"](queries).softmax(-1)
        normalized = model["normalized"](scores.flatten(0, 1)).view_as(scores)
        return torch.einsum("bs,bks->bk", shares, normalized)

    def _embeddings(
        self, questions: Sequence[str], nodes: Sequence[int]
    ) -> dict[str, Any]:
        """Return the embeddings that the index has, of nodes ``(nodes, fields, d)``."""
        import torch

        dense = [
            cast(DenseIndex, self.index.members[f"{name}/dense"])
            for name in self.fields
        ]
        queries = [dense[0].query_vector(question) for question in questions]
        vectors = [member.vectors[np.asarray(nodes)] for member in dense]
        return {
            "queries": torch.from_numpy(np.stack(queries)),
            "vectors": torch.from_numpy(np.stack(vectors, axis=1)),
        }

    def _texts(self, questions: Sequence[str], nodes: Sequence[int]) -> dict[str, Any]:
        """Return each distinct text once, and its number in each field of each node.

        0 stands for no text.
        """
        import torch

        candidates = self.index.table.at(np.asarray(nodes))
        numbers = {"": 0}
        members = [self.index.members[f"{name}/bm25"] for name in self.fields]
        texts_of_fields = [member.text.all_texts(candidates) for member in members]
        numbered = [
            [numbers.setdefault(text, len(numbers)) for text in texts]
            for texts in texts_of_fields
        ]
        documents = "document", "passage", "corpus"  # as the encoder may call them
        return {
            "numbers": torch.tensor(numbered).T,
            "questions": _features(self.encoder, questions, ("query",)),
            "texts": _features(self.encoder, list(numbers)[1:], documents),
        }

    def _lexical_scores(self, questions: Sequence[str], nodes: Sequence[int]) -> Any:
        """Return the scores by words, ``(questions, nodes, fields)``."""
        import torch

        positions = np.asarray(nodes, dtype=np.int64)
        members = [self.index.members[f"{name}/bm25"] for name in self.fields]
        scores = [
            [member.score_at(question, positions) for member in members]
            for question in questions
        ]
        return torch.from_numpy(np.asarray(scores)).transpose(1, 2)


def _vectors_of_texts(encoder: Any, batch: Mapping[str, Any]) -> Any:
    """Return the embeddings of the fields of each node, ``(nodes, fields, d)``."""
    import torch

    texts = _embedded(encoder, batch["texts"])
    nothing = torch.zeros_like(texts[:1])  # of a field in which a node has no text
    return torch.cat([nothing, texts])[batch["numbers"]]


def _embedded(encoder: Any, features: Mapping[str, Any]) -> Any:
    from torch.nn.functional import normalize

    return normalize(encoder(dict(features))["sentence_embedding"].float(), dim=-1)


def _features(
    encoder: Any, texts: Sequence[str], prompts: Sequence[str]
) -> Mapping[str, Any]:
    """Return texts as tokens, with the first of the prompts that the encoder has."""
    import torch

    own_prompts = encoder.prompts
    prompt = next((own_prompts[name] for name in prompts if own_prompts.get(name)), "")
    # sentence-transformers 5 calls it tokenize
    tokenized = getattr(encoder, "preprocess", None) or encoder.tokenize
    features = tokenized([prompt + text for text in texts])
    return {name: value for name, value in features.items() if torch.is_tensor(value)}
