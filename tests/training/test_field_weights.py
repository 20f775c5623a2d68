"""Training how fields are weighed by the query, and their encoder along with it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli_helpers import graphret, refused
from tests_support import HashingEncoder
from tiny_model import saved_tiny_encoder

from graphret.errors import InvalidInput
from graphret.grasp import Grasp
from graphret.planning import PlannerResult
from graphret.search import AdaptiveFieldIndex, DenseIndex, FieldIndex, TrainedFields
from graphret.search.adaptive import fields_of
from graphret.stores import MemoryStore
from graphret.training import FieldTuning, LabelledQuestion, train_fields
from graphret.training.field_contrast import InBatchContrast, field_model
from graphret.types import Edge, Node

torch = pytest.importorskip("torch")
pytest.importorskip("accelerate")
pytestmark = pytest.mark.xdist_group("torch")

PEOPLE = "Ada Bo Cy Di Ed Flo Gil Hal".split()
FORMS = {
    "author": ("what did {} write", "works written by {}", "books of the author {}"),
    "subject": ("what portrays {}", "works about {}", "books on the subject {}"),
}
TUNING = FieldTuning(epochs=12, batch=8, rate=3e-2)


#: Twenty works by each person, and other twenty about each: who wrote a work is a
#: property, whom it is about a relation. The same names are in both fields, and how a
#: question is asked decides which counts.
ABOUT: dict[str, dict[str, str]] = {
    "author": {},
    "subject": {},
}  # field -> work -> person
for number in range(20 * len(PEOPLE)):
    ABOUT["author"][f"w{number:03d}"] = PEOPLE[number % len(PEOPLE)]
    shifted = number * 5 + 3 + number // len(PEOPLE)
    ABOUT["subject"][f"w{number:03d}"] = PEOPLE[shifted % len(PEOPLE)]
STORE = MemoryStore.of(
    [
        *(Node(person, ("Person",), person) for person in PEOPLE),
        *(
            Node(work, ("Work",), f"Title {work}", properties={"author": person})
            for work, person in ABOUT["author"].items()
        ),
    ],
    [Edge(work, "subject", person) for work, person in ABOUT["subject"].items()],
)
QUESTIONS = [
    LabelledQuestion(
        form.format(person),
        frozenset(work for work, other in ABOUT[field].items() if other == person),
    )
    for field, forms in FORMS.items()
    for form in forms
    for person in PEOPLE
]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Path]:
    out = tmp_path_factory.mktemp("fields") / "out"
    encoder = HashingEncoder()
    return train_fields(STORE, QUESTIONS, out, encoder, TUNING, test=0.25), out


def losses(done: Any) -> list[float]:
    return [one["eval_loss"] for one in done.run.curve if "eval_loss" in one]


def test_the_loss_falls_and_recall_rises_on_held_out_questions(
    trained: tuple[Any, Path],
) -> None:
    done, _ = trained
    assert losses(done)[-1] < losses(done)[0] / 2
    before, after = (done.trained.metrics[name] for name in ("untrained", "trained"))
    assert before["recall@20"] < 65  # half of what bears the name is the other kind
    assert after["recall@20"] > 90


def test_the_query_decides_which_field_counts(trained: tuple[Any, Path]) -> None:
    done, out = trained
    index = AdaptiveFieldIndex.of_store(
        STORE, TrainedFields.load(out), encoder=HashingEncoder()
    )
    for question, field, other in (
        ("what did Ada write", "author", "subject"),
        ("what portrays Ada", "subject", "author"),
    ):
        shares = index.shares(question)
        assert sum(shares.values()) == pytest.approx(1)
        assert shares[f"{field}/bm25"] > shares[f"{other}/bm25"]
        found = index.search(question, 20).ids
        assert {ABOUT[field].get(work) for work in found} == {"Ada"}
    found = index.search("what did Ada write", 3)
    state = done.trained
    vector = HashingEncoder().encode_queries(["what did Ada write"])[0]
    shares = state.shares(vector)
    expected = sum(
        shares[name]
        * scale
        * index.members[name].score("what did Ada write", found.ids)
        for name, scale in zip(state.scorers, state.scales, strict=True)
    )
    np.testing.assert_allclose(found.scores, expected, rtol=1e-5)


def test_a_query_is_embedded_once_and_grasp_fuses_with_the_fields(
    trained: tuple[Any, Path],
) -> None:
    asked: list[str] = []

    class Counting(HashingEncoder):
        def encode_queries(self, texts: list[str]) -> Any:
            asked.extend(texts)
            return super().encode_queries(texts)

    class Planless:
        name = "planless"

        def plan(self, question: str) -> PlannerResult:
            return PlannerResult(None, problem="there is no plan")

        async def aplan(self, question: str) -> PlannerResult:
            return self.plan(question)

    index = AdaptiveFieldIndex.of_store(STORE, trained[0].trained, encoder=Counting())
    asked.clear()
    found = Grasp(Planless(), STORE, index).retrieve("works written by Ada", 5)
    assert asked.count("works written by Ada") == 1
    assert all(ABOUT["author"].get(hit.id) == "Ada" for hit in found)


def test_a_training_that_was_stopped_goes_on_and_ends_nearly_the_same(
    trained: tuple[Any, Path], tmp_path: Path
) -> None:
    out = tmp_path / "out"

    def stop(stage: str, done: int, total: int) -> None:
        if stage == "train" and done > total // 2:
            raise KeyboardInterrupt

    def train(**more: Any) -> Any:
        tuning = more.pop("tuning", TUNING)
        return train_fields(
            STORE, QUESTIONS, out, HashingEncoder(), tuning, test=0.25, **more
        )

    with pytest.raises(KeyboardInterrupt):
        train(progress=stop)
    with pytest.raises(InvalidInput, match="other data or settings"):
        train(tuning=replace(TUNING, rate=1e-3))
    whole, again = trained[0], train()
    assert len(losses(again)) == len(losses(whole))
    assert losses(again)[-1] == pytest.approx(losses(whole)[-1], rel=0.2)
    assert again.trained.metrics["trained"]["recall@20"] > 90
    with pytest.raises(InvalidInput, match="already contains trained fields"):
        train()


def test_an_encoder_is_trained_along_and_opened_by_its_folder(tmp_path: Path) -> None:
    words = " ".join(one.text for one in QUESTIONS).lower().split()
    base = saved_tiny_encoder(tmp_path / "base", words)
    tuning = replace(TUNING, fine_tune=True, encoder_rate=1e-3, epochs=10)
    out = tmp_path / "out"
    done = train_fields(STORE, QUESTIONS, out, str(base), tuning, test=0.25)
    assert losses(done)[-1] < losses(done)[0] / 2
    metrics = done.trained.metrics
    assert metrics["trained"]["recall@20"] > metrics["untrained"]["recall@20"] + 20
    moved = tmp_path / "moved"
    out.rename(moved)
    loaded = TrainedFields.load(moved)
    assert loaded.source == str(moved / "encoder")
    index = AdaptiveFieldIndex.of_store(STORE, loaded)
    found = index.search("what portrays Bo", 5).ids
    assert all(ABOUT["subject"].get(work) == "Bo" for work in found)
    tuned = DenseIndex.of_store(STORE, moved / "encoder")  # as --encoder takes it
    plain = DenseIndex.of_store(STORE, base)
    assert not np.allclose(tuned.vectors, plain.vectors, atol=1e-3)
    with pytest.raises(
        InvalidInput, match=r"trained with 'encoder@\w+', not with 'bas"
    ):
        AdaptiveFieldIndex.of_store(STORE, loaded, encoder=base)


def test_what_cannot_be_learned_of_is_refused_by_name(tmp_path: Path) -> None:
    encoder, unknown = HashingEncoder(), LabelledQuestion("q", frozenset({"nowhere"}))
    with pytest.raises(InvalidInput, match="at least two with an answer in the graph"):
        train_fields(STORE, [QUESTIONS[0], unknown], tmp_path / "a", encoder)
    with pytest.raises(InvalidInput, match="of sentence-transformers to fine-tune"):
        train_fields(
            STORE, QUESTIONS, tmp_path / "b", encoder, FieldTuning(fine_tune=True)
        )
    with pytest.raises(InvalidInput, match="encoder: expected one"):
        train_fields(STORE, QUESTIONS, tmp_path / "c", None)
    with pytest.raises(InvalidInput, match="negatives: expected at least 1, got 0"):
        FieldTuning(negatives=0)


def test_an_answer_to_the_question_is_never_held_against_it() -> None:
    fields = {"author": fields_of(STORE)["author"]}
    index = FieldIndex.of_store(STORE, fields, encoder=HashingEncoder())
    contrast = InBatchContrast(index, fields, negatives=1, temperature=0.5)
    rows = [
        {
            "question": "Ada",
            "positives": [0],
            "negatives": [1],
            "answers": frozenset({0, 8}),
        },
        {
            "question": "Ada too",
            "positives": [8],
            "negatives": [2],
            "answers": frozenset({8}),
        },
    ]
    batch = contrast.batch(rows)
    assert batch["other_answers"].tolist() == [
        [False, True, False, False],
        [False, False, False, False],
    ]
    model = field_model(2, HashingEncoder.dimension).eval()
    logits = contrast.scores(model, batch) / 0.5
    kept = [logits[0, [0, 2, 3]], logits[1, [1, 0, 2, 3]]]  # the right one first
    expected = sum(-one.log_softmax(0)[0].item() for one in kept) / 2
    assert contrast.loss(model, batch).item() == pytest.approx(expected, rel=1e-5)


def test_the_commands_train_ask_and_evaluate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRAPHRET_CACHE", str(tmp_path / "cache"))
    words = " ".join(one.text for one in QUESTIONS).lower().split()
    base = saved_tiny_encoder(tmp_path / "base", words)
    graph = tmp_path / "graph"
    STORE.save(graph)
    asked = tmp_path / "questions.jsonl"
    lines = [
        {"question": one.text, "answer_ids": sorted(one.gold)} for one in QUESTIONS[::2]
    ]
    lines.append({"question": "gone", "answer_ids": ["nowhere"]})
    asked.write_text("".join(f"{json.dumps(one)}\n" for one in lines))
    out = tmp_path / "fields"
    train = ("train", "fields", "--graph", graph, "--questions", asked)
    ran = graphret(
        *(*train, "--out", out, "--encoder", base, "--epochs", 2, "--test", 0.2),
        *("--field", "author,subject", "--json"),
    )
    assert ran.code == 0, ran.err
    assert ran.json["fields"] == ["author", "subject"]
    assert ran.json["counts"]["left_out"] == 1
    assert "1 answers are not in the graph" in ran.err
    chosen = ("--method", "mfar", "--fields", out)
    ran = graphret("query", "works written by Ada", "--graph", graph, *chosen, "--json")
    assert ran.json["hits"][0]["evidence"][0]["retriever"] == "mfar", ran.err
    compared = graphret(
        *("evaluate", "--graph", graph, "--questions", asked, "--limit", 3),
        *("--method", "bm25,mfar,grasp", "--fields", out, "--json"),
    )
    assert {"all/mfar", "all/grasp"} <= compared.json["rows"].keys(), compared.err
    assert "--field: expected some of" in refused(
        2, *train, "--out", tmp_path / "x", "--field", "colour"
    )
    assert "mfar needs the folder" in refused(
        2, "query", "q", "--graph", graph, "--method", "mfar"
    )
