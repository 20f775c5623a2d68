"""Fine-tuning of a causal language model by LoRA, with transformers (section 4.2)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from graphret.errors import InvalidInput, MissingDependency
from graphret.llm.causal import SETTINGS, SMALL, load_model
from graphret.training.objectives import Objective, WrittenTurns
from graphret.training.trainer import (
    Progress,
    TrainingRun,
    checkpoints_of,
    run_training,
)


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
    run
        How training went.
    """

    model: Any
    tokenizer: Any
    tuning: LoRASettings
    run: TrainingRun


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
    checkpoints = checkpoints_of(Path(out), examples, tuning)
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
    run = run_training(model, learned, rows, checkpoints, tuning, progress)
    return FineTunedModel(model, tokenizer, replace(tuning, batch=run.batch), run)


def _require_two(needed: str, examples: Sequence[Any]) -> None:
    if len(examples) < 2:
        raise InvalidInput(f"data: expected at least two {needed}, got {len(examples)}")


def _adapters(rank: int) -> Any:
    """Return what adapters peft is to make."""
    from peft import LoraConfig

    return LoraConfig(
        r=rank,
        lora_alpha=2 * rank,
        target_modules="all-linear",
        task_type="CAUSAL_LM",
    )


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
    folder, tuning, run = Path(out), tuned.tuning, tuned.run
    model = tuned.model.merge_and_unload() if tuning.merge else tuned.model
    model.save_pretrained(
        folder, **({} if tuning.merge else {"save_embedding_layers": False})
    )
    tuned.tokenizer.save_pretrained(folder)
    settings = {"model": tuning.model, "merged": tuning.merge, **(about or {})}
    rows = [
        f"| {name} | {value} |"
        for name, value in {**asdict(tuning), **run.counts}.items()
    ]
    steps = sorted({int(measurement["step"]) for measurement in run.curve})
    losses = {
        key: {
            measurement["step"]: f"{measurement[key]:.4f}"
            for measurement in run.curve
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
            f"Trained on `{Path(data).name}` in {run.seconds:.0f} s.",
            "",
        ),
        *("| setting | |", "| --- | --- |", *rows, ""),
        *("| step | loss | validation |", "| ---: | ---: | ---: |", *curve, ""),
    ]
    (folder / "README.md").write_text("\n".join(lines), "utf-8")
    # last: a folder without it is not finished
    (folder / SETTINGS).write_text(json.dumps(settings, indent=2) + "\n", "utf-8")
