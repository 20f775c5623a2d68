"""A random language model of two layers and a tokenizer, made in a second: for
mechanics, not for quality.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

TEXTS = [
    *(
        '(:Drug {name: "ibuprofen"})-[:TREATS]-(T:Disease)',
        '(:Disease {name: "asthma"})-[:TREATS]-(T:Drug)',
    ),
    *(
        '(:Gene {name: "CYP3A4"})-[:TARGET]-(:Drug)-[:TREATS]-(T:Disease)',
        "Which drugs treat asthma?",
    ),
    *("Write the graph query.", "What does ibuprofen treat?", "lines\n\n"),
]
TEMPLATE = (
    "{% for m in messages %}<|{{ m['role'] }}|>{{ m['content'] }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)


def tiny_model(
    *, template: str | None = TEMPLATE, end: str | None = "<|end|>", seed: int = 0
) -> tuple[Any, Any]:
    """A model and its tokenizer, as transformers has them."""
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    letters = Tokenizer(models.BPE())
    letters.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    letters.decoder = decoders.ByteLevel()
    special = ["<|system|>", "<|user|>", "<|assistant|>", "<|end|>"]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    letters.train_from_iterator(
        TEXTS,
        trainers.BpeTrainer(
            vocab_size=400,
            special_tokens=special,
            initial_alphabet=alphabet,
            show_progress=False,
        ),
    )
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=letters,
        eos_token=end,
        pad_token=end or "<|user|>",
        padding_side="left",
    )
    tokenizer.chat_template = template
    torch.manual_seed(seed)
    sizes = {
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
    }
    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(tokenizer),
            num_key_value_heads=2,
            initializer_range=0.1,
            **sizes,
        )
    )
    return model.eval(), tokenizer


def saved_tiny_model(folder: Path) -> Path:
    """The folder with a model, as one that is downloaded."""
    model, tokenizer = tiny_model()
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
