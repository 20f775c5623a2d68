"""The demo: search in a small corpus that comes with the package."""

from graphret.demo.comparison import DemoResult, QuestionComparison, run
from graphret.demo.data import DemoQuestion, load_corpus, load_questions

__all__ = [
    "DemoQuestion",
    "DemoResult",
    "QuestionComparison",
    "load_corpus",
    "load_questions",
    "run",
]
