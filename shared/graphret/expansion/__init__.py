"""One-hop expansion of seeds over a graph, and the rankings it can use."""

from collections.abc import Callable

from graphret.errors import InvalidInput
from graphret.expansion.coverage import Coverage
from graphret.expansion.expand import Expand
from graphret.expansion.frontier import Frontier, RankedNodes, Ranking
from graphret.expansion.propagate import Propagate
from graphret.expansion.sage_ranking import SageRanking

RANKINGS: dict[str, Callable[[], Ranking]] = {
    "coverage": Coverage,
    "propagate": Propagate,
    "paper": SageRanking,
}


def ranking_of(ranking: Ranking | str) -> Ranking:
    """Return the ranking, looked up if it is a name; `InvalidInput` if unknown."""
    if not isinstance(ranking, str):
        return ranking
    if ranking not in RANKINGS:
        raise InvalidInput(
            f"ranking: expected one of {', '.join(RANKINGS)}, got {ranking!r}"
        )
    return RANKINGS[ranking]()


__all__ = [
    "RANKINGS",
    "Coverage",
    "Expand",
    "Frontier",
    "Propagate",
    "RankedNodes",
    "Ranking",
    "SageRanking",
    "ranking_of",
]
