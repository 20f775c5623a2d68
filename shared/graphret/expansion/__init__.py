"""One-hop expansion of seeds over a graph, and the rankings it can use."""

from pathlib import Path
from typing import Any

from graphret.errors import InvalidInput
from graphret.expansion.coverage import Coverage
from graphret.expansion.expand import Expand
from graphret.expansion.frontier import Frontier, Ranked, Ranking
from graphret.expansion.paper import Paper
from graphret.expansion.propagate import Propagate
from graphret.expansion.trained import Trained
from graphret.retriever import load_settings

RANKINGS: dict[Any, Any] = {"coverage": Coverage, "propagate": Propagate, "paper": Paper}


def ranking_of(ranking: Ranking | str | Path) -> Ranking:
    """Return a ranking, by its name or of the file that ``graphret tune --method sage`` wrote, where it is none itself.

    An `InvalidInput` says that there is no such ranking or file, or what is wrong with the file.
    """
    if not isinstance(ranking, str | Path):
        return ranking
    named = RANKINGS.get(ranking)
    if named is None and not Path(ranking).is_file():
        raise InvalidInput(f"ranking: one of {', '.join(RANKINGS)} or a file is expected, not {str(ranking)!r}")
    made: Ranking = named() if named else load_settings(ranking, lambda given: RANKINGS[given["name"]](**given))
    return made


__all__ = ["RANKINGS", "Coverage", "Expand", "Frontier", "Paper", "Propagate", "Ranked", "Ranking"]
__all__ += ["Trained", "ranking_of"]
