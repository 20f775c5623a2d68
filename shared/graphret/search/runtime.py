"""A faster way to run the sentence encoders that are plain BERT: all-MiniLM and its kin, on a CPU.

The same float32 arithmetic as sentence-transformers, arranged for throughput. Sequences are packed end to end with no
padding, the query, key and value projections are one matrix product, GELU and residual additions are fused into oneDNN
products, and each core works on a batch of its own, so that no core waits for another inside a layer. A few short texts
run on numpy alone: a question from the command line does not pay for importing torch.
"""

from __future__ import annotations

import json
import math
import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Weights = dict[str, Floats]

NUMPY_TOKENS = 2048
"""Below this many tokens importing torch takes longer than doing without it."""


@dataclass(frozen=True)
class BertConfig:
    """What a model folder says of its architecture."""

    layers: int
    heads: int
    dimension: int
    epsilon: float
    max_tokens: int
    pooling: str  # "mean" or "cls"


@dataclass(frozen=True)
class Packed:
    """Sequences of one batch end to end, those of equal length side by side.

    `ids` and `positions` have shape (tokens,); `groups` lists (length, number of sequences).
    """

    ids: NDArray[np.int64]
    positions: NDArray[np.int64]
    groups: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, sequences: Sequence[Sequence[int]]) -> Packed:
        """Pack sequences that are sorted by length."""
        groups = tuple((n, sum(1 for _ in same)) for n, same in groupby(map(len, sequences)))
        positions = np.concatenate([np.tile(np.arange(n), m) for n, m in groups])
        return cls(np.concatenate([np.asarray(s, np.int64) for s in sequences]), positions, groups)

    def spans(self) -> Iterator[tuple[slice, int, int]]:
        """Rows, length and number of sequences of each group."""
        start = 0
        for length, count in self.groups:
            yield slice(start, start + length * count), length, count
            start += length * count


class Engine(Protocol):
    def run(self, batch: Packed) -> Floats:
        """Pooled vectors of shape (sequences, dimension), not normalised."""


def read_config(folder: Path) -> BertConfig | None:
    """The configuration of a sentence-transformers folder, or None if it is anything but plain BERT in float32."""

    def read(name: str) -> dict[str, Any]:
        path = folder / name
        return dict(json.loads(path.read_text(encoding="utf-8"))) if path.is_file() else {}

    try:
        config, sentence, tokenizer = (
            read(f"{name}.json") for name in ("config", "sentence_bert_config", "tokenizer_config")
        )
        modules = [(m["type"].rsplit(".", 1)[-1], m["path"]) for m in json.loads((folder / "modules.json").read_text())]
        pooling = read(f"{modules[1][1]}/config.json")
        general = read("config_sentence_transformers.json")
        modes = [key for key, value in pooling.items() if key.startswith("pooling_mode") and value not in (False, None)]
        mode = {"pooling_mode_mean_tokens": "mean", "pooling_mode_cls_token": "cls"}[modes[0]]
        normalizer = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))["normalizer"]
        plain = (
            [kind for kind, _ in modules] in (["Transformer", "Pooling"], ["Transformer", "Pooling", "Normalize"])
            and modules[0][1] == ""
            and len(modes) == 1
            and pooling.get("include_prompt", True)
            and config["architectures"] in (["BertModel"], ["BertForMaskedLM"])
            and config.get("position_embedding_type", "absolute") == "absolute"
            and config["hidden_act"] == "gelu"
            and not config.get("is_decoder")
            and tokenizer.get("tokenizer_class") in ("BertTokenizer", "BertTokenizerFast")
            and normalizer["type"] == "BertNormalizer"
            and normalizer["lowercase"] == tokenizer.get("do_lower_case", True)
            and normalizer["strip_accents"] == tokenizer.get("strip_accents")
            and not sentence.get("do_lower_case")
            and not any((general.get("prompts") or {}).values())
            and not general.get("truncate_dim")
        )
        if not plain or not _complete(folder / "model.safetensors", config):
            return None
        return BertConfig(
            layers=config["num_hidden_layers"],
            heads=config["num_attention_heads"],
            dimension=config["hidden_size"],
            epsilon=config["layer_norm_eps"],
            max_tokens=min(sentence["max_seq_length"], config["max_position_embeddings"]),
            pooling=mode,
        )
    except (OSError, ValueError, KeyError, IndexError, TypeError, AttributeError):
        return None


