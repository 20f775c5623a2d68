"""LangChain's filter dictionaries."""

from __future__ import annotations

from typing import Any

import pytest

from graphret.errors import InvalidInput
from graphret.types import Node
from graphret.where import Where
from langchain_graphret import to_where

NODE = Node("a", ("Table",), "Emma", "text", {"year": 1999, "lang": "en", "tags": ["x", "y"], "at": {"city": "Bath"}})


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ({"year": 1999, "lang": "de"}, False),
        ({"year": {"$gt": 1998, "$lt": 2000}}, True),
        ({"lang": {"$nin": ["en", "de"]}}, False),
        ({"year": {"$between": [1990, 1999]}}, True),
        ({"year": {"$between": (1990, 1998)}}, False),
        ({"year": {"$between": [1990, 1999], "$ne": 1999}}, False),
        ({"tags": {"$contains": "x"}}, True),
        ({"at.city": "Bath"}, True),
        ({"$and": [{"year": 1999}, {"lang": "en"}]}, True),
        ({"$or": [{"year": 1}, {"year": {"$between": [1999, 1999]}}]}, True),
        ({"$not": {"year": {"$between": [1999, 1999]}}}, False),
        ({"$not": [{"year": 1}, {"lang": "en"}]}, False),
        ({"$not": [{"year": 1}, {"lang": "de"}]}, True),
        ({"label": "Table"}, True),
        (Where("$eq", "year", 1999), True),
    ],
)
def test_a_filter_means_what_it_says(condition: Any, expected: bool) -> None:
    where = to_where(condition)
    assert where is not None
    assert where.matches(NODE) is expected


@pytest.mark.parametrize(
    ("condition", "named"),
    [
        ({"lang": {"$like": "e%"}}, r"\$like"),
        ({"year": {"$between": [1, 2, 3]}}, r"\$between on 'year'"),
        ({"$or": {"year": 1}}, r"\$or"),
        ({"$or": ["year"]}, "where"),
        ({"$not": []}, r"\$or"),
        ("year = 1999", "where"),
    ],
)
def test_what_cannot_be_read_is_refused_by_name(condition: Any, named: str) -> None:
    with pytest.raises(InvalidInput, match=named):
        to_where(condition)
