"""How much links count for a question: from nothing, which is hybrid search, to all.

A question that one passage answers needs no links: they would only bring what lies near
the answer. So links count as far as linked nodes cover more of the question than the
best node by itself. Less is needed where the question names one of the two nodes, or
the pair is a table row with the page it names: neither is an accident.
docs/concepts/expansion.md has the measurements.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from graphret.expansion.frontier import Frontier
from graphret.stopwords import STOP_WORDS, is_informative
from graphret.text import normalize_name, spoken_forms, tokenize

# Links begin to count from this gain on, or from this far below none where a link is
# expected, and count in full `_SLOPE` further up. From `_SURE` on they may put another
# hit in the place of the first one of hybrid search. All are shares of the question.
_LEAST_GAIN, _BELOW_IF_EXPECTED, _SLOPE, _SURE = 0.06, 0.25, 0.2, 0.15


def linked_gain(frontier: Frontier, linked: float, single: float) -> float:
    """Return how much more of a question linked nodes cover than one node.

    Parameters
    ----------
    linked, single
        BM25F weights of the question's terms in the best pair or triple, and in the
        best node.

    Returns
    -------
    float
        The difference as a share of the most that a text could cover.
    """
    ceiling = max(frontier.index.lexical.ceiling(frontier.query), 1e-9)
    return (linked - single) / ceiling


class LinkTrust(NamedTuple):
    """How much links count, 0 … 1, and whether they may choose the first hit."""

    share: float
    sure: bool


def trust_in_links(gain: float, *, expected: bool) -> LinkTrust:
    """Return how much links count for a question.

    Parameters
    ----------
    gain
        What `linked_gain` returns.
    expected
        Whether the question names one of the two nodes of its best pair, or that pair
        is a table row with the page it names.
    """
    margin = _BELOW_IF_EXPECTED if expected else -_LEAST_GAIN
    share = float(np.clip((gain + margin) / _SLOPE, 0, 1))
    return LinkTrust(share, sure=share == 1 and gain >= _SURE)


def mentions_any(question: str, names: list[str]) -> bool:
    """Tell whether a question says one of the names, in full or without its brackets.

    A name of everyday words alone does not count, nor does one written in lower case:
    “prompt caching” need not be the page “Prompt caching”. In a question all in lower
    case nobody can tell, so the name counts.
    """
    normalized = f" {normalize_name(question)} "
    written = {
        word for word, start, _ in tokenize(question) if not question[start].islower()
    }
    has_case = question != question.lower()
    forms = (form for name in names for form in spoken_forms(name))
    return any(
        f" {form} " in normalized
        and is_informative(form.split(), STOP_WORDS)
        and (not has_case or not written.isdisjoint(form.split()))
        for form in forms
    )