def _complete(path: Path, config: dict[str, Any]) -> bool:
    """Whether a safetensors file has the weights of every layer in float32, by its header."""
    with path.open("rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
    names = [f"encoder.layer.{config['num_hidden_layers'] - 1}.output.dense.weight", "embeddings.LayerNorm.bias"]
    return all(header.get(name, {}).get("dtype") == "F32" for name in names)


class BertRuntime:
    """Texts to vectors with a plain BERT encoder from a sentence-transformers folder.

    Raises
    ------
    ImportError
        `tokenizers` or `safetensors` is absent; torch is not needed, only faster.
    """

    def __init__(self, folder: Path, config: BertConfig) -> None:
        from safetensors.numpy import load_file
        from tokenizers import Tokenizer

        self.config = config
        self._weights: Weights = load_file(folder / "model.safetensors")
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(config.max_tokens)
        self._numpy: Engine | None = None
        self._torch: Engine | None = None
        self._pool: tuple[int, Executor] | None = None
        self._lock = threading.Lock()

    def embed(
        self, texts: Sequence[str], *, batch_tokens: int, progress: Callable[[int], None] | None = None
    ) -> Floats:
        """Pooled vectors of shape (n, dimension), not normalised; progress hears how many texts each batch had."""
        valid = [text if text.isascii() else text.encode("utf-8", "replace").decode() for text in texts]  # surrogates
        sequences = [encoding.ids for encoding in self._tokenizer.encode_batch(valid)]
        out = np.zeros((len(texts), self.config.dimension), np.float32)
        engine, pool = self._engine(sum(map(len, sequences)))

        def run(rows: list[int]) -> int:
            out[rows] = engine.run(Packed.of([sequences[row] for row in rows]))
            return len(rows)

        batches = token_batches([len(sequence) for sequence in sequences], batch_tokens)
        if pool is None or len(batches) == 1:
            for rows in batches:
                count = run(rows)
                if progress is not None:
                    progress(count)
            return out
        futures = [pool.submit(run, rows) for rows in reversed(batches)]  # the longest first, to end together
        try:
            for future in as_completed(futures):
                if progress is not None:
                    progress(future.result())
                else:
                    future.result()
        finally:
            for future in futures:
                future.cancel()
        return out

    def _engine(self, tokens: int) -> tuple[Engine, Executor | None]:
        with self._lock:
            if self._torch is None and (tokens >= NUMPY_TOKENS or "torch" in sys.modules):
                with suppress(ImportError):
                    self._torch = TorchEngine(self._weights, self.config)
            if self._torch is not None:
                if self._pool is None or self._pool[0] != os.getpid():  # threads do not survive a fork
                    self._pool = (os.getpid(), one_thread_workers())
                return self._torch, self._pool[1]
            if self._numpy is None:
                self._numpy = NumpyEngine(self._weights, self.config)
            return self._numpy, None


def on_cpu(device: str | None) -> bool:
    """Whether a model would run on a CPU; imports torch only on a machine that may have an accelerator."""
    if device is not None:
        return str(device) == "cpu"
    if sys.platform != "darwin" and not any(Path(f"/dev/{name}").exists() for name in ("nvidiactl", "kfd", "dxg")):
        return True
    try:
        from sentence_transformers.util import get_device_name
    except ImportError:
        return True
    return bool(get_device_name() == "cpu")


def token_batches(lengths: Sequence[int], budget: int) -> list[list[int]]:
    """Items in batches of at most `budget` padded tokens (at least one item), shortest first, ties by position."""
    batches: list[list[int]] = []
    for item in sorted(range(len(lengths)), key=lambda i: (lengths[i], i)):
        if not batches or lengths[item] * (len(batches[-1]) + 1) > budget:
            batches.append([])
        batches[-1].append(item)
    return batches


def one_thread_workers() -> Executor:
    """A thread for each that torch may use, in which torch uses only that one."""
    import torch

    threads = torch.get_num_threads()
    pool = ThreadPoolExecutor(threads, thread_name_prefix="graphret-encoder")
    together = threading.Barrier(threads)

    def alone() -> None:
        torch.set_num_threads(1)  # this thread's OpenMP setting, and a global that is put back below
        together.wait()

    try:
        for future in [pool.submit(alone) for _ in range(threads)]:
            future.result()
    finally:
        torch.set_num_threads(threads)
    return pool


def layer_weights(weights: Weights, number: int) -> Weights:
    """One layer's weights: `qkv` joins the three projections; matrices are (outputs, inputs)."""
    at = f"encoder.layer.{number}."
    joined = {
        kind: np.concatenate([weights[f"{at}attention.self.{part}.{kind}"] for part in ("query", "key", "value")])
        for kind in ("weight", "bias")
    }
    names = {
        "out": "attention.output.dense",
        "norm1": "attention.output.LayerNorm",
        "up": "intermediate.dense",
        "down": "output.dense",
        "norm2": "output.LayerNorm",
    }
    rest = {f"{name}.{kind}": weights[f"{at}{full}.{kind}"] for name, full in names.items() for kind in joined}
    return {f"qkv.{kind}": array for kind, array in joined.items()} | rest


def embedding_weights(weights: Weights) -> Weights:
    """Word vectors, position vectors with that of segment 0 added, and the first norm."""
    at = "embeddings."
    return {
        "words": weights[f"{at}word_embeddings.weight"],
        "positions": weights[f"{at}position_embeddings.weight"] + weights[f"{at}token_type_embeddings.weight"][0],
        "norm.weight": weights[f"{at}LayerNorm.weight"],
        "norm.bias": weights[f"{at}LayerNorm.bias"],
    }


class NumpyEngine:
    """BERT in numpy."""

    def __init__(self, weights: Weights, config: BertConfig) -> None:
        self._config = config
        self._embedding = embedding_weights(weights)
        self._layers = [layer_weights(weights, number) for number in range(config.layers)]

    def run(self, batch: Packed) -> Floats:
        first = self._embedding
        x = self._norm(first["words"][batch.ids] + first["positions"][batch.positions], first, "norm")
        for layer in self._layers:
            x = self._norm(_linear(self._attend(_linear(x, layer, "qkv"), batch), layer, "out") + x, layer, "norm1")
            x = self._norm(_linear(_gelu(_linear(x, layer, "up")), layer, "down") + x, layer, "norm2")
        split = [x[rows].reshape(count, length, -1) for rows, length, count in batch.spans()]
        return np.concatenate([s.mean(axis=1) if self._config.pooling == "mean" else s[:, 0] for s in split])

    def _attend(self, qkv: Floats, batch: Packed) -> Floats:
        heads, width = self._config.heads, self._config.dimension
        out = np.empty((len(qkv), width), np.float32)
        for rows, length, count in batch.spans():
            q, k, v = qkv[rows].reshape(count, length, 3, heads, width // heads).transpose(2, 0, 3, 1, 4)
            scores = q @ k.transpose(0, 1, 3, 2) * np.float32(math.sqrt(heads / width))
            scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
            scores /= scores.sum(axis=-1, keepdims=True)
            out[rows] = (scores @ v).transpose(0, 2, 1, 3).reshape(-1, width)
        return out

    def _norm(self, x: Floats, weights: Weights, name: str) -> Floats:
        x = x - x.mean(axis=-1, keepdims=True)
        x /= np.sqrt(np.square(x).mean(axis=-1, keepdims=True) + np.float32(self._config.epsilon))
        return x * weights[f"{name}.weight"] + weights[f"{name}.bias"]


def _linear(x: Floats, weights: Weights, name: str) -> Floats:
    return np.asarray(x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"], np.float32)


def _gelu(x: Floats) -> Floats:
    from scipy.special import erf

    return np.asarray(np.float32(0.5) * x * (1 + erf(x * np.float32(math.sqrt(0.5)))), np.float32)


class TorchEngine:
    """BERT in torch, with oneDNN's fused products where this build of torch has them."""

    def __init__(self, weights: Weights, config: BertConfig) -> None:
        import torch

        self._torch = torch
        self._config = config
        self._fused = _fused_products_work(torch)
        self._embedding = {name: torch.from_numpy(array) for name, array in embedding_weights(weights).items()}
        self._layers = [
            {name: self._prepare(array) for name, array in layer_weights(weights, number).items()}
            for number in range(config.layers)
        ]

    def _prepare(self, array: Floats) -> Any:
        tensor = self._torch.from_numpy(array)
        return self._torch.ops.mkldnn._reorder_linear_weight(tensor) if self._fused and tensor.ndim == 2 else tensor

    def run(self, batch: Packed) -> Floats:
        torch, functional = self._torch, self._torch.nn.functional
        width, epsilon = (self._config.dimension,), self._config.epsilon

        def norm(x: Any, weights: dict[str, Any], name: str) -> Any:
            return functional.layer_norm(x, width, weights[f"{name}.weight"], weights[f"{name}.bias"], epsilon)

        with torch.inference_mode():
            first = self._embedding
            ids, positions = torch.from_numpy(batch.ids), torch.from_numpy(batch.positions)
            x = norm(first["words"][ids] + first["positions"][positions], first, "norm")
            for layer in self._layers:
                x = norm(self._add(self._attend(self._linear(x, layer, "qkv"), batch), layer, "out", x), layer, "norm1")
                x = norm(self._add(self._linear(x, layer, "up", "gelu"), layer, "down", x), layer, "norm2")
            split = [x[rows].view(count, length, -1) for rows, length, count in batch.spans()]
            pooled = torch.cat([s.mean(1) if self._config.pooling == "mean" else s[:, 0] for s in split])
        return np.asarray(pooled.numpy(), np.float32)

    def _attend(self, qkv: Any, batch: Packed) -> Any:
        heads, width = self._config.heads, self._config.dimension
        parts = []
        for rows, length, count in batch.spans():
            q, k, v = qkv[rows].view(count, length, 3, heads, width // heads).permute(2, 0, 3, 1, 4)
            attended = self._torch.nn.functional.scaled_dot_product_attention(q, k, v)
            parts.append(attended.transpose(1, 2).reshape(-1, width))
        return parts[0] if len(parts) == 1 else self._torch.cat(parts)

    def _linear(self, x: Any, layer: dict[str, Any], name: str, activation: str = "none") -> Any:
        weight, bias = layer[f"{name}.weight"], layer[f"{name}.bias"]
        if self._fused:
            return self._torch.ops.mkldnn._linear_pointwise(x, weight, bias, activation, [], "none")
        out = self._torch.nn.functional.linear(x, weight, bias)
        return self._torch.nn.functional.gelu(out) if activation == "gelu" else out

    def _add(self, x: Any, layer: dict[str, Any], name: str, other: Any) -> Any:
        """The product of x plus `other`."""
        weight, bias = layer[f"{name}.weight"], layer[f"{name}.bias"]
        if self._fused:
            return self._torch.ops.mkldnn._linear_pointwise.binary(x, other, weight, bias, "add")
        return self._torch.nn.functional.linear(x, weight, bias).add_(other)


def _fused_products_work(torch: Any) -> bool:
    """Whether oneDNN's fused products exist here and agree with torch's own (they are not a public interface)."""
    try:
        functional, products = torch.nn.functional, torch.ops.mkldnn
        with torch.inference_mode():
            generator = torch.Generator().manual_seed(0)
            x, weight, bias = (torch.randn(shape, generator=generator) for shape in ((5, 8), (8, 8), (8,)))
            packed, plain = products._reorder_linear_weight(weight), functional.linear(x, weight, bias)
            gelu = products._linear_pointwise(x, packed, bias, "gelu", [], "none")
            added = products._linear_pointwise.binary(x, x, packed, bias, "add")
            expected = torch.cat([functional.gelu(plain), plain + x])
            return bool(torch.allclose(torch.cat([gelu, added]), expected, atol=1e-5))
    except (AttributeError, RuntimeError, TypeError, NotImplementedError):
        return False
