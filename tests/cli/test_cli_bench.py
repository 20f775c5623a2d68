"""``graphret bench`` on data small enough to know the answer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_helpers import graphret


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    passages = {
        "Ann Ames": ["Ann Ames directed the film Dawn.", "She was born in Kent."],
        "Dawn": ["Dawn is a film of 1999."],
        "Kent": ["Kent is a county in England."],
        "Ohio": ["Ohio is a state."],
    }
    asked = [
        {"question": "Who directed Dawn of 1999?", "supporting_facts": [["Dawn", 0], ["Ann Ames", 0]]},
        {"question": "Which county is Ann Ames from?", "supporting_facts": [["Kent", 0], ["Ann Ames", 1]]},
    ]
    (folder / "tiny_corpus.json").write_text(json.dumps(passages))
    (folder / "tiny.json").write_text(json.dumps(asked))
    return folder


def test_a_benchmark_prints_and_writes_the_same_result(data: Path, tmp_path: Path) -> None:
    file = tmp_path / "results" / "tiny.json"
    ran = graphret("bench", "multihop", "--data", data, "--encoder", "none", "--k", "1,2", "--json", file)
    assert ran.code == 0, ran.err
    assert "recall@2" in ran.out
    written = json.loads(file.read_text(encoding="utf-8"))
    assert written["name"] == "multihop"
    assert written["counts"]["questions"] == 2
    assert written["rows"]["tiny/default"]["recall@2"] == 100.0
    assert written["rows"].keys() >= {"tiny/bm25", "tiny/paper", "tiny/propagate", "tiny/coverage", "tiny/lexical"}
    again = graphret("bench", "multihop", "--data", data, "--encoder", "none", "--limit", 1, "--json", "-").json
    assert (again["counts"]["questions"], again["counts"]["nodes"]) == (1, 4)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--split", "nonsense"], "'nonsense'"),
        (["--hops", "1"], "--hops: the benchmark multihop does not know it"),
        (["--k", "one"], "Invalid value for '-k'"),
        (["--limit", "0"], "--limit"),
    ],
)
def test_an_option_that_says_nothing_here_is_2(data: Path, arguments: list[str], said: str) -> None:
    ran = graphret("bench", "multihop", "--data", data, "--encoder", "none", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err
