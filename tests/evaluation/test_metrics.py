"""The measures of a ranking, and the interval of a difference."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphret.errors import InvalidInput
from graphret.evaluation import all_at_k, hit_at_k, mrr, paired_bootstrap, recall_at_k

ids = st.lists(st.sampled_from("abcdefghij"), unique=True)
gold = st.sets(st.sampled_from("abcdefghijxyz"), min_size=1)
ks = st.integers(1, 12)


def test_worked_by_hand() -> None:
    ranked, right = ["a", "b", "c", "d"], {"b", "d", "z"}
    assert recall_at_k(ranked, right, 1) == 0
    assert recall_at_k(ranked, right, 2) == pytest.approx(1 / 3)
    assert recall_at_k(ranked, right, 9) == pytest.approx(2 / 3)
    assert [hit_at_k(ranked, right, k) for k in (1, 2, 4)] == [0, 1, 1]
    assert all_at_k(ranked, right, 4) == 0
    assert all_at_k(ranked, {"b", "a"}, 2) == 1
    assert mrr(ranked, right) == 0.5
    assert mrr(ranked, {"z"}) == 0


@settings(max_examples=25)
@given(ids, gold, ks)
def test_more_places_never_lower_a_measure_and_all_is_full_recall(ranked: list[str], right: set[str], k: int) -> None:
    for measure in (recall_at_k, hit_at_k, all_at_k):
        assert 0 <= measure(ranked, right, k) <= measure(ranked, right, k + 1) <= 1
    recall = recall_at_k(ranked, right, k)
    assert all_at_k(ranked, right, k) <= recall <= hit_at_k(ranked, right, k)
    assert (all_at_k(ranked, right, k) == 1) == (recall == 1)
    assert (hit_at_k(ranked, right, k) == 1) == (recall > 0)


@pytest.mark.parametrize("measure", [recall_at_k, hit_at_k, all_at_k])
def test_no_gold_and_no_places_are_refused(measure: object) -> None:
    assert callable(measure)
    with pytest.raises(InvalidInput, match="gold"):
        measure(["a"], set(), 1)
    with pytest.raises(InvalidInput, match="k: a whole number"):
        measure(["a"], {"a"}, 0)


def test_the_interval_holds_the_mean_and_is_the_same_every_time() -> None:
    rng = np.random.default_rng(0)
    theirs = rng.random(300)
    ours = theirs + rng.normal(0.05, 0.1, 300)
    first = paired_bootstrap(ours, theirs)
    assert first == paired_bootstrap(ours, theirs)
    assert first.low < first.mean < first.high
    assert first.mean == pytest.approx(float((ours - theirs).mean()))
    assert first.low > 0
    wider = paired_bootstrap(ours, theirs, confidence=0.99)
    assert wider.low < first.low < first.high < wider.high


def test_pairing_counts() -> None:
    """Questions differ far more than systems do: only pairs show a small difference."""
    rng = np.random.default_rng(2)
    theirs = rng.random(400)
    assert paired_bootstrap(theirs + 0.01, theirs).low > 0
    assert paired_bootstrap(rng.permutation(theirs) + 0.01, theirs).low < 0


def test_values_of_other_questions_are_refused() -> None:
    for ours, theirs in (([1.0, 0.0], [1.0]), ([], [])):
        with pytest.raises(InvalidInput, match="same questions"):
            paired_bootstrap(ours, theirs)
    with pytest.raises(InvalidInput, match="confidence"):
        paired_bootstrap([1.0], [0.0], confidence=95)
