"""The measures of a ranking, and the interval of a difference."""

from __future__ import annotations

import numpy as np
import pytest

from graphret.evaluation import all_at_k, hit_at_k, mrr, paired_bootstrap, recall_at_k


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


def test_the_interval_holds_the_mean_of_pairs_and_is_the_same_every_time() -> None:
    rng = np.random.default_rng(0)
    theirs = rng.random(400)
    ours = theirs + rng.normal(0.05, 0.1, 400)
    first, wider = paired_bootstrap(ours, theirs), paired_bootstrap(ours, theirs, confidence=0.99)
    assert first == paired_bootstrap(ours, theirs)
    assert first.mean == pytest.approx(float((ours - theirs).mean()))
    assert 0 < wider.low < first.low < first.mean < first.high < wider.high
    assert paired_bootstrap(theirs + 0.01, theirs).low > 0 > paired_bootstrap(theirs[::-1] + 0.01, theirs).low
