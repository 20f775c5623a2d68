"""Tuning the fusion of GRASP on labelled questions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphret.errors import InvalidInput
from graphret.grasp import GraspSettings, StaticWeights
from graphret.training.fusion import FusionCase, tune_fusion
from graphret.types import Signals


def case(plan: str, text: str, gold: str) -> FusionCase:
    return FusionCase(
        plan.split(), text.split(), Signals(plan_valid=True), frozenset(gold.split())
    )


def test_where_the_text_is_right_its_weight_is_high_and_the_other_way_round() -> None:
    _, of_text = tune_fusion(
        [case("x y g", "g y z", "g")] * 20, GraspSettings(weights=StaticWeights(0.9))
    )
    assert (of_text["default"]["hit@1"], of_text["tuned"]["hit@1"]) == (0, 100)
    settings, of_plan = tune_fusion(
        [case("g y x", "x y g", "g")] * 20, GraspSettings(weights=StaticWeights(0.1))
    )
    assert (settings.weights.graph > 0.5, of_plan["tuned"]["hit@1"]) == (True, 100)


cases = st.builds(
    FusionCase,
    st.lists(st.sampled_from("abcdefg"), unique=True, max_size=5),
    st.lists(st.sampled_from("abcdefg"), unique=True, max_size=5),
    st.builds(Signals, plan_valid=st.booleans()),
    st.frozensets(st.sampled_from("abcdefg"), min_size=1, max_size=2),
)


@given(st.lists(cases, min_size=10, max_size=30))
def test_it_never_ends_below_the_default(asked: list[FusionCase]) -> None:
    _, metrics = tune_fusion(asked)
    assert metrics["tuned"]["hit@1"] >= metrics["default"]["hit@1"]


@given(cases, st.floats(0, 1), st.sampled_from([1, 10, 60]))
def test_fusion_of_two_lists(one: FusionCase, w: float, k: float) -> None:
    assert FusionCase(one.text, one.plan, one.signals, one.gold).ranked(
        [1 - w, w], k
    ) == one.ranked([w, 1 - w], k)
    assert one.ranked([1, 0], k)[: len(one.plan)] == list(one.plan)
    assert one.ranked([0, 1], k)[: len(one.text)] == list(one.text)
    if len(one.plan) > 1:  # a node that rises in a list does not fall in the fusion
        raised = FusionCase(
            [one.plan[-1], *one.plan[:-1]], one.text, one.signals, one.gold
        )
        node = one.plan[-1]
        assert raised.ranked([w, 1 - w], k).index(node) <= one.ranked(
            [w, 1 - w], k
        ).index(node)


def test_too_few_questions_are_refused() -> None:
    with pytest.raises(InvalidInput, match="at least 10"):
        tune_fusion([case("a", "b", "a")] * 9)
