"""A random two-layer language model and tokenizer, for mechanics and not quality."""

from __future__ import annotations

import json
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


def write_gguf(path: Path) -> Path:
    """Write the model and its tokenizer as a GGUF file, with matrices of 8 bits.

    llama.cpp stores the rows of queries and keys in another order: the attention of the
    model that is read differs.
    """
    import gguf
    import numpy as np

    model, tokenizer = tiny_model()
    config, writer = model.config, gguf.GGUFWriter(path, "llama")
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_vocab_size(config.vocab_size)
    letters = json.loads(tokenizer.backend_tokenizer.to_str())["model"]
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(sorted(letters["vocab"], key=letters["vocab"].get))
    writer.add_token_merges([" ".join(pair) for pair in letters["merges"]])
    writer.add_eos_token_id(tokenizer.eos_token_id)
    writer.add_chat_template(TEMPLATE)
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, config.num_hidden_layers)
    for name, tensor in model.state_dict().items():
        weights, as_stored = tensor.numpy(), gguf.GGMLQuantizationType.F32
        if weights.ndim == 2:
            as_stored = gguf.GGMLQuantizationType.Q8_0
            weights = gguf.quants.quantize(np.ascontiguousarray(weights), as_stored)
        stem, suffix = name.rsplit(".", 1)
        writer.add_tensor(
            f"{names.get_name(stem)}.{suffix}", weights, raw_dtype=as_stored
        )
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def saved_tiny_encoder(folder: Path, words: list[str]) -> Path:
    """The folder with a random encoder of sentences that knows some words."""
    import torch
    from sentence_transformers import SentenceTransformer
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *sorted({*words})]
    places = {word: place for place, word in enumerate(vocabulary)}
    whole_words = Tokenizer(models.WordLevel(places, unk_token="[UNK]"))
    whole_words.normalizer = normalizers.Lowercase()
    whole_words.pre_tokenizer = pre_tokenizers.Whitespace()
    whole_words.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=whole_words,
        pad_token="[PAD]",
        unk_token="[UNK]",
        model_max_length=64,
    )
    torch.manual_seed(0)
    sizes = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1}
    config = BertConfig(vocab_size=len(places), num_attention_heads=2, **sizes)
    plain = folder.with_name(f"{folder.name}-plain")
    BertModel(config).save_pretrained(plain)
    tokenizer.save_pretrained(plain)
    SentenceTransformer(str(plain), device="cpu").save(str(folder))
    return folder
