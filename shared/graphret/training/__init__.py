"""Fitting graphret to labelled questions."""

from graphret.training.fields import fit_fields
from graphret.training.fusion import Case, cases_of, tune_fusion
from graphret.training.paths import Choice, fit_scorer, train_paths
from graphret.training.questions import Question, read_questions
from graphret.training.ranking import tune_ranking
from graphret.training.tuned import Tuned

__all__ = ["Case", "Choice", "Question", "Tuned", "cases_of", "fit_fields", "fit_scorer", "read_questions"]
__all__ += ["train_paths", "tune_fusion", "tune_ranking"]
