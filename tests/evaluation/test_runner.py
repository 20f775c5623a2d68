"""The benchmarks from folder to result."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console
from tests_support import HashingEncoder

from graphret.evaluation import bench_multihop, bench_ottqa, render


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAPHRET_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def multihop(tmp_path: Path, born: dict[str, str]) -> Path:
    folder = tmp_path / "multihop"
    folder.mkdir()
    corpus = {person: [f"{person} was born in {place}."] for person, place in born.items()}
    corpus |= {place: [f"{place} is a city with a river, number {i}."] for i, place in enumerate(born.values())}
    asked = [
        {
            "question": f"Which river has the place where {person} was born?",
            "supporting_facts": [[person, 0], [place, 0]],
        }
        for person, place in born.items()
    ]
    (folder / "people_corpus.json").write_text(json.dumps(corpus))
    (folder / "people.json").write_text(json.dumps(asked))
    return folder


ALL = {"bm25", "bm25f", "dense", "flat", "hybrid", "paper", "propagate", "coverage", "lexical", "default"}


def test_the_figures_of_ottqa_and_a_second_run_embeds_nothing(ottqa: Path) -> None:
    first, second = HashingEncoder(), HashingEncoder()
    result = bench_ottqa(ottqa, k=(1, 2, 5), encoder=first)
    bench_ottqa(ottqa, k=(1,), limit=2, encoder=second)
    assert (bool(first.encoded), bool(second.encoded)) == (True, False)
    assert (result["name"], set(result["rows"])) == ("ottqa", ALL)
    assert json.loads(json.dumps(result)) == result
    for values in result["rows"].values():
        assert 0 <= values["recall@1"] <= values["recall@2"] <= values["recall@5"] <= 100
        assert {"hit@1", "mrr"} < set(values)
    counts = result["counts"]
    assert (counts["nodes"], counts["gold"]) == (10, 48)
    assert counts["questions"] == 24 == counts["questions_tuned"] + counts["questions_held"]
    for half, part in result["halves"].items():
        assert (part["questions"], set(part["rows"])) == (counts[f"questions_{half}"], ALL)
    whole = sum(part["questions"] * part["rows"]["default"]["recall@5"] for part in result["halves"].values()) / 24
    assert whole == pytest.approx(result["rows"]["default"]["recall@5"], abs=0.02)
    for row, intervals in result["intervals"].items():
        gain = intervals["recall@5"]
        assert gain["low"] <= gain["gain"] <= gain["high"]
        difference = result["rows"][row]["recall@5"] - result["rows"]["flat"]["recall@5"]
        assert gain["gain"] == pytest.approx(difference, abs=0.02)
    assert result["rows"]["default"]["recall@2"] > result["rows"]["flat"]["recall@2"]
    out = StringIO()
    Console(file=out, width=200).print(render(result))
    for row, values in result["rows"].items():
        assert row in out.getvalue()
        assert f"{values['recall@5']:.1f}" in out.getvalue()


def test_without_an_encoder_the_dense_rows_are_left_out_with_a_note(multihop: Path) -> None:
    result = bench_multihop(multihop, encoder=None)
    assert set(result["rows"]) == {f"people/{row}" for row in ALL - {"dense", "flat", "hybrid"}}
    assert result["baseline"] == "bm25"
    assert "encoder" in result["notes"][0]
    assert result["rows"]["people/lexical"] == result["rows"]["people/default"]
    assert result["rows"]["people/default"]["all@8"] > result["rows"]["people/bm25"]["all@8"]
    assert result["counts"]["people/questions"] == result["counts"]["questions"] == 6
    assert {"recall@2", "recall@5", "recall@8", "recall@20", "all@8"} < set(result["rows"]["people/bm25"])
