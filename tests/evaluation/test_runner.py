"""The benchmarks from folder to result."""

from __future__ import annotations

import json
from collections.abc import Sequence
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from graphret.errors import InvalidInput
from graphret.evaluation import bench_guard, bench_multihop, bench_ottqa, render
from graphret.evaluation.generality import lengthened, shortened, worst_loss

PEOPLE = ["Ada Lovelace", "Grace Hopper", "Alan Turing", "Edsger Dijkstra", "Barbara Liskov", "Donald Knuth"]
PLACES = ["London", "New York", "Maida Vale", "Rotterdam", "Los Angeles", "Milwaukee"]


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAPHRET_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def multihop(tmp_path: Path) -> Path:
    folder = tmp_path / "multihop"
    folder.mkdir()
    corpus = {person: [f"{person} was born in {place}."] for person, place in zip(PEOPLE, PLACES, strict=True)}
    corpus |= {place: [f"{place} is a city with a river, number {i}."] for i, place in enumerate(PLACES)}
    asked = [
        {
            "question": f"Which river has the place where {person} was born?",
            "supporting_facts": [[person, 0], [place, 0]],
        }
        for person, place in zip(PEOPLE, PLACES, strict=True)
    ]
    (folder / "people_corpus.json").write_text(json.dumps(corpus))
    (folder / "people.json").write_text(json.dumps(asked))
    return folder


@pytest.fixture
def ottqa(tmp_path: Path) -> Path:
    folder = tmp_path / "ottqa"
    for name in ("data/traindev_tables_tok", "data/traindev_request_tok", "released_data"):
        (folder / name).mkdir(parents=True)
    asked = []
    for t in range(4):
        rows = [[[person, []], [str(1900 + 10 * t + i), []]] for i, person in enumerate(PEOPLE)]
        table = {"uid": f"t{t}", "title": f"Prize {t}", "header": [["Winner", []], ["Year", []]], "data": rows}
        passages = {f"/wiki/{p.replace(' ', '_')}": f"{p} came from {c}." for p, c in zip(PEOPLE, PLACES, strict=True)}
        (folder / f"data/traindev_tables_tok/t{t}.json").write_text(json.dumps(table))
        (folder / f"data/traindev_request_tok/t{t}.json").write_text(json.dumps(passages))
        for i, place in enumerate(PLACES):
            node = [place, [i, 0], f"/wiki/{PEOPLE[i].replace(' ', '_')}", "passage"]
            question = f"Where did the winner of Prize {t} in {1900 + 10 * t + i} come from?"
            asked.append({"question": question, "table_id": f"t{t}", "answer-node": [node]})
    (folder / "released_data/dev.traced.json").write_text(json.dumps(asked))
    return folder


class Letters:
    """An encoder that counts letters, and how often it was asked."""

    name = "letters"
    dimension = 26

    def __init__(self) -> None:
        self.embedded = 0

    def encode_queries(self, texts: Sequence[str]) -> Any:
        return self.encode_documents(texts)

    def encode_documents(self, texts: Sequence[str], *, progress: Any = None) -> Any:
        self.embedded += len(texts)
        counts = [[text.lower().count(chr(97 + i)) + 0.01 for i in range(26)] for text in texts]
        vectors = np.asarray(counts, dtype=np.float32)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


ALL = {"bm25", "bm25f", "dense", "flat", "hybrid", "paper", "propagate", "coverage", "lexical", "default"}


def test_ottqa_result(ottqa: Path) -> None:
    result = bench_ottqa(ottqa, k=(1, 2, 5), encoder=Letters())
    assert result["name"] == "ottqa"
    assert set(result["rows"]) == ALL
    assert json.loads(json.dumps(result)) == result
    for values in result["rows"].values():
        assert 0 <= values["recall@1"] <= values["recall@2"] <= values["recall@5"] <= 100
        assert {"hit@1", "mrr"} < set(values)
    counts = result["counts"]
    assert counts["nodes"] == 10
    assert counts["questions"] == 24 == counts["questions_tuned"] + counts["questions_held"]
    assert counts["gold"] == 48
    for half, part in result["halves"].items():
        assert part["questions"] == counts[f"questions_{half}"]
        assert set(part["rows"]) == ALL
    whole = sum(part["questions"] * part["rows"]["default"]["recall@5"] for part in result["halves"].values()) / 24
    assert whole == pytest.approx(result["rows"]["default"]["recall@5"], abs=0.02)
    for row, intervals in result["intervals"].items():
        gain = intervals["recall@5"]
        assert gain["low"] <= gain["gain"] <= gain["high"]
        difference = result["rows"][row]["recall@5"] - result["rows"]["flat"]["recall@5"]
        assert gain["gain"] == pytest.approx(difference, abs=0.02)
    assert result["rows"]["default"]["recall@2"] > result["rows"]["flat"]["recall@2"]


