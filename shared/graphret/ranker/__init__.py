"""A ranking that learned of questions and answers, on top of what an expansion
found.
"""

from graphret.ranker.features import features_of
from graphret.ranker.trained import LearnedRanking

__all__ = ["LearnedRanking", "features_of"]
