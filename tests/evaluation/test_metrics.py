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
@given(ids, gold, st.integers(1, 12))
def test_more_places_never_lower_a_measure_and_all_is_full_recall(ranked: list[str], right: set[str], k: int) -> None:
    for measure in (recall_at_k, hit_at_k, all_at_k):
        assert 0 <= measure(ranked, right, k) <= measure(ranked, right, k + 1) <= 1
    recall = recall_at_k(ranked, right, k)
    assert (all_at_k(ranked, right, k) == 1) == (recall == 1)
    assert (hit_at_k(ranked, right, k) == 1) == (recall > 0)


def test_no_gold_no_places_and_values_of_other_questions_are_refused() -> None:
    for act, said in (
        (lambda: mrr(["a"], set()), "gold"),
        (lambda: recall_at_k(["a"], {"a"}, 0), "k: a whole number"),
        (lambda: paired_bootstrap([1.0, 0.0], [1.0]), "same questions"),
        (lambda: paired_bootstrap([], []), "same questions"),
        (lambda: paired_bootstrap([1.0], [0.0], confidence=95), "confidence"),
    ):
        with pytest.raises(InvalidInput, match=said):
            act()


def test_the_interval_holds_the_mean_of_pairs_and_is_the_same_every_time() -> None:
    rng = np.random.default_rng(0)
    theirs = rng.random(400)
    ours = theirs + rng.normal(0.05, 0.1, 400)
    first, wider = paired_bootstrap(ours, theirs), paired_bootstrap(ours, theirs, confidence=0.99)
    assert first == paired_bootstrap(ours, theirs)
    assert first.mean == pytest.approx(float((ours - theirs).mean()))
    assert 0 < wider.low < first.low < first.mean < first.high < wider.high
    assert paired_bootstrap(theirs + 0.01, theirs).low > 0 > paired_bootstrap(theirs[::-1] + 0.01, theirs).low
