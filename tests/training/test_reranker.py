"""Fine-tuning a reranker on pools of candidates."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cli_helpers import graphret
from tiny_model import saved_tiny_model, tiny_model

from graphret.errors import InvalidInput
from graphret.graphs import import_graph, read_metaqa
from graphret.graphs.example import KB
from graphret.grasp import GraspSettings
from graphret.index_retriever import IndexRetriever
from graphret.rerank import CausalReranker, Judgement
from graphret.search import BM25Index
from graphret.training import (
    RERANKER_TUNING,
    CandidateGroup,
    LabelledQuestion,
    PoolReport,
    collect_pools,
    train_reranker,
)
from graphret.training.objectives import RightCandidate
from graphret.training.pools import read_pools

torch = pytest.importorskip("torch")
pytest.importorskip("peft")
pytestmark = pytest.mark.xdist_group("torch")

JUDGEMENT = Judgement("Judge.", three_turns=True)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(saved_tiny_model(tmp_path_factory.mktemp("base")))


def write_pools(path: Path, n: int) -> Path:
    """Write pools in which what is asked for stands in the right candidate."""
    kinds = ["asthma", "ibuprofen", "CYP3A4", "lines"]

    def pool(i: int) -> dict[str, Any]:
        kind = kinds[i % 4]
        wrong = [f"{other} {i}" for other in kinds if other != kind]
        return {"question": kind, "positives": [f"{kind} {i}"], "negatives": wrong}

    path.write_text("".join(f"{json.dumps(pool(i))}\n" for i in range(n)))
    return path


def test_a_pool_has_the_right_answers_and_the_hardest_others(tmp_path: Path) -> None:
    store = read_metaqa(KB).store()
    words = IndexRetriever(BM25Index.of_store(store), store)
    questions = [
        LabelledQuestion("Near Dark", frozenset({"Near Dark", "Orson Welles"})),
        LabelledQuestion("Kathryn Bigelow", frozenset({"no such node"})),
    ]
    out = tmp_path / "pools.jsonl"
    report = collect_pools(words, questions[:1], out, depth=8, negatives=3)
    assert report == PoolReport(1, 1, 1)
    first = out.read_text()
    assert collect_pools(words, questions, out, depth=8, negatives=3) == PoolReport(
        2, 1, 1
    )
    assert out.read_text().startswith(first)  # it is gone on with
    [near_dark, bigelow] = read_pools(out)
    ranked = [hit.id for hit in words.retrieve("Near Dark", 8)]
    assert (len(near_dark.positives), len(near_dark.negatives)) == (1, 3)
    assert ranked[1] in near_dark.negatives[0]
    assert bigelow.positives == ()
    out.write_text(first + '{"question": "q", "positives": [3], "negatives": []}\n')
    with pytest.raises(InvalidInput, match=r"pools.jsonl, line 2: expected"):
        read_pools(out)


def test_the_loss_is_the_cross_entropy_of_the_right_candidate() -> None:
    model, tokenizer = tiny_model()
    objective = RightCandidate(tokenizer, 3, JUDGEMENT)
    pools = [CandidateGroup("q", ["a"], ["b", "cc"]), CandidateGroup("q", ["a"], ["b"])]
    batch = objective.batch(objective.rows(tokenizer, pools, None))
    assert batch["sizes"].tolist() == [3, 2]
    yes, no = (tokenizer.encode(word)[0] for word in ("yes", "no"))

    def logit(text: str) -> float:
        turns = [turn.to_dict() for turn in JUDGEMENT.messages("q", text)]
        read = tokenizer.apply_chat_template(
            turns, add_generation_prompt=True, return_dict=True, return_tensors="pt"
        )
        last = model(**read).logits[0, -1]
        return (last[yes] - last[no]).item()

    a, b, cc = map(logit, ("a", "b", "cc"))
    groups = [(a, b, cc), (a, b)]
    expected = (
        sum(math.log(sum(math.exp(x - a) for x in group)) for group in groups) / 2
    )
    assert objective.loss(model, batch).item() == pytest.approx(expected, rel=1e-4)


def test_a_long_candidate_is_cut_and_the_question_is_not() -> None:
    _, tokenizer = tiny_model()
    objective = RightCandidate(tokenizer, 2, JUDGEMENT)
    pool = CandidateGroup("what treats asthma", ["a " * 400], ["b"])
    [row] = objective.rows(tokenizer, [pool], 80)
    [read] = row["positives"]
    assert 60 < len(read) <= 80
    assert tokenizer.decode(read).startswith(
        "<|system|>Judge.<|end|><|user|>what treat"
    )
    assert tokenizer.decode(read).endswith("a<|end|><|assistant|>")


def test_a_trained_reranker_judges_unseen_questions_better(
    base: str, tmp_path: Path
) -> None:
    data, out = write_pools(tmp_path / "pools.jsonl", 60), tmp_path / "reranker"
    tuning = replace(
        RERANKER_TUNING, model=base, epochs=5, batch=4, accumulated=1, rate=5e-3
    )
    done = train_reranker(data, out, tuning, group=4, test=0.2, judgement=JUDGEMENT)
    assert done.metrics["trained"]["mrr"] > done.metrics["untrained"]["mrr"] + 15
    judged = CausalReranker(out).judge("asthma", ["lines 7", "asthma 7"])
    assert judged[1] > judged[0]  # as it was trained: the folder says how
    judged_otherwise = CausalReranker(out, judgement=Judgement("Other.")).judge(
        "asthma", ["lines"]
    )
    assert judged_otherwise != CausalReranker(out).judge("asthma", ["lines"])


def write_questions(folder: Path) -> Path:
    """Write as many questions as tuning needs."""
    lines = [{"question": "who directed Near Dark", "answers": ["Near Dark"]}] * 10
    path = folder / "ten.jsonl"
    path.write_text("".join(f"{json.dumps(record)}\n" for record in lines))
    return path


def test_the_commands_make_pools_and_train(base: str, tmp_path: Path) -> None:
    import_graph(KB, str(tmp_path / "films"))
    qa = [
        {"question": f"{name} films", "answers": [name]}
        for name in ("Near Dark", "Blue Steel", "Kathryn Bigelow", "Jane Campion")
    ]
    questions_path = tmp_path / "qa.jsonl"
    questions_path.write_text("".join(f"{json.dumps(record)}\n" for record in qa))
    pools, out = tmp_path / "pools.jsonl", tmp_path / "reranker"
    made = graphret(
        *("train", "pools", "--graph", tmp_path / "films", "--qa", questions_path),
        *("--out", pools, "--method", "words", "--depth", 6, "--key-values", "--json"),
    )
    assert (made.json["questions"], made.json["kept"]) == (4, 4), made.err
    assert read_pools(pools)[0].positives[0].startswith("[Type] Movie\n[name] Near")
    ran = graphret(
        *("train", "reranker", "--data", pools, "--out", out, "--model", base),
        *("--group", 3, "--accumulated", 1, "--epochs", 1, "--test", 0.25, "--json"),
        *("--max-tokens", 64),
    )
    assert ran.json["counts"]["trained"] == 2, ran.err
    assert set(ran.json["metrics"]) == {"untrained", "trained"}
    tuned = graphret(
        *("tune", "--graph", tmp_path / "films", "--qa", write_questions(tmp_path)),
        *("--out", tmp_path / "grasp.json", "--reranker", out, "--json"),
    )
    assert set(tuned.json["reranked"]) == {"default", "static", "tuned"}, tuned.err
    settings = GraspSettings.load(tmp_path / "grasp.json")
    assert settings.rerank_weight == tuned.json["settings"]["rerank_weight"]
