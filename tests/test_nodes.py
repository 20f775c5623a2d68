"""Where the nodes of one table are in another."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from graphret.nodes import NodeTable
from graphret.types import Node

IDS = st.sets(st.sampled_from("abcdefgh"))


@given(IDS, IDS, IDS, IDS, st.sampled_from(["made of it", "of itself", "unrelated"]))
def test_places_in_another_table(first: set[str], more: set[str], gone: set[str], fresh: set[str], made: str) -> None:
    before = NodeTable.of(map(Node, first))
    after = before.changed([Node(i, name="new") for i in more], gone - more)
    if made == "of itself":
        after = before
    if made == "unrelated":
        before = NodeTable.of(map(Node, first))
    at = {node_id: i for i, node_id in enumerate(before.ids)}
    expected = [-1 if node_id in fresh else at.get(node_id, -1) for node_id in after.ids]
    assert after.places_in(before, sorted(fresh)).tolist() == expected
