"""Tuning the fusion of GRASP on labelled questions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphret.errors import InvalidInput
from graphret.graphs import read_metaqa
from graphret.graphs.example import ALIASES, KB
from graphret.grasp import DynamicWeights, Grasp, GraspSettings, StaticWeights
from graphret.grasp.settings import RISKS
from graphret.planning import PathPlanner
from graphret.search import BM25Index
from graphret.training import LabelledQuestion
from graphret.training.fusion import (
    FusionCase,
    rerank_cases_of,
    tune_fusion,
    tune_reranking,
)
from graphret.types import Hit, Signals


def case(
    plan: str, text: str, gold: str, candidates: int = 5, risk: str = "normal"
) -> FusionCase:
    return FusionCase(
        plan.split(),
        text.split(),
        Signals(candidates, plan_valid=True, risk=risk),
        frozenset(gold.split()),
    )


SURE = case("z u v", "a b c", "z", candidates=3, risk="aggressive")
UNSURE = case("a b c", "z u v", "z", candidates=700, risk="no_trade")


def test_where_risk_is_informative_the_weights_are_dynamic() -> None:
    settings, metrics = tune_fusion(
        [SURE] * 10 + [UNSURE] * 10, GraspSettings(weights=StaticWeights(0.5))
    )
    assert isinstance(settings.weights, DynamicWeights)
    assert metrics["dynamic"]["hit@1"] == 100
    assert metrics["static"]["hit@1"] <= 50


def test_where_it_is_not_both_do_as_well_and_the_weights_stay_static() -> None:
    alike = [case("z u v", "a b c", "z", risk=risk) for risk in RISKS] * 5
    settings, metrics = tune_fusion(alike, GraspSettings(weights=StaticWeights(0.1)))
    assert isinstance(settings.weights, StaticWeights)
    assert metrics["dynamic"] == metrics["static"] == metrics["tuned"]


class Backwards:
    """Gives the last hit the highest score."""

    name = "backwards"

    def scores(self, query: str, hits: list[Hit]) -> list[float]:
        return [float(place) for place in range(len(hits))]


def test_the_weight_of_a_reranker_is_swept_too() -> None:
    store = read_metaqa(KB).store()
    grasp = Grasp(PathPlanner(store, aliases=ALIASES), store, BM25Index.of_store(store))
    question = "who directed Near Dark"
    first = grasp.fused.retrieve(question, 1).ids
    asked = [LabelledQuestion(question, frozenset(first))]
    [one] = rerank_cases_of(grasp, GraspSettings(), Backwards(), asked)  # type: ignore[arg-type]
    assert one.plan == one.text[::-1]
    assert one.text[:1] == first
    worse, metrics = tune_reranking([one] * 10, GraspSettings(rerank_weight=0.9))
    assert worse.rerank_weight < 0.5
    assert (metrics["default"]["hit@1"], metrics["tuned"]["hit@1"]) == (0, 100)
    best = FusionCase(one.text, one.plan, one.signals, one.gold)
    assert tune_reranking([best] * 10, GraspSettings())[0].rerank_weight >= 0.5


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
    st.builds(
        Signals,
        st.integers(0, 900),
        plan_valid=st.booleans(),
        risk=st.sampled_from(RISKS),
    ),
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
