"""Rerankers: models that score what others found, and the retriever that lets one order
it.
"""

from graphret.rerank.cross_encoder import CrossEncoderReranker
from graphret.rerank.hit_text import HitText
from graphret.rerank.language_models import (
    CausalReranker,
    ScoringReranker,
    YesNoReranker,
)
from graphret.rerank.rerank import Rerank, Reranker, Scores

__all__ = [
    "CausalReranker",
    "CrossEncoderReranker",
    "HitText",
    "Rerank",
    "Reranker",
    "Scores",
    "ScoringReranker",
    "YesNoReranker",
]
