"""Rerankers: models that score what others found."""

from graphret.rerank.cross_encoder import CrossEncoderReranker

__all__ = ["CrossEncoderReranker"]
