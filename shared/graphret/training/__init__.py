"""Fitting graphret to labelled questions."""

from graphret.training.fields import fit_fields
from graphret.training.fusion import Case, Tuned, cases_of, tune_fusion

__all__ = ["Case", "Tuned", "cases_of", "fit_fields", "tune_fusion"]
