"""Training how fields are weighed by the query, and their encoder along with it:
contrastive, as mFAR (Li et al. 2025).
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from graphret.errors import InvalidInput, MissingDependency
from graphret.search.adaptive import (
    ENCODER,
    WEIGHTS,
    AdaptiveFieldIndex,
    TrainedFields,
    fields_of,
)
from graphret.search.bm25 import BM25Index
from graphret.search.encoder import Encoder, SentenceTransformerEncoder, as_encoder
from graphret.search.fields import NodeText
from graphret.search.hybrid import FieldIndex
from graphret.search.index import TextIndex
from graphret.stores.base import GraphStore
from graphret.training.field_contrast import (
    InBatchContrast,
    field_model,
    learned_directions,
    learned_scales,
)
from graphret.training.objectives import Row
from graphret.training.questions import LabelledQuestion
from graphret.training.trainer import (
    Progress,
    TrainingRun,
    checkpoints_of,
    run_training,
)
from graphret.training.tuned import SHOWN, divided, ranking_values

#: Wrong nodes of a question that are drawn from: the best by words.
_HARDEST = 30
_DEPTH = 20  # hits that are measured


@dataclass(frozen=True)
class FieldTuning:
    """How the weights of fields are trained.

    On a tenth of the questions, 64 at most, the loss is measured five times. The best
    weights are chosen, and training ends after two measurements without better ones.

    Parameters
    ----------
    epochs, batch
        How often each question is read, and how many at once: the right nodes of the
        others are wrong ones, so that more are harder.
    rate
        The learning rate of the weights.
    fine_tune, encoder_rate
        Whether the encoder is trained too, which must be one of sentence-transformers,
        and its learning rate.
    negatives
        Wrong nodes of its own that each question gets: of the best by words.
    temperature
        What scores are divided by: less makes the hardest wrong nodes count more.
    seed
        Of what is drawn.
    accumulated, schedule
        Batches whose gradients are summed into one step, and how the rate falls.
    """

    epochs: float = 10.0
    batch: int = 32
    rate: float = 1e-2
    fine_tune: bool = False
    encoder_rate: float = 1e-5
    negatives: int = 1
    temperature: float = 0.1
    seed: int = 0
    accumulated: int = 1
    schedule: Literal["linear", "cosine"] = "linear"

    def __post_init__(self) -> None:
        for name, least in (("batch", 1), ("negatives", 1), ("accumulated", 1)):
            if getattr(self, name) < least:
                raise InvalidInput(
                    f"{name}: expected at least {least}, got {getattr(self, name)}"
                )
        for name in ("epochs", "rate", "encoder_rate", "temperature"):
            if not getattr(self, name) > 0:
                raise InvalidInput(
                    f"{name}: expected a number above 0, got {getattr(self, name)}"
                )


@dataclass(frozen=True)
class FieldTraining:
    """What was learned, how that went, and how many questions were left out, as no
    answer of theirs is in the graph.
    """

    trained: TrainedFields
    run: TrainingRun
    left_out: int


def train_fields(
    store: GraphStore,
    questions: Sequence[LabelledQuestion],
    out: str | Path,
    encoder: Any = "default",
    tuning: FieldTuning = FieldTuning(),
    *,
    fields: Mapping[str, NodeText] | None = None,
    test: float = 0.0,
    progress: Progress = lambda stage, done, of: None,
) -> FieldTraining:
    """Learn of questions and answers how much each field counts for which question, by
    its words and by its meaning.

    There are checkpoints in ``out/checkpoints``, from which the same call goes on. A
    question that comes again adds its answers to the first.

    Parameters
    ----------
    store
        The graph; the answers are ids of its nodes.
    out
        The folder of what is learned, for `TrainedFields.load`; with ``fine_tune`` it
        holds the encoder too, for ``--encoder out/encoder``.
    encoder
        What embeds questions and fields, as `as_encoder` takes it.
    fields
        What each field reads; by default `fields_of` the store. A field that no node
        has is left out.
    test
        The share of the questions that is kept apart, and that is measured on before,
        with the same weight for every scorer, and after.

    Raises
    ------
    InvalidInput
        When the folder has weights or the checkpoints of another training, or when
        fewer than two questions have an answer in the graph, or none is kept apart.
    MissingDependency
        Without the extra ``train``.
    """
    folder = Path(out)
    if (folder / WEIGHTS).exists():
        raise InvalidInput(f"{out}: there are trained fields; name another folder")
    model = _encoder_of(encoder, tuning)
    progress("index", 0, 1)
    read = dict(fields_of(store) if fields is None else fields)
    # where it is trained, the encoder as it is serves to measure alone
    embeds = None if tuning.fine_tune and not test else model
    read, index = _said(read, FieldIndex.of_store(store, read, encoder=embeds))
    asked = _in_graph(index, questions)
    left_out = len({one.text for one in questions}) - len(asked)
    random.Random(tuning.seed).shuffle(asked)
    apart, learned = divided(asked, test)
    _require_two(learned)
    metrics = {"untrained": _metrics(index, apart)} if apart else {}
    told = [model.name, *read, *((one.text, sorted(one.gold)) for one in learned)]
    checkpoints = checkpoints_of(folder, told, tuning)
    rows = _rows(index, learned, progress)
    learner, run = _run(index, read, model, rows, checkpoints, tuning, progress)
    trained = _exported(learner, folder, read, model, encoder)
    if apart:
        progress("measure", 0, 1)
        metrics["trained"] = _metrics(_adapted(store, index, trained, tuning), apart)
    trained = replace(trained, metrics=metrics)
    trained.save(folder)
    return FieldTraining(trained, run, left_out)


def _require_two(questions: Sequence[LabelledQuestion]) -> None:
    if len(questions) < 2:
        raise InvalidInput(
            "questions: expected at least two with an answer in the graph, got"
            f" {len(questions)}"
        )


def _encoder_of(given: Any, tuning: FieldTuning) -> Encoder:
    """Return the encoder, and refuse one that cannot be trained where it should be."""
    encoder = as_encoder(given)
    if encoder is None:
        raise InvalidInput("encoder: expected one, as it says what a query asks for")
    if tuning.fine_tune and not isinstance(encoder, SentenceTransformerEncoder):
        raise InvalidInput(
            "encoder: expected one of sentence-transformers to fine-tune, got"
            f" {encoder.name!r}"
        )
    return encoder


def _said(
    fields: Mapping[str, NodeText], index: FieldIndex
) -> tuple[dict[str, NodeText], FieldIndex]:
    """Return the fields in which any node says something, and their index."""
    said = {
        name: text
        for name, text in fields.items()
        if len(_words(index, name).terms.vocabulary)
    }
    members = {
        scorer: member
        for scorer, member in index.members.items()
        if scorer.rpartition("/")[0] in said
    }
    return said, FieldIndex(members)


def _words(index: FieldIndex, field: str) -> BM25Index:
    member = index.members[f"{field}/bm25"]
    assert isinstance(member, BM25Index)
    return member


def _in_graph(
    index: FieldIndex, questions: Sequence[LabelledQuestion]
) -> list[LabelledQuestion]:
    """Return each question once, with those answers of it that are in the graph, and
    none without one.
    """
    answers: dict[str, set[str]] = {}
    for question in questions:
        answers.setdefault(question.text, set()).update(question.gold)
    there = {
        text: frozenset(one for one in gold if one in index.table)
        for text, gold in answers.items()
    }
    return [LabelledQuestion(text, gold) for text, gold in there.items() if gold]


def _rows(
    index: FieldIndex, questions: Sequence[LabelledQuestion], progress: Progress
) -> list[Row]:
    """Return questions with the places of what answers them, and of the best by words
    that does not.
    """
    lexical = FieldIndex(
        {name: one for name, one in index.members.items() if name.endswith("/bm25")}
    )
    rows: list[Row] = []
    for done, question in enumerate(questions):
        progress("negatives", done, len(questions))
        right = index.table.positions(sorted(question.gold)).tolist()
        answers = frozenset(right)
        best = lexical.top(question.text, _HARDEST + len(right)).tolist()
        wrong = [place for place in best if place not in answers][:_HARDEST]
        rows.append(
            {
                "question": question.text,
                "positives": right,
                "negatives": wrong,
                "answers": answers,
            }
        )
    return rows


def _run(
    index: FieldIndex,
    fields: Mapping[str, NodeText],
    encoder: Encoder,
    rows: Sequence[Row],
    checkpoints: Path,
    tuning: FieldTuning,
    progress: Progress,
) -> tuple[Any, TrainingRun]:
    """Train the weights, and a copy of the encoder where that is asked for."""
    try:
        from torch.optim import AdamW
        from transformers import set_seed
    except ImportError as error:
        raise MissingDependency(
            error.name or "torch", "train", "training the weights of fields"
        ) from error
    set_seed(tuning.seed)
    copied = None
    if tuning.fine_tune:
        assert isinstance(encoder, SentenceTransformerEncoder)
        copied = deepcopy(encoder.loaded())
    model = field_model(2 * len(fields), encoder.dimension, copied)
    learned = InBatchContrast(
        index, fields, tuning.negatives, tuning.temperature, copied
    )
    own = [*model["normalized"].parameters(), *model["directions"].parameters()]
    groups = [{"params": own, "lr": tuning.rate}]
    if copied is not None:
        groups.append({"params": [*copied.parameters()], "lr": tuning.encoder_rate})
    run = run_training(
        model, learned, rows, checkpoints, tuning, progress, AdamW(groups)
    )
    return model, run


def _exported(
    model: Any,
    folder: Path,
    fields: Mapping[str, NodeText],
    encoder: Encoder,
    given: Any,
) -> TrainedFields:
    """Return what was learned, with the encoder that it needs: that of the folder,
    which is written, where it was trained too.
    """
    source = str(given) if isinstance(given, str | Path) else None
    if "encoder" in model:
        source = str(folder / ENCODER)
        model["encoder"].save(source, create_model_card=False)
        encoder = SentenceTransformerEncoder(source)
    return TrainedFields(
        fields, learned_directions(model), learned_scales(model), encoder.name, source
    )


def _adapted(
    store: GraphStore, index: FieldIndex, trained: TrainedFields, tuning: FieldTuning
) -> AdaptiveFieldIndex:
    """Return the fields as they are weighed now, embedded anew by a trained encoder."""
    if tuning.fine_tune:
        return AdaptiveFieldIndex.of_store(store, trained)
    return AdaptiveFieldIndex(index.members, trained)


def _metrics(
    index: TextIndex, questions: Sequence[LabelledQuestion]
) -> dict[str, float]:
    """Return what a search reaches, in percent, the mean over questions."""
    found = [index.search(one.text, _DEPTH).ids for one in questions]
    values = [
        ranking_values(ids, question.gold)
        for ids, question in zip(found, questions, strict=True)
    ]
    means = 100 * np.asarray(values, dtype=float).mean(axis=0)
    return dict(zip(SHOWN, means.round(2).tolist(), strict=True))
