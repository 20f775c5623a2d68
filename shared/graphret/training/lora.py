"""Fine-tuning a causal language model on what it should answer: LoRA, on any model of
transformers (section 4.2).
"""

from __future__ import annotations

import hashlib
import json
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

from graphret.errors import InvalidInput, MissingDependency
from graphret.llm.causal import SETTINGS, SMALL, load_model
from graphret.training.objectives import Objective, Row, WrittenTurns

_log = logging.getLogger(__name__)
_VALIDATED = 64  # examples at most
_EVALUATIONS = 5  # measurements in a whole training, each with a checkpoint
_PATIENCE = 2  # measurements without a better one

#: Told of a stage, and how many of how many steps are done.
Progress: TypeAlias = Callable[[str, int, int], None]


@dataclass(frozen=True)
class LoRASettings:
    """How a model is fine-tuned.

    On a tenth of the examples, 64 at most, the loss is measured five times. The best
    model is chosen, and training ends after two measurements without a better one.

    Parameters
    ----------
    model
        A causal model: a name on the Hugging Face hub, a folder or a ``.gguf`` file.
    epochs, batch, rate
        How often each example is read, how many at once, and the learning rate of
        AdamW, which falls to 0 after a warm-up of 5 %.
    accumulated
        Batches whose gradients are summed into one step.
    schedule
        How the rate falls: ``"linear"`` or ``"cosine"``.
    max_tokens
        Longest example; what is done with a longer one depends on what is trained.
    rank
        Of the adapters, which all linear layers get.
    merge
        Whether the whole model is written, adapters merged into it, or the adapter
        alone.
    seed
        Of what is drawn, and of the adapters.
    """

    model: str = SMALL
    epochs: float = 3.0
    batch: int = 8
    rate: float = 5e-4
    rank: int = 16
    merge: bool = False
    seed: int = 0
    accumulated: int = 1
    schedule: Literal["linear", "cosine"] = "linear"
    max_tokens: int | None = None


@dataclass(frozen=True)
class FineTunedModel:
    """A fine-tuned model, how it was made and how that went.

    Attributes
    ----------
    model, tokenizer
        As transformers has them.
    tuning
        With the batch that fitted in memory.
    curve
        Of each measurement the step, the ``loss`` and the ``eval_loss``, as far as it
        has them.
    counts
        ``trained`` and ``validated`` examples, ``steps`` and ``parameters`` that were
        trained.
    seconds
        Of the training that this process did.
    """

    model: Any
    tokenizer: Any
    tuning: LoRASettings
    curve: Sequence[Mapping[str, float]]
    counts: Mapping[str, int]
    seconds: float


