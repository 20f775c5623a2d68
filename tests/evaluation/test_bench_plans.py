"""The benchmark of plans: its data is what its generator makes, and the figures that
are asked for hold, on the domains that nothing was tuned on too.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from graphret.errors import InvalidInput
from graphret.evaluation import bench_plans

DATA = Path(__file__).parents[1] / "benchmarks" / "plans"


def test_the_data_is_what_its_generator_makes(tmp_path: Path) -> None:
    subprocess.run([sys.executable, DATA / "make.py", tmp_path], check=True)
    made = {path.relative_to(tmp_path) for path in tmp_path.glob("*/*.jsonl")}
    assert made == {path.relative_to(DATA) for path in DATA.glob("*/*.jsonl")}
    for path in made:
        assert (tmp_path / path).read_text("utf-8") == (DATA / path).read_text("utf-8")


def test_plans_are_right_or_say_that_they_may_not_be() -> None:
    result = bench_plans(DATA)
    for domain in ("business", "clinic", "helpdesk"):
        row = result["rows"][f"{domain}, grasp/all"]
        assert row["right@1"] >= 70
        assert row["wrong unsigned"] <= 10
        assert result["rows"][f"{domain}, spark/all"]["right@1"] == 100
        assert result["counts"][f"{domain}, grasp/all"] >= 40
    assert "right@1" not in result["rows"]["clinic, grasp/unanswerable"]
    assert result["counts"]["business_nodes"] > 100


def test_data_that_is_malformed_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"expected folders with nodes\.jsonl"):
        bench_plans(tmp_path)
    shutil.copytree(DATA / "clinic", tmp_path / "clinic")
    (tmp_path / "clinic" / "questions.jsonl").write_text('{"question": "Who?"}\n')
    with pytest.raises(InvalidInput, match=r"questions\.jsonl, line 1: expected"):
        bench_plans(tmp_path)
