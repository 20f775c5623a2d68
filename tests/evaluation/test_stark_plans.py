"""Recorded plans of STaRK become plans of ours, and queries that the guard accepts and a database plans."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from graphret.errors import InvalidInput
from graphret.evaluation import bench_stark_plans
from graphret.evaluation.stark_plans import convert, schema_of

MAG = "institution -> author -> paper <- field_of_study"
TOPICS = {"institution": ["Ulm"], "paper": ["muons"], "field_of_study": ["Physics"]}
TOLD = (
    "T: paper; v1 = institution “Ulm”; v3 = field_of_study “Physics”; v1 –affiliated_with– v2; v2 –writes– T; "
    "v3 –has_topic– T; about “muons”"
)
GENES = [["gene/protein", "target", "drug"], ["disease", "helps", "drug"], ["pathway", "is in", "anatomy"]]
RECORDS: list[tuple[str, Any, Any, bool, str]] = [
    ("mag", MAG, TOPICS, True, TOLD),
    ("mag", "paper -> paper", {"paper": ["A", "B"]}, True, "T: paper; v1 = paper “A”; v1 –cites– T; about “B”"),
    ("mag", None, None, False, "T: node; about “?”"),
    ("amazon", "product", {"product": ["a", "b"]}, True, "T: product; about “?”"),
    ("prime", GENES, {"gene/protein": ["FADS2"]}, False, ""),
]


@pytest.mark.parametrize(("dataset", "metapath", "restriction", "whole", "told"), RECORDS)
def test_a_metapath_becomes_hops(dataset: str, metapath: Any, restriction: Any, whole: bool, told: str) -> None:
    schema = schema_of(dataset)
    record = {"query": "?", "metapath": metapath, "restriction": restriction}
    plan, converted_whole = convert(record, schema)
    assert not plan.problems(schema)
    assert converted_whole is whole
    assert str(plan) == told or not told


def test_what_does_not_fit_is_left_open() -> None:
    paths = [["enzyme", "acts on", "drug"], ["pathway", "is in", "drug"], ["disease", "helps", "drug"]]
    plan, whole = convert({"query": "?", "metapath": paths, "restriction": {"enzyme": ["E1"]}}, schema_of("prime"))
    assert not whole
    helps, acts = plan.hops
    assert helps.rel == ["contraindication", "indication", "off-label use"]
    assert "target" in acts.rel
    assert [anchor.label for anchor in plan.anchors] == [None]


def test_shares_are_counted(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"mag\.val\.jsonl"):
        bench_stark_plans(tmp_path)
    keys = ("query", "metapath", "restriction")
    mag = [record[1:3] for record in RECORDS if record[0] == "mag"]
    lines = [json.dumps(dict(zip(keys, ("?", *record), strict=True))) for record in mag]
    (tmp_path / "mag.val.jsonl").write_text("\n".join(lines))
    rows = bench_stark_plans(tmp_path)["rows"]
    assert rows == {"mag": {"valid": 100.0, "whole": 66.67, "guarded": 100.0, "planned": 100.0}}
