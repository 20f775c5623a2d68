"""Voting over ordered lists, and when a vote can no longer change."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphret.errors import InvalidInput
from graphret.fusion import VOTES, settled, vote

HOW = st.sampled_from(sorted(VOTES))
LISTS = st.lists(st.lists(st.sampled_from("abcd"), unique=True, max_size=3), min_size=1, max_size=3)


def ids(lists: list[list[str]], how: str = "votes") -> list[str]:
    return [one.id for one in vote(lists, how)]


def test_frequency_comes_first_then_the_earliest_position_then_the_order_of_the_voters() -> None:
    assert ids([["a", "b", "c"], ["d", "b"], ["c", "e"]]) == ["c", "b", "a", "d", "e"]
    first = vote([["x"], ["y", "x"]])[0]
    assert (first.id, first.votes, first.voters, first.position) == ("x", 2, (0, 1), 1)


def test_the_named_alternatives() -> None:
    lists = [["a", "b"], ["b", "c"], ["c"]]
    assert ids(lists, "ordered") == ["a", "b", "c"]
    assert ids(lists, "reciprocal") == ["b", "c", "a"]  # 1/61 + 1/62 twice, b seen first in an earlier list
    with pytest.raises(InvalidInput, match="random"):
        vote(lists, "random")


@settings(max_examples=25)
@given(LISTS, st.sets(st.integers(0, 2)), HOW, st.integers(1, 2))
def test_settled_is_exactly_that_no_continuation_changes_the_top(
    lists: list[list[str]], growing: set[int], how: str, top: int
) -> None:
    running = growing & set(range(len(lists)))
    alphabet = "abcdef"  # two nodes more than anyone has selected

    def continuations(number: int) -> list[list[str]]:
        own = lists[number]
        if number not in running:
            return [own]
        rest = [node for node in alphabet if node not in own]
        return [[*own, *more] for size in range(3) for more in itertools.permutations(rest, size)]

    expected = not running or len(ids(lists, how)) >= top
    expected = expected and all(
        ids(list(after), how)[:top] == ids(lists, how)[:top]
        for after in itertools.product(*map(continuations, range(len(lists))))
    )
    assert settled(lists, running, top=top, how=how) == expected
