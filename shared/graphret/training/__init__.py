"""Fitting graphret to labelled questions."""

from graphret.training.fusion import FusionCase, cases_of, tune_fusion
from graphret.training.lora import Example, LoRASettings, fine_tune
from graphret.training.paths import PathChoice, fit_scorer, train_paths
from graphret.training.queries import SynthesisReport, synthesize
from graphret.training.questions import LabelledQuestion, read_questions
from graphret.training.ranker import train_ranking
from graphret.training.writer import train_reasoner, train_writer

__all__ = [
    "Example",
    "FusionCase",
    "LabelledQuestion",
    "LoRASettings",
    "PathChoice",
    "SynthesisReport",
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