def test_a_second_run_embeds_nothing_and_finds_the_same(ottqa: Path) -> None:
    first, second = Letters(), Letters()
    one, two = (bench_ottqa(ottqa, k=(2, 5), encoder=encoder) for encoder in (first, second))
    assert first.embedded > 0
    assert second.embedded == 0
    assert one["rows"] == two["rows"]
    assert one["intervals"] == two["intervals"]


def test_without_an_encoder_the_dense_rows_are_left_out_with_a_note(multihop: Path) -> None:
    result = bench_multihop(multihop, encoder=None)
    assert set(result["rows"]) == {f"people/{row}" for row in ALL - {"dense", "flat", "hybrid"}}
    assert result["baseline"] == "bm25"
    assert "encoder" in result["notes"][0]
    assert result["rows"]["people/lexical"] == result["rows"]["people/default"]
    assert result["rows"]["people/default"]["all@8"] > result["rows"]["people/bm25"]["all@8"]
    assert result["counts"]["people/questions"] == result["counts"]["questions"] == 6
    assert {"recall@2", "recall@5", "recall@8", "recall@20", "all@8"} < set(result["rows"]["people/bm25"])


def test_recall_at_k_does_not_depend_on_the_other_k(multihop: Path) -> None:
    together = bench_multihop(multihop, k=(1, 2, 3, 4, 6), encoder=None)["rows"]
    for k in (1, 2, 3, 4, 6):
        alone = bench_multihop(multihop, k=(k,), encoder=None)["rows"]
        for row, values in alone.items():
            assert values[f"recall@{k}"] == together[row][f"recall@{k}"], row


def test_limits_and_splits(multihop: Path) -> None:
    assert bench_multihop(multihop, encoder=None, limit=2)["counts"]["questions"] == 2
    with pytest.raises(InvalidInput, match="train"):
        bench_multihop(multihop, "train", encoder=None)
    with pytest.raises(InvalidInput, match="k: a whole number"):
        bench_multihop(multihop, k=(0,), encoder=None)


def test_guard_compares_the_default_with_the_best_flat_search_everywhere(ottqa: Path) -> None:
    result = bench_guard(ottqa, k=(2, 5), encoder=Letters())
    variants = {"whole", "passages", "tables", "untitled", "short", "long"}
    assert set(result["losses"]) == {*variants, "all"}
    assert result["losses"]["all"] == max(result["losses"][variant] for variant in variants)
    for variant in variants:
        rows = {row: result["rows"][f"{variant}/{row}"] for row in ("bm25", "bm25f", "flat", "hybrid", "default")}
        assert result["losses"][variant] == worst_loss(rows)
        assert result["counts"][f"{variant}/questions"] > 0
    assert result["counts"]["tables/nodes"] == 4
    assert result["counts"]["passages/nodes"] == 6


def test_the_worst_loss_is_over_every_flat_row_and_k() -> None:
    rows = {
        "flat": {"recall@5": 50.0, "recall@20": 70.0, "mrr": 99.0},
        "hybrid": {"recall@5": 51.5, "recall@20": 60.0, "mrr": 99.0},
        "default": {"recall@5": 50.5, "recall@20": 69.5, "mrr": 10.0},
    }
    assert worst_loss(rows) == 1.0
    rows["default"] |= {"recall@5": 60.0, "recall@20": 80.0}
    assert worst_loss(rows) == 0.0


def test_questions_are_cut_and_padded_to_length() -> None:
    question = "one two three four five six seven eight nine ten eleven twelve"
    assert shortened(question) == "one two three four five six seven eight nine ten"
    long = lengthened(question)
    assert question in long
    assert len(long.split()) == 100
    already = " ".join(["word"] * 120)
    assert lengthened(already) == already


def test_tables_of_a_result(multihop: Path, ottqa: Path) -> None:
    for result in (bench_multihop(multihop, encoder=None), bench_ottqa(ottqa, k=(2, 5), encoder=None)):
        out = StringIO()
        Console(file=out, width=200).print(render(result))
        for row, values in result["rows"].items():
            assert row.rpartition("/")[2] in out.getvalue()
            assert f"{values['recall@5']:.1f}" in out.getvalue()