def fine_tune(
    examples: Sequence[Any],
    out: str | Path,
    tuning: LoRASettings = LoRASettings(),
    progress: Progress | None = None,
    objective: Callable[[Any], Objective] = WrittenTurns,
) -> FineTunedModel:
    """Train adapters on examples.

    There are checkpoints in ``out/checkpoints``, from which the same call goes on.

    The first of the examples, which stand in no order, are those that it is validated
    on. Nothing is written besides the checkpoints; `save` does that. Where memory is
    not enough for a batch, half of it is tried, which the log and the result say.

    Parameters
    ----------
    examples
        As the objective reads them: `Example` and `Conversation` by default.
    objective
        Makes what is learned of a tokenizer.

    Raises
    ------
    InvalidInput
        When there are fewer than two examples, or when the folder has a model or the
        checkpoints of another training.
    MissingDependency, ModelError
        Without the extra ``train``, or when the model cannot be loaded.
    """
    _require_two("examples are needed", examples)
    if (Path(out) / SETTINGS).exists():
        raise InvalidInput(
            f"{out}: it already contains a trained model; choose another folder"
        )
    checkpoints = _checkpoints_of(Path(out), examples, tuning)
    try:
        from peft import get_peft_model
        from transformers import set_seed
    except ImportError as error:
        raise MissingDependency(
            error.name or "peft", "train", "training a language model"
        ) from error
    base, tokenizer = load_model(tuning.model)
    learned = objective(tokenizer)
    rows = learned.rows(tokenizer, examples, tuning.max_tokens)
    _require_two(f"examples of at most {tuning.max_tokens} tokens are needed", rows)
    set_seed(tuning.seed)
    model: Any = get_peft_model(base, _adapters(tuning.rank))
    n_validated = max(1, min(len(rows) // 10, _VALIDATED))
    start = time.perf_counter()
    trainer = _trainer(model, learned, rows, n_validated, checkpoints, tuning, progress)
    trainer.train(resume_from_checkpoint=_newest_checkpoint(checkpoints))
    batch = _batch_that_fitted(trainer, tuning)
    counts = {
        "trained": len(rows) - n_validated,
        "validated": n_validated,
        "steps": trainer.state.global_step,
        "parameters": sum(
            weights.numel() for weights in model.parameters() if weights.requires_grad
        ),
    }
    return FineTunedModel(
        model.eval(),
        tokenizer,
        replace(tuning, batch=batch),
        _curve(trainer.state.log_history),
        counts,
        time.perf_counter() - start,
    )


def _require_two(needed: str, examples: Sequence[Any]) -> None:
    if len(examples) < 2:
        raise InvalidInput(f"data: expected at least two {needed}, got {len(examples)}")


def _trainer(
    model: Any,
    learned: Objective,
    rows: Sequence[Row],
    n_validated: int,
    checkpoints: Path,
    tuning: LoRASettings,
    progress: Progress | None,
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
    on_cpu = model.device.type == "cpu"
    trainer: Any = ObjectiveTrainer(
        model=model,
        args=_training_arguments(
            checkpoints, tuning, len(trained_rows), learned.sampling, on_cpu
        ),
        train_dataset=trained_rows,
        eval_dataset=learned.validation_rows(rows[:n_validated]),
        data_collator=learned.batch,
        callbacks=_callbacks(progress),
    )
    trainer.model_accepts_loss_kwargs = False  # it divides by the batches of a step
    trainer.remove_callback(PrinterCallback)
    return trainer


def _checkpoints_of(
    folder: Path, examples: Sequence[Any], tuning: LoRASettings
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


def _adapters(rank: int) -> Any:
    """Return what adapters peft is to make."""
    from peft import LoraConfig

    return LoraConfig(
        r=rank,
        lora_alpha=2 * rank,
        target_modules="all-linear",
        task_type="CAUSAL_LM",
    )


def _training_arguments(
    checkpoints: Path,
    tuning: LoRASettings,
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


def _batch_that_fitted(trainer: Any, tuning: LoRASettings) -> int:
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


def save(
    tuned: FineTunedModel,
    out: str | Path,
    data: str | Path,
    purpose: str,
    about: Mapping[str, Any] | None = None,
) -> None:
    """Write the adapter, or the merged model, with its tokenizer and a model card.

    Parameters
    ----------
    purpose
        What the model does, for its card.
    about
        What else is needed to use it as it was trained, for `settings_of`.
    """
    folder, tuning = Path(out), tuned.tuning
    model = tuned.model.merge_and_unload() if tuning.merge else tuned.model
    model.save_pretrained(
        folder, **({} if tuning.merge else {"save_embedding_layers": False})
    )
    tuned.tokenizer.save_pretrained(folder)
    settings = {"model": tuning.model, "merged": tuning.merge, **(about or {})}
    rows = [
        f"| {name} | {value} |"
        for name, value in {**asdict(tuning), **tuned.counts}.items()
    ]
    steps = sorted({int(measurement["step"]) for measurement in tuned.curve})
    losses = {
        key: {
            measurement["step"]: f"{measurement[key]:.4f}"
            for measurement in tuned.curve
            if key in measurement
        }
        for key in ("loss", "eval_loss")
    }
    curve = [
        f"| {step} | {losses['loss'].get(step, '')} |"
        f" {losses['eval_loss'].get(step, '')} |"
        for step in steps
    ]
    lines = [
        *(
            "---",
            f"base_model: {tuning.model}",
            "library_name: peft",
            "tags: [graphret, lora]",
            "---",
            "",
        ),
        *(
            f"# {folder.name}",
            "",
            purpose,
            "",
            f"Trained on `{Path(data).name}` in {tuned.seconds:.0f} s.",
            "",
        ),
        *("| setting | |", "| --- | --- |", *rows, ""),
        *("| step | loss | validation |", "| ---: | ---: | ---: |", *curve, ""),
    ]
    (folder / "README.md").write_text("\n".join(lines), "utf-8")
    # last: a folder without it is not finished
    (folder / SETTINGS).write_text(json.dumps(settings, indent=2) + "\n", "utf-8")
