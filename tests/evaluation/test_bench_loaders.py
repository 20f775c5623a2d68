"""The benchmark of the frameworks' own loaders."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from venues import QUESTION, write_venues

from graphret.errors import InvalidInput
from graphret.evaluation import bench_loaders


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
    assert result["counts"]["questions"] == 1


def test_a_folder_without_questions_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"questions\.json"):
        bench_loaders(tmp_path)
