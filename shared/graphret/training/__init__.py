"""Fitting graphret to labelled questions."""

from graphret.training.fusion import Case, cases_of, tune_fusion
from graphret.training.lora import Example, Tuning, fine_tune
from graphret.training.paths import Choice, fit_scorer, train_paths
from graphret.training.queries import Report, synthesize
from graphret.training.questions import LabelledQuestion, read_questions
from graphret.training.ranker import train_ranking
from graphret.training.writer import train_reasoner, train_writer

__all__ = [
    "Case",
    "Choice",
    "Example",
    "LabelledQuestion",
    "Report",
    "Tuning",
    "cases_of",
    "fine_tune",
]
__all__ += [
    "fit_scorer",
    "read_questions",
    "synthesize",
    "train_paths",
    "train_ranking",
    "train_reasoner",
    "train_writer",
]
__all__ += ["tune_fusion"]
