"""One-hop expansion of seeds over a graph, and the rankings it can use."""

from graphret.expansion.coverage import Coverage
from graphret.expansion.expand import Expand
from graphret.expansion.frontier import Frontier, Ranked, Ranking
from graphret.expansion.paper import Paper
from graphret.expansion.propagate import Propagate

RANKINGS: dict[str, type[Ranking]] = {"coverage": Coverage, "propagate": Propagate, "paper": Paper}

__all__ = ["RANKINGS", "Coverage", "Expand", "Frontier", "Paper", "Propagate", "Ranked", "Ranking"]
