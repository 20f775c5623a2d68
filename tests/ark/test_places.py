"""Where nodes are in an index, after writes of either."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphret.ark import places
from graphret.ark.places import Places, aligned
from graphret.columns import Strings
from graphret.nodes import NodeTable
from graphret.types import Node

IDS = st.lists(st.text("abé\U0001f600", min_size=1, max_size=3), unique=True, max_size=60).map(sorted)


def _table(ids: list[str]) -> NodeTable:
    return NodeTable.of(Node(one) for one in ids)


@given(IDS, IDS)
def test_aligned_is_where_each_string_is(ids: list[str], others: list[str]) -> None:
    found = aligned(Strings.of(ids), Strings.of(others))
    if found is None:
        assert len(set(ids) ^ set(others)) > 64
    else:
        assert found.tolist() == [others.index(one) if one in others else -1 for one in ids]


@given(st.lists(st.tuples(IDS, IDS), min_size=1, max_size=4))
def test_places_follow_writes_of_the_graph_and_of_the_index(states: list[tuple[list[str], list[str]]]) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(places, "_FEW", -1)
        known = Places()
        for ids, indexed in states:
            nodes, table = _table(ids), _table(indexed)
            expected = [indexed.index(one) if one in indexed else -1 for one in ids]
            for _ in range(2):
                assert known.of(nodes, table, np.arange(len(ids))).tolist() == expected
