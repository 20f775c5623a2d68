"""A trace that has become JSON becomes a trace again, and shows the same timeline."""

from __future__ import annotations

import json
from typing import Any

import pytest
from timeline_helpers import explored

from graphret.errors import InvalidInput
from graphret.types import Stage, Trace


def test_it_shows_the_same_timeline() -> None:
    _, retrieval, _ = explored()
    written = json.loads(json.dumps(retrieval.to_dict()["trace"]))
    read = Trace.from_dict(written)
    assert read.to_dict() == written
    for stage in retrieval.trace.stages:
        stage.seconds = round(stage.seconds, 6)  # as it was written
    assert read.html(title="t") == retrieval.trace.html(title="t")
    assert [stage.name for stage in read.fallbacks] == [stage.name for stage in retrieval.trace.fallbacks]
    assert Trace.from_dict({"stages": [{"name": "a", "seconds": 1, "n": 2}]}).stages == [Stage("a", 1, {"n": 2})]


@pytest.mark.parametrize(
    ("given", "named"),
    [
        (None, "an object with a list of stages is expected"),
        ([], "an object with a list of stages is expected"),
        ({}, "an object with a list of stages is expected"),
        ({"stages": "vote"}, "an object with a list of stages is expected"),
        ({"stages": [{"name": "a", "seconds": 0}, 5]}, r"stages\[1\]: an object is expected, not 5"),
        ({"stages": [{"seconds": 0}]}, r"stages\[0\].name: a string is expected, not None"),
        ({"stages": [{"name": "a", "seconds": "1"}]}, r"stages\[0\].seconds: a number is expected, not '1'"),
        ({"stages": [{"name": "a"}]}, r"stages\[0\].seconds: a number is expected, not None"),
    ],
)
def test_what_is_no_trace_is_refused(given: Any, named: str) -> None:
    with pytest.raises(InvalidInput, match=f"trace: {named}"):
        Trace.from_dict(given)
