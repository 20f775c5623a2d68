"""The training loop: the `Trainer` of transformers with a loss of ours.

It measures, stops early, and continues from the last checkpoint.
"""

from __future__ import annotations

import hashlib
import json
import logging
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import Field, asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol, TypeAlias

from graphret.errors import InvalidInput
from graphret.training.objectives import BatchLoss, Row

_log = logging.getLogger(__name__)
_EVALUATIONS = 5  # measurements in a whole training, each with a checkpoint
_PATIENCE = 2  # measurements without a better one
_VALIDATED = 64  # examples at most

#: Told of a stage, and how many of how many steps are done.
Progress: TypeAlias = Callable[[str, int, int], None]


class TrainingSettings(Protocol):
    """The settings of every training, a dataclass."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    @property
    def epochs(self) -> float: ...
    @property
    def batch(self) -> int: ...
    @property
    def accumulated(self) -> int: ...
    @property
    def rate(self) -> float: ...
    @property
    def schedule(self) -> Literal["linear", "cosine"]: ...
    @property
    def seed(self) -> int: ...


@dataclass(frozen=True)
class TrainingRun:
    """How a training went.

    Attributes
    ----------
    batch
        The size of batch that memory was enough for.
    curve
        Of each measurement the step, the ``loss`` and the ``eval_loss``, as far as it
        has them.
    counts
        ``trained`` and ``validated`` examples, ``steps`` and ``parameters`` that were
        trained.
    seconds
        Of the training that this process did.
    memory
        The most bytes that were taken: of the accelerator, or of this process.
    """

    batch: int
    curve: Sequence[Mapping[str, float]]
    counts: Mapping[str, int]
    seconds: float
    memory: int


def run_training(
    model: Any,
    learned: BatchLoss,
    rows: Sequence[Row],
    checkpoints: Path,
    tuning: TrainingSettings,
    progress: Progress | None = None,
    optimizer: Any = None,
) -> TrainingRun:
    """Train a model from its last checkpoint, and leave it as it was at its best.

    The first rows are for validation. `optimizer` is AdamW with the rate of the
    settings by default.
    """
    n_validated = max(1, min(len(rows) // 10, _VALIDATED))
    start = time.perf_counter()
    trainer = _trainer(
        model, learned, rows, n_validated, checkpoints, tuning, progress, optimizer
    )
    trainer.train(resume_from_checkpoint=_newest_checkpoint(checkpoints))
    model.eval()
    counts = {
        "trained": len(rows) - n_validated,
        "validated": n_validated,
        "steps": trainer.state.global_step,
        "parameters": sum(
            weights.numel() for weights in model.parameters() if weights.requires_grad
        ),
    }
    return TrainingRun(
        _batch_that_fitted(trainer, tuning),
        _curve(trainer.state.log_history),
        counts,
        time.perf_counter() - start,
        _most_memory(model),
    )


def _most_memory(model: Any) -> int:
    """Return the most bytes that training took, 0 where the system does not tell."""
    device = next(model.parameters()).device
    if device.type == "cuda":
        import torch

        return int(torch.cuda.max_memory_allocated(device))
    try:
        import resource
    except ImportError:  # Windows has none
        return 0
    kibibytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return kibibytes * (1 if sys.platform == "darwin" else 1024)  # there it is bytes


def _trainer(
    model: Any,
    learned: BatchLoss,
    rows: Sequence[Row],
    n_validated: int,
    checkpoints: Path,
    tuning: TrainingSettings,
    progress: Progress | None,
    optimizer: Any,
) -> Any:
    """Return a `Trainer` of transformers with the loss of the objective."""
    from transformers import Trainer
    from transformers.trainer_callback import PrinterCallback

    class ObjectiveTrainer(Trainer):
        def compute_loss(
            self,
            model: Any,
            inputs: Any,
            return_outputs: bool = False,
            num_items_in_batch: Any = None,
        ) -> Any:
            loss = learned.loss(model, inputs)
            return (loss, {}) if return_outputs else loss

    trained_rows = list(rows[n_validated:])
    on_cpu = next(model.parameters()).device.type == "cpu"
    trainer: Any = ObjectiveTrainer(
        model=model,
        args=_training_arguments(
            checkpoints, tuning, len(trained_rows), learned.sampling, on_cpu
        ),
        train_dataset=trained_rows,
        eval_dataset=learned.validation_rows(rows[:n_validated]),
        data_collator=learned.batch,
        callbacks=_callbacks(progress),
        optimizers=(optimizer, None),
    )
    trainer.model_accepts_loss_kwargs = False  # it divides by the batches of a step
    trainer.remove_callback(PrinterCallback)
    return trainer


def checkpoints_of(
    folder: Path, examples: Sequence[Any], tuning: TrainingSettings
) -> Path:
    """Return the folder of checkpoints; those of another training are refused."""
    checkpoints = folder / "checkpoints"
    checkpoints.mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256(repr(list(examples)).encode()).hexdigest()
    training = json.dumps({"examples": digest, **asdict(tuning)})
    record = checkpoints / "run.json"
    if record.exists() and record.read_text("utf-8") != training:
        raise InvalidInput(
            f"{checkpoints}: they belong to a training with other data or settings;"
            " choose another folder"
        )
    record.write_text(training, "utf-8")
    return checkpoints


def _training_arguments(
    checkpoints: Path,
    tuning: TrainingSettings,
    n_trained: int,
    sampling: str,
    on_cpu: bool,
) -> Any:
    """Return the arguments of the `Trainer`."""
    from transformers import TrainingArguments

    steps_an_epoch = -(-n_trained // (tuning.batch * tuning.accumulated))
    steps = max(1, int(tuning.epochs * steps_an_epoch))
    between_evaluations = max(1, steps // _EVALUATIONS)
    return TrainingArguments(
        output_dir=str(checkpoints),
        per_device_train_batch_size=tuning.batch,
        per_device_eval_batch_size=tuning.batch,
        gradient_accumulation_steps=tuning.accumulated,
        num_train_epochs=tuning.epochs,
        learning_rate=tuning.rate,
        lr_scheduler_type=tuning.schedule,
        warmup_steps=max(1, steps // 20),
        seed=tuning.seed,
        use_cpu=on_cpu,
        bf16=not on_cpu,
        auto_find_batch_size=True,
        train_sampling_strategy=sampling,
        remove_unused_columns=False,
        eval_strategy="steps",
        save_strategy="steps",
        eval_steps=between_evaluations,
        save_steps=between_evaluations,
        logging_steps=between_evaluations,
        save_total_limit=2,
        load_best_model_at_end=True,
        metric_for_best_model="eval_loss",
        greater_is_better=False,
        prediction_loss_only=True,
        label_names=["labels"],  # where there are none, no loss is measured
        dataloader_pin_memory=not on_cpu,
        disable_tqdm=True,
        report_to="none",
    )


def _callbacks(progress: Progress | None) -> list[Any]:
    """Return what reports on the training, and what ends it early."""
    from transformers import EarlyStoppingCallback, TrainerCallback

    class Reporting(TrainerCallback):
        def on_step_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
            if progress is not None:
                progress("train", state.global_step, state.max_steps)

        def on_log(
            self, args: Any, state: Any, control: Any, logs: Any = None, **more: Any
        ) -> None:
            _log.info("step %d of %d: %s", state.global_step, state.max_steps, logs)

    return [Reporting(), EarlyStoppingCallback(_PATIENCE)]


def _newest_checkpoint(checkpoints: Path) -> str | None:
    """Return the last checkpoint that was written in whole."""
    # the state is what a checkpoint writes last
    states = checkpoints.glob("checkpoint-*/trainer_state.json")
    newest = max(
        (state.parent for state in states),
        key=lambda folder: int(folder.name.partition("-")[2]),
        default=None,
    )
    return None if newest is None else str(newest)


def _batch_that_fitted(trainer: Any, tuning: TrainingSettings) -> int:
    """Return the size of batch that memory was enough for."""
    batch = int(trainer._train_batch_size or tuning.batch)
    if batch < tuning.batch:
        _log.warning(
            "a batch of %d did not fit in memory: batches of %d were used",
            tuning.batch,
            batch,
        )
    return batch


def _curve(log_history: Sequence[Mapping[str, float]]) -> list[Mapping[str, float]]:
    """Return the losses of each measurement."""
    return [
        {key: logged[key] for key in ("step", "loss", "eval_loss") if key in logged}
        for logged in log_history
        if "loss" in logged or "eval_loss" in logged
    ]
