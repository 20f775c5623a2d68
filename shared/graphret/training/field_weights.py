"""Contrastive training of field weights by query, and of their encoder.

As in mFAR (Li et al. 2025).
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, cast

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
from graphret.training.tuned import divided, percent_of, ranking_values

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
    rate: float = 0.1
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
    """The trained fields, how training went, and how many questions were left out.

    A question is left out if none of its answers is in the graph.
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
    source: str | None = None,
    test: float = 0.0,
    progress: Progress = lambda stage, done, of: None,
) -> FieldTraining:
    """Learn from questions and answers how much each field counts for a question.

    Both the words and the meaning of a question decide.

    The same call continues from the checkpoints in ``out/checkpoints``. A question that
    comes twice has the answers of both.

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
    source
        The name or folder from which the encoder can be opened again; `encoder` where
        that is one.
    test
        The share of the questions to hold out, and to measure on before, with the same
        weight for every scorer, and after.

    Raises
    ------
    InvalidInput
        When the folder has weights or the checkpoints of another training, or when
        fewer than two questions have an answer in the graph, or none is held out.
    MissingDependency
        Without the extra ``train``.
    """
    folder = Path(out)
    if (folder / WEIGHTS).exists():
        raise InvalidInput(
            f"{out}: it already contains trained fields; choose another folder"
        )
    model = _encoder_of(encoder, tuning)
    progress("index", 0, 1)
    texts = dict(fields_of(store) if fields is None else fields)
    # An encoder that is to be trained is of use here only to measure it as it was.
    embeds = None if tuning.fine_tune and not test else model
    index = FieldIndex.of_store(store, texts, encoder=embeds)
    texts, index = _without_empty_fields(texts, index)
    answerable = _answerable(index, questions)
    left_out = len({question.text for question in questions}) - len(answerable)
    random.Random(tuning.seed).shuffle(answerable)
    held_out, learned = divided(answerable, test)
    _require_two(learned)
    metrics = {"untrained": _metrics(index, held_out)} if held_out else {}
    examples = [(question.text, sorted(question.gold)) for question in learned]
    data = [model.name, *texts, *examples]
    checkpoints = checkpoints_of(folder, data, tuning)
    rows = _rows(index, learned, progress)
    weights, run = _run(index, texts, model, rows, checkpoints, tuning, progress)
    if source is None and isinstance(encoder, str | Path):
        source = str(encoder)
    trained = _exported(weights, folder, texts, model, source)
    if held_out:
        progress("measure", 0, 1)
        adapted = _adapted(store, index, trained, tuning)
        metrics["trained"] = _metrics(adapted, held_out)
    trained = replace(trained, metrics=metrics)
    trained.save(folder)
    return FieldTraining(trained, run, left_out)


def _require_two(questions: Sequence[LabelledQuestion]) -> None:
    if len(questions) < 2:
        raise InvalidInput(
            "questions: expected at least two with an answer in the graph, got"
            f" {len(questions)}"
        )


def _encoder_of(source: Any, tuning: FieldTuning) -> Encoder:
    """Return the encoder; one that cannot be trained but must is an `InvalidInput`."""
    encoder = as_encoder(source)
    if encoder is None:
        raise InvalidInput("encoder: expected one, as it says what a query asks for")
    if tuning.fine_tune and not isinstance(encoder, SentenceTransformerEncoder):
        raise InvalidInput(
            "encoder: expected one of sentence-transformers to fine-tune, got"
            f" {encoder.name!r}"
        )
    return encoder


def _without_empty_fields(
    texts: Mapping[str, NodeText], index: FieldIndex
) -> tuple[dict[str, NodeText], FieldIndex]:
    """Return the fields that any node has, and their index."""
    kept = {name: text for name, text in texts.items() if _has_words(index, name)}
    members = {
        scorer: member
        for scorer, member in index.members.items()
        if scorer.rpartition("/")[0] in kept
    }
    return kept, FieldIndex(members)


def _has_words(index: FieldIndex, field: str) -> bool:
    words = cast(BM25Index, index.members[f"{field}/bm25"])
    return len(words.terms.vocabulary) > 0


def _answerable(
    index: FieldIndex, questions: Sequence[LabelledQuestion]
) -> list[LabelledQuestion]:
    """Return each question once, with its answers in the graph, if there are any."""
    answers: dict[str, set[str]] = {}
    for question in questions:
        answers.setdefault(question.text, set()).update(question.gold)
    ids = set(index.table.ids.tolist())
    present = {text: frozenset(gold & ids) for text, gold in answers.items()}
    return [LabelledQuestion(text, gold) for text, gold in present.items() if gold]


def _rows(
    index: FieldIndex, questions: Sequence[LabelledQuestion], progress: Progress
) -> list[Row]:
    """Return questions with the positions of their answers and the best others."""
    lexical = FieldIndex(
        {
            scorer: member
            for scorer, member in index.members.items()
            if scorer.endswith("/bm25")
        }
    )
    rows: list[Row] = []
    for done, question in enumerate(questions):
        progress("negatives", done, len(questions))
        positives = index.table.positions(sorted(question.gold)).tolist()
        answers = frozenset(positives)
        best = lexical.top(question.text, _HARDEST + len(answers)).tolist()
        negatives = [position for position in best if position not in answers]
        rows.append(
            {
                "question": question.text,
                "positives": positives,
                "negatives": negatives[:_HARDEST],
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
    weights = [*model["normalized"].parameters(), *model["directions"].parameters()]
    groups = [{"params": weights, "lr": tuning.rate}]
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
    source: str | None,
) -> TrainedFields:
    """Return the trained fields, and where their encoder is saved.

    It is in the folder if it was trained too.
    """
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
    """Return the index with the trained weights; a trained encoder embeds it again."""
    if tuning.fine_tune:
        return AdaptiveFieldIndex.of_store(store, trained)
    return AdaptiveFieldIndex(index.members, trained)


def _metrics(
    index: TextIndex, questions: Sequence[LabelledQuestion]
) -> dict[str, float]:
    """Return the metrics of a search, in percent, as means over questions."""
    values = [
        ranking_values(index.search(question.text, _DEPTH).ids, question.gold)
        for question in questions
    ]
    return percent_of(values)
