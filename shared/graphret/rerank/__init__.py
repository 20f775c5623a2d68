"""Rerankers: models that score what others found, and the retriever that lets one order it."""

from graphret.rerank.cross_encoder import CrossEncoderReranker
from graphret.rerank.rerank import Rerank, Reranker

__all__ = ["CrossEncoderReranker", "Rerank", "Reranker"]
