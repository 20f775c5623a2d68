"""Rerankers, models that score hits, and the retriever that reorders hits by one."""

from graphret.rerank.cross_encoder import CrossEncoderReranker
from graphret.rerank.hit_text import HitText, HitTexts, KeyValueText
from graphret.rerank.language_models import (
    PAPER_INSTRUCTIONS,
    CausalReranker,
    Judgement,
    ScoringReranker,
    YesNoReranker,
    load_reranker,
)
from graphret.rerank.rerank import Rerank, Reranker, Scores

__all__ = [
    "PAPER_INSTRUCTIONS",
    "CausalReranker",
    "CrossEncoderReranker",
    "HitText",
    "HitTexts",
    "Judgement",
    "KeyValueText",
    "Rerank",
    "Reranker",
    "Scores",
    "ScoringReranker",
    "YesNoReranker",
    "load_reranker",
]
