"""`PathWriter`: candidates ranked without a model, by the fit of their paths."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from graphret.graphraft.candidates import Candidate, Prior, Written
from graphret.planning import Hop, PathScorer, PathSpace
from graphret.planning.question import place_of, readings
from graphret.planning.scorer import masked

#: What it costs to leave out an entity, and each power of ten of the results: of two
#: paths that fit alike that with fewer comes first.
LEFT_OUT, RESULTS = 1.0, 0.1


class PathWriter:
    """Ranks candidates without a model, as `graphret.planning.PathPlanner` does.

    A candidate costs what its paths cost: words left unread, hops that no word names,
    an end of another kind than asked for; more the more it finds, the less of an
    entity's name the question has, and the more entities it leaves out. The
    probabilities are the softmax of these costs.

    Parameters
    ----------
    space
        The kinds of paths in the graph.
    scorer
        What ``graphret train paths`` learned; by default words are read as general
        English has them.
    """

    name = "paths"

    def __init__(self, space: PathSpace, scorer: PathScorer | None = None) -> None:
        self.space = space
        self.scorer = scorer or PathScorer()

    def rank(
        self,
        question: str,
        candidates: Sequence[Candidate],
        most: int,
        prior: Prior = None,
    ) -> Written:
        """Return the places of the best candidates with their probabilities."""
        if not candidates:
            return []
        walks = [walk for candidate in candidates for walk in candidate.walks]
        question_words, places, facts = fits(question, walks, self.space)
        costs = RESULTS * np.log10(
            [candidate.size + 1 for candidate in candidates]
        ) - np.asarray(prior or 0.0)
        of_walks = self.scorer.costs(
            question_words, self.scorer.parts_of([path for _, path in walks]), facts
        )
        np.add.at(
            costs,
            np.repeat(
                np.arange(len(candidates)),
                [len(candidate.walks) for candidate in candidates],
            ),
            of_walks,
        )
        spots = [
            {places[name][:2] for name, _ in candidate.walks}
            for candidate in candidates
        ]
        costs += LEFT_OUT * (
            len(set().union(*spots)) - np.asarray([len(spot) for spot in spots])
        )
        shares = np.exp(costs.min() - costs)
        shares /= shares.sum()
        return [
            (place, float(shares[place]))
            for place in np.argsort(costs, kind="stable")[:most].tolist()
        ]


def fits(
    question: str, walks: Sequence[tuple[str, tuple[Hop, ...]]], space: PathSpace
) -> tuple[Sequence[str], dict[str, tuple[int, int, float]], NDArray[np.float64]]:
    """Return how ill paths of a space, each from a name, fit a question.

    Returns
    -------
    words, places, facts
        The question as a `PathScorer` reads it, the `place_of` each name, and what the
        scorer weighs of each path, ``(walks, 3)``, the number of results left at 0.
    """
    places = {name: place_of(question, name) for name, _ in walks}
    facts, hops = np.zeros((len(walks), 3)), np.full((len(walks), 3), -1)
    for row, (_, path) in enumerate(walks):
        hops[row, : len(path)] = [space.number[hop] for hop in path]
    for name, (start, end, share) in places.items():
        rows = [i for i, (other, _) in enumerate(walks) if other == name]
        other_names = frozenset(
            place[:2]
            for place in places.values()
            if place[2] and place[:2] != (start, end)
        )
        labels = sorted({walks[i][1][0].start for i in rows})
        facts[rows, 0] = space.costs(
            readings(question, start, end, other_names, space.lexicon),
            labels,
            hops[rows],
        )
        facts[rows, 2] = 1 - share
    return (
        masked(question, [place[:2] for place in places.values() if place[2] == 1]),
        places,
        facts,
    )
