"""`GraphPlan`: read from a model's reply, checked against a schema, and printed."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from pydantic import ValidationError

from graphret.errors import InvalidInput
from graphret.planning import GraphPlan
from graphret.schema import GraphSchema, PropertySchema

SCHEMA = GraphSchema(
    labels={"paper": 9, "author": 5, "institution": 2, "field_of_study": 3},
    relations={
        ("author", "affiliated_with", "institution"): 5,
        ("author", "writes", "paper"): 12,
        ("paper", "cites", "paper"): 20,
        ("paper", "has_topic", "field_of_study"): 18,
    },
    relation_properties={"writes": {"position": PropertySchema("INTEGER")}},
)
#: As section 3.1 of the paper writes it.
ECKERD: dict[str, Any] = {
    "anchors": [
        {
            "var": "i",
            "text": "Eckerd College",
            "label": "institution",
            "match_mode": "name",
        }
    ],
    "hops": [
        {"from": "i", "rel": "affiliated_with", "to_var": "a", "to_label": "author"},
        {"from": "a", "rel": "writes", "to_var": "T", "to_label": "paper"},
    ],
    "target": {"var": "T", "labels": ["paper"], "relevance_text": "neutron scattering"},
    "risk_level": "normal",
}


def plan(**changes: Any) -> GraphPlan:
    return GraphPlan.model_validate(ECKERD | changes)


def test_a_plan_is_read_written_and_told() -> None:
    read = plan(surplus=1, order={"by": "year", "limit": 3})
    assert read.checked(SCHEMA) is read
    assert GraphPlan.model_validate_json(read.model_dump_json(by_alias=True)) == read
    assert json.loads(read.model_dump_json(by_alias=True))["hops"][0]["from"] == "i"
    told = (
        "T: paper; i = institution “Eckerd College”; i –affiliated_with– a; a –writes–"
        " T; about “neutron scattering”"
    )
    assert str(read) == f"{told}; by most year, the first 3"


HOPS: list[dict[str, Any]] = ECKERD["hops"]
NO_TOPIC = {
    "from": "T",
    "rel": "has_topic",
    "to_var": "f",
    "to_label": "field_of_study",
    "negated": True,
}


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"target": {"labels": ["papers"]}}, "no label 'papers'; there is 'paper'"),
        (
            {"hops": [HOPS[0], HOPS[1] | {"rel": "write"}]},
            "no relation 'write'; there is 'writes'",
        ),
        (
            {"hops": [HOPS[0], HOPS[1] | {"direction": "in"}]},
            "'writes' leads from author to paper",
        ),
        (
            {"hops": [HOPS[0], HOPS[1] | {"rel": ["cites", "writes"]}]},
            "'cites' leads from paper to paper",
        ),
        ({"hops": HOPS[:1]}, "'i' is not joined to the target"),
        (
            {"hops": [*HOPS, {"from": "x", "rel": "cites", "to_var": "y"}]},
            "'x' is not joined",
        ),
        ({"hops": [*HOPS, NO_TOPIC | {"from": "f2"}]}, "'f' is not joined"),
        (
            {"anchors": [], "hops": [], "target": {"labels": ["paper"]}},
            "neither an anchor",
        ),
        ({"anchors": ECKERD["anchors"] * 2}, "'i' has two anchors"),
        ({"where": {"z": {"year": 2010}}}, "variable 'z' is in no anchor"),
        ({"where": {"T": {"year": {"$about": 2010}}}}, "about"),
        (
            {"hops": [HOPS[0], HOPS[1] | {"where": {"positon": 1}}]},
            "'writes' has no property 'positon'; there is 'position'",
        ),
    ],
)
def test_what_is_wrong_is_said(changes: dict[str, Any], problem: str) -> None:
    with pytest.raises(InvalidInput, match=f"plan: .*{re.escape(problem)}"):
        plan(**changes).checked(SCHEMA)


@pytest.mark.parametrize(
    "changes",
    [
        {"hops": [*HOPS, NO_TOPIC]},
        {
            "hops": [
                *HOPS,
                {"from": "T", "rel": ["cites"], "to_var": "p", "direction": "out"},
            ]
        },
        {
            "anchors": [{"var": "T", "text": "neutrons", "match_mode": "doc"}],
            "hops": [],
        },
        {"anchors": [], "hops": [], "where": {"T": {"year": {"$gte": 2010}}}},
        {"anchors": [], "hops": [NO_TOPIC]},
        {"anchors": [], "hops": [], "order": {"by": "year"}},
        {"anchors": [], "hops": [], "count": True},
        {"anchors": [], "hops": [], "cannot": "an average"},
        {"hops": [HOPS[0], HOPS[1] | {"where": {"position": 1}}]},
    ],
)
def test_what_goes_beyond_the_paper_is_valid(changes: dict[str, Any]) -> None:
    plan(**changes).checked(SCHEMA)


@pytest.mark.parametrize(
    "bad",
    [
        {"anchors": [{"var": "i"}]},
        {"hops": [{"from": "a"}]},
        {"hops": HOPS * 5},
        {"risk_level": "mad"},
    ],
)
def test_what_is_no_plan_is_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        plan(**bad)
