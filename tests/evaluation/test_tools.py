"""The tools that measure and make what the docs and the demo show."""

from __future__ import annotations

import json
from pathlib import Path

import generality
import make_corpus
from bench_loaders import bench_loaders
from venue_files import QUESTION, write_venues


def test_five_ways_find_the_same_files(tmp_path: Path) -> None:
    for part in ("tables", "passages"):
        (tmp_path / part).mkdir()
    write_venues(tmp_path / "passages")
    table = tmp_path / "passages" / "European Athletics Championships.csv"
    table.rename(tmp_path / "tables" / table.name)
    asked = [{"question": QUESTION, "gold": [table.name, "poljud.md"]}]
    (tmp_path / "questions.json").write_text(json.dumps(asked))
    result = bench_loaders(tmp_path, encoder=None, k=(2,), chunk_size=128)
    assert list(result["rows"]) == ["native", "llama_index", "langchain", "from_index", "chroma"]
    assert {row["recall@2"] for row in result["rows"].values()} == {100.0}
    assert {row["MENTIONS"] for row in result["rows"].values()} == {4}


def test_generality_compares_the_default_with_the_best_flat_search_everywhere(ottqa: Path) -> None:
    result = generality.measure(ottqa, (2, 5), limit=4)
    variants = ["whole", "passages", "tables", "untitled", "short", "long"]
    assert list(result["losses"]) == [*variants, "all"]
    assert result["losses"]["all"] == max(result["losses"][variant] for variant in variants)
    assert (result["counts"]["tables/nodes"], result["counts"]["passages/nodes"]) == (4, 6)
    rows = {"bm25": {"recall@5": 51.5, "recall@20": 60.0}, "default": {"recall@5": 50.5, "recall@20": 69.5}}
    assert generality.worst_loss(rows) == 1.0


def test_the_corpus_of_the_demo_has_the_tables_that_are_asked_about(ottqa: Path, tmp_path: Path) -> None:
    (ottqa / "LICENSE").write_text("MIT")
    counts = make_corpus.make(ottqa, tmp_path / "demo")
    assert counts == {"tables": 4, "passages": 6, "questions": 24}
    assert {path.name for path in (tmp_path / "demo").iterdir()} == {
        *("corpus.jsonl.gz", "questions.jsonl.gz", "ATTRIBUTION.md"),
    }
