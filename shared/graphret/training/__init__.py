"""Fitting graphret to labelled questions."""

from graphret.training.fields import fit_fields
from graphret.training.fusion import Case, Tuned, cases_of, tune_fusion
from graphret.training.paths import Choice, fit_scorer, train_paths
from graphret.training.questions import Question, read_questions

__all__ = [
    "Case",
    "Choice",
    "Question",
    "Tuned",
    "cases_of",
    "fit_fields",
    "fit_scorer",
    "read_questions",
    "train_paths",
    "tune_fusion",
]
