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
from typing import Any

from graphret.errors import InvalidInput, MissingDependency
from graphret.llm import Message
from graphret.llm.causal import SETTINGS, SMALL, answer_tokens, chat_tokens, load_model

_log = logging.getLogger(__name__)
_VALIDATED = 64  # examples at most
_EVALUATIONS, _PATIENCE = (
    5,
    2,
)  # measurements in a whole training, each with a checkpoint, and without a better one


@dataclass(frozen=True)
class Example:
    """What a model reads, up to where it answers, and what it should answer."""

    prompt: Sequence[Message]
    answer: str


@dataclass(frozen=True)
class Tuning:
    """How a model is fine-tuned.

    On a tenth of the examples, 64 at most, the loss is measured five times. The best
    model is chosen, and training ends after two measurements without a better one.

    Parameters
    ----------
    model
        A causal model: a name on the Hugging Face hub, a folder or a ``.gguf`` file.
    epochs, batch, rate
        How often each example is read, how many at once, and the learning rate, which
        falls to 0.
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


@dataclass(frozen=True)
class FineTuned:
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
    tuning: Tuning
    curve: Sequence[Mapping[str, float]]
    counts: Mapping[str, int]
    seconds: float


def fine_tune(
    examples: Sequence[Example],
    out: str | Path,
    tuning: Tuning = Tuning(),
    progress: Callable[[str, int, int], None] | None = None,
) -> FineTuned:
    """Train adapters on the answers alone, with checkpoints in ``out/checkpoints``,
    from which the same call goes on.

    The first of the examples, which stand in no order, are those that it is validated
    on. Nothing is written besides the checkpoints; `save` does that. Where memory is
    not enough for a batch, half of it is tried, which the log and the result say.

    Raises
    ------
    InvalidInput
        When there are fewer than two examples, or when the folder has a model or the
        checkpoints of another training.
    MissingDependency, ModelError
        Without the extra ``train``, or when the model cannot be loaded.
    """
    folder = Path(out)
    if len(examples) < 2:
        raise InvalidInput(
            f"data: at least two examples are needed, not {len(examples)}"
        )
    if (folder / SETTINGS).exists():
        raise InvalidInput(f"{out}: there is a trained model; name another folder")
    checkpoints = folder / "checkpoints"
    checkpoints.mkdir(parents=True, exist_ok=True)
    read = json.dumps(
        [[[one.content for one in each.prompt], each.answer] for each in examples]
    )
    run = json.dumps(
        {"examples": hashlib.sha256(read.encode()).hexdigest(), **asdict(tuning)}
    )
    if (known := checkpoints / "run.json").exists() and known.read_text("utf-8") != run:
        raise InvalidInput(
            f"{checkpoints}: of a training with other data or settings; name another"
            " folder"
        )
    known.write_text(run, "utf-8")
    try:
        from peft import LoraConfig, get_peft_model
        from transformers import (
            EarlyStoppingCallback,
            Trainer,
            TrainerCallback,
            TrainingArguments,
            set_seed,
        )
        from transformers.trainer_callback import PrinterCallback
    except ImportError as error:
        raise MissingDependency(
            error.name or "peft", "train", "training a language model"
        ) from error
    base, tokenizer = load_model(tuning.model)
    set_seed(tuning.seed)
    lora = LoraConfig(
        r=tuning.rank,
        lora_alpha=2 * tuning.rank,
        target_modules="all-linear",
        task_type="CAUSAL_LM",
    )
    model: Any = get_peft_model(base, lora)
    answers = answer_tokens(tokenizer, [one.answer for one in examples])
    data = [
        {
            "input_ids": [*chat_tokens(tokenizer, one.prompt), *answer],
            "answer": len(answer),
        }
        for one, answer in zip(examples, answers, strict=True)
    ]
    held = max(1, min(len(data) // 10, _VALIDATED))
    steps = max(1, int(tuning.epochs * -(-(len(data) - held) // tuning.batch)))
    on_cpu = base.device.type == "cpu"
    arguments = TrainingArguments(
        output_dir=str(checkpoints),
        per_device_train_batch_size=tuning.batch,
        per_device_eval_batch_size=tuning.batch,
        num_train_epochs=tuning.epochs,
        learning_rate=tuning.rate,
        warmup_steps=max(1, steps // 20),
        seed=tuning.seed,
        use_cpu=on_cpu,
        bf16=not on_cpu,
        auto_find_batch_size=True,
        train_sampling_strategy="group_by_length",
        remove_unused_columns=False,
        eval_strategy="steps",
        save_strategy="steps",
        eval_steps=max(1, steps // _EVALUATIONS),
        save_steps=max(1, steps // _EVALUATIONS),
        logging_steps=max(1, steps // _EVALUATIONS),
        save_total_limit=2,
        load_best_model_at_end=True,
        metric_for_best_model="eval_loss",
        greater_is_better=False,
        prediction_loss_only=True,
        dataloader_pin_memory=not on_cpu,
        disable_tqdm=True,
        report_to="none",
    )

    class Progress(TrainerCallback):
        def on_step_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
            if progress is not None:
                progress("train", state.global_step, state.max_steps)

        def on_log(
            self, args: Any, state: Any, control: Any, logs: Any = None, **more: Any
        ) -> None:
            _log.info("step %d of %d: %s", state.global_step, state.max_steps, logs)

    trainer = Trainer(
        model=model,
        args=arguments,
        train_dataset=data[held:],
        eval_dataset=data[:held],
        data_collator=_Collator(int(tokenizer.pad_token_id)),
        callbacks=[Progress(), EarlyStoppingCallback(_PATIENCE)],
    )
    trainer.remove_callback(PrinterCallback)
    start = time.perf_counter()
    whole = (
        path.parent for path in checkpoints.glob("checkpoint-*/trainer_state.json")
    )  # which is written last
    newest = max(whole, key=lambda one: int(one.name.partition("-")[2]), default=None)
    trainer.train(resume_from_checkpoint=None if newest is None else str(newest))
    used = int(trainer._train_batch_size or tuning.batch)
    if used < tuning.batch:
        _log.warning(
            "a batch of %d did not fit in memory: batches of %d were used",
            tuning.batch,
            used,
        )
    counts = {
        "trained": len(data) - held,
        "validated": held,
        "steps": trainer.state.global_step,
    }
    counts["parameters"] = sum(
        one.numel() for one in model.parameters() if one.requires_grad
    )
    curve: list[Mapping[str, float]] = [
        {key: one[key] for key in ("step", "loss", "eval_loss") if key in one}
        for one in trainer.state.log_history
        if "loss" in one or "eval_loss" in one
    ]
    seconds = time.perf_counter() - start
    return FineTuned(
        model.eval(), tokenizer, replace(tuning, batch=used), curve, counts, seconds
    )


def save(tuned: FineTuned, out: str | Path, data: str | Path, purpose: str) -> None:
    """Write the adapter, or the merged model, with its tokenizer and a model card.

    Parameters
    ----------
    purpose
        What the model does, for its card.
    """
    folder, tuning = Path(out), tuned.tuning
    model = tuned.model.merge_and_unload() if tuning.merge else tuned.model
    model.save_pretrained(
        folder, **({} if tuning.merge else {"save_embedding_layers": False})
    )
    tuned.tokenizer.save_pretrained(folder)
    settings = {"model": tuning.model, "merged": tuning.merge}
    rows = [
        f"| {name} | {value} |"
        for name, value in {**asdict(tuning), **tuned.counts}.items()
    ]
    steps = sorted({int(one["step"]) for one in tuned.curve})
    losses = {
        key: {one["step"]: f"{one[key]:.4f}" for one in tuned.curve if key in one}
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


class _Collator:
    """Examples as a batch: prompts end, and answers begin, at one place, so that logits
    are of the answers alone.
    """

    def __init__(self, pad: int) -> None:
        self.pad = pad

    def __call__(self, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        import torch

        answer = max(row["answer"] for row in rows)
        prompt = max(len(row["input_ids"]) - row["answer"] for row in rows)
        tokens = torch.full((len(rows), prompt + answer), self.pad)
        mask, labels = (
            torch.zeros_like(tokens),
            torch.full((len(rows), answer + 1), -100),
        )
        for i, row in enumerate(rows):
            ids, written = torch.tensor(row["input_ids"]), row["answer"]
            begin = prompt - (len(ids) - written)
            tokens[i, begin : begin + len(ids)] = ids
            mask[i, begin : begin + len(ids)] = 1
            labels[i, 1 : 1 + written] = ids[len(ids) - written :]
        positions = (mask.cumsum(-1) - 1).clamp(min=0)
        batch = {
            "input_ids": tokens,
            "attention_mask": mask,
            "position_ids": positions,
            "labels": labels,
        }
        return {**batch, "logits_to_keep": answer + 1}
