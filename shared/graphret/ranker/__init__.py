"""A ranking trained on questions and answers, on top of an expansion's ranking."""

from graphret.ranker.features import features_of
from graphret.ranker.trained import LearnedRanking

__all__ = ["LearnedRanking", "features_of"]
